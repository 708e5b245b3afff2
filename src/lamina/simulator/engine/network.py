"""
Network of links whose rates are shared max-min fairly by the transfers that cross them.

    start --> moving --last byte--> done --> on_done is called
                |                    |
                +------cancel--------+-----> on_done is never called

Max-min fairness: all rates grow together until a link is full; the transfers on that link keep their rate and the
others grow on. So each transfer has one *bottleneck*: a full link on its path on which no transfer is faster. The
*members* of a link are the transfers whose bottleneck it is. They all have one rate, the link's *level*:

    level = (rate - load of transfers with another bottleneck) / members

After a change only one thing can be wrong: a link is full, and a transfer with another bottleneck crosses it faster
than its level. The repair is to *pull*: the link becomes the bottleneck of all transfers that cross it and have that
other bottleneck. This raises its own level, but not to the other's, and leaves more for the other's remaining members.
The repairs terminate. No level is below its link's rate / transfers. So the link with the lowest such value is right
after one repair and never loses a member; then the link with the next lowest value, and so on.

A change affects the links whose level changes and the links that their members cross. If the registry's link is not
full, the load of a node's link on it does not depend on the number of transfers. So other links are not affected. If it
is full, all nodes that it limits follow its clock. Their links are its *captives*: all transfers on a captive have the
same bottleneck. A captive is not examined until the level of this bottleneck exceeds its own rate / transfers.

The models of downloads and disks call this module.
"""

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from operator import attrgetter
from typing import Final, TypeVarTuple

from lamina.simulator.engine.environment import INFINITY, EngineError, Environment
from lamina.simulator.engine.link import FEW_DEAD, Link, Transfer

Arguments = TypeVarTuple("Arguments")

# Rates that differ by less than this factor are equal but for rounding; they cause no pull.
SAME: Final = 1.0 + 1e-12

# Smaller changes of a load, as a share of the link's rate, are ignored. Otherwise two links could update each other
# for ever.
ROUNDING: Final = 1e-13

# The priority of settling: after all other callbacks at the same time.
LAST: Final = 1_000_000_000


