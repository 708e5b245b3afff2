"""Builders of volumes, claims and storage classes for retold cases."""

from collections.abc import Mapping
from typing import Any, Final

from tests.parity.case_objects import KubeJson, expression
from tests.upstream_cases.kube_objects import HOSTNAME, NAMESPACE, node, with_kind

ONCE: Final = "ReadWriteOnce"
ONE_POD: Final = "ReadWriteOncePod"
SIZE: Final = "5Gi"
IMMEDIATE: Final = "immediate"
WAIT: Final = "wait"
STATIC: Final = "kubernetes.io/no-provisioner"
DYNAMIC: Final = "kubernetes.io/mock-provisioner"
DRIVER: Final = "csidriver"
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"


def storage_class(name: str, *, waits: bool, provisioner: str = STATIC, only_on: str = "") -> KubeJson:
    """Return a storage class; with *only_on* it provisions volumes for this node only."""
    mode = "WaitForFirstConsumer" if waits else "Immediate"
    parts: dict[str, Any] = {"provisioner": provisioner, "volumeBindingMode": mode}
    if only_on:
        parts["allowedTopologies"] = [{"matchLabelExpressions": [{"key": HOSTNAME, "values": [only_on]}]}]
    return with_kind("StorageClass", "storage.k8s.io/v1", name, **parts)


def both_classes(provisioner: str = STATIC) -> list[KubeJson]:
    """Return a class that binds at once, and one that waits for the first consumer."""
    return [
        storage_class(IMMEDIATE, waits=False, provisioner=provisioner),
        storage_class(WAIT, waits=True, provisioner=provisioner),
    ]


def host(number: int, labels: Mapping[str, str] | None = None) -> KubeJson:
    """Return the node ``node-1``, ``node-2`` and so on, with its host name."""
    return node(f"node-{number}", {HOSTNAME: f"node-{number}", **(labels or {})})


def volume(
    name: str,
    class_name: str = "",
    *,
    on: str = "",
    key: str = HOSTNAME,
    of: str = "",
    mode: str = ONCE,
    labels: Mapping[str, str] | None = None,
    driver: bool = False,
) -> KubeJson:
    """
    Return a volume, on a host or of the CSI driver that `csi_node` limits.

    *on* names the values of the node label *key* with which it can be used, *of* its claim.
    """
    spec: KubeJson = {
        "capacity": {"storage": SIZE},
        "accessModes": [mode],
        "storageClassName": class_name,
        "volumeMode": "Filesystem",
        **({"csi": {"driver": DRIVER, "volumeHandle": name}} if driver else {"hostPath": {"path": "/tmp/volume"}}),
    }
    if on:
        wanted = [expression(key, "In", *on.split(","))]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": wanted}]}}
    if of:
        spec["claimRef"] = {"kind": "PersistentVolumeClaim", "namespace": NAMESPACE, "name": of, "uid": _uid(of)}
    status = {"phase": "Bound" if of else "Available"}
    return with_kind("PersistentVolume", "v1", name, labels=labels, spec=spec, status=status)


def claim(name: str, class_name: str = "", *, to: str = "", mode: str = ONCE) -> KubeJson:
    """Return a claim; *to* names the volume that it is bound to."""
    spec: KubeJson = {
        "accessModes": [mode],
        "resources": {"requests": {"storage": SIZE}},
        "storageClassName": class_name,
        "volumeMode": "Filesystem",
    }
    annotations = {BIND_COMPLETED: "true"} if to else None
    if to:
        spec["volumeName"] = to
    status = {"phase": "Bound" if to else "Pending"}
    return with_kind("PersistentVolumeClaim", "v1", name, NAMESPACE, annotations=annotations, spec=spec, status=status)


def bound_pair(
    name: str, class_name: str = "", *, on: str = "", key: str = HOSTNAME, mode: str = ONCE, driver: bool = False
) -> list[KubeJson]:
    """Return a volume and a claim that are bound to each other: ``pv-NAME`` and ``pvc-NAME``."""
    return [
        volume(f"pv-{name}", class_name, on=on, key=key, of=f"pvc-{name}", mode=mode, driver=driver),
        claim(f"pvc-{name}", class_name, to=f"pv-{name}", mode=mode),
    ]


def csi_node(name: str, volumes: int) -> KubeJson:
    """Return how many volumes of the driver a node can have."""
    drivers = [{"name": DRIVER, "nodeID": name, "allocatable": {"count": volumes}}]
    return with_kind("CSINode", "storage.k8s.io/v1", name, spec={"drivers": drivers})


def _uid(claim_name: str) -> str:
    return f"persistentvolumeclaim-{claim_name}"
