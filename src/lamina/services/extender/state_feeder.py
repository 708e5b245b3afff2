"""
Feeder of the extender core: processes queued events in time slices, between requests.

Requests never wait for events: each is answered from the events processed so far. A slice is short, because a request
may arrive meanwhile.
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
"""Seconds of event processing before requests get their turn."""
PORTION: Final = 20
"""Events processed between two readings of the clock."""
TICK: Final = 1.0
"""Seconds between two updates of the core's time, at least."""
STALL: Final = 0.5
"""Seconds of delay beyond which the process counts as stalled."""


class StallMetrics(Protocol):
    """Receives stalls of the process; the metrics implement it."""

    def stalled(self, seconds: float) -> None:
        """Record that the process did not run for *seconds*."""


class StateFeeder:
    """Feeds events to an `ExtenderCore`."""

    def __init__(
        self,
        core: ExtenderCore,
        queue: EventQueue,
        clock: SteadyClock,
        bypass_detector: BypassDetector,
        watch: StallMetrics,
    ) -> None:
        """Process events from *queue*; *bypass_detector* receives every pod, *watch* every stall."""
        self._core = core
        self._queue = queue
        self._clock = clock
        self._bypass_detector = bypass_detector
        self._watch = watch
        self._seen_at = time.monotonic()

    @property
    def caught_up(self) -> bool:
        """Whether all queued events are processed."""
        return len(self._queue) == 0

    async def run(self) -> None:
        """Feed the core until cancelled."""
        while True:
            self._check_stall()
            await self._queue.wait(TICK)
            self.step()
            await asyncio.sleep(0)

    def step(self) -> None:
        """Process queued events for one time slice."""
        self._core.take(TimePassed(self._clock.now()))
        until = time.perf_counter() + SLICE
        while True:
            # Take even when empty: `take` clears the wake flag.
            events = self._queue.take(PORTION)
            self._core.take(*events)
            for event in events:
                self._observe(event)
            if self.caught_up or time.perf_counter() >= until:
                return

    def _observe(self, event: Event) -> None:
        if isinstance(event, PodSeen):
            self._bypass_detector.seen(event.pod)
        elif isinstance(event, PodGone):
            self._bypass_detector.gone(event.uid)

    def _check_stall(self) -> None:
        """Report a stall if the last call was much longer ago than `TICK`: the process was stopped or blocked."""
        now = time.monotonic()
        late = now - self._seen_at - TICK
        if late > STALL:
            self._watch.stalled(late)
        self._seen_at = now
