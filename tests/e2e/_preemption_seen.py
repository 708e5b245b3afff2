"""
What the API server says happened to pods that evict each other, followed without the scheduler's help.

Everything is read from one watch, in the order of the changes: nominations, DisruptionTarget conditions, deletions and
their grace, bindings, and at each binding whether the node had that room without pods that have not left.
"""

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from lamina.clients.kube.pod_writes import DISRUPTION_TARGET, PREEMPTED
from testbed import Testbed
from tests.integration.scheduler.truth import ENDED, asked, thousandths
from tests.integration.scheduler.watch_reader import Item, WatchReader

PODS: Final = "/api/v1/namespaces/default/pods"
SILENCE: Final = 60.0
"""Seconds without a line after which the watch begins anew."""


@dataclass
class SeenPod:
    """One pod, as the watch shows it."""

    name: str
    labels: dict[str, str]
    created_at: float
    node: str = ""
    nominated: list[str] = field(default_factory=list)
    """Every node it was nominated for, one after the other."""
    targeted: bool = False
    """Whether it got DisruptionTarget from a scheduler."""
    evicted: bool = False
    """Whether it was deleted afterwards."""
    graceful: bool = False
    """Whether that deletion left it the whole grace of its spec."""
    deletions: set[str] = field(default_factory=set)
    """Its deletion timestamps; a second deletion may change the first."""
    gone: bool = False


class Chronicle:
    """Watches all pods of the default namespace until the end of the block."""

    def __init__(self, bed: Testbed) -> None:
        self._bed = bed
        self.pods: dict[str, SeenPod] = {}
        """By uid, from the first to the last."""
        self.overfull: list[str] = []
        """Bindings to nodes that had no room, in words."""
        self.evictions = 0
        """Number of pods seen leaving after DisruptionTarget."""
        self._items: dict[str, Item] = {}
        self._room: dict[str, Counter[str]] = {}
        self._lock = threading.Lock()
        self._reader = WatchReader(bed, PODS, self._list, self._change, silence=SILENCE)

    def __enter__(self) -> Self:
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reader.stop()

    def select(self, wanted: Callable[[SeenPod], bool]) -> list[SeenPod]:
        """Return the pods that are *wanted*, in the order in which they came."""
        with self._lock:
            return [one for one in self.pods.values() if wanted(one)]

    def work_seen(self) -> int:
        """Return a number that grows with every nomination, eviction and binding."""
        with self._lock:
            return sum(len(one.nominated) + one.targeted + one.evicted + bool(one.node) for one in self.pods.values())

    def _list(self, items: list[Item]) -> None:
        with contextlib.closing(self._bed.site.requests()) as requests:
            nodes = requests.send("GET", "/api/v1/nodes")
        with self._lock:
            for node in nodes["items"]:
                room = node["status"]["allocatable"].items()
                self._room[node["metadata"]["name"]] = Counter({name: thousandths(size) for name, size in room})
            self._items.clear()
            for item in items:
                self._see("ADDED", item)

    def _change(self, kind: str, item: Item) -> None:
        with self._lock:
            self._see(kind, item)

    def _see(self, kind: str, item: Item) -> None:
        meta, spec, status = item["metadata"], item["spec"], item.get("status", {})
        seen = self.pods.setdefault(
            meta["uid"], SeenPod(meta["name"], meta.get("labels", {}), created_at=time.monotonic())
        )
        if kind == "DELETED":
            self._items.pop(meta["uid"], None)
            seen.gone = True
        else:
            self._items[meta["uid"]] = item
        nominated = status.get("nominatedNodeName", "")
        if nominated and nominated not in seen.nominated[-1:]:
            seen.nominated.append(nominated)
        seen.targeted = seen.targeted or any(
            one["type"] == DISRUPTION_TARGET and one.get("reason") == PREEMPTED for one in status.get("conditions", ())
        )
        if meta.get("deletionTimestamp") and kind != "DELETED":
            # The deletion that removes a pod at once, or at the end of its grace, is not the scheduler's.
            seen.deletions.add(meta["deletionTimestamp"])
            if seen.targeted and not seen.evicted:
                seen.evicted = True
                self.evictions += 1
                seen.graceful = meta.get("deletionGracePeriodSeconds") == spec["terminationGracePeriodSeconds"]
        if spec.get("nodeName") and not seen.node:
            seen.node = spec["nodeName"]
            self._check_room(seen)

    def _check_room(self, seen: SeenPod) -> None:
        used: Counter[str] = Counter()
        for item in self._items.values():
            if item["spec"].get("nodeName") == seen.node and item.get("status", {}).get("phase") not in ENDED:
                used.update(asked(item))
        room = self._room[seen.node]
        short = [f"{name} {size / 1000:g} of {room[name] / 1000:g}" for name, size in used.items() if size > room[name]]
        if short:
            self.overfull.append(f"{seen.name} on {seen.node}: {', '.join(short)}")
