"""
Links shared by transfers that each cross one or several of them, max-min fairly.

    start --> moving --last byte--> done --> on_done is called
                |                    |
                +------cancel--------+-----> on_done is never called

Every transfer gets the same rate until a link of its path is full: then those that cross it keep the rate they have,
and the others go on. So a transfer is held back by one full link of its path, its home, and no transfer on that link
has a higher rate. All members of a link, those whose home it is, have one rate: the link's level.

    level = (rate - load of those held back elsewhere) / members

Only one thing can be wrong after a change, and every repair is the same. If a link is full and somebody crosses it at
a higher rate than its level, then the link pulls everybody of that home who crosses it: it becomes their home. That
makes its own level higher, though not as high as the other's, and leaves more to the members that stay with the other.
It comes to an end: no level is ever below its link's rate / transfers, so whoever has the lowest of these is right
after one look and never loses a member; then the next lowest, and so on.

A change touches the links whose level it changes and those that they feed. On a registry that is not full, a node's
link feeds the same load whatever its number of transfers, and nobody else hears of it. On a full one, all nodes that it
holds back move with its clock. Their links are its captives: everybody on them has one home, so that they are not
looked at before its level passes their rate / transfers.

Called by models of downloads and disks. Never knows what its bytes are.
"""

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from operator import attrgetter
from typing import Final, TypeVarTuple

from lamina.simulator.engine.environment import INFINITY, EngineError, Environment
from lamina.simulator.engine.link import FEW_DEAD, Link, Transfer

Arguments = TypeVarTuple("Arguments")

# Rates that differ by less than this share are the same but for rounding, and nobody is pulled because of it.
SAME: Final = 1.0 + 1e-12

# A load that changed by less than this share of a link's rate has not changed: two links would tell each other for ever.
ROUNDING: Final = 1e-13

# The priority of settling, after everything else that happens in an instant.
LAST: Final = 1_000_000_000


