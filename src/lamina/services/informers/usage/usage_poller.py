"""
Poller of node usage: measures repeatedly and puts the results into the event queue.

The age of a measurement is computed with the machine's clock, because the sources' machines synchronise theirs with it.
The decision loop gets the times in its own clock, which clock changes do not affect.

After a failure the poller retries with exponential back-off and logs each kind of failure once. It reports nothing
meanwhile, so earlier reports expire by themselves. No error of a source ends the service.
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
"""Jitter of the polling interval, as a share of it."""
SLACK: Final = 1.25
"""Margin added to the promised renewal, in polling intervals: the longest interval, and time for the query."""
FIRST_WAIT: Final = 1.0
LONGEST_WAIT: Final = 60.0
SPREAD: Final = 0.5
"""Jitter added to a wait after a failure, as a share of it."""
BETWEEN_LOOKS: Final = 0.5
"""Seconds between two checks while there are no nodes."""

AT_ONCE: Final = 50
"""Most nodes in one event, so that the decision loop stays responsive."""

log = logging.getLogger(__name__)


class UsageClock(Protocol):
    """Returns seconds since 1970 by two clocks."""

    def now(self) -> float:
        """Return the time of the decision loop."""
        ...

    def wall(self) -> float:
        """Return the time of the machine, which may be set."""
        ...


class UsagePoller:
    """Polls a source and reports the usage of nodes."""

    def __init__(
        self,
        source: UsageSource,
        every: float,
        sink: EventSink,
        nodes: Callable[[], Mapping[str, Node]],
        clock: UsageClock,
        *,
        rng: random.Random | None = None,
    ) -> None:
        """Query *source* about *nodes* every *every* seconds; put the results into *sink*."""
        self._source = source
        self._every = every
        self._sink = sink
        self._nodes = nodes
        self._clock = clock
        self._rng = rng or random.Random()
        self._wait = FIRST_WAIT
        self.looks = 0
        self.failures = 0
        """Measurements that failed."""
        self.matched = 0
        """Nodes in the last measurement."""
        self.wanted = 0
        """Nodes in the cluster at that time."""
        self.strange = 0
        """Nodes in the last measurement whose clock differs from ours by more than `SKEW` seconds."""
        self.told_at: float | None = None
        """When usage was last reported; None before the first report."""
        self.problem = ""
        """Why the last measurement failed; empty if it succeeded."""
        self.remark = ""
        """What was missing in the last measurement."""

    async def run(self) -> None:
        """Poll until cancelled."""
        while True:
            # A copy: nodes may change during the query.
            nodes = dict(self._nodes())
            if not nodes:
                await asyncio.sleep(BETWEEN_LOOKS)
                continue
            await asyncio.sleep(await self.look(nodes))

    async def look(self, nodes: Mapping[str, Node]) -> float:
        """Measure once; return the seconds to wait before the next measurement."""
        self.looks += 1
        self.wanted = len(nodes)
        try:
            usages = await self._source.look(nodes)
        except LaminaError as error:
            return self._failed(str(error))
        except Exception as error:
            log.exception("usage source raised an exception")
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
                self._sink.put(UsageReported(tuple(told[start : start + AT_ONCE])))
            self.told_at = now
        self._succeeded()
        return self._every * (1 + SWING * (2 * self._rng.random() - 1))

    def _succeeded(self) -> None:
        if self.problem:
            log.info("usage source recovered", extra={"fields": {"nodes": self.matched}})
        self.problem, self._wait = "", FIRST_WAIT
        remark = self._source.remark
        if self.strange:
            skewed = f"the clocks of {plural(self.strange, 'node')}, or of the source, differ from ours by more than {SKEW:g} s"
            remark = f"{skewed}; {remark}" if remark else skewed
        if remark != self.remark:
            fields = {"nodes": self.wanted, "told": self.matched, "remark": remark}
            # A warning only if no node is measured; a few missing nodes show in the count.
            level = logging.WARNING if remark and not self.matched else logging.INFO
            log.log(level, "node usage changed", extra={"fields": fields})
        self.remark = remark

    def _failed(self, problem: str) -> float:
        self.failures += 1
        self.matched = 0
        wait = self._wait * (1 + SPREAD * self._rng.random())
        self._wait = min(self._wait * 2, LONGEST_WAIT)
        if problem != self.problem:
            log.warning(
                "usage source failed, retrying", extra={"fields": {"problem": problem, "again_in": round(wait, 1)}}
            )
        self.problem = problem
        return wait
