"""
From the cluster to the API: budgets, volumes, Services and controllers of a scenario become objects in the store.

An object with a manifest is created as a client would create it, with the API server's defaults. The ReplicaSets and
StatefulSets of simulated controllers have no manifest, and get what clients read of them. Afterwards clients and the
façade's volume controller change the objects. The cluster changes only the allowed disruptions of budgets, the requests
of a scheduler inside it for volumes, and objects that an event of the scenario applies or deletes.
"""

from functools import partial
from typing import Any, Final

import msgspec

from lamina.model.cluster_objects import ClusterObject, ObjectKey, key_of
from lamina.model.disruption_budget import PodDisruptionBudget
from lamina.model.selecting_objects import ReplicaSet, StatefulSet
from lamina.model.volumes import ClaimRef, PersistentVolume, PersistentVolumeClaim
from lamina.simulator.cluster.cluster_object_table import ClusterObjectTable, ObjectManifest
from lamina.simulator.facade.api_handler import ApiHandler
from lamina.simulator.facade.api_state import ApiState
from lamina.simulator.facade.kube_object import KubeObject, NamespacedName, part, text, with_metadata
from lamina.simulator.facade.object_store import StoreEvent
from lamina.simulator.facade.preloaded_objects import create_objects
from lamina.simulator.facade.system_objects import ensure_namespace
from lamina.simulator.facade.volume_controller import SELECTED_NODE
from lamina.simulator.workloads.object_entries import GANG_VERSIONS, OBJECT_KINDS
from lamina.wire.kube.cluster_object import decode_cluster_object

RESOURCES: Final = {
    "PodDisruptionBudget": ("policy", "poddisruptionbudgets"),
    "Service": ("", "services"),
    "ReplicaSet": ("apps", "replicasets"),
    "StatefulSet": ("apps", "statefulsets"),
    "PersistentVolumeClaim": ("", "persistentvolumeclaims"),
    "PersistentVolume": ("", "persistentvolumes"),
    "StorageClass": ("storage.k8s.io", "storageclasses"),
    "CSINode": ("storage.k8s.io", "csinodes"),
    "CSIDriver": ("storage.k8s.io", "csidrivers"),
    "CSIStorageCapacity": ("storage.k8s.io", "csistoragecapacities"),
    "VolumeAttachment": ("storage.k8s.io", "volumeattachments"),
}
"""API group and resource of each kind that is written."""


def _places(kind: str, manifest: ObjectManifest | None = None) -> list[tuple[str, str]]:
    """Return API group and resource of a kind; gangs and queues without a *manifest* can be in several groups."""
    if kind not in GANG_VERSIONS:
        return [RESOURCES[kind]] if kind in RESOURCES else []
    version = text(dict(manifest), "apiVersion") if manifest is not None else ""
    versions = [version] if version else GANG_VERSIONS[kind]
    return [(one.partition("/")[0], f"{kind.lower()}s") for one in versions]