class Network:
    """Links of one environment, and the transfers over them."""

    __slots__ = ("_done", "_links", "_serial", "_unsettled", "environment")

    def __init__(self, environment: Environment) -> None:
        """Make a network without links."""
        self.environment = environment
        self._links = 0
        self._serial = 0
        # Transfers that have ended and are not called yet; links whose level has to be looked at.
        self._done: list[tuple[int, Transfer]] = []
        self._unsettled: list[Link] = []

    def link(self, rate: float) -> Link:
        """Add a link of *rate* bytes per unit of time; infinity: it never limits; 0: it is down."""
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
        Send *size* bytes over all links of *path*; *on_done* is called with *args* once the last of them has arrived.

        It is never called from inside this method: what needs no time is done by an event, at the current time. Of
        transfers that end at one time, the one started first is called first. *marks* are numbers of bytes, none smaller
        than the one before or larger than *size*; `Transfer.reached` will say when each had been moved.
        """
        if not 0.0 <= size < INFINITY:
            raise EngineError(f"cannot use a size of {size!r}: it must be finite and at least 0")
        if len(path) > 1 and (path[0] is path[1] or (len(path) > 2 and len({*path}) < len(path))):
            raise EngineError("cannot use a path that names a link twice")
        self._serial = serial = self._serial + 1
        transfer = Transfer(path, float(size), on_done, args, serial, marks)
        home = _narrowest(path) if size else None
        if home is None:
            self._arrive(transfer)
            return transfer
        transfer.home = home
        if not home.active and not home.unsettled:
            self._start_alone(transfer, home)
            return transfer
        home.read()
        transfer.end = end = home.clock + size
        heappush(home.ends, (end, serial, transfer))
        home.members += 1
        if marks:
            home.welcome(transfer)
        for link in path:
            link.active += 1
            homes = link.homes
            here = homes.get(home)
            if here is None:
                here = self._admit(link, home)
            here[transfer] = None
            if link is not home and len(homes) == 1:
                self._watch(link)
        if not home.unsettled:
            self._unsettle(home)
        return transfer

    def cancel(self, transfer: Transfer) -> None:
        """
        Take *transfer*, which this network handed out, off its links; its *on_done* is not called from now on.

        The bytes it has moved stay counted. Nothing happens if it was called or cancelled before.
        """
        # Its last byte may have arrived while its call is still to come, in an instant with several endings.
        transfer.on_done = None
        home = transfer.home
        if home is not None:
            home.read()
            self._leave(transfer, home, transfer.size - transfer.end + home.clock)

    def set_rate(self, link: Link, rate: float) -> None:
        """Let *link* go on at *rate*."""
        link.rate = rate
        self._watch(link)
        self._unsettle(link)

    def end(self, ending: list[Transfer], home: Link) -> None:
        """Take members of *home* off their links, since their last bytes have arrived, and call them."""
        environment = self.environment
        alone = len(ending) == 1 and environment.peek() > environment.now
        for transfer in ending:
            self._leave(transfer, home, transfer.size)
            if transfer.marks:
                # But for a rounding it has told them all.
                transfer.reached += [environment.now] * (len(transfer.marks) - len(transfer.reached))
            if not alone:
                self._call_soon(transfer)
        if alone and ending[0].on_done is not None:
            # Nobody else can be done now, so the order of start is kept without an event.
            ending[0].on_done(*ending[0].args)

    def _arrive(self, transfer: Transfer) -> None:
        """Be done with a transfer that no link holds back."""
        transfer.ended = True
        if transfer.marks:
            transfer.reached += [self.environment.now] * (len(transfer.marks) - len(transfer.reached))
        for link in transfer.path:
            link.ended_bytes += transfer.size
        self._call_soon(transfer)

    def _call_soon(self, transfer: Transfer) -> None:
        """Each by an event of its own: one may cancel or start others, and if one raises, none is lost."""
        if not self._done:
            self.environment.after(0.0, self._call_first)
        heappush(self._done, (transfer.serial, transfer))

    def _call_first(self) -> None:
        _, transfer = heappop(self._done)
        if self._done:
            self.environment.after(0.0, self._call_first)
        _call(transfer)

    # ------------------------------------------------------------------------------------------------ who is where

    def _admit(self, link: Link, home: Link) -> dict[Transfer, None]:
        """Make room on *link* for transfers of a *home* that had none there."""
        homes = link.homes
        if len(homes) == 1:
            # No longer a captive, so its load has to be known.
            (other,) = homes
            if other is not link:
                # A home without a level, since it is still to be settled, has no load yet either.
                level = other.level if other.level < INFINITY else 0.0
                link.foreign = other.feeds[link] = len(homes[other]) * level
                link.top = level
        if homes and home is not link:
            # Its load follows when its level is settled.
            home.feeds[link] = 0.0
        here: dict[Transfer, None] = {}
        homes[home] = here
        return here

    def _start_alone(self, transfer: Transfer, home: Link) -> None:
        """
        Begin with the only transfer of a link that was idle.

        If that carries its whole rate and fills no other link, then this is its level; it needs no settling and so no
        event. That is the usual case where shared links have room.
        """
        home.read_at = now = self.environment.now
        transfer.end = transfer.size
        home.ends.append((transfer.size, transfer.serial, transfer))
        home.members = home.active = 1
        home.homes[home] = {transfer: None}
        if transfer.marks:
            home.welcome(transfer)
        rate, feeds, has_room = home.rate, home.feeds, True
        for link in transfer.path:
            if link is home:
                continue
            link.active += 1
            homes = link.homes
            if len(homes) > 1:
                feeds[link] = 0.0
                homes[home] = {transfer: None}
                room = link.rate - link.foreign
            else:
                self._admit(link, home)[transfer] = None
                if len(homes) == 1:
                    self._watch(link)
                    room = link.rate
                else:
                    room = link.rate - link.foreign
            if link.members or link.unsettled or rate > room:
                has_room = False
        if not has_room or not rate:
            self._unsettle(home)
            return
        home.level = rate
        for link in feeds:
            feeds[link] = rate
            link.foreign += rate
            link.top = max(link.top, rate)
        home.first = transfer
        home.due = due = now + transfer.size / rate
        home.timer = self.environment.at(due, home.wake)

    def _leave(self, transfer: Transfer, home: Link, moved: float) -> None:
        """Take *transfer* off all its links."""
        transfer.home = None
        transfer.ended = True
        home.members -= 1
        for link in transfer.path:
            link.active -= 1
            link.ended_bytes += moved
            homes = link.homes
            here = homes[home]
            if len(here) > 1:
                del here[transfer]
            elif len(homes) > 2 and not link.members:
                # What `_dismiss` does, for the usual case.
                del homes[home]
                link.foreign -= home.feeds.pop(link, 0.0)
                continue
            else:
                self._dismiss(link, home)
            if link is not home and len(homes) == 1:
                self._watch(link)
        if home.homes and not home.unsettled:
            self._unsettle(home)
        if not home.members:
            home.close()

    def _dismiss(self, link: Link, home: Link) -> None:
        """Forget a *home* that has no transfers on *link* any more."""
        homes = link.homes
        del homes[home]
        if home is not link:
            link.foreign -= home.feeds.pop(link, 0.0)
        if len(homes) > 1:
            if link.members:
                self._unsettle(link)
            return
        # Alone on its link nobody is foreign; and no rounding stays.
        link.foreign = link.top = 0.0
        if homes:
            self._unsettle(link)
            (other,) = homes
            other.feeds.pop(link, None)

    def _watch(self, link: Link) -> None:
        """Let the only home on *link*, if it is another, know the level up to which the link is none of its concern."""
        if len(link.homes) != 1 or link.members or link.rate == INFINITY:
            return
        (home,) = link.homes
        captives = home.captives
        if len(captives) > 2 * home.members + FEW_DEAD:
            live = dict.fromkeys(entry[2] for entry in captives if {home} == entry[2].homes.keys())
            captives[:] = [(one.rate / one.active, one.serial, one) for one in live]
            heapify(captives)
        heappush(captives, (link.rate / link.active, link.serial, link))

    # ------------------------------------------------------------------------------------------------ what they get

    def _unsettle(self, link: Link) -> None:
        """
        Have the level of *link* looked at before time goes on.

        By one event for all changes of an instant, and the last of it: mostly an ending is followed by the next start,
        and several starts come together, and no level matters until time passes.
        """
        if not link.unsettled:
            link.unsettled = True
            if not self._unsettled:
                self.environment.after(0.0, self._settle, priority=LAST)
            self._unsettled.append(link)

    def _settle(self) -> None:
        """Make all levels right again."""
        unsettled = self._unsettled
        # Grows while it is gone through.
        for link in unsettled:
            link.unsettled = False
            if link.members:
                foreign = link.foreign
                # Below 0 it is a rounding, which must not let anybody pass a link that is down.
                level = (link.rate - foreign if foreign > 0.0 else link.rate) / link.members
                if level * SAME < link.top:
                    level = self._pull_above(link, level)
                elif level == INFINITY:
                    self._release(link)
                    continue
            elif link.homes and self._is_over(link):
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
        """Hold nobody back here any more, since the link has no limit now."""
        link.read()
        for transfer in list(link.homes[link]):
            if transfer.home is link:
                home = _narrowest(transfer.path)
                if home is None:
                    if transfer.marks:
                        link.tell(transfer)
                    self._leave(transfer, link, 0.0)
                    self._arrive(transfer)
                else:
                    self._pull(home, link)
                    self._unsettle(home)

    def _is_over(self, link: Link) -> bool:
        """Tell whether a link without members is given more than its rate."""
        if len(link.homes) > 1:
            return link.foreign > link.rate * SAME
        (home,) = link.homes
        if INFINITY > home.level > link.rate / link.active * SAME:
            return True
        self._watch(link)
        return False

    def _pull_above(self, link: Link, level: float) -> float:
        """Pull those with a higher rate than *level*, the highest first; answer the level that is high enough."""
        bound = level * SAME
        above = [home for home in link.homes if home is not link and INFINITY > home.level > bound]
        above.sort(key=attrgetter("level"), reverse=True)
        for home in above:
            if link.members and home.level <= level * SAME:
                break
            self._pull(link, home)
            level = (link.rate - max(link.foreign, 0.0)) / link.members
        link.top = level
        return level

    def _pull(self, link: Link, home: Link) -> None:
        """Hold everybody back here who crosses *link* and was held back at *home*."""
        home.read()
        link.read()
        moving = list(link.homes[home])
        # Not settled since it has members, it feeds nobody yet.
        level = home.level if home.level < INFINITY else 0.0
        link.members += len(moving)
        home.members -= len(moving)
        self._unsettle(home)
        for transfer in moving:
            if transfer.marks:
                home.tell(transfer)
                link.welcome(transfer)
            transfer.home = link
            transfer.end = end = link.clock + (transfer.end - home.clock)
            heappush(link.ends, (end, transfer.serial, transfer))
            for other in transfer.path:
                homes = other.homes
                here = homes.get(link)
                if here is None:
                    here = self._admit(other, link)
                here[transfer] = None
                there = homes[home]
                del there[transfer]
                if not there:
                    self._dismiss(other, home)
                    if other is not link and len(homes) == 1:
                        self._watch(other)
                elif other in home.feeds:
                    home.feeds[other] -= level
                    other.foreign -= level
                    self._unsettle(other)
        if not home.members:
            home.close()

    def _feed(self, link: Link) -> None:
        """Tell the links that the members of *link* cross of its new level."""
        level, feeds = link.level, link.feeds
        whole = 0 if link.foreign else link.members
        for other, before in feeds.items():
            count = len(other.homes[link])
            # If it is all of the link, then exactly, so that sums do not drift.
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
        """Look at the captives that cannot carry the new level of *link*."""
        captives = link.captives
        bound = link.level / SAME
        while captives and captives[0][0] < bound:
            captive = heappop(captives)[2]
            if not captive.members and link in captive.homes:
                self._unsettle(captive)


def _call(transfer: Transfer) -> None:
    if transfer.on_done is not None:
        transfer.on_done(*transfer.args)


def _narrowest(path: tuple[Link, ...]) -> Link | None:
    """Guess which link will hold a transfer back; None if none can. A wrong guess costs a pull."""
    narrowest, least = None, INFINITY
    for link in path:
        if link.members:
            share = (link.rate - link.foreign) / (link.members + 1)
        else:
            share = link.rate / (link.active + 1)
            if len(link.homes) > 1 and link.rate - link.foreign > share:
                share = link.rate - link.foreign
        if share < least:
            narrowest, least = link, share
    return narrowest
