"""Decoders of storage classes, and of what CSI drivers report (storage.k8s.io/v1)."""

import msgspec

from lamina.model.selectors import IN, NodeSelector, NodeSelectorTerm, Requirement
from lamina.model.volumes import (
    IMMEDIATE,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    DriverLimit,
    StorageClass,
    VolumeAttachment,
)
from lamina.wire.kube.constraints import LabelSelectorObject, label_selector
from lamina.wire.kube.meta import ObjectMeta
from lamina.wire.kube.storage_objects import Quantity, amount, reader


class TopologyRequirement(msgspec.Struct, frozen=True, gc=False):
    """One of ``allowedTopologies[].matchLabelExpressions``."""

    key: str = ""
    values: tuple[str, ...] | None = None


class TopologyTerm(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One of ``allowedTopologies``."""

    match_label_expressions: list[TopologyRequirement] | None = None


class StorageClassObject(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A storage class."""

    kind: str | None = None
    metadata: ObjectMeta = ObjectMeta()
    provisioner: str | None = None
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologyTerm] | None = None


class Allocatable(msgspec.Struct, frozen=True, gc=False):
    """``spec.drivers[].allocatable`` of a CSINode."""

    count: int | None = None


class DriverObject(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One of ``spec.drivers`` of a CSINode."""

    name: str = ""
    allocatable: Allocatable | None = None
    topology_keys: tuple[str, ...] | None = None


class CSINodeSpec(msgspec.Struct, frozen=True, gc=False):
    """``spec`` of a CSINode."""

    drivers: list[DriverObject] | None = None


class CSINodeObject(msgspec.Struct, frozen=True, gc=False):
    """A CSINode."""

    kind: str | None = None
    metadata: ObjectMeta = ObjectMeta()
    spec: CSINodeSpec | None = None


class CSIDriverSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``spec`` of a CSIDriver."""

    storage_capacity: bool | None = None


class CSIDriverObject(msgspec.Struct, frozen=True, gc=False):
    """A CSIDriver."""

    kind: str | None = None
    metadata: ObjectMeta = ObjectMeta()
    spec: CSIDriverSpec | None = None


class CapacityObject(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A CSIStorageCapacity."""

    kind: str | None = None
    metadata: ObjectMeta = ObjectMeta()
    storage_class_name: str | None = None
    node_topology: LabelSelectorObject | None = None
    capacity: Quantity = None
    maximum_volume_size: Quantity = None


class AttachedSource(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``spec.source`` of a VolumeAttachment."""

    persistent_volume_name: str | None = None


class AttachmentSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``spec`` of a VolumeAttachment."""

    attacher: str | None = None
    node_name: str | None = None
    source: AttachedSource | None = None


class AttachmentObject(msgspec.Struct, frozen=True, gc=False):
    """A VolumeAttachment."""

    kind: str | None = None
    metadata: ObjectMeta = ObjectMeta()
    spec: AttachmentSpec | None = None


def _storage_class(found: StorageClassObject) -> StorageClass:
    terms = tuple(
        NodeSelectorTerm(
            tuple(Requirement(one.key, IN, one.values or ()) for one in term.match_label_expressions or ())
        )
        for term in found.allowed_topologies or ()
    )
    return StorageClass(
        name=found.metadata.name,
        provisioner=found.provisioner or "",
        binding_mode=found.volume_binding_mode or IMMEDIATE,
        topologies=NodeSelector(terms) if terms else None,
    )


def _csi_node(found: CSINodeObject) -> CSINode:
    drivers = (found.spec or CSINodeSpec()).drivers or ()
    return CSINode(
        name=found.metadata.name,
        drivers=tuple(
            DriverLimit(one.name, None if one.allocatable is None else one.allocatable.count, one.topology_keys or ())
            for one in drivers
        ),
    )


def _csi_driver(found: CSIDriverObject) -> CSIDriver:
    return CSIDriver(
        name=found.metadata.name, storage_capacity=(found.spec or CSIDriverSpec()).storage_capacity is True
    )


def _capacity(found: CapacityObject) -> CSIStorageCapacity:
    return CSIStorageCapacity(
        namespace=found.metadata.namespace or "default",
        name=found.metadata.name,
        class_name=found.storage_class_name or "",
        topology=label_selector(found.node_topology),
        capacity=amount(found.capacity),
        largest=amount(found.maximum_volume_size),
    )


def _attachment(found: AttachmentObject) -> VolumeAttachment:
    spec = found.spec or AttachmentSpec()
    source = spec.source or AttachedSource()
    return VolumeAttachment(
        name=found.metadata.name,
        driver=spec.attacher or "",
        node=spec.node_name or "",
        volume=source.persistent_volume_name or "",
    )


decode_storage_class = reader("StorageClass", "storageclasses", StorageClassObject, _storage_class)
decode_csi_node = reader("CSINode", "csinodes", CSINodeObject, _csi_node)
decode_csi_driver = reader("CSIDriver", "csidrivers", CSIDriverObject, _csi_driver)
decode_storage_capacity = reader("CSIStorageCapacity", "csistoragecapacities", CapacityObject, _capacity)
decode_volume_attachment = reader("VolumeAttachment", "volumeattachments", AttachmentObject, _attachment)
