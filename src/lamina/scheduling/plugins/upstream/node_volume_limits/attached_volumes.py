"""
Which volumes of CSI drivers are attached to nodes, and how many each node can attach.

A claim counts as its volume, or, before it has one, as a volume of its own of its class's provisioner. A volume that
several pods use counts once. Limits and attachments are indexed by row again after one of their objects changed.
"""

from typing import Final

import numpy as np

from lamina.model.pod_volumes import GCE_DISK, MIGRATED, MIGRATED_PROVISIONERS
from lamina.model.volumes import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment
from lamina.scheduling.state.columns import Ints
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.volumes_in_use import ClaimUse, Use, VolumesInUse

Attached = tuple[str, str]
"""CSI driver and handle of a volume."""
NO_LIMIT: Final = 2**62


class AttachedVolumes:
    """Resolves claims and disks, and reads limits and attachments."""

    def __init__(self, context: PluginContext) -> None:
        """Read the objects of *context*."""
        self._context = context
        self._objects = context.objects
        self._limits: dict[str, Ints] = {}
        self._limits_of: object = None
        self._attachments: dict[int, set[Attached]] = {}
        self._attachments_of: object = None

    def volume(self, use: Use) -> Attached | None:
        """Return the CSI volume of a claim or disk, None if no CSI driver attaches it."""
        if not isinstance(use, ClaimUse):
            driver = MIGRATED.get(use.kind)
            # The zone of such a disk is unknown, so it never equals the volume of a claim.
            return None if driver is None else (driver, f"?/{use.source}" if use.kind == GCE_DISK else use.source)
        claim = self._objects.get(PersistentVolumeClaim, use.namespace, use.name)
        if claim is None or (use.owner and claim.owner_uid != use.owner):
            return None
        volume = self._objects.get(PersistentVolume, "", claim.volume_name) if claim.volume_name else None
        if volume is not None:
            return (volume.driver, volume.handle) if volume.driver and volume.handle else None
        known = self._objects.get(StorageClass, "", claim.class_name) if claim.class_name else None
        if known is None or not known.provisioner:
            return None
        # No handle of a volume begins like this.
        return MIGRATED_PROVISIONERS.get(known.provisioner, known.provisioner), f"\0{use.namespace}/{use.name}"

    def limits(self, driver: str, in_use: VolumesInUse, height: int) -> Ints | None:
        """Return how many volumes of a driver each row can attach; None if no node limits them."""
        state = (self._objects.edition(CSINode), in_use.nodes_edition, height)
        if state != self._limits_of:
            self._limits_of, self._limits = state, {}
            for node in self._objects.all_of(CSINode):
                row = self._context.row(node.name)
                for one in node.drivers if row >= 0 else ():
                    if one.count is not None:
                        if one.driver not in self._limits:
                            self._limits[one.driver] = np.full(height, NO_LIMIT, dtype=np.int64)
                        self._limits[one.driver][row] = one.count
        return self._limits.get(driver)

    def attachments(self, in_use: VolumesInUse) -> dict[int, set[Attached]]:
        """Return the volumes that are attached to each row, whether or not a pod uses them."""
        state = (
            self._objects.edition(VolumeAttachment), self._objects.edition(PersistentVolume), in_use.nodes_edition
        )  # fmt: skip
        if state != self._attachments_of:
            self._attachments_of, self._attachments = state, {}
            for one in self._objects.all_of(VolumeAttachment):
                row = self._context.row(one.node)
                volume = self._objects.get(PersistentVolume, "", one.volume) if one.volume else None
                if row >= 0 and one.driver and volume is not None and volume.driver and not volume.migrated:
                    self._attachments.setdefault(row, set()).add((one.driver, volume.handle))
        return self._attachments
