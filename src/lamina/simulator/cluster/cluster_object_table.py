"""
Objects of a virtual cluster besides pods and nodes: budgets, claims, volumes, Services and what controllers publish.

Every change is an event for the scheduler. Controllers listen, and may change objects in turn. An object that was read
from a manifest keeps it, because an API in front of the cluster shows more than the scheduler reads.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from lamina.model.cluster_objects import ClusterObject, ObjectKey, key_of
from lamina.model.events import Event, ObjectGone, ObjectSeen
from lamina.model.volumes import PersistentVolumeClaim

O = TypeVar("O", bound=ClusterObject)  # noqa: E741 - an object

SYNC: Final = 5
"""Event priority of controllers: after the cluster's events (0), before the schedulers."""

ObjectManifest = Mapping[str, Any]
"""An object as a Kubernetes manifest."""
ObjectListener = Callable[[ObjectKey, ClusterObject | None], object]
"""Called with the key of a changed object and its new state; None if it is gone."""


class ClusterObjectTable:
    """Objects by kind, namespace and name."""

    def __init__(self, publish: Callable[[Event], object]) -> None:
        """Start without objects; *publish* receives an event for each change."""
        self._publish = publish
        self._objects: dict[ObjectKey, ClusterObject] = {}
        self._claims = 0
        self.manifests: dict[ObjectKey, ObjectManifest] = {}
        """Manifests of the objects that were read from one."""
        self.listeners: list[ObjectListener] = []
        """Called in this order after every change."""

    def put(self, found: ClusterObject, manifest: ObjectManifest | None = None) -> None:
        """Add or replace an object; do nothing if nothing changes. A claim without a uid gets one."""
        key = key_of(found)
        before = self._objects.get(key)
        if isinstance(found, PersistentVolumeClaim) and not found.uid:
            found = msgspec.structs.replace(found, uid=self._claim_uid(before))
        same_manifest = manifest is None or manifest == self.manifests.get(key)
        if before == found and same_manifest:
            return
        if manifest is not None:
            self.manifests[key] = manifest
        self._objects[key] = found
        self._publish(ObjectSeen(found))
        for listener in tuple(self.listeners):
            listener(key, found)

    def remove(self, key: ObjectKey) -> None:
        """Remove an object; do nothing if there is none."""
        if self._objects.pop(key, None) is None:
            return
        self.manifests.pop(key, None)
        self._publish(ObjectGone(key))
        for listener in tuple(self.listeners):
            listener(key, None)

    def get(self, kind: type[O], namespace: str, name: str) -> O | None:
        """Return an object; None if there is none. *namespace* is empty for cluster-scoped kinds."""
        return self._objects.get(ObjectKey(kind.__name__, namespace, name))  # type: ignore[return-value]  # its kind's

    def all(self) -> Iterable[ClusterObject]:
        """Return all objects, oldest first."""
        return tuple(self._objects.values())

    def all_of(self, kind: type[O]) -> Iterable[O]:
        """Return the objects of a kind, oldest first."""
        return [one for one in self._objects.values() if isinstance(one, kind)]

    def _claim_uid(self, before: ClusterObject | None) -> str:
        if isinstance(before, PersistentVolumeClaim):
            return before.uid
        self._claims += 1
        return f"claim-{self._claims}"
