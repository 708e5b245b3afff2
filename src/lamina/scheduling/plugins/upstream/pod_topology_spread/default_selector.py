"""
The pods that default constraints count: those that all Services of the pod and its controller select.

    labels of the Services that match the pod
    + selector of its ReplicationController, ReplicaSet or StatefulSet, found by the name in its owner reference

As upstream, a counted pod matches all of them, and a pod that neither a Service nor such a controller selects has no
default constraints. Simulated pods have controllers without an API version and without objects. If nothing else selects
them, the pods of the same controller are counted.
"""

from typing import Final

from lamina.model.cluster_objects import ClusterObject
from lamina.model.pod import Owner, Pod
from lamina.model.selecting_objects import (
    APPS_V1,
    CORE_V1,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from lamina.model.selectors import LabelSelector
from lamina.scheduling.state.cluster_objects import ClusterObjects
from lamina.scheduling.state.pod_counts import OwnerKey, owner_key

# Maximum number of cached selectors; the cache is cleared when full.
MOST_KNOWN: Final = 4096

Controller = ReplicationController | ReplicaSet | StatefulSet
CONTROLLERS: Final[dict[str, tuple[str, type[Controller]]]] = {
    "ReplicationController": (CORE_V1, ReplicationController),
    "ReplicaSet": (APPS_V1, ReplicaSet),
    "StatefulSet": (APPS_V1, StatefulSet),
}
"""API version and class of the controllers whose selectors are used."""

SELECTING: Final[frozenset[type[ClusterObject]]] = frozenset({Service, ReplicationController, ReplicaSet, StatefulSet})

Counted = LabelSelector | OwnerKey | None
"""The pods to count: by labels, or by controller. None for no pods."""
_Key = tuple[str, Owner | None, frozenset[tuple[str, str]]]


class DefaultSelector:
    """Finds the pods that default constraints count for a pod."""

    __slots__ = ("_edition", "_known", "_objects")

    def __init__(self, objects: ClusterObjects) -> None:
        """Use the Services and controllers among *objects*."""
        self._objects = objects
        self._edition = 0
        self._known: dict[_Key, Counted] = {}

    @property
    def edition(self) -> int:
        """Increases as Services and controllers come, go and select other pods."""
        return sum([self._objects.edition(kind) for kind in SELECTING]) if self._objects.editions else 0

    def counted(self, pod: Pod) -> Counted:
        """Return the pods to count for *pod*."""
        edition = self.edition
        if not edition:
            return _by_owner(pod)
        if edition != self._edition or len(self._known) >= MOST_KNOWN:
            self._edition = edition
            self._known.clear()
        key = (pod.namespace, pod.owner, frozenset(pod.labels.items()))
        if key in self._known:
            return self._known[key]
        selector = self._selector(pod)
        found = self._known[key] = _by_owner(pod) if selector == LabelSelector() else selector
        return found

    def _selector(self, pod: Pod) -> LabelSelector:
        labels: dict[str, str] = {}
        for service in self._objects.in_namespace(Service, pod.namespace):
            if service.selector is not None and service.selector.matches(pod.labels):
                labels.update(service.selector.match_labels)
        owner = self._controller(pod)
        if owner is None or owner.selector is None:
            return LabelSelector(tuple(sorted(labels.items())))
        if isinstance(owner, ReplicationController):
            # As upstream, its labels replace those of Services; the other controllers' selectors are added.
            labels.update(owner.selector.match_labels)
            return LabelSelector(tuple(sorted(labels.items())))
        pairs = {*labels.items(), *owner.selector.match_labels}
        return LabelSelector(tuple(sorted(pairs)), owner.selector.expressions)

    def _controller(self, pod: Pod) -> Controller | None:
        owner = pod.owner
        if owner is None or owner.kind not in CONTROLLERS:
            return None
        version, kind = CONTROLLERS[owner.kind]
        if owner.api_version not in ("", version):
            return None
        return self._objects.get(kind, pod.namespace, owner.name)


def _by_owner(pod: Pod) -> OwnerKey | None:
    return owner_key(pod) if pod.owner is not None and not pod.owner.api_version else None
