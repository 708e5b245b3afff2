"""
When a node's report is written.

    something changed     at once, if nothing changed for `GAP` seconds; else then, with what is newest by then
    by and by             what only people look at, as the progress of a pull: `LEISURE` seconds later, and never sooner
                          than `GAP` seconds after any other report. It holds up no change: the end of a pull is told at once
    nothing changed       every heartbeat, give or take a fifth of it
    it went wrong         again after a while, longer each time

Times are seconds by a clock that never goes back; nobody waits here.
"""

import random
from typing import Final

from lamina.services.node_agent.report_backoff import ReportBackoff

GAP: Final = 10.0
"""Seconds between two changes, and up to `JITTER` more, so that nodes that pull together do not write together."""
JITTER: Final = 2.0
LEISURE: Final = 20.0
SWING: Final = 0.2
"""By how much of itself a heartbeat may be shorter or longer."""
SLACK: Final = 1.25
"""What a reader of reports is promised, in heartbeats: the longest one, and a moment to write it."""
NEVER: Final = float("inf")
ALWAYS: Final = float("-inf")


class ReportSchedule:
    """The next time to write."""

    def __init__(self, heartbeat: float, rng: random.Random, patience: ReportBackoff) -> None:
        """Begin with nothing written and nothing to write."""
        self.heartbeat = heartbeat
        self._rng = rng
        self._patience = patience
        self._change_at = self._leisure_at = self._beat_at = NEVER
        """From when on there is something to write, for each of three reasons."""
        self._no_change_before = self._nothing_before = ALWAYS

    @property
    def renews_within(self) -> float:
        """Seconds within which another report is promised."""
        return float(round(self.heartbeat * SLACK))

    @property
    def due(self) -> float:
        """When to write; infinity while there is nothing to write."""
        change = max(self._change_at, self._no_change_before)
        return min(change, max(min(self._leisure_at, self._beat_at), self._nothing_before))

    def changed(self, now: float, *, at_leisure: bool = False) -> None:
        """There is something to tell, at once or by and by."""
        if at_leisure:
            self._leisure_at = min(self._leisure_at, now + LEISURE)
        else:
            self._change_at = min(self._change_at, now)

    def unchanged(self) -> None:
        """There is nothing to tell any more: what had changed is as it was."""
        self._change_at = self._leisure_at = NEVER

    def written(self, now: float, *, at_leisure: bool = False) -> None:
        """A report was written, with all there was to tell when it was begun; *at_leisure* if no change was in it."""
        self._patience.went_well()
        self.unchanged()
        self._nothing_before = now + GAP + JITTER * self._rng.random()
        if not at_leisure:
            self._no_change_before = self._nothing_before
        self._beat_at = now + self.heartbeat * (1 + SWING * (2 * self._rng.random() - 1))

    def failed(self, now: float, asked: float | None = None) -> float:
        """A report was not written; return after how many seconds it will be tried again."""
        wait = self._patience.after_failure(asked)
        self._change_at = now
        self._no_change_before = self._nothing_before = now + wait
        return wait
