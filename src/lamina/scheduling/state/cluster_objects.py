"""
Cluster objects besides pods, nodes and namespaces, by kind.

A plugin names the classes it reads (`ObjectReaderPlugin.objects`), and the host then watches them. `EFFECTS` says what a
changed object means for cached evaluations (its facet) and for waiting pods (its kind of change).
"""

from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

import msgspec

from lamina.model.cluster_objects import ClusterObject, ObjectKey, key_of
from lamina.model.disruption_budget import PodDisruptionBudget
from lamina.model.selecting_objects import ReplicaSet, ReplicationController, Service, StatefulSet
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
}


class ClusterObjects:
    """Objects by class, and by namespace and name."""

    __slots__ = ("_by_namespace", "_known", "editions")

    def __init__(self) -> None:
        """Start without objects."""
        self._known: dict[str, dict[tuple[str, str], ClusterObject]] = {}
        self._by_namespace: dict[tuple[str, str], dict[str, ClusterObject]] = {}
        """The same by kind and namespace, then by name."""
        self.editions: dict[str, int] = {}
        """By kind: increases whenever an object of the kind changes."""

    def put(self, found: ClusterObject) -> ClusterObject | None:
        """Add or replace an object; return the previous one, which is equal to *found* if nothing changed."""
        key = key_of(found)
        objects = self._known.setdefault(key.kind, {})
        before = objects.get((key.namespace, key.name))
        if before != found:
            objects[(key.namespace, key.name)] = found
            self._by_namespace.setdefault((key.kind, key.namespace), {})[key.name] = found
            self.editions[key.kind] = self.editions.get(key.kind, 0) + 1
        return before

    def remove(self, key: ObjectKey) -> ClusterObject | None:
        """Remove an object and return it."""
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

    def snapshot(self) -> tuple[ClusterObject, ...]:
        """Return all objects."""
        return tuple(found for objects in self._known.values() for found in objects.values())

    def restore(self, objects: Iterable[ClusterObject]) -> None:
        """Restore a snapshot into an empty object."""
        for found in objects:
            self.put(found)
