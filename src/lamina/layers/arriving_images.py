"""
Images that are arriving on nodes, and the time at which each pull should end.

Arrivals are not read from reports. They follow from pods that are bound to a node and do not run yet, whichever
scheduler bound them. A node pulls its missing images one after the other, in the order the pods were bound: the
kubelet's default.

    expect --> queued --its turn--> pulling --pod runs, or report--> held
                 |                     |
                 +----pod deleted------+---overdue---> not expected any more

When a pod runs, its images are on the node: they count as arrived until the node's next report.
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

# An image is given up when it is overdue by PATIENCE times its pull duration, and by PATIENCE_AT_LEAST seconds at
# least. It is missing from then on.
PATIENCE: Final = 3.0
PATIENCE_AT_LEAST: Final = 60.0
# Seconds for which an image stays arrived because a pod ran with it, if no report confirms it.
DEDUCED_FOR: Final = 600.0
NEVER: Final = float("-inf")
# Passing time marks rows as changed at most once per TICK seconds.
TICK: Final = 0.25


class ArrivingImage:
    """One image that is arriving on one row."""

    __slots__ = ("begins", "claims", "eta", "image", "ran_at", "seconds")

    def __init__(self, image: Image, seconds: float, begins: float) -> None:
        """Expect the pull of *image* to begin at *begins* and to take *seconds*."""
        self.image = image
        self.seconds = seconds
        self.begins = begins
        self.eta = begins + seconds
        self.claims: set[PodUid] = set()
        """Pods that wait for the image."""
        self.ran_at: float | None = None
        """When a pod ran with the image, which proves that the image is on the node."""

    @property
    def late_after(self) -> float:
        """The time after which the image is given up."""
        if self.ran_at is not None:
            return self.ran_at + DEDUCED_FOR
        # Relative to `begins`, because `eta` moves on while an image is overdue.
        return self.begins + self.seconds + max(PATIENCE * self.seconds, PATIENCE_AT_LEAST)


class ArrivingImageSnapshot(msgspec.Struct, frozen=True):
    """Serializable form of one `ArrivingImage`."""

    row: int
    digest: Digest
    seconds: float
    begins: float
    eta: float
    claims: tuple[PodUid, ...]
    ran_at: float | None


class ArrivingImagesSnapshot(msgspec.Struct, frozen=True):
    """Serializable form of `ArrivingImages`."""

    now: float
    clock: float
    late_after: float
    arrivals: tuple[ArrivingImageSnapshot, ...]
    """Row by row, in the order of the row's pull queue."""
    pods: tuple[tuple[PodUid, int, tuple[Digest, ...]], ...]
    busy: tuple[int, ...]


class ArrivingImages:
    """Arriving images of each row; keeps the index's matrix of arriving images up to date."""

    def __init__(self, index: LayerIndex, rates: PullRates) -> None:
        """Start with no arriving image."""
        self._index = index
        self._rates = rates
        self.now = 0.0
        self.clock = 0.0
        """The last tick. Readiness estimates measure the remaining time from here until the next tick."""
        self.moves = 0
        """Grows whenever an arrival time may have changed, also because time passes during a pull."""
        self._rows: dict[int, dict[Digest, ArrivingImage]] = {}
        self._pods: dict[PodUid, tuple[int, tuple[Digest, ...]]] = {}
        """Pods that do not run yet → row and images that were missing there."""
        self.etas: dict[Digest, dict[int, float]] = {}
        """Arriving image → row → time at which the pull should end."""
        self.queue_end: Floats = np.full(index.capacity, NEVER)
        """When each row's pull queue should be empty; NEVER for a row without pulls."""
        self._busy: dict[int, None] = {}
        """Rows with a pull in progress or queued."""
        self._late_after = np.inf
        """No image is given up before this time."""

    def expect(self, uid: PodUid, row: int, images: Sequence[Image]) -> bool:
        """Queue the *images* that *row* does not hold, for a pod bound there; return whether any was added."""
        if self._pods.get(uid, (row, ()))[0] != row:
            self.gone(uid)
        # Images the pod already waits for keep their place in the queue. Images that were given up are not queued
        # again.
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
        """Mark all images of a pod that runs as arrived; return its row, or None if nothing was expected."""
        row, digests = self._pods.pop(uid, (-1, ()))
        arriving = self._rows.get(row, {})
        found = [arriving[digest] for digest in digests if digest in arriving and arriving[digest].ran_at is None]
        if not found:
            return None
        for one in found:
            # `eta` is the last tick, so that the remaining time is zero at once and not only from the next tick on.
            one.ran_at, one.eta = self.now, self.clock
        self._replan(row)
        self._announce(row)
        return row

    def gone(self, uid: PodUid) -> int | None:
        """Remove a deleted pod, or one whose binding failed; return its row, or None if nothing was expected."""
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
            # The runtime completes a pull that has begun, and an image a pod ran with is on the node.
            if not one.claims and one.ran_at is None and one.begins >= self.now:
                self._drop(row, digest)
        self._replan(row, anew=len(arriving) < count)
        self._publish(row)
        return row

    def reported(self, row: int, observed_at: float, *, anew: bool = False) -> bool:
        """
        Drop what a row's new report settles; return whether anything was expected on the row.

        *anew* recomputes the pull durations, because the row holds more or less than was expected.
        """
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
        """Drop all arriving images and waiting pods of a row, because another node may get it."""
        for uid in [uid for uid, (where, _) in self._pods.items() if where == row]:
            del self._pods[uid]
        if row in self._rows:
            for digest in list(self._rows[row]):
                self._drop(row, digest)
            self._publish(row)

    def pass_time(self, now: float) -> list[int]:
        """Set the time; return the rows whose estimates change because time passed."""
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
        """Drop overdue images; return the rows that had any."""
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
        """Return the arriving images of a row and the time at which each should be there."""
        return [(one.image, one.eta) for one in self._rows.get(row, {}).values()]

    def _drop(self, row: int, digest: Digest) -> None:
        """Drop an arriving image. The caller must then call `_publish`."""
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
        """Return the seconds a pull takes when the images *before* it are already there."""
        self._index.expect(row, before)
        self._index.take(image)
        seconds = self._rates.pull_takes(row, *not_held_on(self._index, image, row))
        self._index.let_go(image.digest)
        return seconds

    def _replan(self, row: int, *, anew: bool = False) -> None:
        """
        Compute the pull times of a row again.

        A pull that has begun goes on; the others follow it. *anew* also recomputes durations, because the row may hold
        more or less now. The caller must then call `_publish`, or `_announce` where the same images are expected as
        before.
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
        """Update the index, the arrival times and the end of the queue of a row."""
        arriving = self._rows.get(row, {})
        self._index.expect(row, [one.image for one in arriving.values()])
        self._announce(row)
        if not arriving:
            self._rows.pop(row, None)

    def _announce(self, row: int) -> None:
        """Update the arrival times and the end of the queue of a row."""
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
        """Make room for *rows* rows."""
        self._reach(rows - 1)

    def snapshot(self) -> ArrivingImagesSnapshot:
        """Return the state as data."""
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
        """Restore a snapshot into an empty object; *images* has every arriving image."""
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
