"""
Keeps what the agents know up to date: takes in what was seen, in slices, between the questions.

Nobody who asks waits for anything to be read: a question is answered from what has been taken in so far. A slice is short,
because a question may come while it lasts.
"""

import asyncio
import time
from typing import Final, Protocol

from lamina.model.events import Event, PodGone, PodSeen, TimePassed
from lamina.scheduling.loop.extender_core import ExtenderCore
from lamina.services.extender.bypass_detector import BypassDetector
from lamina.services.informers.clock import SteadyClock
from lamina.services.informers.event_queue import EventQueue

SLICE: Final = 0.003
"""Seconds of taking in before questions get their turn."""
PORTION: Final = 20
"""Events taken in between two looks at the clock."""
TICK: Final = 1.0
"""However little happens, time passes for the agents this often."""
STALL: Final = 0.5
"""Being woken later than this after the time means that the process did not run, or did nothing else."""


class StallMetrics(Protocol):
    """Whoever wants to know that the process stood still."""

    def stalled(self, seconds: float) -> None:
        """Nothing was done for so long."""


class StateFeeder:
    """Feeds a panel."""

    def __init__(
        self,
        panel: ExtenderCore,
        inbox: EventQueue,
        clock: SteadyClock,
        attendance: BypassDetector,
        watch: StallMetrics,
    ) -> None:
        """Take in from *inbox*; *attendance* hears of every pod, *watch* of every time nothing ran."""
        self._panel = panel
        self._inbox = inbox
        self._clock = clock
        self._attendance = attendance
        self._watch = watch
        self._seen_at = time.monotonic()

    @property
    def caught_up(self) -> bool:
        """Whether everything that was seen has been taken in."""
        return len(self._inbox) == 0

    async def run(self) -> None:
        """Feed the panel until cancelled."""
        while True:
            self._look_at_the_clock()
            await self._inbox.wait(TICK)
            self.step()
            await asyncio.sleep(0)

    def step(self) -> None:
        """Take in a portion of what was seen."""
        self._panel.take(TimePassed(self._clock.now()))
        until = time.perf_counter() + SLICE
        while True:
            # Once at least: who rang without bringing anything is heard, too, or the bell would ring for ever.
            events = self._inbox.take(PORTION)
            self._panel.take(*events)
            for event in events:
                self._tell(event)
            if self.caught_up or time.perf_counter() >= until:
                return

    def _tell(self, event: Event) -> None:
        if isinstance(event, PodSeen):
            self._attendance.seen(event.pod)
        elif isinstance(event, PodGone):
            self._attendance.gone(event.uid)

    def _look_at_the_clock(self) -> None:
        """Notice when this was not called for much longer than it can take: somebody stopped the process, or held it up."""
        now = time.monotonic()
        late = now - self._seen_at - TICK
        if late > STALL:
            self._watch.stalled(late)
        self._seen_at = now
