"""
A network link, and the byte clock that determines when the transfers it limits end.

A link's *members* are the transfers whose bottleneck it is. They all have the same rate, the link's *level*. Instead of
recomputing every member at every change, a link keeps a byte clock that advances at its level:

    clock = bytes that one transfer would have moved, had it been a member since the first one
    end   = clock when the transfer became a member + its bytes left; it is done when the clock reaches this value

`end` stays valid when the level changes. The members wait on one heap ordered by `end`, and one timer of the
environment stands for the first. So a change of the level costs one clock update and at most one timer, whatever the
number of members.

A transfer can have marks: byte counts whose times it needs. While a member has marks, the link records (time, clock) at
every change of its level. Between two records the clock is linear.

`Network` calls this module and decides which link is a transfer's bottleneck.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from heapq import heapify, heappop
from typing import Final, Protocol

from lamina.simulator.engine.environment import INFINITY, EngineError, Environment, Timer

# Members whose ends differ by less than this share of the clock end at the same time. The clock is a sum of rounded
# products, each off by about 1e-16, so this covers ten million changes. It equals one microsecond in 15 minutes.
TOGETHER: Final = 1e-9

# With fewer dead entries, sweeping a heap costs more than it saves.
FEW_DEAD: Final = 64

# Marks are searched for this share of the clock below their value. Otherwise rounding of the clock could decide whether
# a transfer that stops exactly at a mark has reached it.
BELOW: Final = 1e-12

# Records of level changes that a link keeps before it looks for obsolete ones.
FEW_CHANGES: Final = 1024


class Dispatcher(Protocol):
    """The part of `Network` that a link calls."""

    environment: Environment

    def set_rate(self, link: "Link", rate: float) -> None:
        """Change the rate of *link* from now on."""
        ...

    def end(self, ending: "list[Transfer]", bottleneck: "Link") -> None:
        """Remove members of *bottleneck* whose last byte has arrived from their links, and call their *on_done*."""
        ...


class Transfer:
    """Bytes in transit. Callers read *path*, *size*, *ended* and *reached*; the rest is internal to the network."""

    __slots__ = ("args", "bottleneck", "end", "ended", "marks", "on_done", "path", "reached", "serial", "since", "size")

    def __init__(
        self,
        path: tuple["Link", ...],
        size: float,
        on_done: Callable[..., object],
        args: tuple[object, ...],
        serial: int,
        marks: Sequence[float],
    ) -> None:
        """Create a transfer; only `Network.start` does."""
        self.path = path
        self.size = size
        self.on_done: Callable[..., object] | None = on_done
        self.args = args
        self.serial = serial
        self.ended = False
        self.bottleneck: Link | None = None
        """Its bottleneck: the link that limits its rate; None when it has ended."""
        self.end = 0.0
        """Value of its bottleneck's clock at which its last byte arrives."""
        self.marks = marks
        # Time at which it became a member of its bottleneck; only set if it has marks.
        self.since = 0.0
        if marks:
            self.reached: list[float] = []
            """The time of each mark reached so far; complete when the transfer is done."""

    @property
    def moved(self) -> float:
        """Bytes that have arrived until now."""
        bottleneck = self.bottleneck
        if bottleneck is None:
            return self.size
        bottleneck.read()
        return self.size - self.end + bottleneck.clock


