"""
Schedule of a node's reports.

    a change            at once, if there was no report for `GAP` seconds; else after that, with the newest data
    minor progress      data for people only, as the progress of a pull: after `LEISURE` seconds, and at least `GAP`
                        seconds after any other report. It does not delay a change: the end of a pull is reported at once
    no change           every heartbeat, plus or minus a fifth
    a failure           retried with back-off

Times are monotonic seconds; the caller passes `now`.
"""

import random
from typing import Final

from lamina.services.node_agent.report_backoff import ReportBackoff

GAP: Final = 10.0
"""Seconds between two changes, plus up to `JITTER`, so that nodes that pull together do not write together."""
JITTER: Final = 2.0
LEISURE: Final = 20.0
SWING: Final = 0.2
"""Jitter of the heartbeat, as a share of it."""
SLACK: Final = 1.25
"""Promised time until the next report, in heartbeats: the longest heartbeat, and time for the write."""
NEVER: Final = float("inf")
ALWAYS: Final = float("-inf")


class ReportSchedule:
    """Computes when to write the next report."""

    def __init__(self, heartbeat: float, rng: random.Random, backoff: ReportBackoff) -> None:
        """Start with nothing written and nothing to write."""
        self.heartbeat = heartbeat
        self._rng = rng
        self._backoff = backoff
        self._change_at = self._leisure_at = self._beat_at = NEVER
        """When a report is due, for each of three reasons."""
        self._no_change_before = self._nothing_before = ALWAYS

    @property
    def renews_within(self) -> float:
        """Promised seconds until the next report."""
        return float(round(self.heartbeat * SLACK))

    @property
    def due(self) -> float:
        """When to write; infinity while there is nothing to write."""
        change = max(self._change_at, self._no_change_before)
        return min(change, max(min(self._leisure_at, self._beat_at), self._nothing_before))

    def changed(self, now: float, *, at_leisure: bool = False) -> None:
        """Record that there is something to report, at once or with a delay."""
        if at_leisure:
            self._leisure_at = min(self._leisure_at, now + LEISURE)
        else:
            self._change_at = min(self._change_at, now)

    def unchanged(self) -> None:
        """Record that there is nothing to report any more: the change was undone."""
        self._change_at = self._leisure_at = NEVER

    def written(self, now: float, *, at_leisure: bool = False) -> None:
        """Record a written report; *at_leisure* if it had no change."""
        self._backoff.went_well()
        self.unchanged()
        self._nothing_before = now + GAP + JITTER * self._rng.random()
        if not at_leisure:
            self._no_change_before = self._nothing_before
        self._beat_at = now + self.heartbeat * (1 + SWING * (2 * self._rng.random() - 1))

    def failed(self, now: float, asked: float | None = None) -> float:
        """Record a failed report; return the seconds until the retry."""
        wait = self._backoff.after_failure(asked)
        self._change_at = now
        self._no_change_before = self._nothing_before = now + wait
        return wait
