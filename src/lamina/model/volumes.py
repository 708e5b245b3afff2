"""
Storage objects: claims, volumes, storage classes, and what CSI drivers report.

They contain what scheduling reads. Sizes are in bytes.
"""

from typing import Final

import msgspec

from lamina.model.selectors import LabelSelector, NodeSelector

READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"
FILESYSTEM: Final = "Filesystem"
AVAILABLE: Final = "Available"
LOST: Final = "Lost"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"
IMMEDIATE: Final = "Immediate"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"


class PersistentVolumeClaim(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """A request for a volume, and the volume that it got."""

    namespace: str
    name: str
    uid: str = ""
    access_modes: tuple[str, ...] = ()
    class_name: str = ""
    """The storage class; the annotation that preceded the field wins. Empty: none."""
    volume_name: str = ""
    phase: str = ""
    size: int | None = None
    """Requested bytes; None if the claim requests no size."""
    selected_node: str | None = None
    """The node for which a scheduler requested provisioning."""
    completed: bool = False
    """Whether the volume controller completed the binding."""
    deleting: bool = False
    selector: LabelSelector | None = None
    volume_mode: str = FILESYSTEM
    attributes_class: str = ""
    owner_uid: str = ""
    """UID of the controlling owner: for an ephemeral claim, its pod."""

    @property
    def bound(self) -> bool:
        """Whether claim and volume are bound, and the controller completed it."""
        return bool(self.volume_name) and self.completed


class ClaimRef(msgspec.Struct, frozen=True, gc=False):
    """The claim to which a volume is bound, or reserved for."""

    namespace: str
    name: str
    uid: str = ""
    """Empty if an operator reserved the volume by name."""

    def means(self, claim: PersistentVolumeClaim) -> bool:
        """Return whether it refers to *claim*."""
        return (self.namespace, self.name) == (claim.namespace, claim.name) and self.uid in ("", claim.uid)


class PersistentVolume(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """A volume."""

    namespace: str = ""
    name: str
    size: int = 0
    access_modes: tuple[str, ...] = ()
    class_name: str = ""
    claim: ClaimRef | None = None
    affinity: NodeSelector | None = None
    """The nodes that can mount it; None: all."""
    labels: dict[str, str] = {}
    phase: str = ""
    driver: str = ""
    """CSI driver that mounts it; for a disk that precedes CSI, the driver that took it over. Empty: none."""
    handle: str = ""
    migrated: bool = False
    """Whether it is such a disk."""
    volume_mode: str = FILESYSTEM
    attributes_class: str = ""
    deleting: bool = False


class StorageClass(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """How volumes of a class are made."""

    namespace: str = ""
    name: str
    provisioner: str = ""
    binding_mode: str = IMMEDIATE
    topologies: NodeSelector | None = None
    """Where volumes can be made; None: everywhere."""

    @property
    def waits(self) -> bool:
        """Whether its claims wait for the node of their first pod."""
        return self.binding_mode == WAIT_FOR_FIRST_CONSUMER

    @property
    def provisions(self) -> bool:
        """Whether volumes can be made on request."""
        return self.provisioner not in ("", NO_PROVISIONER)


class DriverLimit(msgspec.Struct, frozen=True, gc=False):
    """A CSI driver on a node, and how many of its volumes the node can attach; None: no limit."""

    driver: str
    count: int | None = None
    topology_keys: tuple[str, ...] = ()
    """Node labels that decide which nodes reach a volume that the driver makes on this node."""


class CSINode(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """The CSI drivers of a node."""

    namespace: str = ""
    name: str
    drivers: tuple[DriverLimit, ...] = ()


class CSIDriver(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """A CSI driver."""

    namespace: str = ""
    name: str
    storage_capacity: bool = False
    """Whether it reports capacities, and volumes are only made where there is enough."""


class CSIStorageCapacity(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """Free storage for the volumes of a class, for some nodes."""

    namespace: str
    name: str
    class_name: str = ""
    topology: LabelSelector | None = None
    """The nodes with access to it; None: no node."""
    capacity: int | None = None
    largest: int | None = None
    """The largest volume that can be made."""

    @property
    def limit(self) -> int | None:
        """The largest volume that fits, if known."""
        return self.capacity if self.largest is None else self.largest


class VolumeAttachment(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """A volume that is attached to a node, or will be."""

    namespace: str = ""
    name: str
    driver: str = ""
    node: str = ""
    volume: str = ""


class VolumeReservation(msgspec.Struct, frozen=True):
    """A volume to reserve for a claim."""

    volume: str
    claim: ClaimRef


class BindVolumes(msgspec.Struct, frozen=True):
    """Work before a pod can be bound: request its volumes, and wait until its claims are bound."""

    node: str
    reservations: tuple[VolumeReservation, ...] = ()
    provisions: tuple[ClaimRef, ...] = ()
    """Claims for which volumes are to be made for the node."""
    timeout: float = 600.0
    """Seconds."""
