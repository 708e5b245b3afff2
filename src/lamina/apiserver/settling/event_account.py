"""
Account of the watch events that one scheduler must handle, by the labels of kube-scheduler's metric.

``scheduler_event_handling_duration_seconds_count{event=…}`` counts the events that kube-scheduler has handled. This
account counts the events that the store has sent on the watch of pods (which ends with a pod's phase Succeeded or
Failed), on the watch of nodes and on some others. When no label is short, all events are handled.

    pod without a node: new, changed, gone    UnschedulablePodAdd, UnschedulablePodUpdate, UnschedulablePodDelete
    pod with a node: new, changed, gone       AssignedPodAdd, AssignedPodUpdate, AssignedPodDelete
    a binding                                 AssignedPodAdd and UnschedulablePodDelete
    node                                      NodeAdd, NodeDelete, and one label for each kind of change that matters
"""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from lamina.apiserver.settling.pending_pods import ENDED, PendingPods
from lamina.simulator.facade.api_state import ApiState
from lamina.simulator.facade.kube_object import KubeObject, part, text
from lamina.simulator.facade.object_store import StoreEvent

HANDLED: Final = "scheduler_event_handling_duration_seconds_count"
OTHER_KINDS: Final = {
    ("", "persistentvolumeclaims"): "PersistentVolumeClaim",
    ("", "persistentvolumes"): "PersistentVolume",
    ("storage.k8s.io", "storageclasses"): "storage.k8s.io/StorageClass",
    ("storage.k8s.io", "csinodes"): "storage.k8s.io/CSINode",
}
"""Other resources whose additions kube-scheduler counts in every version that has the metric, by their names there."""


class EventAccount:
    """Counts what one scheduler must have handled, once it has begun."""

    def __init__(self, state: ApiState, pods: PendingPods, *, twice: bool = True) -> None:
        """Count for the scheduler of *pods*; *twice*: an update without a relevant change counts as two (from 1.34)."""
        self._state = state
        self._pods = pods
        self._update_weight = 2 if twice else 1
        self.sent: Counter[str] = Counter()
        """Number of events that were sent, by label."""
        self.waiting = 0
        """Number of pods in the scheduler's queues: all without a node, also those with a gate."""
        self.leaving = 0
        """Those of them that are being deleted; a scheduler may have dropped them."""

    def begin(self) -> None:
        """Begin with what the store has now; the scheduler must not have read it yet."""
        state = self._state
        table = state.store.table("", "pods")
        for one in table.all():
            self._added(one.object)
        table.listeners[self._pod_changed] = None
        nodes = state.store.table("", "nodes")
        self.sent["NodeAdd"] += len(nodes)
        nodes.listeners[self._node_changed] = None
        for (group, resource), kind in OTHER_KINDS.items():
            other = state.store.table(group, resource)
            self.sent[f"{kind}Add"] += len(other)
            other.listeners[self._other(f"{kind}Add")] = None

    def short(self, handled: Mapping[str, float]) -> list[str]:
        """Return the labels of which fewer events were handled than sent."""
        return [label for label, count in self.sent.items() if handled.get(label, 0.0) < count]

    # -- pods --------------------------------------------------------------------------------------------------------

    def _pod_changed(self, event: StoreEvent) -> None:
        old = None if event.old is None or _has_ended(event.old.object) else event.old.object
        new = None if event.type == "DELETED" or _has_ended(event.new.object) else event.new.object
        if old is None:
            if new is not None:
                self._added(new)
        elif new is None:
            self._removed(old)
        elif _node(old):
            specific = _specific(old, new)
            self.sent["AssignedPodUpdate"] += 1 if specific else self._update_weight
        elif _node(new):
            self.sent["AssignedPodAdd"] += 1
            self._removed(old)
        elif self._responsible(old):
            self.sent["UnschedulablePodUpdate"] += 1
            self.leaving += _is_leaving(new) - _is_leaving(old)

    def _added(self, pod: KubeObject) -> None:
        if _has_ended(pod):
            return
        if _node(pod):
            self.sent["AssignedPodAdd"] += 1
        elif self._responsible(pod):
            self.sent["UnschedulablePodAdd"] += 1
            self.waiting += 1
            self.leaving += _is_leaving(pod)

    def _removed(self, pod: KubeObject) -> None:
        if _node(pod):
            self.sent["AssignedPodDelete"] += 1
        elif self._responsible(pod):
            self.sent["UnschedulablePodDelete"] += 1
            self.waiting -= 1
            self.leaving -= _is_leaving(pod)

    def _responsible(self, pod: KubeObject) -> bool:
        return not self._pods.names or text(part(pod, "spec"), "schedulerName") in self._pods.names

    # -- nodes and others ----------------------------------------------------------------------------------------------

    def _node_changed(self, event: StoreEvent) -> None:
        if event.type == "ADDED":
            self.sent["NodeAdd"] += 1
        elif event.type == "DELETED":
            self.sent["NodeDelete"] += 1
        elif event.old is not None:
            for label in _node_labels(event.old.object, event.new.object):
                self.sent[label] += 1

    def _other(self, label: str):  # type: ignore[no-untyped-def]
        def changed(event: StoreEvent) -> None:
            if event.type == "ADDED":
                self.sent[label] += 1

        return changed


def _node(pod: KubeObject) -> bool:
    return bool(part(pod, "spec").get("nodeName"))


def _has_ended(pod: KubeObject) -> bool:
    return part(pod, "status").get("phase") in ENDED


def _is_leaving(pod: KubeObject) -> bool:
    return bool(part(pod, "metadata").get("deletionTimestamp"))


def _specific(old: KubeObject, new: KubeObject) -> bool:
    """Return whether an update of a bound pod has a label of its own besides AssignedPodUpdate."""
    if part(old, "metadata").get("labels") != part(new, "metadata").get("labels"):
        return True
    before, after = part(old, "spec"), part(new, "spec")
    if any(before.get(name) != after.get(name) for name in ("tolerations", "containers")):
        return True
    return part(old, "status").get("resourceClaimStatuses") != part(new, "status").get("resourceClaimStatuses")


def _node_labels(old: KubeObject, new: KubeObject) -> list[str]:
    found = []
    before, after = part(old, "metadata"), part(new, "metadata")
    if (before.get("labels") or {}) != (after.get("labels") or {}):
        found.append("NodeUpdateNodeLabel")
    if (before.get("annotations") or {}) != (after.get("annotations") or {}):
        found.append("NodeUpdateNodeAnnotation")
    before, after = part(old, "spec"), part(new, "spec")
    if (before.get("taints") or []) != (after.get("taints") or []):
        found.append("NodeUpdateNodeTaint")
    if before.get("unschedulable") and not after.get("unschedulable"):
        found.append("NodeUpdateNodeTaint")
    before, after = part(old, "status"), part(new, "status")
    if before.get("allocatable") != after.get("allocatable"):
        found.append("NodeUpdateNodeAllocatable")
    if _condition_values(before) != _condition_values(after):
        found.append("NodeUpdateNodeCondition")
    return found


def _condition_values(status: KubeObject) -> dict[str, str]:
    return {text(one, "type"): text(one, "status") for one in status.get("conditions") or () if isinstance(one, dict)}
