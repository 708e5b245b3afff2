"""
Decoder of a pod's host ports and required features, and of requirements that Lamina does not support yet.

The latter are worded here: volumes that must be found, attached or counted, device claims and pod groups. Other volumes do not affect scheduling, and upstream has no plugin for them either. A kubelet
creates them on the node (files, memory, images, inline CSI drivers), or they can be mounted anywhere (such as NFS).

Most pods have none of these, so that case is checked first.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from msgspec import Raw

from lamina.model.node_features import HOST_NETWORK_USERS, RESTART_ALL_CONTAINERS
from lamina.model.pod import ANY_IP, TCP, HostPort
from lamina.wire.decode_cache import memoized

RESTART_ALL: Final = "RestartAllContainers"


class PresentVolumeSource(msgspec.Struct, frozen=True, gc=False):
    """A volume source of which only the presence matters."""


class NamedRef(msgspec.Struct, frozen=True, gc=False):
    """A reference with a name."""

    name: str = ""


class ContainerPort(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One of ``spec.containers[].ports``."""

    host_port: int | None = None
    host_ip: str | None = msgspec.field(default=None, name="hostIP")
    protocol: str | None = None


class RestartRule(msgspec.Struct, frozen=True, gc=False):
    """One of ``spec.containers[].restartPolicyRules``."""

    action: str = ""


class ImageVolume(msgspec.Struct, frozen=True, gc=False):
    """``spec.volumes[].image``."""

    reference: str | None = None


class ClaimVolume(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``spec.volumes[].persistentVolumeClaim``."""

    claim_name: str = ""


class Volume(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """
    One of ``spec.volumes``, restricted to what affects scheduling.

    Without its name, so that most volumes are equal.
    """

    image: ImageVolume | None = None
    persistent_volume_claim: ClaimVolume | None = None
    ephemeral: PresentVolumeSource | None = None
    # Volume types that precede CSI. Upstream checks whether another pod uses the same disk, or counts disks per node.
    gce_persistent_disk: PresentVolumeSource | None = None
    aws_elastic_block_store: PresentVolumeSource | None = None
    azure_disk: PresentVolumeSource | None = None
    cinder: PresentVolumeSource | None = None
    iscsi: PresentVolumeSource | None = None
    portworx_volume: PresentVolumeSource | None = None
    rbd: PresentVolumeSource | None = None
    vsphere_volume: PresentVolumeSource | None = None


class SchedulingGroup(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``spec.schedulingGroup``: the group with which the pod must be placed."""

    pod_group_name: str | None = None


ORDINARY: Final = Volume()
DISKS: Final = (
    "gce_persistent_disk",
    "aws_elastic_block_store",
    "azure_disk",
    "cinder",
    "iscsi",
    "portworx_volume",
    "rbd",
    "vsphere_volume",
)
_PORTS: Final = msgspec.json.Decoder(list[ContainerPort] | None)
_VOLUMES: Final = msgspec.json.Decoder(list[Volume] | None)
_WRITTEN: Final = dict(zip(Volume.__struct_fields__, Volume.__struct_encode_fields__, strict=True))


def _read_host_ports(text: bytes) -> tuple[HostPort, ...]:
    return tuple(
        HostPort(port.host_port, port.protocol or TCP, port.host_ip or ANY_IP)
        for port in _PORTS.decode(text) or ()
        if port.host_port is not None and port.host_port > 0
    )


host_ports = memoized("spec.containers[].ports", _read_host_ports)
"""Return the host ports among the ports of a container; 0 means none."""


def read_volumes(text: Raw) -> list[Volume]:
    """Return the volumes that affect scheduling. Raises ValueError. All other volumes are equal to ORDINARY."""
    try:
        return [volume for volume in _VOLUMES.decode(text) or () if volume != ORDINARY]
    except (ValueError, RecursionError) as error:
        raise ValueError(f"spec.volumes: {error}") from error


def image_volumes(volumes: Iterable[Volume]) -> tuple[str, ...]:
    """Return the images that are mounted as volumes."""
    return tuple(volume.image.reference for volume in volumes if volume.image and volume.image.reference)


def unmet_by_volumes(volumes: Iterable[Volume]) -> list[str]:
    """Return what volumes require and Lamina does not support."""
    words: list[str] = []
    for volume in volumes:
        if volume.persistent_volume_claim is not None:
            words.append(f'persistent volume claim "{volume.persistent_volume_claim.claim_name:.253}"')
        if volume.ephemeral is not None:
            words.append("ephemeral volume claim")
        words.extend(f"disk volume ({_WRITTEN[disk]})" for disk in DISKS if getattr(volume, disk) is not None)
    return words


def unmet_by_claims(claims: Sequence[NamedRef]) -> list[str]:
    """Return the device claims."""
    return [f'resource claim "{claim.name:.253}"' for claim in claims]


def unmet_by_groups(group: SchedulingGroup | None, workload: NamedRef | None) -> list[str]:
    """Return the groups with which the pod must be placed: a pod group, or a workload in Kubernetes 1.35."""
    words: list[str] = []
    if group is not None:
        words.append(f'pod group "{group.pod_group_name or "":.253}"')
    if workload is not None:
        words.append(f'workload "{workload.name:.253}"')
    return words


def required_features(rules: Iterable[RestartRule], *, host_network: bool, own_users: bool) -> tuple[str, ...]:
    """Return the features that a node must declare, inferred as in upstream."""
    features: list[str] = []
    if any(rule.action == RESTART_ALL for rule in rules):
        features.append(RESTART_ALL_CONTAINERS)
    if host_network and own_users:
        features.append(HOST_NETWORK_USERS)
    return tuple(features)
