"""Volumes of a pod that affect where it can run: claims, ephemeral claims, and disks that precede CSI."""

from typing import Final

import msgspec

CLAIM: Final = "persistentVolumeClaim"
EPHEMERAL: Final = "ephemeral"
GCE_DISK: Final = "gcePersistentDisk"
EBS: Final = "awsElasticBlockStore"
ISCSI: Final = "iscsi"
RBD: Final = "rbd"
AZURE_DISK: Final = "azureDisk"
CINDER: Final = "cinder"
PORTWORX: Final = "portworxVolume"

CLAIMS: Final = frozenset({CLAIM, EPHEMERAL})
EXCLUSIVE_DISKS: Final = frozenset({GCE_DISK, EBS, ISCSI, RBD})
"""Disks of which two pods on one node can conflict."""

MIGRATED: Final = {
    EBS: "ebs.csi.aws.com",
    GCE_DISK: "pd.csi.storage.gke.io",
    AZURE_DISK: "disk.csi.azure.com",
    CINDER: "cinder.csi.openstack.org",
    PORTWORX: "pxd.portworx.com",
}
"""CSI drivers that mount the disks of each kind, and count them."""
MIGRATED_PROVISIONERS: Final = {
    "kubernetes.io/aws-ebs": MIGRATED[EBS],
    "kubernetes.io/gce-pd": MIGRATED[GCE_DISK],
    "kubernetes.io/azure-disk": MIGRATED[AZURE_DISK],
    "kubernetes.io/cinder": MIGRATED[CINDER],
    "kubernetes.io/portworx-volume": MIGRATED[PORTWORX],
}
"""CSI drivers that make the volumes of provisioners that precede CSI."""


class PodVolume(msgspec.Struct, frozen=True, gc=False):
    """One volume; all other kinds of volumes do not affect scheduling."""

    kind: str
    """The field that describes it in a v1 Pod."""
    source: str
    """The claim's name; for an ephemeral claim the volume's name; for a disk its identity."""
    read_only: bool = False
    """For disks: whether the pod only reads it."""
    pool: str = ""
    """For RBD images: the pool."""
    monitors: tuple[str, ...] = ()
    """For RBD images: the monitors of the cluster."""

    def claim(self, pod: str) -> str:
        """Return the name of the claim that it uses in a pod of the name *pod*; empty if it uses none."""
        if self.kind == CLAIM:
            return self.source
        return f"{pod}-{self.source}" if self.kind == EPHEMERAL else ""

    def conflicts(self, other: "PodVolume") -> bool:
        """Return whether pods with these two disks cannot share a node."""
        if self.kind != other.kind or self.kind not in EXCLUSIVE_DISKS or self.source != other.source:
            return False
        if self.kind == RBD and (self.pool != other.pool or not set(self.monitors) & set(other.monitors)):
            return False
        return self.kind == EBS or not (self.read_only and other.read_only)


def exclusive_disks(volumes: tuple[PodVolume, ...]) -> tuple[PodVolume, ...]:
    """Return those volumes that are disks of which two pods on one node can conflict, each once."""
    return tuple(dict.fromkeys(one for one in volumes if one.kind in EXCLUSIVE_DISKS)) if volumes else ()
