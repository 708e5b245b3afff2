"""
Pods that wait for one scheduler, kept up to date from the store.

A settle method needs two facts: which pods are pending, and whether anything that a scheduler reacts to has changed.
Both are counted as changes happen; no settle check walks over all pods.
"""

from collections.abc import Callable, Collection
from typing import Final

from lamina.simulator.facade.api_state import ApiState
from lamina.simulator.facade.kube_object import KubeObject, NamespacedName, part, text
from lamina.simulator.facade.object_store import StoreEvent

BARRIER: Final = NamespacedName("lamina-system", "lamina-barrier")
"""Pod with which a settle method asks whether a scheduler has read its watch."""
BOUND_BARRIER: Final = NamespacedName("lamina-system", "lamina-barrier-bound")
"""The same for schedulers that read bound pods apart from the others."""
BARRIERS: Final = frozenset({BARRIER, BOUND_BARRIER})

OTHERS: Final = (
    ("", "persistentvolumeclaims"),
    ("", "persistentvolumes"),
    ("storage.k8s.io", "storageclasses"),
    ("storage.k8s.io", "csinodes"),
    ("storage.k8s.io", "csidrivers"),
    ("storage.k8s.io", "csistoragecapacities"),
    ("storage.k8s.io", "volumeattachments"),
    ("resource.k8s.io", "resourceclaims"),
    ("resource.k8s.io", "resourceslices"),
    ("resource.k8s.io", "deviceclasses"),
)
"""Resources, besides pods and nodes, whose changes let kube-scheduler try pods again."""
ENDED: Final = frozenset({"Succeeded", "Failed"})

PodKey = str
"""``namespace/name``, as schedulers log it."""


class PendingPods:
    """The pods that one scheduler has to place, and counts of changes."""

    def __init__(self, state: ApiState, names: Collection[str]) -> None:
        """Follow the pods whose scheduler name is in *names*; empty: all pods."""
        self._table = state.store.table("", "pods")
        self.names: set[str] = set(names)
        self.pending: set[PodKey] = set()
        """Pods without a node that the scheduler may try to place."""
        self.changes = 0
        """Number of changes of pods and other objects that a scheduler reads; barriers do not count."""
        self.moves = 0
        """Those of them that are more than a written status: pods that come, are bound or go, and nodes."""
        self.node_changes = 0
        """Number of changes of nodes."""
        self.other_changes = 0
        """Number of changes of the resources in `OTHERS`."""
        self.decisions = 0
        """Number of bindings, and of refusals in the status of pods."""
        self.on_pending: Callable[[PodKey], None] = _ignore
        self.on_gone: Callable[[PodKey], None] = _ignore
        self.wake: Callable[[], None] = _do_nothing
        """Called after every change."""
        self._table.listeners[self._pod_changed] = None
        state.store.table("", "nodes").listeners[self._node_changed] = None
        for group, resource in OTHERS:
            state.store.table(group, resource).listeners[self._other_changed] = None
        for one in self._table.all():
            self._look(pod_key(one.key), one.object)

    def waits(self, pod: KubeObject) -> bool:
        """Return whether a pod waits for this scheduler."""
        spec, metadata = part(pod, "spec"), part(pod, "metadata")
        if spec.get("nodeName") or spec.get("schedulingGates") or metadata.get("deletionTimestamp"):
            return False
        if self.names and text(spec, "schedulerName") not in self.names:
            return False
        return part(pod, "status").get("phase") not in ENDED

    def adopt(self, name: PodKey) -> None:
        """Follow all pods with the scheduler name of this pod: the scheduler said that it places the pod."""
        namespace, _, pod = name.partition("/")
        stored = self._table.get(NamespacedName(namespace, pod))
        if stored is None or not self.names:
            return
        scheduler = text(part(stored.object, "spec"), "schedulerName")
        if scheduler not in self.names:
            self.names.add(scheduler)
            for one in self._table.all():
                if one.key not in BARRIERS:
                    self._look(pod_key(one.key), one.object)

    def _pod_changed(self, event: StoreEvent) -> None:
        key = event.new.key
        if key in BARRIERS:
            return
        self.changes += 1
        new, old = event.new.object, None if event.old is None else event.old.object
        if event.type != "MODIFIED" or old is None or _is_move(old, new):
            self.moves += 1
        if event.type == "MODIFIED" and old is not None and _is_decision(old, new):
            self.decisions += 1
        name = pod_key(key)
        if event.type == "DELETED":
            self._leave(name)
        else:
            self._look(name, new)
        self.wake()

    def _look(self, name: PodKey, pod: KubeObject) -> None:
        if not self.waits(pod):
            self._leave(name)
        elif name not in self.pending:
            self.pending.add(name)
            self.on_pending(name)

    def _leave(self, name: PodKey) -> None:
        if name in self.pending:
            self.pending.discard(name)
            self.on_gone(name)

    def _node_changed(self, event: StoreEvent) -> None:
        self.changes += 1
        self.moves += 1
        self.node_changes += 1
        self.wake()

    def _other_changed(self, event: StoreEvent) -> None:
        self.changes += 1
        self.other_changes += 1
        self.wake()

    def ignore_node_change(self) -> None:
        """Take back the last change of a node: it was a barrier, to which no scheduler reacts."""
        self.changes -= 1
        self.moves -= 1
        self.node_changes -= 1


def pod_key(key: NamespacedName) -> PodKey:
    """Return the key of a pod as schedulers log it."""
    return f"{key.namespace}/{key.name}"


def _is_move(old: KubeObject, new: KubeObject) -> bool:
    """Return whether a change is more than a written status."""
    if old["spec"] != new["spec"] or part(old, "status").get("phase") != part(new, "status").get("phase"):
        return True
    before, after = old["metadata"], new["metadata"]
    return any(before.get(name) != after.get(name) for name in ("labels", "deletionTimestamp"))


def _is_decision(old: KubeObject, new: KubeObject) -> bool:
    """Return whether a change is a binding, or says why a pod is not scheduled."""
    if part(new, "spec").get("nodeName"):
        return not part(old, "spec").get("nodeName")
    refused = _refusal(new)
    return refused is not None and refused != _refusal(old)


def _refusal(pod: KubeObject) -> tuple[str, str] | None:
    for one in part(pod, "status").get("conditions") or ():
        if isinstance(one, dict) and one.get("type") == "PodScheduled" and one.get("status") == "False":
            return text(one, "reason"), text(one, "message")
    return None


def _ignore(_: PodKey) -> None:
    """Do nothing."""


def _do_nothing() -> None:
    """Do nothing."""
