"""
The façade of a recording: an API without a cluster behind it, whose objects are those of the current case.

    CaseStage.show, CaseStage.hide --> store --watch--> kube-scheduler --POST binding, PATCH, DELETE--> SchedulerWrites

Objects enter the store as the case has them, without admission. Deleted pods stay, marked as being deleted, because no
kubelet ends them.
"""

from collections.abc import Callable
from typing import Final

from lamina.apiserver.facade_parts import EPOCH
from lamina.simulator.facade.api_handler import ApiHandler
from lamina.simulator.facade.api_state import ApiState
from lamina.simulator.facade.kube_object import KubeObject, NamespacedName
from lamina.simulator.facade.resource_types import ResourceTypes
from lamina.simulator.facade.volume_controller import VolumeController
from tests.parity.case_objects import KubeJson

KINDS: Final = {
    "namespaces": ("", "v1", "Namespace"),
    "nodes": ("", "v1", "Node"),
    "pods": ("", "v1", "Pod"),
    "services": ("", "v1", "Service"),
    "replicationcontrollers": ("", "v1", "ReplicationController"),
    "replicasets": ("apps", "apps/v1", "ReplicaSet"),
    "statefulsets": ("apps", "apps/v1", "StatefulSet"),
    "poddisruptionbudgets": ("policy", "policy/v1", "PodDisruptionBudget"),
    "persistentvolumes": ("", "v1", "PersistentVolume"),
    "persistentvolumeclaims": ("", "v1", "PersistentVolumeClaim"),
    "storageclasses": ("storage.k8s.io", "storage.k8s.io/v1", "StorageClass"),
    "csinodes": ("storage.k8s.io", "storage.k8s.io/v1", "CSINode"),
    "csidrivers": ("storage.k8s.io", "storage.k8s.io/v1", "CSIDriver"),
    "csistoragecapacities": ("storage.k8s.io", "storage.k8s.io/v1", "CSIStorageCapacity"),
    "volumeattachments": ("storage.k8s.io", "storage.k8s.io/v1", "VolumeAttachment"),
}
"""Resource → storage group, API version and kind."""


class SchedulerWrites:
    """What kube-scheduler wrote since the last `clear`. Implements `ClusterInputs`."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """Call *wake* after every write."""
        self._wake = wake
        self.bound: dict[str, str] = {}
        """Pod name → node."""
        self.refused: dict[str, tuple[str, str]] = {}
        """Pod name → message and nominated node of the first refusal."""
        self.deleted: list[str] = []
        """Names of deleted pods."""

    def clear(self) -> None:
        """Forget everything."""
        self.bound.clear()
        self.refused.clear()
        self.deleted.clear()

    def pod_bound(self, pod: KubeObject, node: str) -> None:
        """Note a binding."""
        self.bound[pod["metadata"]["name"]] = node
        self._wake()

    def pod_refused(self, pod: KubeObject, message: str) -> None:
        """Note the first refusal of a pod; later attempts see a cluster that preemption has changed."""
        nominated = pod["status"].get("nominatedNodeName", "")
        self.refused.setdefault(pod["metadata"]["name"], (message, nominated))
        self._wake()

    def pod_deleted(self, pod: KubeObject, grace: float) -> None:
        """Note a victim."""
        self.deleted.append(pod["metadata"]["name"])
        self._wake()

    def pod_created(self, pod: KubeObject) -> None:
        """Do nothing: kube-scheduler creates no pods."""

    def pod_removed(self, pod: KubeObject) -> None:
        """Do nothing: only the recorder removes pods."""

    def node_written(self, node: KubeObject) -> None:
        """Do nothing: kube-scheduler writes no nodes."""

    def node_deleted(self, name: str) -> None:
        """Do nothing: kube-scheduler deletes no nodes."""

    def workload_written(self, found: KubeObject) -> None:
        """Do nothing: workloads are fixtures."""

    def workload_deleted(self, found: KubeObject) -> None:
        """Do nothing: workloads are fixtures."""


class CaseStage:
    """Objects of the current case, behind an API."""

    def __init__(self, writes: SchedulerWrites) -> None:
        """Start empty; clients' writes go to *writes*."""
        self.writes = writes
        self._state = ApiState(ResourceTypes(), lambda: 0.0, writes, EPOCH)
        self.handler = ApiHandler(self._state)

    def show(self, resource: str, found: KubeJson) -> None:
        """Create or replace an object."""
        group, version, kind = KINDS[resource]
        store = self._state.store
        store.put(store.table(group, resource), _key(found), {"kind": kind, "apiVersion": version, **found})

    def hide(self, resource: str, found: KubeJson) -> None:
        """Remove an object."""
        store = self._state.store
        store.delete(store.table(KINDS[resource][0], resource), _key(found))

    def objects(self, resource: str) -> list[KubeJson]:
        """Return all objects of a resource, as clients see them now."""
        return [one.object for one in self._state.store.table(KINDS[resource][0], resource).all()]

    def start_volume_controller(self) -> None:
        """Bind claims and make volumes from now on; objects that exist already are left as they are."""
        self._volumes = VolumeController(self._state)

    def sync_claim(self, claim: KubeJson) -> None:
        """Let the volume controller look at a claim without a write."""
        self._volumes.sync(_key(claim))

    def touch_node(self, node: KubeJson) -> None:
        """Update a node without a change that matters, so that the log shows how far the nodes were read."""
        metadata = {**node["metadata"], "annotations": {"example.com/touched": "yes"}}
        self.show("nodes", {**node, "metadata": metadata})


def _key(found: KubeJson) -> NamespacedName:
    return NamespacedName(found["metadata"].get("namespace", ""), found["metadata"]["name"])
