"""
Volume controllers of the façade: binds claims and volumes, and makes volumes for claims.

    volume reserved for a claim (spec.claimRef) ───────────────────────> both bound
    claim with a selected node, or of a class that does not wait ─> new volume, both bound
    claim deleted ─────────────────────────────────────────────────────> volume deleted, or released

The rules are those of `volume_rules`, as in simulations without an API. Work is done at once, after the write that caused
it. No CSI driver runs: a volume is only an object, of any size, and reaches the nodes that have the same labels as the
selected node under the topology keys of its driver (CSINode). Claims of classes that do not wait get no existing volume
unless one names them.
"""

from functools import partial
from typing import Final

import msgspec

from lamina.model.volumes import PersistentVolume, PersistentVolumeClaim, StorageClass
from lamina.simulator.controllers.volume_rules import is_free_for, next_step, reach
from lamina.simulator.facade.api_state import ApiState
from lamina.simulator.facade.kube_object import KubeObject, NamespacedName, key_of, part, text, uid_of
from lamina.simulator.facade.object_store import StoreEvent
from lamina.wire.kube.storage_classes import decode_csi_node, decode_storage_class
from lamina.wire.kube.storage_objects import decode_claim, decode_volume

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
STORAGE: Final = "storage.k8s.io"
NO_VOLUME: Final = NamespacedName("", "")
NO_PHASE: Final = ("", "Pending")


