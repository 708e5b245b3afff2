"""
Decoder of ``spec.volumes`` of pods: images, claims, and disks that precede CSI.

Most volumes are of other kinds. They become equal structs, because names are left out, and are dropped. Names are read
in a second pass, which only pods with ephemeral claims need.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Raw

from lamina.model import pod_volumes
from lamina.model.pod_volumes import PodVolume


class ImageVolume(msgspec.Struct, frozen=True, gc=False):
    """``spec.volumes[].image``."""

    reference: str | None = None


class ClaimVolume(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``spec.volumes[].persistentVolumeClaim``."""

    claim_name: str | None = None


class PresentVolumeSource(msgspec.Struct, frozen=True, gc=False):
    """A volume source of which only the presence matters."""


class Disk(msgspec.Struct, frozen=True, gc=False):
    """A disk that precedes CSI; each kind has one of these fields as its identity."""

    pd_name: str | None = msgspec.field(default=None, name="pdName")
    volume_id: str | None = msgspec.field(default=None, name="volumeID")
    iqn: str | None = None
    image: str | None = None
    disk_uri: str | None = msgspec.field(default=None, name="diskURI")
    pool: str | None = None
    monitors: list[str] | None = None
    read_only: bool | None = msgspec.field(default=None, name="readOnly")

    def volume(self, kind: str) -> PodVolume:
        """Return it as a volume of a pod."""
        identity = self.pd_name or self.volume_id or self.iqn or self.image or self.disk_uri or ""
        return PodVolume(kind, identity, self.read_only is True, self.pool or "", tuple(self.monitors or ()))


class Volume(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One of ``spec.volumes``, restricted to what affects scheduling, and without its name."""

    image: ImageVolume | None = None
    persistent_volume_claim: ClaimVolume | None = None
    ephemeral: PresentVolumeSource | None = None
    gce_persistent_disk: Disk | None = None
    aws_elastic_block_store: Disk | None = None
    azure_disk: Disk | None = None
    cinder: Disk | None = None
    iscsi: Disk | None = None
    portworx_volume: Disk | None = None
    rbd: Disk | None = None


class NamedVolume(msgspec.Struct, frozen=True, gc=False):
    """The name of one of ``spec.volumes``, if it is an ephemeral claim."""

    name: str = ""
    ephemeral: PresentVolumeSource | None = None


ORDINARY: Final = Volume()
_VOLUMES: Final = msgspec.json.Decoder(list[Volume] | None)
_NAMED: Final = msgspec.json.Decoder(list[NamedVolume] | None)
_DISKS: Final = {
    "gce_persistent_disk": pod_volumes.GCE_DISK,
    "aws_elastic_block_store": pod_volumes.EBS,
    "azure_disk": pod_volumes.AZURE_DISK,
    "cinder": pod_volumes.CINDER,
    "iscsi": pod_volumes.ISCSI,
    "portworx_volume": pod_volumes.PORTWORX,
    "rbd": pod_volumes.RBD,
}


def read_volumes(text: Raw) -> tuple[tuple[str, ...], tuple[PodVolume, ...]]:
    """Return the images that are mounted as volumes, and the claims and disks of a pod. Raises ValueError."""
    try:
        volumes = [volume for volume in _VOLUMES.decode(text) or () if volume != ORDINARY]
        if not volumes:
            return (), ()
        names = [one.name for one in _NAMED.decode(text) or () if one.ephemeral is not None]
    except (ValueError, RecursionError) as error:
        raise ValueError(f"spec.volumes: {error}") from error
    images = tuple(volume.image.reference for volume in volumes if volume.image and volume.image.reference)
    return images, tuple(_converted(volumes, iter(names)))


def _converted(volumes: Iterable[Volume], names: Iterator[str]) -> Iterator[PodVolume]:
    for volume in volumes:
        if volume.persistent_volume_claim is not None:
            yield PodVolume(pod_volumes.CLAIM, volume.persistent_volume_claim.claim_name or "")
        if volume.ephemeral is not None:
            yield PodVolume(pod_volumes.EPHEMERAL, next(names))
        for field, kind in _DISKS.items():
            disk: Disk | None = getattr(volume, field)
            if disk is not None:
                yield disk.volume(kind)
