"""
Image garbage collection and the eviction manager of a simulated kubelet.

    used >= high        --every `every` s-->        removes unused images, least recently used first, down to low
    free < evict_below  --every `evict_every` s-->  removes all unused images; still short: disk pressure

Each node checks at fixed times of its own. A check is only scheduled while it can have an effect: a node whose disk has
room, or whose state does not change, causes no events. Both keep images in use and images younger than `min_age`.
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
    """Periodic check that only fires at those of its fixed times for which it was armed."""

    __slots__ = ("_check", "_environment", "_every", "_phase", "_timer")

    def __init__(self, environment: Environment, every: float, share: float, check: Callable[[], None]) -> None:
        """Allow calls of *check* every *every* seconds; the first time is *share* of this period after time 0."""
        self._environment = environment
        self._every = every
        self._phase = every * share
        self._check = check
        self._timer: Timer | None = None

    def arm(self) -> None:
        """Schedule a check at the next fixed time."""
        if self._timer is None:
            now, every = self._environment.now, self._every
            at = self._phase + every * (math.floor((now - self._phase) / every) + 1)
            self._timer = self._environment.at(at if at > now else at + every, self._fire)

    def stop(self) -> None:
        """Cancel the scheduled check."""
        if self._timer is not None:
            self._environment.cancel(self._timer)
            self._timer = None

    def _fire(self) -> None:
        self._timer = None
        self._check()


class NodeImageGC:
    """Image garbage collection and disk eviction of one node."""

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
        """Manage *store* for node *name*; the name determines the times of the checks."""
        self._environment = environment
        self._store = store
        self._disk = disk
        self._watcher = watcher
        self._high = disk.high * disk.capacity
        self._low = disk.low * disk.capacity
        # The used bytes above which less than `evict_below` of the disk is free.
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
        """Start the checks, also when the node is back after a failure."""
        self._stopped = False
        self.alarm()
        self.relieved()

    def alarm(self) -> None:
        """Schedule checks; the store calls it when space is short and was reserved, or an image became unused."""
        if self._stopped:
            return
        if self._store.used >= self._high and self._store.idle:
            self._collecting.arm()
        if self._store.used > self._short_at:
            self._evicting.arm()

    def starved(self) -> None:
        """Remove unused images at the next check even if there is room by then: a pull found no space."""
        if self._disk.evict_below and self._store.idle:
            self._starved = True
            self._evicting.arm()

    def relieved(self) -> None:
        """Schedule a check whether disk pressure has ended, because bytes became free."""
        if self.pressure and not self._stopped:
            self._evicting.arm()

    def stop(self) -> None:
        """Stop the checks, because the node is gone."""
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
            # Unused images that were too young for this check may be old enough for a later one.
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
            really = self._store.remove(record.runtime_image.image.digest)
            removed.append(record.runtime_image.image)
            freed += really
            counted += record.runtime_image.size if self._disk.accounting == "reported" else really
            if counted >= enough:
                break
        if removed:
            self._watcher.images_removed(tuple(removed), freed, why)
