"""
How a kubelet keeps a disk from filling up: image collection and the eviction manager.

    used >= high ---every `every` s-->  removes unused images, the longest unused first, down to low
    free < evict_below --every `evict_every` s-->  removes all unused images; still short: disk pressure

Both look at fixed times of their own, which differ from node to node. They look only while there is something to see: a
node whose disk has room, or on which nothing changes, causes no events. Images in use and images that were first seen a
moment ago stay; a kubelet's emergency removal goes by the same rule as its collection.
"""

import math
import zlib
from collections.abc import Callable, Iterable
from typing import Final

from lamina.simulator.engine import Environment, Timer
from lamina.simulator.pulls.image_store import SCAN, KubeletImageRecord, NodeImageStore
from lamina.simulator.pulls.pull_request import PullWatcher, RemovalReason
from lamina.simulator.pulls.runtime_spec import DiskSpec

WHOLE: Final = 2**32


class PeriodicCheck:
    """Looks at fixed times, as far as anybody wants a look."""

    __slots__ = ("_environment", "_every", "_look", "_phase", "_timer")

    def __init__(self, environment: Environment, every: float, share: float, look: Callable[[], None]) -> None:
        """Call *look* every so many seconds, for the first time when *share* of them has passed."""
        self._environment = environment
        self._every = every
        self._phase = every * share
        self._look = look
        self._timer: Timer | None = None

    def arm(self) -> None:
        """Want a look, at the next time there is one."""
        if self._timer is None:
            now, every = self._environment.now, self._every
            at = self._phase + every * (math.floor((now - self._phase) / every) + 1)
            self._timer = self._environment.at(at if at > now else at + every, self._fire)

    def stop(self) -> None:
        """Want no look any more."""
        if self._timer is not None:
            self._environment.cancel(self._timer)
            self._timer = None

    def _fire(self) -> None:
        self._timer = None
        self._look()


class NodeImageGC:
    """Looks after the disk of one node."""

    __slots__ = (
        "_collecting",
        "_disk",
        "_environment",
        "_evicting",
        "_high",
        "_low",
        "_short_at",
        "_starved",
        "_stopped",
        "_store",
        "_watcher",
        "pressure",
    )

    def __init__(
        self, environment: Environment, store: NodeImageStore, disk: DiskSpec, name: str, watcher: PullWatcher
    ) -> None:
        """Look after *store* as the kubelet of node *name* does."""
        self._environment = environment
        self._store = store
        self._disk = disk
        self._watcher = watcher
        self._high = disk.high * disk.capacity
        self._low = disk.low * disk.capacity
        # Fewer free bytes than this share: more used bytes than the rest.
        self._short_at = (1.0 - disk.evict_below) * disk.capacity if disk.evict_below else math.inf
        share = zlib.crc32(name.encode()) / WHOLE
        self._collecting = PeriodicCheck(environment, disk.every, share, self._collect)
        self._evicting = PeriodicCheck(environment, disk.evict_every, share, self._evict)
        self.pressure = self._starved = False
        self._stopped = True
        store.phase = SCAN * share
        store.alarm_at = min(self._high, self._short_at)
        store.on_alarm = self.alarm

    def start(self) -> None:
        """Begin to look, or begin again because the node is back."""
        self._stopped = False
        self.alarm()
        self.relieved()

    def alarm(self) -> None:
        """Look again: more room was promised, or an image fell out of use, while there is little left."""
        if self._stopped:
            return
        if self._store.used >= self._high and self._store.idle:
            self._collecting.arm()
        if self._store.used > self._short_at:
            self._evicting.arm()

    def starved(self) -> None:
        """Remove unused images at the next look, although there may be room again: a pull found none."""
        if self._disk.evict_below and self._store.idle:
            self._starved = True
            self._evicting.arm()

    def relieved(self) -> None:
        """Look whether that was enough: bytes became free."""
        if self.pressure and not self._stopped:
            self._evicting.arm()

    def stop(self) -> None:
        """Look no more, because the node is gone."""
        self._collecting.stop()
        self._evicting.stop()
        self._starved = False
        self._stopped = True

    # ----------------------------------------------------------------------------------------------------------------

    def _collect(self) -> None:
        store = self._store
        if store.used < self._high:
            return
        self._remove(self._old_enough(), store.used - self._low, "collected")
        if store.used >= self._high and store.idle:
            self._collecting.arm()

    def _evict(self) -> None:
        store = self._store
        if store.used > self._short_at or self._starved:
            self._remove(self._old_enough(), math.inf, "pressure")
            # What was too young today is not in a while.
            self._starved = self._starved and store.idle > 0
        if store.used > self._short_at:
            self.pressure = True
            self._watcher.disk_pressure(True)
        elif self.pressure:
            self.pressure = False
            self._watcher.disk_pressure(False)
        if store.idle and (self.pressure or self._starved):
            self._evicting.arm()

    def _old_enough(self) -> Iterable[KubeletImageRecord]:
        now = self._environment.now
        return [one for one in self._store.removable(now) if now - one.first_seen >= self._disk.min_age]

    def _remove(self, records: Iterable[KubeletImageRecord], enough: float, why: RemovalReason) -> None:
        removed, freed, counted = [], 0, 0
        for record in records:
            really = self._store.remove(record.recipe.image.digest)
            removed.append(record.recipe.image)
            freed += really
            counted += record.recipe.size if self._disk.accounting == "reported" else really
            if counted >= enough:
                break
        if removed:
            self._watcher.images_removed(tuple(removed), freed, why)
