"""
The QoS of controllers as a witness measures it that is never restarted: from the watch alone, with its own clock.

The witness feeds an engine of its own with the changes of pods. It takes the moment of the observation where the API
states whole seconds, so its figures are as exact as those of a scheduler that bound the pods itself.
"""

import threading
import time
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from lamina.clients.kube.pod_writes import DISRUPTION_TARGET, PREEMPTED
from lamina.model.pod import Pod, PodUid
from lamina.qos.engine import QosEngine
from lamina.qos.life_cycle_facts import PodDeleted, PodWasBound
from lamina.qos.owner_directory import OwnerDirectory
from lamina.qos.pod_changes import facts_of_change
from lamina.qos.promise import ControllerKey, QosSettings
from lamina.qos.promise_sources import PromiseDefaults, resolve_promise
from lamina.wire.kube.codec import decode_pod
from testbed import Testbed
from tests.integration.scheduler.watch_reader import Item, WatchReader

TOLERANCE: Final = 1.5
"""Seconds by which metrics may differ: creation times are whole seconds, and the watch arrives later than the decision."""
SILENCE: Final = 60.0


class QosWitness:
    """Measures all pods until the end of the block, and judges every binding and every eviction."""

    def __init__(self, bed: Testbed, margin: float) -> None:
        """Use the scheduler's safety *margin* for the order."""
        self.margin = margin
        self.engine = QosEngine(QosSettings(safety_margin=margin, retention=1e9))
        self.bindings = self.evictions = 0
        self.against: list[str] = []
        """Bindings and evictions that do not follow the time to violation, in words."""
        self.ends: list[float] = []
        """When a pod was seen to end."""
        self._pods: dict[PodUid, Pod] = {}
        self._evicted: set[PodUid] = set()
        self._owners = OwnerDirectory()
        self._lock = threading.Lock()
        self._reader = WatchReader(bed, "/api/v1/pods", self._list, self._change, silence=SILENCE)

    def __enter__(self) -> Self:
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reader.stop()

    def qos(self, at: float) -> dict[ControllerKey, float]:
        """Return the QoS of every controller that has pods."""
        with self._lock:
            now = max(at, time.time())
            return {
                record.key: record.standing(self.engine.moment(now)).qos
                for record in self.engine.records(now)
                if record.pods
            }

    def waiting(self) -> int:
        """Return the number of pods without a node."""
        with self._lock:
            return sum(not pod.node_name and not pod.finished for pod in self._pods.values())

    def running_of(self, controller: str) -> int:
        """Return the number of a controller's pods that have a node."""
        with self._lock:
            return sum(
                bool(pod.node_name) and not pod.finished and pod.annotations.get("controller") == controller
                for pod in self._pods.values()
            )

    def _list(self, items: list[Item]) -> None:
        for item in items:
            self._change("ADDED", item)

    def _change(self, kind: str, item: Item) -> None:
        with self._lock:
            self._take(kind, item, time.time())

    def _take(self, kind: str, item: dict[str, Any], now: float) -> None:
        pod = decode_pod(msgspec.json.encode(item))
        before = self._pods.get(pod.uid)
        if kind == "DELETED":
            if self._pods.pop(pod.uid, None) is not None:
                self.engine.feed(PodDeleted(now, pod.uid), now)
                self.ends.append(now)
            return
        if pod.node_name and before is not None and not before.node_name:
            self._judge_binding(before, now)
        if pod.uid not in self._evicted and _is_evicted(item):
            self._evicted.add(pod.uid)
            self._judge_eviction(pod, now)
        self._pods[pod.uid] = pod
        resolved = resolve_promise(pod, self._owners.controller_of(pod), {}, PromiseDefaults())
        for fact in facts_of_change(before, pod, resolved, None, now):
            self.engine.feed(PodWasBound(now, pod.uid) if isinstance(fact, PodWasBound) else fact, now)

    # -- judgement ---------------------------------------------------------------------------------------------------

    def _judge_binding(self, pod: Pod, now: float) -> None:
        """No other pod waits that clearly goes first; a pod that arrived just now may have come too late."""
        self.bindings += 1
        for other in self._pods.values():
            late = now - other.created_at < 2 * TOLERANCE
            if other.uid == pod.uid or other.node_name or other.finished or other.deleting or late:
                continue
            if self._clearly_precedes(other.uid, pod.uid, now):
                self.against.append(f"{pod.key} was bound before {other.key}: {self._words(pod)}; {self._words(other)}")
                return

    def _judge_eviction(self, victim: Pod, now: float) -> None:
        """Some pod waits that goes before the victim."""
        self.evictions += 1
        waiting = [pod.uid for pod in self._pods.values() if not pod.node_name and not pod.finished]
        if waiting and all(self._clearly_precedes(victim.uid, uid, now) for uid in waiting):
            self.against.append(f"{victim.key} was evicted, and goes before all waiting pods: {self._words(victim)}")

    def _clearly_precedes(self, first: PodUid, second: PodUid, now: float) -> bool:
        """Return whether a pod goes before another one, also if the metrics differ by the tolerance."""
        one, two = self.engine.standing(first, now), self.engine.standing(second, now)
        if one is None or two is None:
            return False
        low, high = one.metric + TOLERANCE, two.metric - TOLERANCE
        if high < self.margin:
            # Both may be in danger: then the importance decides.
            return low < self.margin and one.promise.importance > two.promise.importance
        return low < high

    def _words(self, pod: Pod) -> str:
        standing = self.engine.standing(pod.uid, time.time())
        return "unknown" if standing is None else f"SLO {standing.promise.slo:g}, metric {standing.metric:.1f} s"


def _is_evicted(item: dict[str, Any]) -> bool:
    conditions = item.get("status", {}).get("conditions", ())
    return any(one["type"] == DISRUPTION_TARGET and one.get("reason") == PREEMPTED for one in conditions)
