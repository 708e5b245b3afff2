"""Builders of claims, volumes and storage classes for tests."""

from collections.abc import Mapping, Sequence

import msgspec

from lamina.model.pod import Pod
from lamina.model.pod_volumes import CLAIM, PodVolume
from lamina.model.selectors import IN, NodeSelector, NodeSelectorTerm, Requirement
from lamina.model.volumes import (
    AVAILABLE,
    IMMEDIATE,
    WAIT_FOR_FIRST_CONSUMER,
    ClaimRef,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)

GIB = 2**30


def with_claims(pod: Pod, *names: str) -> Pod:
    """Return a pod that uses these claims of its namespace."""
    return msgspec.structs.replace(pod, volumes=tuple(PodVolume(CLAIM, name) for name in names))


def a_claim(
    name: str = "data",
    *,
    volume: str = "",
    of_class: str = "slow",
    size: int | None = GIB,
    modes: Sequence[str] = ("ReadWriteOnce",),
    namespace: str = "default",
    selected: str | None = None,
    deleting: bool = False,
    phase: str = "",
    owner: str = "",
) -> PersistentVolumeClaim:
    """Build a claim whose uid is its name; with *volume* it is bound."""
    return PersistentVolumeClaim(
        namespace=namespace,
        name=name,
        uid=name,
        access_modes=tuple(modes),
        class_name=of_class,
        volume_name=volume,
        completed=bool(volume),
        phase=phase or ("Bound" if volume else "Pending"),
        size=size,
        selected_node=selected,
        deleting=deleting,
        owner_uid=owner,
    )


def a_volume(
    name: str = "v1",
    *,
    size: int = GIB,
    of_class: str = "slow",
    on: Sequence[str] = (),
    label: str = "host",
    claim: ClaimRef | None = None,
    modes: Sequence[str] = ("ReadWriteOnce",),
    labels: Mapping[str, str] | None = None,
    driver: str = "disks.example",
    phase: str = AVAILABLE,
) -> PersistentVolume:
    """Build a volume; *on* lists the values of the node label *label* where it can be mounted."""
    return PersistentVolume(
        name=name,
        size=size,
        class_name=of_class,
        access_modes=tuple(modes),
        affinity=one_of(label, *on) if on else None,
        claim=claim,
        labels=dict(labels or {}),
        phase=phase,
        driver=driver,
        handle=f"handle-{name}",
    )


def a_class(
    name: str = "slow", *, waits: bool = True, provisioner: str = "disks.example", only: NodeSelector | None = None
) -> StorageClass:
    """Build a storage class."""
    return StorageClass(
        name=name,
        provisioner=provisioner,
        binding_mode=WAIT_FOR_FIRST_CONSUMER if waits else IMMEDIATE,
        topologies=only,
    )


def one_of(label: str, *values: str) -> NodeSelector:
    """Return the selector of nodes that have one of these values of a label."""
    return NodeSelector((NodeSelectorTerm((Requirement(label, IN, values),)),))
