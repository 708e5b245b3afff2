"""Storage objects of one parity case: claims, volumes, classes, and what CSI drivers report, as the API server stores them."""

from typing import Final

from tests.parity.case_objects import CREATED, HOSTNAME, ZONE, KubeJson, expression

REGION: Final = "topology.kubernetes.io/region"
OLD_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
NAMESPACE: Final = "default"


def claim_volume(claim: str) -> KubeJson:
    """Return a pod's volume that is a claim."""
    return {"persistentVolumeClaim": {"claimName": claim}}


def ephemeral_volume(class_name: str) -> KubeJson:
    """Return a pod's volume whose claim lives as long as the pod."""
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": class_name,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return {"ephemeral": {"volumeClaimTemplate": {"spec": spec}}}


def on_hosts(names: list[str]) -> KubeJson:
    """Return the affinity of a volume of some nodes."""
    return _required(expression(HOSTNAME, "In", *names))


def in_zones(zones: list[str]) -> KubeJson:
    """Return the affinity of a volume of some zones."""
    return _required(expression(ZONE, "In", *zones))


def _required(requirement: KubeJson) -> KubeJson:
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}}


class StorageObjects:
    """Collects the objects of a case by resource; each of them has a name of its own."""

    def __init__(self, name: str) -> None:
        """Begin all names with *name*."""
        self._name = name
        self._number = 0
        self.found: dict[str, list[KubeJson]] = {}

    def _next(self, kind: str) -> str:
        self._number += 1
        return f"{self._name}-{kind}{self._number}"

    def _add(self, resource: str, name: str, metadata: KubeJson, parts: KubeJson) -> str:
        found = {"metadata": {"name": name, "uid": f"uid-{name}", "creationTimestamp": CREATED, **metadata}, **parts}
        self.found.setdefault(resource, []).append(found)
        return name

    # -- classes and drivers -------------------------------------------------------------------------------------------

    def storage_class(
        self,
        provisioner: str = NO_PROVISIONER,
        mode: str = "WaitForFirstConsumer",
        topologies: list[KubeJson] | None = None,
    ) -> str:
        """Add a class."""
        allowed = {"allowedTopologies": topologies} if topologies else {}
        parts = {"provisioner": provisioner, "volumeBindingMode": mode, "reclaimPolicy": "Delete", **allowed}
        return self._add("storageclasses", self._next("s"), {}, parts)

    def csi_node(self, node: str, limits: dict[str, int | None]) -> None:
        """Add a node's CSI drivers, with the number of volumes that they can attach; None: no limit."""
        drivers = [
            {"name": driver, "nodeID": node, "topologyKeys": None, "allocatable": {"count": count}}
            if count is not None
            else {"name": driver, "nodeID": node, "topologyKeys": None}
            for driver, count in limits.items()
        ]
        self._add("csinodes", node, {}, {"spec": {"drivers": drivers}})

    def capacity(self, class_name: str, zone: str, size: int, largest: int | None) -> None:
        """Add the free storage of a class in a zone, in GiB."""
        parts = {
            "storageClassName": class_name,
            "nodeTopology": {"matchLabels": {ZONE: zone}},
            "capacity": f"{size}Gi",
            **({} if largest is None else {"maximumVolumeSize": f"{largest}Gi"}),
        }
        self._add("csistoragecapacities", self._next("k"), {"namespace": NAMESPACE}, parts)

    def attachment(self, node: str, driver: str) -> None:
        """Add a volume that is attached to a node, although no pod uses it."""
        volume = self._volume(self._next("v"), 1, "", {"csi": {"driver": driver, "volumeHandle": self._next("h")}})
        spec = {"attacher": driver, "nodeName": node, "source": {"persistentVolumeName": volume}}
        self._add("volumeattachments", self._next("a"), {}, {"spec": spec, "status": {"attached": True}})

    # -- claims and volumes ----------------------------------------------------------------------------------------------

    def bound_claim(
        self,
        *,
        access_modes: list[str] | None = None,
        driver: str = "x.csi",
        labels: dict[str, str] | None = None,
        affinity: KubeJson | None = None,
        volume: str = "",
        phase: str = "Bound",
        deleting: bool = False,
    ) -> str:
        """Add a claim and its volume; no volume if *volume* names one that does not exist."""
        name, bound_to = self._next("c"), volume or self._next("v")
        modes = access_modes or ["ReadWriteOnce"]
        if not volume:
            reference = {"kind": "PersistentVolumeClaim", "namespace": NAMESPACE, "name": name, "uid": f"uid-{name}"}
            source = {"csi": {"driver": driver, "volumeHandle": bound_to}}
            spec = {**source, "claimRef": reference, **({"nodeAffinity": affinity} if affinity else {})}
            self._volume(bound_to, 1, "", spec, access_modes=modes, phase="Bound", labels=labels)
        metadata: KubeJson = {"annotations": {BIND_COMPLETED: "yes"}}
        if deleting:
            metadata |= {"deletionTimestamp": CREATED, "finalizers": ["kubernetes.io/pvc-protection"]}
        used = {"volumeName": bound_to}
        return self._claim(name, 1, "", spec=used, metadata=metadata, modes=modes, phase=phase)

    def waiting_claim(
        self,
        class_name: str,
        *,
        name: str = "",
        size: int = 1,
        owner: str = "",
        selected: str = "",
        selector: KubeJson | None = None,
    ) -> str:
        """Add a claim without a volume; the owner is a pod."""
        metadata: KubeJson = {"annotations": {SELECTED_NODE: selected}} if selected else {}
        if owner:
            reference = {"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": owner, "controller": True}
            metadata["ownerReferences"] = [reference]
        spec = {} if selector is None else {"selector": selector}
        name, modes = name or self._next("c"), ["ReadWriteOnce"]
        return self._claim(name, size, class_name, spec=spec, metadata=metadata, modes=modes, phase="Pending")

    def free_volume(
        self,
        class_name: str,
        size: int,
        affinity: KubeJson | None,
        labels: dict[str, str],
        mode: str,
        access_modes: list[str],
    ) -> None:
        """Add a volume without a claim."""
        name = self._next("v")
        spec = {"csi": {"driver": "x.csi", "volumeHandle": name}, **({"nodeAffinity": affinity} if affinity else {})}
        self._volume(name, size, class_name, {**spec, "volumeMode": mode}, access_modes=access_modes, labels=labels)

    def _claim(
        self, name: str, size: int, class_name: str, *, spec: KubeJson, metadata: KubeJson, modes: list[str], phase: str
    ) -> str:
        parts = {
            "accessModes": modes,
            "storageClassName": class_name,
            "volumeMode": "Filesystem",
            "resources": {"requests": {"storage": f"{size}Gi"}},
            **spec,
        }
        metadata = {"namespace": NAMESPACE, **metadata}
        return self._add("persistentvolumeclaims", name, metadata, {"spec": parts, "status": {"phase": phase}})

    def _volume(
        self,
        name: str,
        size: int,
        class_name: str,
        spec: KubeJson,
        *,
        access_modes: list[str] | None = None,
        phase: str = "Available",
        labels: dict[str, str] | None = None,
    ) -> str:
        parts = {
            "capacity": {"storage": f"{size}Gi"},
            "accessModes": access_modes or ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Delete",
            "volumeMode": "Filesystem",
            **({"storageClassName": class_name} if class_name else {}),
            **spec,
        }
        metadata = {"labels": labels} if labels else {}
        return self._add("persistentvolumes", name, metadata, {"spec": parts, "status": {"phase": phase}})
