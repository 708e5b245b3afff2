"""
Virtual time: callbacks on a heap, fired one after the other, never by a real clock.

    scheduled --its time comes--> fired
        |
        +---------cancel--------> forgotten

Called by everything that simulates; calls back and knows nothing else. The same calls in the same order always fire in
the same order. Never waits, never draws a random number, never catches what a callback raises.
"""

import math
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Final, TypeAlias, TypeVarTuple

Arguments = TypeVarTuple("Arguments")

# Time, priority, serial, callback, arguments. The serial is unique, so comparing two timers never reaches the callback.
# A bare tuple on purpose: a named tuple would make scheduling and firing a fifth slower, a class nearly a third.
Timer: TypeAlias = tuple[float, int, int, Callable[..., object], tuple[object, ...]]
"""What scheduling hands out, and `Environment.cancel` takes back. Callers keep it and never look inside."""

INFINITY: Final = math.inf

# Below this many cancelled timers sweeping the heap is not worth the look.
FEW_CANCELLED: Final = 64


class EngineError(ValueError):
    """A time, an amount or a call that makes no sense in virtual time. The message names the values."""


class Environment:
    """
    The clock of one simulation, and what is still to happen in it.

    Callbacks fire in the order of their times; at one time, the lower priority number first; at one priority, in the
    order in which they were scheduled. Times are plain finite floats without a unit.
    """

    __slots__ = ("_cancelled", "_excused", "_heap", "_serial", "now")

    now: float
    """The current time. Read it, never set it: a plain attribute, because reading a property would cost a call."""

    def __init__(self, start: float = 0.0) -> None:
        """Set the clock to *start*."""
        if not math.isfinite(start):
            raise EngineError(f"cannot start at {start!r}: a time must be finite")
        self.now = float(start)
        self._heap: list[Timer] = []
        # Serials, not timers: a timer is immutable, and its serial is a version no later timer shares.
        self._cancelled: set[int] = set()
        self._excused: set[int] = set()
        self._serial = 0

    def at(self, time: float, callback: Callable[[*Arguments], object], *args: *Arguments, priority: int = 0) -> Timer:
        """Call *callback* with *args* when the clock shows *time*, which may be now but not the past."""
        # A NumPy float or an int would spread from here to the clock and from there to every log.
        time = float(time)
        # Written so that a NaN fails too: it compares false with everything.
        if not self.now <= time < INFINITY:
            raise EngineError(f"cannot schedule at {time!r}: it must be finite and not before now ({self.now!r})")
        self._serial = serial = self._serial + 1
        timer = (time, priority, serial, callback, args)
        heappush(self._heap, timer)
        return timer

    def after(
        self, delay: float, callback: Callable[[*Arguments], object], *args: *Arguments, priority: int = 0
    ) -> Timer:
        """Call *callback* with *args* when *delay* has passed; a delay of 0 means now, after what is already due."""
        # The body of `at` again instead of a call to it: this is the hottest method.
        time = float(self.now + delay)
        # The sign is tested on the delay, because a tiny negative one vanishes in the sum; NaN and infinity do not.
        if delay < 0.0 or not time < INFINITY:
            raise EngineError(f"cannot schedule {delay!r} after {self.now!r}: a delay must be finite and at least 0")
        self._serial = serial = self._serial + 1
        timer = (time, priority, serial, callback, args)
        heappush(self._heap, timer)
        return timer

    def cancel(self, timer: Timer) -> None:
        """
        Make sure that *timer*, which this environment handed out, does not fire from now on.

        Nothing happens if it has fired or was cancelled before. The entry stays on the heap until its time comes or
        until cancelled ones are half of the heap, so that cancelling costs O(1) on average.
        """
        cancelled, heap = self._cancelled, self._heap
        cancelled.add(timer[2])
        if len(cancelled) > FEW_CANCELLED and 2 * len(cancelled) > len(heap):
            # In place: `run` holds both under local names. Serials of timers that had fired before are dropped as well.
            heap[:] = [entry for entry in heap if entry[2] not in cancelled]
            heapify(heap)
            cancelled.clear()

    def excuse(self, timer: Timer) -> None:
        """Do not count *timer*, which this environment handed out, as something that is still to happen: see `idle`."""
        excused, heap = self._excused, self._heap
        excused.add(timer[2])
        if len(excused) > FEW_CANCELLED and 2 * len(excused) > len(heap):
            excused.intersection_update([entry[2] for entry in heap])

    @property
    def idle(self) -> bool:
        """
        Whether nothing is scheduled but what was excused.

        Asked by what comes again and again and would otherwise keep a run going for ever, each for the other's sake.
        """
        excused, cancelled = self._excused, self._cancelled
        return all(entry[2] in excused or entry[2] in cancelled for entry in self._heap)

    def peek(self) -> float:
        """Tell the time of the next callback; infinity if there is none."""
        heap, cancelled = self._heap, self._cancelled
        while heap and heap[0][2] in cancelled:
            cancelled.discard(heappop(heap)[2])
        return heap[0][0] if heap else INFINITY

    def step(self) -> None:
        """Move the clock to the next callback and fire it, and only it."""
        if self.peek() == INFINITY:
            raise EngineError(f"cannot step from {self.now!r}: nothing is scheduled")
        self.now, _, _, callback, args = heappop(self._heap)
        callback(*args)

    def run(self, until: float | None = None) -> None:
        """
        Fire callbacks until none is left, or all those due up to and including *until*.

        With *until*, the clock then shows *until*, also when nothing happened at that time; without, the time of the
        last callback. An exception of a callback ends the run as it is; the clock shows when, and another `run` goes on
        with the callback after it.
        """
        if until is None:
            last = INFINITY
        elif self.now <= until < INFINITY:
            last = float(until)
        else:
            raise EngineError(f"cannot run until {until!r}: it must be finite and not before now ({self.now!r})")
        # The body of `step` with local names instead of a call to it: an eighth faster.
        heap, cancelled, pop = self._heap, self._cancelled, heappop
        while heap:
            timer = pop(heap)
            time, _, serial, callback, args = timer
            if time > last:
                # Popping before looking pays: a look at heap[0] on each round costs more than one push at the end.
                heappush(heap, timer)
                break
            # The first half spares the hash of the serial while nothing is cancelled.
            if cancelled and serial in cancelled:
                cancelled.discard(serial)
                continue
            self.now = time
            # Unpacking arguments takes the slow way into a Python function; callbacks without any are spared it.
            if args:
                callback(*args)
            else:
                callback()
        # The comparison matters when a callback has itself run further: time never goes back.
        if until is not None and self.now < last:
            self.now = last
