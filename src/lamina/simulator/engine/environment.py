"""
Virtual time: a heap of callbacks, fired in order of their times and without a real clock.

    scheduled --time reached--> fired
        |
        +--------cancel-------> dropped

Every part of the simulator schedules its callbacks here. The order is deterministic: the same calls in the same order
fire in the same order. The engine never sleeps, draws no random numbers and catches no exception of a callback.
"""

import math
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Final, TypeAlias, TypeVarTuple

Arguments = TypeVarTuple("Arguments")

# Time, priority, serial, callback, arguments. The serial is unique, so comparing two timers never reaches the callback.
# A bare tuple on purpose: a named tuple would make scheduling and firing a fifth slower, a class nearly a third.
Timer: TypeAlias = tuple[float, int, int, Callable[..., object], tuple[object, ...]]
"""Handle that `at` and `after` return and `cancel` accepts. Callers must treat it as opaque."""

INFINITY: Final = math.inf

# With fewer cancelled timers, sweeping the heap costs more than it saves.
FEW_CANCELLED: Final = 64


class EngineError(ValueError):
    """Invalid time, size, rate or call. The message names the values."""


class Environment:
    """
    The clock of one simulation and its pending callbacks.

    Callbacks fire in the order of their times; at one time, the lower priority number first; at one priority, in the
    order in which they were scheduled. Times are plain finite floats without a unit.
    """

    __slots__ = ("_cancelled", "_heap", "_ignored", "_serial", "now")

    now: float
    """The current time, read-only for callers. A plain attribute, because reading a property costs a call."""

    def __init__(self, start: float = 0.0) -> None:
        """Set the clock to *start*."""
        if not math.isfinite(start):
            raise EngineError(f"cannot start at {start!r}: a time must be finite")
        self.now = float(start)
        self._heap: list[Timer] = []
        # Serials, not timers: a timer is immutable, and its serial is a version no later timer shares.
        self._cancelled: set[int] = set()
        self._ignored: set[int] = set()
        self._serial = 0

    def at(self, time: float, callback: Callable[[*Arguments], object], *args: *Arguments, priority: int = 0) -> Timer:
        """Call *callback* with *args* at *time*, which must not be before now; return the timer."""
        # A NumPy float or an int would reach the clock and, from there, every log.
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
        """Call *callback* with *args* after *delay*; with 0, at the current time, after the callbacks already due."""
        # Repeats the body of `at` instead of calling it: this is the most frequently called method.
        time = float(self.now + delay)
        # The sign is tested on the delay: a tiny negative delay would vanish in the sum. NaN and infinity do not.
        if delay < 0.0 or not time < INFINITY:
            raise EngineError(f"cannot schedule {delay!r} after {self.now!r}: a delay must be finite and at least 0")
        self._serial = serial = self._serial + 1
        timer = (time, priority, serial, callback, args)
        heappush(self._heap, timer)
        return timer

    def cancel(self, timer: Timer) -> None:
        """
        Cancel *timer*, which this environment returned; do nothing if it has fired or is cancelled already.

        The entry stays on the heap until its time or until half of the heap is cancelled, so a call costs O(1) on
        average.
        """
        cancelled, heap = self._cancelled, self._heap
        cancelled.add(timer[2])
        if len(cancelled) > FEW_CANCELLED and 2 * len(cancelled) > len(heap):
            # In place, because `run` holds both in local variables. This also drops serials of timers that had fired.
            heap[:] = [entry for entry in heap if entry[2] not in cancelled]
            heapify(heap)
            cancelled.clear()

    def ignore_when_idle(self, timer: Timer) -> None:
        """Exclude *timer*, which this environment returned, from `idle`."""
        ignored, heap = self._ignored, self._heap
        ignored.add(timer[2])
        if len(ignored) > FEW_CANCELLED and 2 * len(ignored) > len(heap):
            ignored.intersection_update([entry[2] for entry in heap])

    @property
    def idle(self) -> bool:
        """
        Whether only ignored timers are pending.

        Periodic callbacks check it before they schedule themselves again. Without it, two of them would keep a run
        alive for ever.
        """
        ignored, cancelled = self._ignored, self._cancelled
        return all(entry[2] in ignored or entry[2] in cancelled for entry in self._heap)

    def peek(self) -> float:
        """Return the time of the next callback; infinity if there is none."""
        heap, cancelled = self._heap, self._cancelled
        while heap and heap[0][2] in cancelled:
            cancelled.discard(heappop(heap)[2])
        return heap[0][0] if heap else INFINITY

    def step(self) -> None:
        """Advance the clock to the next callback and fire this one callback."""
        if self.peek() == INFINITY:
            raise EngineError(f"cannot step from {self.now!r}: nothing is scheduled")
        self.now, _, _, callback, args = heappop(self._heap)
        callback(*args)

    def run(self, until: float | None = None) -> None:
        """
        Fire callbacks until none is left, or all that are due up to and including *until*.

        Afterwards the clock is at *until*, or without *until* at the time of the last callback. An exception of a
        callback ends the run; the clock stays at its time, and another `run` continues with the next callback.
        """
        if until is None:
            last = INFINITY
        elif self.now <= until < INFINITY:
            last = float(until)
        else:
            raise EngineError(f"cannot run until {until!r}: it must be finite and not before now ({self.now!r})")
        # Repeats the body of `step` with local variables: an eighth faster than calling it.
        heap, cancelled, pop = self._heap, self._cancelled, heappop
        while heap:
            timer = pop(heap)
            time, _, serial, callback, args = timer
            if time > last:
                # Reading heap[0] in every round would cost more than this one push at the end.
                heappush(heap, timer)
                break
            # The first operand avoids hashing the serial while no timer is cancelled.
            if cancelled and serial in cancelled:
                cancelled.discard(serial)
                continue
            self.now = time
            # Calling with unpacked arguments is slower, so callbacks without arguments avoid it.
            if args:
                callback(*args)
            else:
                callback()
        # A callback may itself have called `run` and advanced the clock beyond *last*.
        if until is not None and self.now < last:
            self.now = last