class VolumeController:
    """Reacts to writes of claims and volumes in one store."""

    def __init__(self, state: ApiState) -> None:
        """Follow the claims and volumes of *state*."""
        self._state = state
        self._claims = state.store.table("", "persistentvolumeclaims")
        self._volumes = state.store.table("", "persistentvolumes")
        self._reserved: dict[NamespacedName, NamespacedName] = {}
        """Claim → the volume that names it, if there is one."""
        self._claims.listeners[self._claim_changed] = None
        self._volumes.listeners[self._volume_changed] = None

    def _claim_changed(self, event: StoreEvent) -> None:
        react = (
            partial(self._give_up, event.new.object) if event.type == "DELETED" else partial(self.sync, event.new.key)
        )
        self._state.store.defer(react)

    def _volume_changed(self, event: StoreEvent) -> None:
        key, claim = event.new.key, _claim_of(event.new.object)
        if event.type != "DELETED":
            if claim.name:
                self._reserved[claim] = key
            self._state.store.defer(partial(self._sync_volume, key))
        elif self._reserved.get(claim) == key:
            del self._reserved[claim]

    # -- claims --------------------------------------------------------------------------------------------------------

    def sync(self, key: NamespacedName) -> None:
        """Bind a claim, or make a volume for it, if it is time for that."""
        stored = self._claims.get(key)
        if stored is None or "deletionTimestamp" in stored.object["metadata"]:
            return
        claim = stored.object
        name = text(part(claim, "spec"), "volumeName")
        volume = self._volumes.get(NamespacedName("", name) if name else self._reserved.get(key, NO_VOLUME))
        step = next_step(_claim(claim), None if volume is None else _volume(volume.object), self._model_class_of(claim))
        if step == "bind" and volume is not None:
            self._bind(claim, volume.object)
        elif step == "make":
            self._bind(claim, self._provisioned(claim))
        elif not text(part(claim, "status"), "phase"):
            self._put_claim({**claim, "status": {**part(claim, "status"), "phase": "Pending"}})

    def _model_class_of(self, claim: KubeObject) -> StorageClass | None:
        found = self._class_of(claim)
        return decode_storage_class(msgspec.json.encode(found)) if found else None

    def _class_of(self, claim: KubeObject) -> KubeObject:
        name = text(part(claim, "spec"), "storageClassName")
        found = self._state.get(STORAGE, "storageclasses", "", name) if name else None
        return {} if found is None else found.object

    def _give_up(self, claim: KubeObject) -> None:
        """Delete or release the volume of a claim that is gone."""
        stored = self._volumes.get(NamespacedName("", text(part(claim, "spec"), "volumeName")))
        if stored is None or part(part(stored.object, "spec"), "claimRef").get("uid") != uid_of(claim):
            return
        if text(part(stored.object, "spec"), "persistentVolumeReclaimPolicy") == "Delete":
            self._state.store.delete(self._volumes, stored.key)
        else:
            self._put_volume({**stored.object, "status": {**part(stored.object, "status"), "phase": "Released"}})

    # -- volumes -------------------------------------------------------------------------------------------------------

    def _sync_volume(self, key: NamespacedName) -> None:
        """Bind a volume that is reserved for a claim; give a new one its phase."""
        stored = self._volumes.get(key)
        if stored is None:
            return
        volume = stored.object
        reference = part(part(volume, "spec"), "claimRef")
        claim = self._claims.get(_claim_of(volume))
        if claim is not None and is_free_for(_volume(volume), _claim(claim.object)):
            wanted = text(part(claim.object, "spec"), "volumeName")
            if wanted in ("", key.name):
                self._bind(claim.object, volume)
        elif not reference and text(part(volume, "status"), "phase") in NO_PHASE:
            self._put_volume({**volume, "status": {**part(volume, "status"), "phase": "Available"}})

    def _provisioned(self, claim: KubeObject) -> KubeObject:
        """Return a new volume for a claim."""
        found, spec = self._class_of(claim), part(claim, "spec")
        provisioner, node = text(found, "provisioner"), _selected_node(claim)
        name = f"pvc-{uid_of(claim)}"
        affinity = self._reach(provisioner, node) if node else None
        return {
            "kind": "PersistentVolume",
            "apiVersion": "v1",
            "metadata": {
                "name": name,
                "uid": self._state.uid(),
                "creationTimestamp": self._state.timestamp(),
                "annotations": {PROVISIONED_BY: provisioner},
            },
            "spec": {
                "capacity": dict(part(part(spec, "resources"), "requests")),
                "accessModes": list(spec.get("accessModes") or ()),
                "persistentVolumeReclaimPolicy": text(found, "reclaimPolicy") or "Delete",
                "storageClassName": text(spec, "storageClassName"),
                "volumeMode": text(spec, "volumeMode") or "Filesystem",
                "csi": {"driver": provisioner, "volumeHandle": name},
                **({} if affinity is None else {"nodeAffinity": affinity}),
            },
        }

    def _reach(self, driver: str, node: str) -> KubeObject | None:
        """Return the affinity of a volume of a driver on a node; None if the driver reports no topology there."""
        reported = self._state.get(STORAGE, "csinodes", "", node)
        shown = self._state.get("", "nodes", "", node)
        known = None if reported is None else decode_csi_node(msgspec.json.encode(reported.object))
        labels = {} if shown is None else part(part(shown.object, "metadata"), "labels")
        found = reach(driver, known, labels)
        if found is None:
            return None
        terms = [
            {
                "matchExpressions": [
                    {"key": one.key, "operator": one.operator, "values": list(one.values)} for one in term.expressions
                ]
            }
            for term in found.terms
        ]
        return {"required": {"nodeSelectorTerms": terms}}

    # -- writes --------------------------------------------------------------------------------------------------------

    def _bind(self, claim: KubeObject, volume: KubeObject) -> None:
        """Write volume and claim as bound to each other."""
        key = key_of(claim)
        reference = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", **key._asdict(), "uid": uid_of(claim)}
        spec = part(volume, "spec")
        self._put_volume(
            {
                **volume,
                "spec": {**spec, "claimRef": {**reference, **part(spec, "claimRef"), "uid": uid_of(claim)}},
                "status": {**part(volume, "status"), "phase": "Bound"},
            }
        )
        metadata = claim["metadata"]
        status = {"phase": "Bound", "accessModes": spec.get("accessModes"), "capacity": spec.get("capacity")}
        self._put_claim(
            {
                **claim,
                "metadata": {**metadata, "annotations": {**part(metadata, "annotations"), BIND_COMPLETED: "yes"}},
                "spec": {**part(claim, "spec"), "volumeName": key_of(volume).name},
                "status": {**part(claim, "status"), **status},
            }
        )

    def _put_claim(self, claim: KubeObject) -> None:
        self._state.store.put(self._claims, key_of(claim), claim)

    def _put_volume(self, volume: KubeObject) -> None:
        self._state.store.put(self._volumes, key_of(volume), volume)


def _selected_node(claim: KubeObject) -> str:
    return text(part(part(claim, "metadata"), "annotations"), SELECTED_NODE)


def _claim_of(volume: KubeObject) -> NamespacedName:
    """Return the key of the claim that a volume names; empty if it names none."""
    reference = part(part(volume, "spec"), "claimRef")
    return NamespacedName(text(reference, "namespace"), text(reference, "name"))


def _claim(found: KubeObject) -> PersistentVolumeClaim:
    return decode_claim(msgspec.json.encode(found))


def _volume(found: KubeObject) -> PersistentVolume:
    return decode_volume(msgspec.json.encode(found))