class ClusterObjectWriter:
    """Writes the objects of one cluster to one store."""

    def __init__(self, state: ApiState, handler: ApiHandler, objects: ClusterObjectTable) -> None:
        """Write to the store of *state*, and create objects with *handler*."""
        self._state = state
        self._handler = handler
        self._objects = objects
        self._written: dict[ObjectKey, ObjectManifest] = {}
        self._followed: set[ObjectKey] = set()
        """Objects that the cluster has because the store has them."""

    def follow(self) -> None:
        """From now on, give the cluster what clients write, for a scheduler that reads the cluster's events."""
        for kind in OBJECT_KINDS:
            for group, resource in _places(kind):
                table = self._state.store.table(group, resource)
                table.listeners[partial(self._written_by_client, kind)] = None

    def _written_by_client(self, kind: str, event: StoreEvent) -> None:
        key = ObjectKey(kind, *event.new.key)
        if event.type == "DELETED":
            self._followed.discard(key)
            self._objects.remove(key)
            return
        found = decode_cluster_object(kind, event.new.encoded)
        self._followed.add(key)
        # The limits of a budget are not part of what a scheduler reads.
        limits = {"spec": part(event.new.object, "spec")} if kind == "PodDisruptionBudget" else None
        if limits is not None:
            self._written[key] = limits
        self._objects.put(found, limits)

    def seen(self, found: ClusterObject) -> None:
        """Create an object, or update what the cluster changed of it. Raises InputError if the API rejects it."""
        key = key_of(found)
        manifest = self._objects.manifests.get(key)
        places = _places(key.kind, manifest)
        if not places:
            return
        table = self._state.store.table(*places[0])
        place = NamespacedName(key.namespace, key.name)
        stored = table.get(place)
        if stored is None and key in self._followed:
            # A client has deleted it since.
            return
        if stored is None:
            self._create(key, found, manifest)
            stored = table.get(place)
        elif manifest is not None and manifest != self._written.get(key):
            changed = {name: value for name, value in manifest.items() if name not in {"metadata", "status"}}
            stored = self._state.store.put(table, place, {**stored.object, **changed})
        if manifest is not None:
            self._written[key] = manifest
        decided = None if stored is None else _with_state(stored.object, found)
        if decided is not None:
            self._state.store.put(table, place, decided)

    def gone(self, key: ObjectKey) -> None:
        """Delete an object; do nothing if a client has deleted it before."""
        for group, resource in _places(key.kind, self._written.pop(key, None)):
            table = self._state.store.table(group, resource)
            self._state.store.delete(table, NamespacedName(key.namespace, key.name))

    def _create(self, key: ObjectKey, found: ClusterObject, manifest: ObjectManifest | None) -> None:
        if key.namespace:
            ensure_namespace(self._state, key.namespace)
        if manifest is not None:
            create_objects(self._handler, self._state.types, [dict(manifest)])
        elif isinstance(found, PersistentVolumeClaim):
            create_objects(self._handler, self._state.types, [_claim(found)])
        elif isinstance(found, ReplicaSet | StatefulSet):
            table = self._state.store.table(*RESOURCES[key.kind])
            self._state.store.put(table, NamespacedName(key.namespace, key.name), self._controller(found))

    def _controller(self, found: ReplicaSet | StatefulSet) -> KubeObject:
        """Return the object of a simulated controller. It controls its pods in the simulation, not through the API."""
        state, kind = self._state, type(found).__name__
        labels: dict[str, Any] = {} if found.selector is None else dict(found.selector.match_labels)
        return {
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": {
                "name": found.name,
                "namespace": found.namespace,
                "uid": f"{kind}/{found.name}",
                "creationTimestamp": state.timestamp(),
                "generation": 1,
                "labels": labels,
            },
            "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}},
            "status": {"replicas": 0},
        }


def _with_state(stored: KubeObject, found: ClusterObject) -> KubeObject | None:
    """Return a stored object with what the cluster decides about it; None if that is nothing."""
    match found:
        case PodDisruptionBudget(disruptions_allowed=allowed):
            return {**stored, "status": {**part(stored, "status"), "disruptionsAllowed": allowed}}
        case PersistentVolumeClaim(selected_node=str() as node):
            annotations = part(part(stored, "metadata"), "annotations")
            if SELECTED_NODE not in annotations:
                return with_metadata(stored, annotations={**annotations, SELECTED_NODE: node})
        case PersistentVolume(claim=ClaimRef() as claim):
            spec = part(stored, "spec")
            if not part(spec, "claimRef").get("uid"):
                reference = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", **msgspec.structs.asdict(claim)}
                return {**stored, "spec": {**spec, "claimRef": reference}}
    return None


def _claim(found: PersistentVolumeClaim) -> KubeObject:
    """Return a claim that a StatefulSet of the scenario makes."""
    spec: KubeObject = {
        "accessModes": list(found.access_modes),
        "resources": {"requests": {"storage": str(found.size or 0)}},
    }
    if found.class_name:
        spec["storageClassName"] = found.class_name
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": found.name, "namespace": found.namespace},
        "spec": spec,
    }
