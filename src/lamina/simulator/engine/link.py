"""
A link whose rate is shared fairly by the flows on it, at O(log n) per change.

    start --> moving --last byte--> done --> on_done is called
                |                    |
                +------cancel--------+-----> on_done is never called

Instead of recomputing every flow at every change, the link keeps a clock of its own: the bytes each flow would have
been given since the link was last idle. It advances at rate / n. A flow of *size* bytes started when the clock showed
V is done when it shows V + size, whatever happens to n and to the rate in between. So flows wait on one heap by that
number, and one timer of the environment stands for the first of them.

Called by models of downloads and disks. Never knows what its bytes are.
"""

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from operator import attrgetter
from typing import Final, TypeVarTuple

from lamina.simulator.engine.environment import INFINITY, EngineError, Environment, Timer

Arguments = TypeVarTuple("Arguments")

# Flows that end within this share of the link clock end in the same instant. The clock is a sum of rounded quotients,
# each off by about 1e-16, so this covers ten million changes; as time it is a microsecond in a quarter of an hour.
TOGETHER: Final = 1e-9

# Below this many cancelled flows sweeping the heap is not worth the look.
FEW_CANCELLED: Final = 64


@dataclass(slots=True, eq=False)
class Flow:
    """Some bytes on their way over one link. Callers read *size* and *ended*; the rest belongs to the link."""

    size: float
    on_done: Callable[..., object]
    args: tuple[object, ...]
    serial: int
    begin: float
    ended: bool = False
    call: Timer | None = None


class FairLink:
    """A link of *rate* bytes per unit of time, each moving flow getting the same share of it at any time."""

    def __init__(self, environment: Environment, rate: float) -> None:
        """Open an idle link; a rate of 0 is a link that is down."""
        self._environment = environment
        self._rate = _amount("rate", rate)
        # By (clock at the last byte, serial); the first entry is never a cancelled flow.
        self._flows: list[tuple[float, int, Flow]] = []
        self._serial = 0
        self._timer: Timer | None = None
        self._clock = 0.0
        self._read_at = environment.now
        self._active = 0
        # Bytes of flows that have ended, and the sum of what the clock showed when the moving ones began.
        self._ended_bytes = 0.0
        self._begins = 0.0

    @property
    def active(self) -> int:
        """The number of flows among which the rate is shared now."""
        return self._active

    @property
    def rate(self) -> float:
        """Bytes per unit of time, for all flows together."""
        return self._rate

    @property
    def moved(self) -> float:
        """Bytes moved so far, those of flows on their way and of cancelled ones included; exact on an idle link."""
        return self._ended_bytes + self._active * self._clock_now() - self._begins

    def start(self, size: float, on_done: Callable[[*Arguments], object], *args: *Arguments) -> Flow:
        """
        Put *size* bytes on the link; *on_done* is called with *args* once the last of them has arrived.

        It is never called from inside this method: also a flow of 0 bytes is done by an event, at the current time.
        Of flows that end at one time, the one started first is called first.
        """
        size = _amount("size", size)
        self._read_clock()
        self._serial += 1
        flow = Flow(size, on_done, args, self._serial, self._clock)
        if size == 0.0:
            self._finish(flow)
            return flow
        self._active += 1
        self._begins += flow.begin
        heappush(self._flows, (self._clock + size, flow.serial, flow))
        self._set_timer()
        return flow

    def cancel(self, flow: Flow) -> None:
        """
        Take *flow*, which this link handed out, off the link; its *on_done* is not called from now on.

        The bytes it has moved stay counted. Nothing happens if it was called or cancelled before.
        """
        if flow.ended:
            # Its last byte has arrived, but in an instant with several endings its call may still be to come.
            if flow.call is not None:
                self._environment.cancel(flow.call)
            return
        self._read_clock()
        self._leave(flow, self._clock - flow.begin)
        dead = len(self._flows) - self._active
        if dead > FEW_CANCELLED and dead > self._active:
            self._flows = [entry for entry in self._flows if not entry[2].ended]
            heapify(self._flows)
        self._set_timer()

    def set_rate(self, rate: float) -> None:
        """Go on at *rate* from now; 0 stops all flows where they are until the next call."""
        rate = _amount("rate", rate)
        self._read_clock()
        self._rate = rate
        self._set_timer()

    def _clock_now(self) -> float:
        elapsed = self._environment.now - self._read_at
        if not elapsed or not self._active:
            return self._clock
        # No further than the first ending, which rounding could overshoot: bytes are never moved twice.
        return min(self._clock + elapsed * self._rate / self._active, self._flows[0][0])

    def _read_clock(self) -> None:
        self._clock = self._clock_now()
        self._read_at = self._environment.now

    def _set_timer(self) -> None:
        """Aim the one timer at the first ending; every change of the flows or of the rate ends here."""
        if self._timer is not None:
            self._environment.cancel(self._timer)
            self._timer = None
        flows = self._flows
        while flows and flows[0][2].ended:
            heappop(flows)
        if not flows:
            # A new count from 0 whenever the link is idle keeps the clock small and its sums exact.
            self._clock = self._begins = 0.0
            return
        left = flows[0][0] - self._clock
        if left <= 0.0:
            due = self._environment.now
        else:
            due = self._environment.now + left * self._active / self._rate if self._rate else INFINITY
        if due < INFINITY:
            self._timer = self._environment.at(due, self._end_first)

    def _end_first(self) -> None:
        """End the flow the timer stood for, and those that end with it, in the order in which they were started."""
        self._timer = None
        flows = self._flows
        # The timer was set for this reading. Taking it as it is, rather than computing it back from a rounded time,
        # is what ends a small flow late in a long simulation: there, time may be too coarse to show its duration.
        self._clock = flows[0][0]
        self._read_at = self._environment.now
        together = self._clock * (1.0 + TOGETHER)
        ending = []
        while flows and flows[0][0] <= together:
            flow = heappop(flows)[2]
            if not flow.ended:
                ending.append(flow)
        ending.sort(key=attrgetter("serial"))
        for flow in ending:
            self._leave(flow, flow.size)
        # All but the first by events of their own: each may cancel or start others, and if one raises, none is lost.
        for flow in ending[1:]:
            self._finish(flow)
        self._set_timer()
        ending[0].on_done(*ending[0].args)

    def _leave(self, flow: Flow, moved: float) -> None:
        flow.ended = True
        self._active -= 1
        self._begins -= flow.begin
        self._ended_bytes += moved

    def _finish(self, flow: Flow) -> None:
        flow.ended = True
        flow.call = self._environment.after(0.0, flow.on_done, *flow.args)


def _amount(name: str, value: float) -> float:
    if not 0.0 <= value < INFINITY:
        raise EngineError(f"cannot use a {name} of {value!r}: it must be finite and at least 0")
    return float(value)