class Link:
    """
    A link of *rate* bytes per unit of time, created by `Network.link`.

    Callers read *rate*, *active* and *moved* and call `set_rate`; the rest is internal to the network. Plain
    attributes, because reading a property costs a call.
    """

    __slots__ = (
        "active",
        "by_bottleneck",
        "captives",
        "clock",
        "clocks",
        "due",
        "ended_bytes",
        "ends",
        "feeds",
        "first",
        "foreign",
        "level",
        "members",
        "most",
        "network",
        "rate",
        "read_at",
        "serial",
        "timer",
        "times",
        "top",
        "unsettled",
    )

    def __init__(self, network: Dispatcher, serial: int, rate: float) -> None:
        """Create an idle link."""
        self.network = network
        self.serial = serial
        self.rate = rate_of(rate)
        """Bytes per unit of time, shared by all transfers; infinity: no limit; 0: the link is down."""
        self.active = 0
        """Number of transfers on the link now."""
        self.ended_bytes = 0.0
        # The transfers on this link by their bottleneck. Those under this link itself are its members.
        self.by_bottleneck: dict[Link, dict[Transfer, None]] = {}
        self.members = 0
        self.level = INFINITY
        # The members' byte clock, the time it was last read, the heap of their ends, and the time of the first end.
        self.clock = 0.0
        self.read_at = 0.0
        self.ends: list[tuple[float, int, Transfer]] = []
        self.due = INFINITY
        self.first: Transfer | None = None
        self.timer: Timer | None = None
        # Records (time, clock) of level changes; empty while no member has marks.
        self.times: list[float] = []
        self.clocks: list[float] = []
        self.most = FEW_CHANGES
        # Load of the transfers whose bottleneck is another link, and an upper bound of the levels of these links.
        self.foreign = 0.0
        self.top = 0.0
        self.unsettled = False
        # Load that this link's members put on other links, and the links that depend on this link's level: see Network.
        self.feeds: dict[Link, float] = {}
        self.captives: list[tuple[float, int, Link]] = []

    @property
    def moved(self) -> float:
        """Bytes moved so far, including running and cancelled transfers; exact on an idle link."""
        in_transit = 0.0
        for bottleneck, transfers in self.by_bottleneck.items():
            bottleneck.read()
            in_transit += sum(transfer.size - transfer.end + bottleneck.clock for transfer in transfers)
        return self.ended_bytes + in_transit

    def set_rate(self, rate: float) -> None:
        """Change the rate from now on; 0 halts all transfers on the link until the next call."""
        self.network.set_rate(self, rate_of(rate))

    def set_level(self, level: float) -> None:
        """Change the level from now on; a negative value is a rounding error and becomes 0."""
        self.read()
        if self.times and level != self.level:
            self._record_clock()
        self.level = level if level > 0.0 else 0.0

    def read(self) -> None:
        """Advance the clock to now; the network must call it before the level changes."""
        now = self.network.environment.now
        elapsed = now - self.read_at
        if elapsed:
            self.read_at = now
            if self.members:
                # Rounding could overshoot the first end, and bytes would be counted twice.
                self.clock = min(self.clock + elapsed * self.level, self.ends[0][0])

    def aim(self) -> None:
        """Set the timer for the first end; the network calls it after every change of the members or the level."""
        ends = self.ends
        if len(ends) > 2 * self.members + FEW_DEAD:
            ends[:] = [entry for entry in ends if entry[2].bottleneck is self and entry[2].end == entry[0]]
            heapify(ends)
        end, _, first = ends[0]
        while first.bottleneck is not self or first.end != end:
            heappop(ends)
            end, _, first = ends[0]
        environment = self.network.environment
        left = end - self.clock
        # What is left is a rounding error: the transfer is done, even if the level is 0 now.
        if left <= end * TOGETHER:
            due = environment.now
        else:
            due = environment.now + left / self.level if self.level else INFINITY
        self.due, self.first = due, first
        timer = self.timer
        if timer is not None:
            # A timer that is too early stays and checks *due* when it fires. Most changes are starts, which delay the
            # first end, and so need no cancelling. Without any end, the timer must not advance the clock.
            if timer[0] <= due < INFINITY:
                return
            environment.cancel(timer)
            self.timer = None
        if due < INFINITY:
            self.timer = environment.at(due, self.wake)

    def wake(self) -> None:
        """Timer callback: end the members that are due, or set the timer again if none is."""
        self.timer = None
        environment = self.network.environment
        if self.due > environment.now:
            self.timer = environment.at(self.due, self.wake)
            return
        first = self.first
        if first is None or first.bottleneck is not self:
            # It left the link at this very time; settling sets the timer again.
            return
        # Set the clock to the end itself instead of computing it from the rounded time. Late in a long simulation the
        # time may be too coarse to show the duration of a small transfer, which would then never end.
        ends = self.ends
        self.clock = first.end
        self.read_at = environment.now
        together = self.clock * (1.0 + TOGETHER)
        ending = []
        while ends and ends[0][0] <= together:
            end, _, transfer = heappop(ends)
            if transfer.bottleneck is self and transfer.end == end:
                if transfer.marks:
                    self.record_marks(transfer)
                # It can be on the heap twice, if it had another bottleneck for zero time.
                transfer.end = INFINITY
                ending.append(transfer)
        self.network.end(ending, self)

    # -- marks ---------------------------------------------------------------------------------------------------------

    def begin_marks(self, transfer: Transfer) -> None:
        """Start recording level changes for a new member with marks. The caller has read the clock."""
        transfer.since = self.read_at
        if not self.times:
            self.times.append(self.read_at)
            self.clocks.append(self.clock)

    def _record_clock(self) -> None:
        """Record (time, clock), because the level changes now."""
        times, clocks = self.times, self.clocks
        if times[-1] == self.read_at:
            clocks[-1] = self.clock
            return
        if len(times) >= self.most:
            # Members with marks need the records since they joined, and the last record before that.
            oldest = min([one.since for one in self.by_bottleneck[self] if one.marks], default=self.read_at)
            gone = max(0, bisect_left(times, oldest) - 1)
            del times[:gone], clocks[:gone]
            self.most = max(FEW_CHANGES, 2 * len(times))
        times.append(self.read_at)
        clocks.append(self.clock)

    def record_marks(self, transfer: Transfer) -> None:
        """Append the times of the marks reached so far to `Transfer.reached`. The caller has read the clock."""
        times, clocks, reached = self.times, self.clocks, transfer.reached
        clock, now = self.clock, self.read_at
        if len(times) == 1 and times[0] == transfer.since and clocks[0] < transfer.end <= clock:
            # The usual case: its rate has not changed since it became a member.
            begin, end = times[0], transfer.end
            moved = clocks[0] - (end - transfer.size)
            seconds_per_byte = (now - begin) / (end - clocks[0])
            reached += [begin + (mark - moved) * seconds_per_byte for mark in transfer.marks[len(reached) :]]
            return
        begin, slack = transfer.end - transfer.size, transfer.end * BELOW
        since, changes = transfer.since, len(times)
        # Two neighbouring records, between which the clock is linear.
        place, low, high = 0, (0.0, 0.0), (0.0, -INFINITY)
        for mark in transfer.marks[len(reached) :]:
            wanted = begin + mark
            if wanted - slack > clock:
                break
            if wanted - slack > high[1]:
                place = bisect_left(clocks, wanted - slack, max(place, 1))
                low = times[place - 1], clocks[place - 1]
                high = (times[place], clocks[place]) if place < changes else (now, clock)
            height = high[1] - low[1]
            share = (wanted - low[1]) / height if height else 0.0
            at = low[0] + (high[0] - low[0]) * share if share < 1.0 else high[0]
            reached.append(at if at > since else since)

    def close(self) -> None:
        """Reset the clock after the last member has left. Small clock values keep its sums exact."""
        self.clock = 0.0
        self.level = self.due = INFINITY
        self.first = None
        self.ends.clear()
        self.captives.clear()
        if self.times:
            self.times.clear()
            self.clocks.clear()
        if self.timer is not None:
            self.network.environment.cancel(self.timer)
            self.timer = None


def rate_of(value: float) -> float:
    """Return *value* as a rate; raise EngineError for a negative number or NaN."""
    if not value >= 0.0:
        raise EngineError(f"cannot use a rate of {value!r}: it must be at least 0; infinity means no limit")
    return float(value)
