"""Decoders of persistent volumes and their claims."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw

from lamina.model import pod_volumes, quantity
from lamina.model.selectors import NodeSelector, NodeSelectorTerm, Requirement
from lamina.model.volumes import FILESYSTEM, ClaimRef, PersistentVolume, PersistentVolumeClaim
from lamina.wire.errors import WireError
from lamina.wire.kube.constraints import LabelSelectorObject, NodeSelectorObject, label_selector
from lamina.wire.kube.meta import ObjectMeta, controller

LEGACY_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
STORAGE: Final = "storage"

Quantity = str | int | float | None
T = TypeVar("T")
W = TypeVar("W")


class ClaimResources(msgspec.Struct, frozen=True, gc=False):
    """``spec.resources`` of a claim."""

    requests: dict[str, Quantity] | None = None


class ClaimSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``spec`` of a claim."""

    access_modes: tuple[str, ...] | None = None
    resources: ClaimResources | None = None
    storage_class_name: str | None = None
    volume_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    selector: LabelSelectorObject | None = None


class PhaseStatus(msgspec.Struct, frozen=True, gc=False):
    """``status`` of a claim or volume."""

    phase: str | None = None


class ClaimObject(msgspec.Struct, frozen=True, gc=False):
    """A claim."""

    kind: str | None = None
    metadata: ObjectMeta = ObjectMeta()
    spec: ClaimSpec | None = None
    status: PhaseStatus | None = None


class ClaimReference(msgspec.Struct, frozen=True, gc=False):
    """``spec.claimRef`` of a volume."""

    namespace: str | None = None
    name: str | None = None
    uid: str | None = None


class VolumeAffinity(msgspec.Struct, frozen=True, gc=False):
    """``spec.nodeAffinity`` of a volume."""

    required: NodeSelectorObject | None = None


