"""
Images on their way to nodes, and when they will be there.

Nobody reports this: it follows from pods that are bound to a node and do not run yet, whoever bound them. Their missing
images are pulled one after the other, in the order the pods came, as a kubelet does it by default.

    expect --> queued --its turn--> pulling --pod runs, or report--> there
                 |                     |
                 +-----pod gone--------+---overdue---> not expected any more

When a pod runs, its images are there: they count as arrived until the node's next report says so itself.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from lamina.layers.layer_index import LayerIndex
from lamina.layers.layer_set import Floats
from lamina.layers.not_held import not_held_on
from lamina.layers.pull_rates import PullRates
from lamina.model.digest import Digest
from lamina.model.image import Image
from lamina.model.pod import PodUid
from lamina.rows.growable import grown

# How long after its time an image is still expected: this many times what the pull should have taken, and at least so
# many seconds. Then something is wrong with it, and it counts as missing.
PATIENCE: Final = 3.0
PATIENCE_AT_LEAST: Final = 60.0
# How long an image counts as arrived because a pod ran with it, if no report ever confirms it.
DEDUCED_FOR: Final = 600.0
NEVER: Final = float("-inf")
# How often the passing of time alone counts as a change, in seconds.
TICK: Final = 0.25


class ArrivingImage:
    """One image on its way to one row."""

    __slots__ = ("begins", "claims", "eta", "image", "ran_at", "seconds")

    def __init__(self, image: Image, seconds: float, begins: float) -> None:
        """Expect *image* to be pulled from *begins* on, for so many *seconds*."""
        self.image = image
        self.seconds = seconds
        self.begins = begins
        self.eta = begins + seconds
        self.claims: set[PodUid] = set()
        """Pods that wait for it."""
        self.ran_at: float | None = None
        """When a pod ran with it, which proves that it is there."""

    @property
    def late_after(self) -> float:
        """When it ceases to be expected."""
        if self.ran_at is not None:
            return self.ran_at + DEDUCED_FOR
        # Not after `eta`, which moves on while an image is overdue.
        return self.begins + self.seconds + max(PATIENCE * self.seconds, PATIENCE_AT_LEAST)


class ArrivingImageSnapshot(msgspec.Struct, frozen=True):
    """One image on its way to one row, as data."""

    row: int
    digest: Digest
    seconds: float
    begins: float
    eta: float
    claims: tuple[PodUid, ...]
    ran_at: float | None


class ArrivingImagesSnapshot(msgspec.Struct, frozen=True):
    """Everything an `ArrivingImages` knows."""

    now: float
    clock: float
    late_after: float
    arrivals: tuple[ArrivingImageSnapshot, ...]
    """Row by row, each in the order of its pull queue."""
    pods: tuple[tuple[PodUid, int, tuple[Digest, ...]], ...]
    busy: tuple[int, ...]


class ArrivingImages:
    """What is on its way, by row. Keeps the index's sheet of expected images in step."""

    def __init__(self, index: LayerIndex, rates: PullRates) -> None:
        """Expect nothing yet."""
        self._index = index
        self._rates = rates
        self.now = 0.0
        self.clock = 0.0
        """The last tick: what is left until an arrival counts from here, for everybody and until the next tick."""
        self.moves = 0
        """Grows whenever images may be there sooner or later than they seemed: also when time passes while one is pulled."""
        self._rows: dict[int, dict[Digest, ArrivingImage]] = {}
        self._pods: dict[PodUid, tuple[int, tuple[Digest, ...]]] = {}
        """Pods that do not run yet: where they are, and what they found missing there."""
        self.etas: dict[Digest, dict[int, float]] = {}
        """For each image on its way: where to, and when it should be there."""
        self.queue_end: Floats = np.full(index.capacity, NEVER)
        """When each row's pull queue should be empty."""
        self._busy: dict[int, None] = {}
        """The rows where something is being pulled."""
        self._late_after = np.inf
        """Nothing ceases to be expected before."""

    def expect(self, uid: PodUid, row: int, images: Sequence[Image]) -> bool:
        """A pod that needs *images* was bound to *row*; say whether more is on its way because of it."""
        if self._pods.get(uid, (row, ()))[0] != row:
            self.gone(uid)
        # What it waits for already keeps its place in the queue; what was given up is not expected a second time.
        _, claimed = self._pods.get(uid, (row, ()))
        missing = [one for one in images if one.digest not in claimed and not self._index.holds(row, one.digest)]
        if not missing:
            return False
        self._reach(row)
        self._pods[uid] = (row, (*claimed, *(image.digest for image in missing)))
        arriving = self._rows.setdefault(row, {})
        for image in missing:
            if image.digest not in arriving:
                arriving[image.digest] = self._plan(row, image)
            arriving[image.digest].claims.add(uid)
        self._publish(row)
        return True

    def ran(self, uid: PodUid) -> int | None:
        """A pod runs: everything it waited for is there. Return the row, if anything was expected."""
        row, digests = self._pods.pop(uid, (-1, ()))
        arriving = self._rows.get(row, {})
        found = [arriving[digest] for digest in digests if digest in arriving and arriving[digest].ran_at is None]
        if not found:
            return None
        for one in found:
            # There is nothing left to wait for, also not until the next tick.
            one.ran_at, one.eta = self.now, self.clock
        self._replan(row)
        self._announce(row)
        return row

    def gone(self, uid: PodUid) -> int | None:
        """A pod is gone, or was not bound after all. Return the row, if anything was expected."""
        row, digests = self._pods.pop(uid, (-1, ()))
        arriving = self._rows.get(row)
        if arriving is None:
            return None
        count = len(arriving)
        for digest in digests:
            one = arriving.get(digest)
            if one is None:
                continue
            one.claims.discard(uid)
            # What has begun is carried through by the runtime, and what a pod ran with stays.
            if not one.claims and one.ran_at is None and one.begins >= self.now:
                self._drop(row, digest)
        self._replan(row, anew=len(arriving) < count)
        self._publish(row)
        return row

    def reported(self, row: int, observed_at: float, *, anew: bool = False) -> bool:
        """A row has said what it holds, which ends deductions; say whether anything was expected there."""
        arriving = self._rows.get(row)
        if arriving is None:
            return False
        for digest, one in list(arriving.items()):
            deduced = one.ran_at is not None and observed_at >= one.ran_at
            if deduced or self._index.holds(row, digest):
                self._drop(row, digest)
        self._replan(row, anew=anew)
        self._publish(row)
        return True

    def forget(self, row: int) -> None:
        """Drop everything about a row; whoever gets it next has nothing to do with pods that waited there."""
        for uid in [uid for uid, (where, _) in self._pods.items() if where == row]:
            del self._pods[uid]
        if row in self._rows:
            for digest in list(self._rows[row]):
                self._drop(row, digest)
            self._publish(row)

    def pass_time(self, now: float) -> list[int]:
        """Move on; return the rows about which time alone changes something."""
        self.now = now
        if now < self.clock + TICK:
            return []
        self.clock = now
        late = self._give_up() if now > self._late_after else []
        busy = [row for row in self._busy if row not in late]
        if busy:
            self.moves += 1
        return late + busy

    def _give_up(self) -> list[int]:
        """Expect no longer what is late; return the rows where something was."""
        rows = []
        self._late_after = np.inf
        for row, arriving in list(self._rows.items()):
            late = [digest for digest, one in arriving.items() if self.now > one.late_after]
            for digest in late:
                self._drop(row, digest)
            if late:
                self._replan(row, anew=True)
                self._publish(row)
                rows.append(row)
            else:
                self._announce(row)
        return rows

    def on(self, row: int) -> list[tuple[Image, float]]:
        """List the images on their way to a row, and when they should be there."""
        return [(one.image, one.eta) for one in self._rows.get(row, {}).values()]

    def _drop(self, row: int, digest: Digest) -> None:
        """Expect an image no longer; `_publish` has to follow."""
        del self._rows[row][digest]
        del self.etas[digest][row]
        if not self.etas[digest]:
            del self.etas[digest]

    def _plan(self, row: int, image: Image) -> ArrivingImage:
        seconds = self._pull_seconds(row, image, [one.image for one in self._rows[row].values()])
        one = ArrivingImage(image, seconds, max(self.now, self.queue_end.item(row)))
        self.queue_end[row] = one.eta
        return one

    def _pull_seconds(self, row: int, image: Image, before: list[Image]) -> float:
        """Work out how long an image takes after all that is there or comes *before* it."""
        self._index.expect(row, before)
        self._index.take(image)
        seconds = self._rates.pull_takes(row, *not_held_on(self._index, image, row))
        self._index.let_go(image.digest)
        return seconds

    def _replan(self, row: int, *, anew: bool = False) -> None:
        """
        Work the times out again: what has begun goes on, the rest follows; *anew*: it may lack more or less now.

        `_publish` has to follow, or where the same images are expected as before, `_announce`.
        """
        clock = self.now
        before: list[Image] = []
        for one in self._rows.get(row, {}).values():
            if one.ran_at is None:
                if one.begins < self.now and clock == self.now:
                    one.eta = max(one.eta, self.now)
                else:
                    if anew:
                        one.seconds = self._pull_seconds(row, one.image, before)
                    one.begins = clock
                    one.eta = clock + one.seconds
                clock = one.eta
            before.append(one.image)

    def _publish(self, row: int) -> None:
        """Bring index, arrival times and the end of the queue in line with what is expected on a row."""
        arriving = self._rows.get(row, {})
        self._index.expect(row, [one.image for one in arriving.values()])
        self._announce(row)
        if not arriving:
            self._rows.pop(row, None)

    def _announce(self, row: int) -> None:
        """Bring arrival times and the end of the queue in line with what is expected on a row."""
        self.moves += 1
        end = NEVER
        for digest, one in self._rows.get(row, {}).items():
            self.etas.setdefault(digest, {})[row] = one.eta
            self._late_after = min(self._late_after, one.late_after)
            if one.ran_at is None:
                end = one.eta
        self.queue_end[row] = end
        if end == NEVER:
            self._busy.pop(row, None)
        else:
            self._busy[row] = None

    def _reach(self, row: int) -> None:
        self._rates.reach(row + 1)
        self.queue_end = grown(self.queue_end, row + 1, NEVER)

    def reach(self, rows: int) -> None:
        """Make room for so many rows."""
        self._reach(rows - 1)

    def snapshot(self) -> ArrivingImagesSnapshot:
        """Return everything there is to know about it, as data."""
        return ArrivingImagesSnapshot(
            now=self.now,
            clock=self.clock,
            late_after=self._late_after,
            arrivals=tuple(
                ArrivingImageSnapshot(
                    row, digest, one.seconds, one.begins, one.eta, tuple(sorted(one.claims)), one.ran_at
                )
                for row, arriving in self._rows.items()
                for digest, one in arriving.items()
            ),
            pods=tuple((uid, row, digests) for uid, (row, digests) in self._pods.items()),
            busy=tuple(self._busy),
        )

    def restore(self, snapshot: ArrivingImagesSnapshot, images: Mapping[Digest, Image]) -> None:
        """Become what the snapshot was taken of; *images* has every image that is on its way."""
        self.now, self.clock = snapshot.now, snapshot.clock
        for saved in snapshot.arrivals:
            one = ArrivingImage(images[saved.digest], saved.seconds, saved.begins)
            one.eta, one.ran_at, one.claims = saved.eta, saved.ran_at, set(saved.claims)
            self._rows.setdefault(saved.row, {})[saved.digest] = one
        self._pods = {uid: (row, digests) for uid, row, digests in snapshot.pods}
        for row in list(self._rows):
            self._reach(row)
            self._publish(row)
        self._busy = dict.fromkeys(snapshot.busy)
        self._late_after = snapshot.late_after
