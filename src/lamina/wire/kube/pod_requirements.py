"""
Decoder of a pod's host ports, required features and pod group, and of requirements that Lamina does not support yet.

The latter are worded here: device claims.

Most pods have none of these, so that case is checked first.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from msgspec import Raw

from lamina.model.node_features import BIND_MOUNT_OPTIONS, HOST_NETWORK_USERS, RESTART_ALL_CONTAINERS
from lamina.model.pod import ANY_IP, TCP, HostPort
from lamina.wire.decode_cache import memoized

RESTART_ALL: Final = "RestartAllContainers"
BIND_OPTIONS_KEY: Final = b"bindMountOptions"


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


class VolumeMount(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One of ``spec.containers[].volumeMounts``."""

    bind_mount_options: list[str] | None = None


class SchedulingGroup(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``spec.schedulingGroup``: the group with which the pod must be placed."""

    pod_group_name: str | None = None


class WorkloadRef(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``spec.workloadRef`` in Kubernetes 1.35: a pod group of a workload, and one of its replicas."""

    name: str = ""
    pod_group: str = ""
    pod_group_replica_key: str | None = None


_MOUNTS: Final = msgspec.json.Decoder(list[VolumeMount] | None)
_PORTS: Final = msgspec.json.Decoder(list[ContainerPort] | None)


def _read_host_ports(text: bytes) -> tuple[HostPort, ...]:
    return tuple(
        HostPort(port.host_port, port.protocol or TCP, port.host_ip or ANY_IP)
        for port in _PORTS.decode(text) or ()
        if port.host_port is not None and port.host_port > 0
    )


host_ports = memoized("spec.containers[].ports", _read_host_ports)
"""Return the host ports among the ports of a container; 0 means none."""


def unmet_by_claims(claims: Sequence[NamedRef]) -> list[str]:
    """Return the device claims."""
    return [f'resource claim "{claim.name:.253}"' for claim in claims]


def native_group(group: SchedulingGroup | None, workload: WorkloadRef | None) -> str:
    """Return the pod group, or workload, group and replica in Kubernetes 1.35; empty without one."""
    if group is not None:
        return group.pod_group_name or ""
    return "" if workload is None else f"{workload.name}/{workload.pod_group}/{workload.pod_group_replica_key or ''}"


def has_bind_mount_options(mounts: Raw) -> bool:
    """Return whether a volume mount of a container has ``bindMountOptions``."""
    # Most containers have mounts, nearly none of them has options: searching the text is cheaper than decoding it.
    return BIND_OPTIONS_KEY in bytes(mounts) and any(one.bind_mount_options for one in _MOUNTS.decode(mounts) or ())


def required_features(
    rules: Iterable[RestartRule], *, host_network: bool, own_users: bool, bind_options: bool
) -> tuple[str, ...]:
    """Return the features that a node must declare, inferred as in upstream."""
    features: list[str] = []
    if any(rule.action == RESTART_ALL for rule in rules):
        features.append(RESTART_ALL_CONTAINERS)
    if host_network and own_users:
        features.append(HOST_NETWORK_USERS)
    if bind_options:
        features.append(BIND_MOUNT_OPTIONS)
    return tuple(features)
