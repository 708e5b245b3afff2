"""
VolumeRestrictions: keeps two pods from using a volume that only one of them may use.

A claim with the access mode ReadWriteOncePod is for one pod in the cluster. Disks that precede CSI (GCE, EBS, iSCSI,
RBD) conflict on a node, except if all their pods only read them; EBS disks always do. Messages are upstream's.
"""

from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np

from lamina.model.pod import Pod
from lamina.model.pod_volumes import EXCLUSIVE_DISKS
from lamina.model.volumes import READ_WRITE_ONCE_POD, PersistentVolumeClaim
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.points import Reads, Verdicts
from lamina.scheduling.contract.status import SKIP, Status, unresolvable
from lamina.scheduling.plugins.upstream.volume_restrictions.disk_evictions import DiskEvictions
from lamina.scheduling.plugins.upstream.volume_restrictions.volume_refusals import CLAIM_IN_USE, DISK, NAME, REFUSALS
from lamina.scheduling.state.claims_of_pods import claim_names, volumes_signature
from lamina.scheduling.state.cluster_changes import ChangeKind, ClusterChange
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView
from lamina.scheduling.state.volumes_in_use import ClaimUse, VolumesInUse


class VolumeRestrictions:
    """Refuses nodes where a disk of the pod is in use, and all nodes if a claim for one pod is in use."""

    name: ClassVar = NAME
    objects: ClassVar = frozenset({PersistentVolumeClaim})
    retry_on: ClassVar = frozenset({ChangeKind.POD_REMOVED, ChangeKind.NODE_ADDED, ChangeKind.CLAIM})

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        """Register the node fact of volumes in use."""
        self._objects = context.objects
        self._in_use = context.register(VolumesInUse())
        self.reads = Reads(others=frozenset({self._in_use.facet, Facet.VOLUMES}))

    def sign(self, pod: Pod) -> Hashable:
        """Return the pod's claims and disks."""
        return volumes_signature(pod)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | None:
        """Skip pods without claims and disks; refuse a pod with a claim that does not exist."""
        if not pod.volumes:
            return SKIP
        for name in claim_names(pod, ephemeral=False):
            if self._objects.get(PersistentVolumeClaim, pod.namespace, name) is None:
                return unresolvable(f'persistentvolumeclaim "{name}" not found')
        return None

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
        """Refuse nodes where a volume of the pod is in use by a pod that excludes it."""
        in_use = nodes.fact(self._in_use)
        taken = [row for volume in pod.volumes if volume.kind in EXCLUSIVE_DISKS for row in in_use.conflicts(volume)]
        elsewhere = bool(self._claimed(pod, in_use))
        if not taken and not elsewhere:
            return None
        codes = np.full(nodes.height, CLAIM_IN_USE if elsewhere else 0, dtype=np.int64)
        codes[taken] = DISK
        return Verdicts(codes[nodes.rows].copy(), REFUSALS.__getitem__)

    def _claimed(self, pod: Pod, in_use: VolumesInUse) -> set[int]:
        """Return the rows where claims for one pod, which the pod uses, are in use."""
        rows: set[int] = set()
        for name in claim_names(pod, ephemeral=False):
            claim = self._objects.get(PersistentVolumeClaim, pod.namespace, name)
            if claim is not None and READ_WRITE_ONCE_POD in claim.access_modes:
                rows.update(in_use.rows(ClaimUse(pod.namespace, name)))
        return rows

    def evictions(self, pod: Pod, nodes: NodeView, there: Sequence[Pod]) -> DiskEvictions:
        """Count the disks in use that the pod cannot share."""
        in_use = nodes.fact(self._in_use)
        return DiskEvictions(pod, in_use, self._claimed(pod, in_use), nodes.height)

    def unsure(self, pod: Pod, nodes: NodeView) -> list[int]:
        """Return the row where all claims in use are: evictions there can help, but claims are not counted."""
        claimed = self._claimed(pod, nodes.fact(self._in_use))
        return list(claimed) if len(claimed) == 1 else []

    def worth_retrying(self, pod: Pod, change: ClusterChange) -> bool:
        """Return whether a removed pod used one of the volumes, a claim appeared, or a node was added."""
        found, other = change.found, change.pod
        names = claim_names(pod, ephemeral=False)
        if isinstance(found, PersistentVolumeClaim):
            return found.namespace == pod.namespace and found.name in names
        if other is None:
            return True
        if any(mine.conflicts(theirs) for mine in pod.volumes for theirs in other.volumes):
            return True
        return other.namespace == pod.namespace and not set(names).isdisjoint(claim_names(other, ephemeral=False))
