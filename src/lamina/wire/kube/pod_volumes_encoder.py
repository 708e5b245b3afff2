"""Encoder of the volumes of a pod: images, claims and disks, as ``spec.volumes`` of a v1 Pod."""

from functools import lru_cache
from typing import Any, Final

from lamina.model import pod_volumes
from lamina.model.pod_volumes import PodVolume
from lamina.wire.kube.encoded_values import ENTRIES
from lamina.wire.kube.pod_containers_encoder import pull_policy

_IDENTITIES: Final = {
    pod_volumes.GCE_DISK: "pdName",
    pod_volumes.EBS: "volumeID",
    pod_volumes.AZURE_DISK: "diskURI",
    pod_volumes.CINDER: "volumeID",
    pod_volumes.ISCSI: "iqn",
    pod_volumes.PORTWORX: "volumeID",
    pod_volumes.RBD: "image",
}
_TEMPLATE: Final = {
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
"""A pod's model does not have the template of an ephemeral claim; the claim's own object has what matters."""


@lru_cache(ENTRIES)
def encode_volumes(images: tuple[str, ...], volumes: tuple[PodVolume, ...]) -> list[dict[str, Any]]:
    """Return ``spec.volumes``; callers must not change the result."""
    written: list[dict[str, Any]] = [
        {"name": f"image-{number}", "image": {"reference": image, "pullPolicy": pull_policy(image)}}
        for number, image in enumerate(images, 1)
    ]
    return written + [_volume(number, volume) for number, volume in enumerate(volumes, 1)]


def _volume(number: int, volume: PodVolume) -> dict[str, Any]:
    if volume.kind == pod_volumes.EPHEMERAL:
        return {"name": volume.source, "ephemeral": {"volumeClaimTemplate": _TEMPLATE}}
    name = f"volume-{number}"
    if volume.kind == pod_volumes.CLAIM:
        return {"name": name, "persistentVolumeClaim": {"claimName": volume.source}}
    disk: dict[str, Any] = {_IDENTITIES[volume.kind]: volume.source}
    if volume.read_only:
        disk["readOnly"] = True
    if volume.pool:
        disk["pool"] = volume.pool
    if volume.monitors:
        disk["monitors"] = list(volume.monitors)
    return {"name": name, volume.kind: disk}
