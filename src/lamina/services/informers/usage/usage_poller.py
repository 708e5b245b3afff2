"""
Looks again and again at what nodes are used for, and lets the decision core know.

How old a measurement is, the machine's clock says, because that is the one that others set theirs by; the decision core is
told in the time of its own, which nobody sets.

A source that fails is asked again, later and later, and said so once for each kind of failure; nothing is reported
meanwhile, so that what was reported before grows old by itself. Nothing that a source does ends the service.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from typing import Final, Protocol

import msgspec

from lamina.model.errors import LaminaError
from lamina.model.events import UsageReported
from lamina.model.node import Node
from lamina.model.plain import plural
from lamina.services.informers.event_queue import EventSink
from lamina.services.informers.usage.usage_source import SKEW, UsageSource, of_known_age

SWING: Final = 0.1
"""By how much of itself a pause may be shorter or longer."""
SLACK: Final = 1.25
"""What is promised beyond what the source promises, in pauses: the longest one, and a moment to ask."""
FIRST_WAIT: Final = 1.0
LONGEST_WAIT: Final = 60.0
SPREAD: Final = 0.5
"""By how much of itself a wait after a failure may be longer."""
BETWEEN_LOOKS: Final = 0.5
"""Seconds between two looks whether there are nodes at all."""

AT_ONCE: Final = 50
"""Nodes in one event: whoever takes them in has other things to do as well."""

log = logging.getLogger(__name__)


class UsageClock(Protocol):
    """Tells seconds since 1970."""

    def now(self) -> float:
        """The time of the decision core."""
        ...

    def wall(self) -> float:
        """The time of the machine, which somebody may set."""
        ...


class UsagePoller:
    """Reports what nodes are used for, for as long as it runs."""

    def __init__(
        self,
        source: UsageSource,
        every: float,
        entrance: EventSink,
        nodes: Callable[[], Mapping[str, Node]],
        clock: UsageClock,
        *,
        rng: random.Random | None = None,
    ) -> None:
        """Ask *source* about *nodes* every so many seconds, and put what it tells into *entrance*."""
        self._source = source
        self._every = every
        self._entrance = entrance
        self._nodes = nodes
        self._clock = clock
        self._rng = rng or random.Random()
        self._wait = FIRST_WAIT
        self.looks = 0
        self.failures = 0
        """How many of the looks came to nothing."""
        self.matched = 0
        """Nodes that the last look told of."""
        self.wanted = 0
        """Nodes there were then."""
        self.strange = 0
        """Nodes of the last look whose clock is too far from ours to say how old their numbers are."""
        self.told_at: float | None = None
        """When something was reported last."""
        self.problem = ""
        """Why the last look came to nothing; empty when it did not."""
        self.remark = ""
        """What the last look lacked."""

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            # A copy: nodes come and go while a source is asked.
            nodes = dict(self._nodes())
            if not nodes:
                await asyncio.sleep(BETWEEN_LOOKS)
                continue
            await asyncio.sleep(await self.look(nodes))

    async def look(self, nodes: Mapping[str, Node]) -> float:
        """Look once; return how long to wait before the next time."""
        self.looks += 1
        self.wanted = len(nodes)
        try:
            usages = await self._source.look(nodes)
        except LaminaError as error:
            return self._failed(str(error))
        except Exception as error:
            log.exception("what nodes are used for cannot be told")
            return self._failed(type(error).__name__)
        wall, now = self._clock.wall(), self._clock.now()
        kept, self.strange = of_known_age(usages, wall)
        self.matched = len(kept)
        if kept:
            ahead = now - wall
            told = [
                msgspec.structs.replace(
                    one,
                    since=one.since + ahead,
                    until=one.until + ahead,
                    renews_within=one.renews_within + self._every * SLACK,
                )
                for one in kept
            ]
            for start in range(0, len(told), AT_ONCE):
                self._entrance.put(UsageReported(tuple(told[start : start + AT_ONCE])))
            self.told_at = now
        self._went_well()
        return self._every * (1 + SWING * (2 * self._rng.random() - 1))

    def _went_well(self) -> None:
        if self.problem:
            log.info("usage is told again", extra={"fields": {"nodes": self.matched}})
        self.problem, self._wait = "", FIRST_WAIT
        remark = self._source.remark
        if self.strange:
            skewed = f"the clocks of {plural(self.strange, 'node')}, or of whoever measures, are more than {SKEW:g} s from ours"
            remark = f"{skewed}; {remark}" if remark else skewed
        if remark != self.remark:
            fields = {"nodes": self.wanted, "told": self.matched, "remark": remark}
            # Without a single node somebody should act; a few that are missing are seen in the count.
            level = logging.WARNING if remark and not self.matched else logging.INFO
            log.log(level, "usage of nodes", extra={"fields": fields})
        self.remark = remark

    def _failed(self, problem: str) -> float:
        self.failures += 1
        self.matched = 0
        wait = self._wait * (1 + SPREAD * self._rng.random())
        self._wait = min(self._wait * 2, LONGEST_WAIT)
        if problem != self.problem:
            log.warning(
                "usage of nodes is not known", extra={"fields": {"problem": problem, "again_in": round(wait, 1)}}
            )
        self.problem = problem
        return wait