class Network:
    """The links of one environment and the transfers on them."""

    __slots__ = ("_done", "_links", "_serial", "_unsettled", "environment")

    def __init__(self, environment: Environment) -> None:
        """Create a network without links."""
        self.environment = environment
        self._links = 0
        self._serial = 0
        # Ended transfers whose *on_done* is still to be called; links whose level must be recomputed.
        self._done: list[tuple[int, Transfer]] = []
        self._unsettled: list[Link] = []

    def link(self, rate: float) -> Link:
        """Add a link of *rate* bytes per unit of time; infinity: no limit; 0: the link is down."""
        self._links += 1
        return Link(self, self._links, rate)

    def start(
        self,
        path: tuple[Link, ...],
        size: float,
        on_done: Callable[[*Arguments], object],
        *args: *Arguments,
        marks: Sequence[float] = (),
    ) -> Transfer:
        """
        Send *size* bytes over all links of *path*; call *on_done* with *args* when the last byte has arrived.

        This method never calls *on_done* itself: a transfer that needs no time ends by an event at the current time.
        Transfers that end at the same time are called in the order of their starts. *marks* are byte counts in
        ascending order, none above *size*; `Transfer.reached` receives the time of each.
        """
        if not 0.0 <= size < INFINITY:
            raise EngineError(f"cannot use a size of {size!r}: it must be finite and at least 0")
        if len(path) > 1 and (path[0] is path[1] or (len(path) > 2 and len({*path}) < len(path))):
            raise EngineError("cannot use a path that names a link twice")
        self._serial = serial = self._serial + 1
        transfer = Transfer(path, float(size), on_done, args, serial, marks)
        bottleneck = _narrowest(path) if size else None
        if bottleneck is None:
            self._arrive(transfer)
            return transfer
        transfer.bottleneck = bottleneck
        if not bottleneck.active and not bottleneck.unsettled:
            self._start_alone(transfer, bottleneck)
            return transfer
        bottleneck.read()
        transfer.end = end = bottleneck.clock + size
        heappush(bottleneck.ends, (end, serial, transfer))
        bottleneck.members += 1
        if marks:
            bottleneck.begin_marks(transfer)
        for link in path:
            link.active += 1
            by_bottleneck = link.by_bottleneck
            here = by_bottleneck.get(bottleneck)
            if here is None:
                here = self._admit(link, bottleneck)
            here[transfer] = None
            if link is not bottleneck and len(by_bottleneck) == 1:
                self._watch(link)
        if not bottleneck.unsettled:
            self._unsettle(bottleneck)
        return transfer

    def cancel(self, transfer: Transfer) -> None:
        """
        Remove *transfer*, which this network returned, from its links; its *on_done* will not be called.

        The links still count the bytes it has moved. Do nothing if it is done or cancelled already.
        """
        # If several transfers end at this time, its last byte may have arrived before its *on_done* is called.
        transfer.on_done = None
        bottleneck = transfer.bottleneck
        if bottleneck is not None:
            bottleneck.read()
            self._leave(transfer, bottleneck, transfer.size - transfer.end + bottleneck.clock)

    def set_rate(self, link: Link, rate: float) -> None:
        """Change the rate of *link* from now on."""
        link.rate = rate
        self._watch(link)
        self._unsettle(link)

    def end(self, ending: list[Transfer], bottleneck: Link) -> None:
        """Remove members of *bottleneck* whose last byte has arrived from their links, and call their *on_done*."""
        environment = self.environment
        alone = len(ending) == 1 and environment.peek() > environment.now
        for transfer in ending:
            self._leave(transfer, bottleneck, transfer.size)
            if transfer.marks:
                # Marks at the very end may be left because of rounding.
                transfer.reached += [environment.now] * (len(transfer.marks) - len(transfer.reached))
            if not alone:
                self._call_soon(transfer)
        if alone and ending[0].on_done is not None:
            # No other transfer can end at this time, so the order of starts is kept without an event.
            ending[0].on_done(*ending[0].args)

    def _arrive(self, transfer: Transfer) -> None:
        """End a transfer that no link limits."""
        transfer.ended = True
        if transfer.marks:
            transfer.reached += [self.environment.now] * (len(transfer.marks) - len(transfer.reached))
        for link in transfer.path:
            link.ended_bytes += transfer.size
        self._call_soon(transfer)

    def _call_soon(self, transfer: Transfer) -> None:
        """Schedule *on_done* as an event of its own: it may cancel or start transfers, and may raise."""
        if not self._done:
            self.environment.after(0.0, self._call_first)
        heappush(self._done, (transfer.serial, transfer))

    def _call_first(self) -> None:
        _, transfer = heappop(self._done)
        if self._done:
            self.environment.after(0.0, self._call_first)
        _call(transfer)

    # ---------------------------------------------------------------------------------------- transfers on their links

    def _admit(self, link: Link, bottleneck: Link) -> dict[Transfer, None]:
        """Add an entry on *link* for transfers of *bottleneck*, which had none there; return the entry."""
        by_bottleneck = link.by_bottleneck
        if len(by_bottleneck) == 1:
            # The link is no longer a captive, so its load must be known.
            (other,) = by_bottleneck
            if other is not link:
                # A bottleneck that is not settled yet has no level and therefore no load.
                level = other.level if other.level < INFINITY else 0.0
                link.foreign = other.feeds[link] = len(by_bottleneck[other]) * level
                link.top = level
        if by_bottleneck and bottleneck is not link:
            # `_feed` sets its load when its level is settled.
            bottleneck.feeds[link] = 0.0
        here: dict[Transfer, None] = {}
        by_bottleneck[bottleneck] = here
        return here

    def _start_alone(self, transfer: Transfer, bottleneck: Link) -> None:
        """
        Start a transfer as the only one of its idle bottleneck.

        If all other links have room for the bottleneck's whole rate, this rate is the level, and no settling is needed.
        This shortcut covers the usual case and saves an event.
        """
        bottleneck.read_at = now = self.environment.now
        transfer.end = transfer.size
        bottleneck.ends.append((transfer.size, transfer.serial, transfer))
        bottleneck.members = bottleneck.active = 1
        bottleneck.by_bottleneck[bottleneck] = {transfer: None}
        if transfer.marks:
            bottleneck.begin_marks(transfer)
        rate, feeds, has_room = bottleneck.rate, bottleneck.feeds, True
        for link in transfer.path:
            if link is bottleneck:
                continue
            link.active += 1
            by_bottleneck = link.by_bottleneck
            if len(by_bottleneck) > 1:
                feeds[link] = 0.0
                by_bottleneck[bottleneck] = {transfer: None}
                room = link.rate - link.foreign
            else:
                self._admit(link, bottleneck)[transfer] = None
                if len(by_bottleneck) == 1:
                    self._watch(link)
                    room = link.rate
                else:
                    room = link.rate - link.foreign
            if link.members or link.unsettled or rate > room:
                has_room = False
        if not has_room or not rate:
            self._unsettle(bottleneck)
            return
        bottleneck.level = rate
        for link in feeds:
            feeds[link] = rate
            link.foreign += rate
            link.top = max(link.top, rate)
        bottleneck.first = transfer
        bottleneck.due = due = now + transfer.size / rate
        bottleneck.timer = self.environment.at(due, bottleneck.wake)

    def _leave(self, transfer: Transfer, bottleneck: Link, moved: float) -> None:
        """Remove *transfer* from all its links."""
        transfer.bottleneck = None
        transfer.ended = True
        bottleneck.members -= 1
        for link in transfer.path:
            link.active -= 1
            link.ended_bytes += moved
            by_bottleneck = link.by_bottleneck
            here = by_bottleneck[bottleneck]
            if len(here) > 1:
                del here[transfer]
            elif len(by_bottleneck) > 2 and not link.members:
                # Inlined `_dismiss` for the usual case.
                del by_bottleneck[bottleneck]
                link.foreign -= bottleneck.feeds.pop(link, 0.0)
                continue
            else:
                self._dismiss(link, bottleneck)
            if link is not bottleneck and len(by_bottleneck) == 1:
                self._watch(link)
        if bottleneck.by_bottleneck and not bottleneck.unsettled:
            self._unsettle(bottleneck)
        if not bottleneck.members:
            bottleneck.close()

    def _dismiss(self, link: Link, bottleneck: Link) -> None:
        """Remove the entry of *bottleneck* from *link*, on which it has no transfers any more."""
        by_bottleneck = link.by_bottleneck
        del by_bottleneck[bottleneck]
        if bottleneck is not link:
            link.foreign -= bottleneck.feeds.pop(link, 0.0)
        if len(by_bottleneck) > 1:
            if link.members:
                self._unsettle(link)
            return
        # With one bottleneck there is no foreign load. Setting 0 also drops rounding errors.
        link.foreign = link.top = 0.0
        if by_bottleneck:
            self._unsettle(link)
            (other,) = by_bottleneck
            other.feeds.pop(link, None)

    def _watch(self, link: Link) -> None:
        """Register *link* as a captive if all its transfers have the same other bottleneck."""
        if len(link.by_bottleneck) != 1 or link.members or link.rate == INFINITY:
            return
        (bottleneck,) = link.by_bottleneck
        captives = bottleneck.captives
        if len(captives) > 2 * bottleneck.members + FEW_DEAD:
            live = dict.fromkeys(entry[2] for entry in captives if {bottleneck} == entry[2].by_bottleneck.keys())
            captives[:] = [(one.rate / one.active, one.serial, one) for one in live]
            heapify(captives)
        heappush(captives, (link.rate / link.active, link.serial, link))

    # ---------------------------------------------------------------------------------------------- rates of transfers

    def _unsettle(self, link: Link) -> None:
        """
        Have the level of *link* recomputed before the clock advances.

        One event serves all changes at the same time and fires last. An end is mostly followed by the next start,
        several starts coincide, and levels only matter when time passes.
        """
        if not link.unsettled:
            link.unsettled = True
            if not self._unsettled:
                self.environment.after(0.0, self._settle, priority=LAST)
            self._unsettled.append(link)

    def _settle(self) -> None:
        """Recompute the levels of all unsettled links."""
        unsettled = self._unsettled
        # The list grows during the iteration.
        for link in unsettled:
            link.unsettled = False
            if link.members:
                foreign = link.foreign
                # A negative load is a rounding error. It must not give a positive level to a link that is down.
                level = (link.rate - foreign if foreign > 0.0 else link.rate) / link.members
                if level * SAME < link.top:
                    level = self._pull_above(link, level)
                elif level == INFINITY:
                    self._release(link)
                    continue
            elif link.by_bottleneck and self._is_over(link):
                level = self._pull_above(link, 0.0)
                if not link.members:
                    continue
            else:
                continue
            link.set_level(level)
            if link.feeds:
                self._feed(link)
            if link.captives:
                self._check_captives(link)
        for link in unsettled if len(unsettled) == 1 else dict.fromkeys(unsettled):
            if link.members:
                link.aim()
        unsettled.clear()

    def _release(self, link: Link) -> None:
        """Move all members to other bottlenecks, because *link* has no limit now."""
        link.read()
        for transfer in list(link.by_bottleneck[link]):
            if transfer.bottleneck is link:
                bottleneck = _narrowest(transfer.path)
                if bottleneck is None:
                    if transfer.marks:
                        link.record_marks(transfer)
                    self._leave(transfer, link, 0.0)
                    self._arrive(transfer)
                else:
                    self._pull(bottleneck, link)
                    self._unsettle(bottleneck)

    def _is_over(self, link: Link) -> bool:
        """Return whether the load of a link without members exceeds its rate."""
        if len(link.by_bottleneck) > 1:
            return link.foreign > link.rate * SAME
        (bottleneck,) = link.by_bottleneck
        if INFINITY > bottleneck.level > link.rate / link.active * SAME:
            return True
        self._watch(link)
        return False

    def _pull_above(self, link: Link, level: float) -> float:
        """Pull the transfers faster than *level*, fastest bottleneck first; return the resulting level."""
        bound = level * SAME
        above = [
            bottleneck
            for bottleneck in link.by_bottleneck
            if bottleneck is not link and INFINITY > bottleneck.level > bound
        ]
        above.sort(key=attrgetter("level"), reverse=True)
        for bottleneck in above:
            if link.members and bottleneck.level <= level * SAME:
                break
            self._pull(link, bottleneck)
            level = (link.rate - max(link.foreign, 0.0)) / link.members
        link.top = level
        return level

    def _pull(self, link: Link, bottleneck: Link) -> None:
        """Make *link* the bottleneck of all transfers that cross it and have the bottleneck *bottleneck*."""
        bottleneck.read()
        link.read()
        moving = list(link.by_bottleneck[bottleneck])
        # A bottleneck that is not settled yet puts no load on other links.
        level = bottleneck.level if bottleneck.level < INFINITY else 0.0
        link.members += len(moving)
        bottleneck.members -= len(moving)
        self._unsettle(bottleneck)
        for transfer in moving:
            if transfer.marks:
                bottleneck.record_marks(transfer)
                link.begin_marks(transfer)
            transfer.bottleneck = link
            transfer.end = end = link.clock + (transfer.end - bottleneck.clock)
            heappush(link.ends, (end, transfer.serial, transfer))
            for other in transfer.path:
                by_bottleneck = other.by_bottleneck
                here = by_bottleneck.get(link)
                if here is None:
                    here = self._admit(other, link)
                here[transfer] = None
                there = by_bottleneck[bottleneck]
                del there[transfer]
                if not there:
                    self._dismiss(other, bottleneck)
                    if other is not link and len(by_bottleneck) == 1:
                        self._watch(other)
                elif other in bottleneck.feeds:
                    bottleneck.feeds[other] -= level
                    other.foreign -= level
                    self._unsettle(other)
        if not bottleneck.members:
            bottleneck.close()

    def _feed(self, link: Link) -> None:
        """Update the load that the members of *link* put on other links after its level changed."""
        level, feeds = link.level, link.feeds
        whole = 0 if link.foreign else link.members
        for other, before in feeds.items():
            count = len(other.by_bottleneck[link])
            # If all members cross the other link, use the exact rate, so that sums do not drift.
            load = link.rate if count == whole else count * level
            other.top = max(other.top, level)
            if load != before:
                feeds[other] = load
                other.foreign += load - before
            elif level <= other.level:
                continue
            if other.members:
                if level <= other.level * SAME and abs(load - before) <= ROUNDING * other.rate:
                    continue
            elif other.foreign <= other.rate * SAME:
                continue
            self._unsettle(other)

    def _check_captives(self, link: Link) -> None:
        """Unsettle the captives that are too slow for the new level of *link*."""
        captives = link.captives
        bound = link.level / SAME
        while captives and captives[0][0] < bound:
            captive = heappop(captives)[2]
            if not captive.members and link in captive.by_bottleneck:
                self._unsettle(captive)


def _call(transfer: Transfer) -> None:
    if transfer.on_done is not None:
        transfer.on_done(*transfer.args)


def _narrowest(path: tuple[Link, ...]) -> Link | None:
    """Guess a transfer's bottleneck; None if no link limits it. A wrong guess is corrected by a pull."""
    narrowest, least = None, INFINITY
    for link in path:
        if link.members:
            share = (link.rate - link.foreign) / (link.members + 1)
        else:
            share = link.rate / (link.active + 1)
            if len(link.by_bottleneck) > 1 and link.rate - link.foreign > share:
                share = link.rate - link.foreign
        if share < least:
            narrowest, least = link, share
    return narrowest