class CSISource(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``spec.csi`` of a volume."""

    driver: str | None = None
    volume_handle: str | None = None


class LegacySource(msgspec.Struct, frozen=True, gc=False):
    """A disk that precedes CSI."""

    pd_name: str | None = msgspec.field(default=None, name="pdName")
    volume_id: str | None = msgspec.field(default=None, name="volumeID")
    disk_uri: str | None = msgspec.field(default=None, name="diskURI")

    @property
    def identity(self) -> str:
        """The identity of the disk."""
        return self.pd_name or self.volume_id or self.disk_uri or ""


class VolumeSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``spec`` of a volume."""

    capacity: dict[str, Quantity] | None = None
    access_modes: tuple[str, ...] | None = None
    claim_ref: ClaimReference | None = None
    node_affinity: VolumeAffinity | None = None
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    csi: CSISource | None = None
    gce_persistent_disk: LegacySource | None = None
    aws_elastic_block_store: LegacySource | None = None
    azure_disk: LegacySource | None = None
    cinder: LegacySource | None = None
    portworx_volume: LegacySource | None = None


class VolumeObject(msgspec.Struct, frozen=True, gc=False):
    """A volume."""

    kind: str | None = None
    metadata: ObjectMeta = ObjectMeta()
    spec: VolumeSpec | None = None
    status: PhaseStatus | None = None


_LEGACY: Final = {
    "gce_persistent_disk": pod_volumes.GCE_DISK,
    "aws_elastic_block_store": pod_volumes.EBS,
    "azure_disk": pod_volumes.AZURE_DISK,
    "cinder": pod_volumes.CINDER,
    "portworx_volume": pod_volumes.PORTWORX,
}


def reader(kind: str, plural: str, form: type[W], convert: Callable[[W], T]) -> Callable[[bytes | Raw], T]:
    """Return a decoder of objects of a kind; it raises WireError."""
    decoder: Any = msgspec.json.Decoder(form)  # Any: its type parameter is the form, which the caller knows

    def read(data: bytes | Raw) -> T:
        try:
            found = decoder.decode(data)
            converted = convert(found)
        except (ValueError, RecursionError) as error:
            raise WireError(kind, f"{error}; check that a Kubernetes API server sent it") from error
        if found.kind and found.kind != kind:
            raise WireError(kind, f"this is a {found.kind:.80}; ask for {plural}")
        return converted

    return read


def _claim(found: ClaimObject) -> PersistentVolumeClaim:
    spec, annotations = found.spec or ClaimSpec(), found.metadata.annotations or {}
    owner = controller(found.metadata.owner_references)
    return PersistentVolumeClaim(
        namespace=found.metadata.namespace or "default",
        name=found.metadata.name,
        uid=found.metadata.uid,
        access_modes=spec.access_modes or (),
        class_name=annotations.get(LEGACY_CLASS, spec.storage_class_name or ""),
        volume_name=spec.volume_name or "",
        phase=(found.status or PhaseStatus()).phase or "",
        size=amount(((spec.resources or ClaimResources()).requests or {}).get(STORAGE)),
        selected_node=annotations.get(SELECTED_NODE),
        completed=BIND_COMPLETED in annotations,
        deleting=found.metadata.deletion_timestamp is not None,
        selector=label_selector(spec.selector),
        volume_mode=spec.volume_mode or FILESYSTEM,
        attributes_class=spec.volume_attributes_class_name or "",
        owner_uid="" if owner is None else owner.uid,
    )


def _volume(found: VolumeObject) -> PersistentVolume:
    spec, annotations = found.spec or VolumeSpec(), found.metadata.annotations or {}
    claim = spec.claim_ref
    driver, handle = _source(spec)
    required = None if spec.node_affinity is None else spec.node_affinity.required
    return PersistentVolume(
        name=found.metadata.name,
        size=amount((spec.capacity or {}).get(STORAGE)) or 0,
        access_modes=spec.access_modes or (),
        class_name=annotations.get(LEGACY_CLASS, spec.storage_class_name or ""),
        claim=None if claim is None else ClaimRef(claim.namespace or "", claim.name or "", claim.uid or ""),
        affinity=None if required is None else _selector(required),
        labels=found.metadata.labels or {},
        phase=(found.status or PhaseStatus()).phase or "",
        driver=driver,
        handle=handle,
        migrated=spec.csi is None and bool(driver),
        volume_mode=spec.volume_mode or FILESYSTEM,
        attributes_class=spec.volume_attributes_class_name or "",
        deleting=found.metadata.deletion_timestamp is not None,
    )


def _source(spec: VolumeSpec) -> tuple[str, str]:
    """Return the CSI driver and the handle, also for a disk that a CSI driver took over."""
    if spec.csi is not None:
        return spec.csi.driver or "", spec.csi.volume_handle or ""
    for field, kind in _LEGACY.items():
        source: LegacySource | None = getattr(spec, field)
        if source is not None:
            return pod_volumes.MIGRATED[kind], source.identity
    return "", ""


def _selector(written: NodeSelectorObject) -> NodeSelector:
    return NodeSelector(
        tuple(
            NodeSelectorTerm(
                tuple(Requirement(one.key, one.operator, one.values or ()) for one in term.match_expressions or ()),
                tuple(Requirement(one.key, one.operator, one.values or ()) for one in term.match_fields or ()),
            )
            for term in written.node_selector_terms or ()
        )
    )


def amount(written: Quantity) -> int | None:
    """Return a quantity in bytes, None if there is none. Raises ValueError."""
    return None if written is None else quantity.whole(written)


decode_claim = reader("PersistentVolumeClaim", "persistentvolumeclaims", ClaimObject, _claim)
"""Return a decoded v1 PersistentVolumeClaim. Raises WireError."""
decode_volume = reader("PersistentVolume", "persistentvolumes", VolumeObject, _volume)
"""Return a decoded v1 PersistentVolume. Raises WireError."""
