"""
Cluster objects besides pods, nodes and namespaces, by kind.

A plugin names the classes it reads (`ObjectReaderPlugin.objects`), and the host then watches them. `EFFECTS` says what a
changed object means for cached evaluations (its facet) and for waiting pods (its kind of change).

A plugin can *assume* how an object will be once the host has written it, so that two pods never take the same volume:

    seen ──assume──> assumed ──the object is seen with the change──> seen
                        └──────release, by all pods that assumed it──> seen

Reads return the assumed version. A pod's assumptions end with its binding cycle, unless they turned out to be true.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

import msgspec

from lamina.model.cluster_objects import ClusterObject, ObjectKey, key_of
from lamina.model.disruption_budget import PodDisruptionBudget
from lamina.model.pod import PodUid
from lamina.model.pod_groups import PodGroup, Queue, Workload
from lamina.model.selecting_objects import ReplicaSet, ReplicationController, Service, StatefulSet
from lamina.model.volumes import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from lamina.scheduling.state.cluster_changes import ChangeKind
from lamina.scheduling.state.facets import Facet

O = TypeVar("O", bound=ClusterObject)  # noqa: E741 - an object


class ObjectEffect(msgspec.Struct, frozen=True):
    """What a changed object of one class means."""

    facet: Facet | None = None
    """Facet under which it is journaled, for all nodes; None if no cached result depends on it."""
    change: ChangeKind | None = None
    """Change that refused pods can wait for; None if there is none."""


EFFECTS: Final[Mapping[type[ClusterObject], ObjectEffect]] = {
    # Budgets are read anew at each preemption, and a waiting pod does not wait for them.
    PodDisruptionBudget: ObjectEffect(),
    # The signatures of pods follow them, and as in upstream no waiting pod waits for them.
    Service: ObjectEffect(),
    ReplicationController: ObjectEffect(),
    ReplicaSet: ObjectEffect(),
    StatefulSet: ObjectEffect(),
    PersistentVolumeClaim: ObjectEffect(Facet.VOLUMES, ChangeKind.CLAIM),
    PersistentVolume: ObjectEffect(Facet.VOLUMES, ChangeKind.VOLUME),
    StorageClass: ObjectEffect(Facet.VOLUMES, ChangeKind.STORAGE_CLASS),
    CSINode: ObjectEffect(Facet.VOLUMES, ChangeKind.CSI_NODE),
    CSIDriver: ObjectEffect(Facet.VOLUMES, ChangeKind.CSI_DRIVER),
    CSIStorageCapacity: ObjectEffect(Facet.VOLUMES, ChangeKind.STORAGE_CAPACITY),
    VolumeAttachment: ObjectEffect(Facet.VOLUMES, ChangeKind.ATTACHMENT),
    # Gangs and queues are read when pods are placed; no cached result depends on them.
    PodGroup: ObjectEffect(change=ChangeKind.POD_GROUP),
    Workload: ObjectEffect(change=ChangeKind.POD_GROUP),
    Queue: ObjectEffect(change=ChangeKind.QUEUE),
}


class Assumption(msgspec.Struct, frozen=True):
    """An object as it will be, and the pods for which it is being changed."""

    found: ClusterObject
    pods: tuple[PodUid, ...]


def _ignore(facet: int, row: int) -> None:
    """Record nothing."""


class ClusterObjects:
    """Objects by class, and by namespace and name."""

    __slots__ = ("_assumed", "_by_namespace", "_known", "_seen", "_touch", "editions")

    def __init__(self, touch: Callable[[int, int], None] = _ignore) -> None:
        """Start without objects; call *touch* with a facet after an assumption began or ended."""
        self._known: dict[str, dict[tuple[str, str], ClusterObject]] = {}
        self._by_namespace: dict[tuple[str, str], dict[str, ClusterObject]] = {}
        """The same by kind and namespace, then by name."""
        self._assumed: dict[ObjectKey, Assumption] = {}
        self._seen: dict[ObjectKey, ClusterObject] = {}
        """For assumed objects, the version that the API server has."""
        self._touch = touch
        self.editions: dict[str, int] = {}
        """By kind: increases whenever an object of the kind changes."""

    def put(self, found: ClusterObject) -> ClusterObject | None:
        """
        Add or replace an object; return the previous one, which is equal to *found* if nothing changed.

        An assumed object stays as assumed until it is seen with the change.
        """
        key = key_of(found)
        assumption = self._assumed.get(key)
        if assumption is not None:
            if not _came_true(assumption.found, found):
                self._seen[key] = found
                return found
            del self._assumed[key], self._seen[key]
        before = self._known.get(key.kind, {}).get((key.namespace, key.name))
        if before != found:
            self._set(key, found)
        return before

    def remove(self, key: ObjectKey) -> ClusterObject | None:
        """Remove an object and return it."""
        if self._assumed.pop(key, None) is not None:
            del self._seen[key]
        objects = self._known.get(key.kind, {})
        before = objects.pop((key.namespace, key.name), None)
        if before is not None:
            self.editions[key.kind] += 1
            neighbours = self._by_namespace[key.kind, key.namespace]
            del neighbours[key.name]
            if not neighbours:
                del self._by_namespace[key.kind, key.namespace]
        if not objects:
            self._known.pop(key.kind, None)
        return before

    def get(self, kind: type[O], namespace: str, name: str) -> O | None:
        """Return an object; None if there is none. *namespace* is empty for cluster-scoped kinds."""
        return self._known.get(kind.__name__, {}).get((namespace, name))  # type: ignore[return-value]  # its kind's

    def all_of(self, kind: type[O]) -> Iterable[O]:
        """Return all objects of a kind, oldest first."""
        return self._known.get(kind.__name__, {}).values()  # type: ignore[return-value]  # its kind's

    def in_namespace(self, kind: type[O], namespace: str) -> Iterable[O]:
        """Return all objects of a kind in a namespace, oldest first."""
        return self._by_namespace.get((kind.__name__, namespace), {}).values()  # type: ignore[return-value]  # its kind's

    def edition(self, kind: type[ClusterObject]) -> int:
        """Return a number that increases whenever an object of the kind changes."""
        return self.editions.get(kind.__name__, 0)

    # -- assumptions -------------------------------------------------------------------------------------------------

    def assume(self, pod: PodUid, found: ClusterObject) -> None:
        """Assume that an object that exists will become *found*, because of a pod's binding cycle."""
        key = key_of(found)
        known = self._assumed.get(key)
        if known is None:
            self._seen[key] = self._known[key.kind][key.namespace, key.name]
        pods = () if known is None else known.pods
        self._assumed[key] = Assumption(found, (*(one for one in pods if one != pod), pod))
        self._set(key, found)
        self._touched(found)

    def share(self, pod: PodUid, found: ClusterObject) -> None:
        """If an object is assumed because of other pods, keep the assumption for this pod as well."""
        known = self._assumed.get(key_of(found))
        if known is not None and pod not in known.pods:
            self._assumed[key_of(found)] = Assumption(known.found, (*known.pods, pod))

    def assumed_for(self, pod: PodUid) -> list[ClusterObject]:
        """List the objects that are being changed for a pod, oldest first."""
        return [one.found for one in self._assumed.values() if pod in one.pods]

    def release(self, pod: PodUid) -> None:
        """End a pod's assumptions that did not come true, unless other pods share them."""
        for key, assumption in list(self._assumed.items()):
            if pod not in assumption.pods:
                continue
            pods = tuple(one for one in assumption.pods if one != pod)
            if pods:
                self._assumed[key] = Assumption(assumption.found, pods)
                continue
            del self._assumed[key]
            self._set(key, self._seen.pop(key))
            self._touched(assumption.found)

    def _set(self, key: ObjectKey, found: ClusterObject) -> None:
        self._known.setdefault(key.kind, {})[key.namespace, key.name] = found
        self._by_namespace.setdefault((key.kind, key.namespace), {})[key.name] = found
        self.editions[key.kind] = self.editions.get(key.kind, 0) + 1

    def _touched(self, found: ClusterObject) -> None:
        facet = EFFECTS[type(found)].facet
        if facet is not None:
            self._touch(facet, 0)

    # -- snapshots ---------------------------------------------------------------------------------------------------

    def snapshot(self) -> tuple[ClusterObject, ...]:
        """Return all objects as the API server has them."""
        return tuple(
            self._seen.get(key_of(found), found) if self._seen else found
            for objects in self._known.values()
            for found in objects.values()
        )

    def assumptions(self) -> tuple[Assumption, ...]:
        """Return all assumptions, oldest first."""
        return tuple(self._assumed.values())

    def restore(self, objects: Iterable[ClusterObject], assumptions: Iterable[Assumption] = ()) -> None:
        """Restore a snapshot into an empty object."""
        for found in objects:
            self.put(found)
        for one in assumptions:
            for pod in one.pods:
                self.assume(pod, one.found)


def _came_true(assumed: ClusterObject, found: ClusterObject) -> bool:
    """Return whether an object has the change that was assumed, or one that rules it out."""
    match assumed, found:
        case PersistentVolume(), PersistentVolume():
            claim, reserved = found.claim, assumed.claim
            # A volume that an operator reserved by name names the same claim without a uid.
            return claim is not None and (
                reserved is None
                or bool(claim.uid)
                or (claim.namespace, claim.name) != (reserved.namespace, reserved.name)
            )
        case PersistentVolumeClaim(), PersistentVolumeClaim():
            return found.uid != assumed.uid or found.selected_node is not None or found.volume_name != ""
    return True
