"""
A link that transfers cross, with a clock by which those that it holds back end.

Instead of recomputing every transfer at every change, a link keeps a clock of its own: the bytes that each transfer it
holds back would have been given since there was one. The clock advances at the link's level, the rate they all have. A
transfer of *size* bytes held back since the clock showed V is done when it shows V + size, whatever happens to the
level in between. So these transfers wait on one heap by that number, and one timer of the environment stands for the
first of them: a change of the level moves one clock and at most one timer, however many transfers wait.

Some transfers want to know when they had moved so many bytes. For them the link writes down its clock at every change of
the level, from the first of them on until its last member has gone: in between the clock is a straight line.

Called by `Network`, which decides which link holds a transfer back. Never decides that itself.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from heapq import heapify, heappop
from typing import Final, Protocol

from lamina.simulator.engine.environment import INFINITY, EngineError, Environment, Timer

# Transfers of one link that end within this share of its clock end in the same instant. The clock is a sum of rounded
# products, each off by about 1e-16, so this covers ten million changes; as time it is a microsecond in a quarter of an
# hour.
TOGETHER: Final = 1e-9

# Below this many dead entries sweeping a heap is not worth the look.
FEW_DEAD: Final = 64

# Marks are looked for a little below, by this share of the clock: the sums that the clock is must not decide whether a
# transfer that is halted just there has reached one.
BELOW: Final = 1e-12

# So many changes of the level are remembered without asking for how long they are needed.
FEW_CHANGES: Final = 1024


class Dispatcher(Protocol):
    """What a link has to ask of its network."""

    environment: Environment

    def set_rate(self, link: "Link", rate: float) -> None:
        """Let *link* go on at *rate*."""
        ...

    def end(self, ending: "list[Transfer]", home: "Link") -> None:
        """Take members of *home* off their links, since their last bytes have arrived, and call them."""
        ...


class Transfer:
    """Some bytes on their way. Callers read *path*, *size*, *ended* and *reached*; the rest belongs to the network."""

    __slots__ = ("args", "end", "ended", "home", "marks", "on_done", "path", "reached", "serial", "since", "size")

    def __init__(
        self,
        path: tuple["Link", ...],
        size: float,
        on_done: Callable[..., object],
        args: tuple[object, ...],
        serial: int,
        marks: Sequence[float],
    ) -> None:
        """Made by `Network.start`."""
        self.path = path
        self.size = size
        self.on_done: Callable[..., object] | None = on_done
        self.args = args
        self.serial = serial
        self.ended = False
        self.home: Link | None = None
        """The link that holds it back."""
        self.end = 0.0
        """What the clock of its home shows when its last byte arrives."""
        self.marks = marks
        # When it came to its home; kept if it has marks.
        self.since = 0.0
        if marks:
            self.reached: list[float] = []
            """When it had moved as many bytes as each of its marks; complete when it is done."""

    @property
    def moved(self) -> float:
        """Bytes that have arrived by now."""
        home = self.home
        if home is None:
            return self.size
        home.read()
        return self.size - self.end + home.clock


class Link:
    """
    A link of *rate* bytes per unit of time. Made by `Network.link`.

    Callers read *rate*, *active* and *moved* and call `set_rate`; the rest belongs to the network. Plain attributes,
    because reading a property would cost a call.
    """

    __slots__ = (
        "active",
        "captives",
        "clock",
        "clocks",
        "due",
        "ended_bytes",
        "ends",
        "feeds",
        "first",
        "foreign",
        "homes",
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
        """Open an idle link."""
        self.network = network
        self.serial = serial
        self.rate = rate_of(rate)
        """Bytes per unit of time for all transfers together; infinity: no limit; 0: the link is down."""
        self.active = 0
        """The number of transfers on it now."""
        self.ended_bytes = 0.0
        # Who crosses it, by the link that holds them back; those it holds back itself are its members.
        self.homes: dict[Link, dict[Transfer, None]] = {}
        self.members = 0
        self.level = INFINITY
        # What the members' clock shows, when it was read, who ends by it, and when the first of them does.
        self.clock = 0.0
        self.read_at = 0.0
        self.ends: list[tuple[float, int, Transfer]] = []
        self.due = INFINITY
        self.first: Transfer | None = None
        self.timer: Timer | None = None
        # What the clock showed when, at changes of the level; empty while no member has marks.
        self.times: list[float] = []
        self.clocks: list[float] = []
        self.most = FEW_CHANGES
        # The load of those held back elsewhere, and no less than the highest level among their homes.
        self.foreign = 0.0
        self.top = 0.0
        self.unsettled = False
        # The part of *foreign* of other links that is this one's, and links that wait for this one's level: see Network.
        self.feeds: dict[Link, float] = {}
        self.captives: list[tuple[float, int, Link]] = []

    @property
    def moved(self) -> float:
        """Bytes moved so far, those of transfers on their way and of cancelled ones included; exact on an idle link."""
        under_way = 0.0
        for home, transfers in self.homes.items():
            home.read()
            under_way += sum(transfer.size - transfer.end + home.clock for transfer in transfers)
        return self.ended_bytes + under_way

    def set_rate(self, rate: float) -> None:
        """Go on at *rate* from now; 0 stops all transfers where they are until the next call."""
        self.network.set_rate(self, rate_of(rate))

    def set_level(self, level: float) -> None:
        """Go on at another level from now; below 0 it is a rounding."""
        self.read()
        if self.times and level != self.level:
            self._write_down()
        self.level = level if level > 0.0 else 0.0

    def read(self) -> None:
        """Bring the clock up to now; has to happen before the level changes."""
        now = self.network.environment.now
        elapsed = now - self.read_at
        if elapsed:
            self.read_at = now
            if self.members:
                # No further than the first ending, which rounding could overshoot: bytes are never moved twice.
                self.clock = min(self.clock + elapsed * self.level, self.ends[0][0])

    def aim(self) -> None:
        """Find out when the first member ends; every change of the members or of the level ends here."""
        ends = self.ends
        if len(ends) > 2 * self.members + FEW_DEAD:
            ends[:] = [entry for entry in ends if entry[2].home is self and entry[2].end == entry[0]]
            heapify(ends)
        end, _, first = ends[0]
        while first.home is not self or first.end != end:
            heappop(ends)
            end, _, first = ends[0]
        environment = self.network.environment
        left = end - self.clock
        # With a rounding of bytes left it is done, even if the level is 0 now.
        if left <= end * TOGETHER:
            due = environment.now
        else:
            due = environment.now + left / self.level if self.level else INFINITY
        self.due, self.first = due, first
        timer = self.timer
        if timer is not None:
            # A timer that is too early stays, and looks at *due* when it fires: most changes are starts, which make
            # the first ending later, and so cost no cancelling. Only without an ending it must not move time on.
            if timer[0] <= due < INFINITY:
                return
            environment.cancel(timer)
            self.timer = None
        if due < INFINITY:
            self.timer = environment.at(due, self.wake)

    def wake(self) -> None:
        """Fire the timer: end the first member and those that end with it, or go on waiting for it."""
        self.timer = None
        environment = self.network.environment
        if self.due > environment.now:
            self.timer = environment.at(self.due, self.wake)
            return
        first = self.first
        if first is None or first.home is not self:
            # It went in this very instant; the timer is set again when that is settled.
            return
        # *due* was computed for this reading. Taking it as it is, rather than computing it back from a rounded time,
        # is what ends a small transfer late in a long simulation: there, time may be too coarse to show its duration.
        ends = self.ends
        self.clock = first.end
        self.read_at = environment.now
        together = self.clock * (1.0 + TOGETHER)
        ending = []
        while ends and ends[0][0] <= together:
            end, _, transfer = heappop(ends)
            if transfer.home is self and transfer.end == end:
                if transfer.marks:
                    self.tell(transfer)
                # It may stand on the heap twice, if it was held back elsewhere for no time.
                transfer.end = INFINITY
                ending.append(transfer)
        self.network.end(ending, self)

    # -- marks ---------------------------------------------------------------------------------------------------------

    def welcome(self, transfer: Transfer) -> None:
        """Take in a member that has marks. The clock was read."""
        transfer.since = self.read_at
        if not self.times:
            self.times.append(self.read_at)
            self.clocks.append(self.clock)

    def _write_down(self) -> None:
        """Remember what the clock shows, because the level changes now."""
        times, clocks = self.times, self.clocks
        if times[-1] == self.read_at:
            clocks[-1] = self.clock
            return
        if len(times) >= self.most:
            # What was before the oldest member with marks nobody asks for; it needs the change just before it came.
            oldest = min([one.since for one in self.homes[self] if one.marks], default=self.read_at)
            gone = max(0, bisect_left(times, oldest) - 1)
            del times[:gone], clocks[:gone]
            self.most = max(FEW_CHANGES, 2 * len(times))
        times.append(self.read_at)
        clocks.append(self.clock)

    def tell(self, transfer: Transfer) -> None:
        """Let a member know which of its marks it has reached, and when. The clock was read."""
        times, clocks, reached = self.times, self.clocks, transfer.reached
        clock, now = self.clock, self.read_at
        if len(times) == 1 and times[0] == transfer.since and clocks[0] < transfer.end <= clock:
            # The usual case: it had one rate for as long as it was here.
            begin, end = times[0], transfer.end
            moved = clocks[0] - (end - transfer.size)
            pace = (now - begin) / (end - clocks[0])
            reached += [begin + (mark - moved) * pace for mark in transfer.marks[len(reached) :]]
            return
        begin, slack = transfer.end - transfer.size, transfer.end * BELOW
        since, changes = transfer.since, len(times)
        # Between these two points the clock was a straight line.
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
        """Forget the clock: the last member has gone. A new count from 0 keeps it small and its sums exact."""
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
    """Refuse what is no rate."""
    if not value >= 0.0:
        raise EngineError(f"cannot use a rate of {value!r}: it must be at least 0; infinity means no limit")
    return float(value)
