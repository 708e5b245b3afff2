"""
NodeVolumeLimits: refuses nodes that cannot attach the volumes of a pod.

The limits are those that CSI drivers report in the CSINode of each node. Volumes of pods on the node and attachments
count, each volume once. Only nodes whose pods could exceed a limit are counted volume by volume.
"""

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import ClassVar, Final

import numpy as np

from lamina.model.decision import Refusal
from lamina.model.pod import Pod
from lamina.model.pod_volumes import CLAIMS, MIGRATED
from lamina.model.volumes import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.points import Reads, Verdicts
from lamina.scheduling.contract.status import SKIP, Status
from lamina.scheduling.plugins.upstream.node_volume_limits.attached_volumes import Attached, AttachedVolumes
from lamina.scheduling.state.claims_of_pods import claim_names, volumes_signature
from lamina.scheduling.state.cluster_changes import ChangeKind, ClusterChange
from lamina.scheduling.state.columns import Bools
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView
from lamina.scheduling.state.volumes_in_use import VolumesInUse, uses

NAME: Final = "NodeVolumeLimits"
REASON: Final = "node(s) exceed max volume count"


class NodeVolumeLimits:
    """Refuses nodes that would exceed the limit of a CSI driver; evicting pods with volumes would help."""

    name: ClassVar = NAME
    objects: ClassVar = frozenset({PersistentVolumeClaim, PersistentVolume, StorageClass, CSINode, VolumeAttachment})
    retry_on: ClassVar = frozenset(
        {
            ChangeKind.CSI_NODE,
            ChangeKind.POD_REMOVED,
            ChangeKind.CLAIM,
            ChangeKind.ATTACHMENT,
            ChangeKind.NODE_ADDED,
        }
    )

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        """Register the node fact of volumes in use."""
        self._objects = context.objects
        self._in_use = context.register(VolumesInUse())
        self._attached = AttachedVolumes(context)
        self.reads = Reads(rows=frozenset({self._in_use.facet}), others=frozenset({Facet.VOLUMES}))

    def sign(self, pod: Pod) -> Hashable:
        """Return the pod's claims and disks."""
        return volumes_signature(pod)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | None:
        """Skip pods without volumes that a CSI driver attaches."""
        return None if _countable(pod) else SKIP

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
        """Refuse nodes where the volumes of the pod would exceed a limit."""
        missing = self._missing(pod)
        if missing:
            every = np.ones(len(nodes), dtype=np.bool_)
            return Verdicts(every, lambda code: Refusal(NAME, (missing,), final=True))
        wanted = self._wanted(pod)
        in_use = nodes.fact(self._in_use)
        flags = np.zeros(nodes.height, dtype=np.bool_)
        for row in self._tight(wanted, nodes, in_use):
            flags[row] = self._exceeds(wanted, row, in_use, nodes.height)
        refused = flags[nodes.rows]
        return Verdicts(refused.copy(), lambda code: Refusal(NAME, (REASON,))) if refused.any() else None

    def unsure(self, pod: Pod, nodes: NodeView) -> list[int]:
        """Return rows near a limit: a volume that an evicted pod shared with the pod counts as a new one then."""
        return self._tight(self._wanted(pod), nodes, nodes.fact(self._in_use))

    def _wanted(self, pod: Pod) -> set[Attached]:
        return {found for use in uses(pod) if (found := self._attached.volume(use)) is not None}

    def _missing(self, pod: Pod) -> str:
        for name in claim_names(pod):
            if self._objects.get(PersistentVolumeClaim, pod.namespace, name) is None:
                return f'looking up PVC {pod.namespace}/{name}: persistentvolumeclaim "{name}" not found'
        return ""

    def _tight(self, wanted: Iterable[Attached], nodes: NodeView, in_use: VolumesInUse) -> list[int]:
        """List the rows in view that could exceed a limit, because so many volumes are in use or attached there."""
        height = nodes.height
        tight: Bools = np.zeros(height, dtype=np.bool_)
        most = in_use.most(height)
        attachments = self._attached.attachments(in_use)
        if attachments:
            most = most.copy()
            for row, volumes in attachments.items():
                most[row] += len(volumes)
        for driver, new in Counter(driver for driver, _ in wanted).items():
            limits = self._attached.limits(driver, in_use, height)
            if limits is not None:
                tight |= most + new > limits
        visible = np.zeros(height, dtype=np.bool_)
        visible[nodes.rows] = True
        return [int(row) for row in np.flatnonzero(tight & visible)]

    def _exceeds(self, wanted: set[Attached], row: int, in_use: VolumesInUse, height: int) -> bool:
        by_pods = {found for use in in_use.on(row) if (found := self._attached.volume(use)) is not None}
        there = Counter(driver for driver, _ in by_pods | self._attached.attachments(in_use).get(row, set()))
        # As in upstream, a volume that is attached but that no pod here uses counts again.
        for driver, new in Counter(driver for driver, _ in wanted - by_pods).items():
            limits = self._attached.limits(driver, in_use, height)
            if limits is not None and there[driver] + new > limits[row]:
                return True
        return False

    def worth_retrying(self, pod: Pod, change: ClusterChange) -> bool:
        """Return whether a claim of the pod appeared, or a pod with volumes left."""
        if isinstance(change.found, PersistentVolumeClaim):
            return change.found.namespace == pod.namespace and change.found.name in claim_names(pod)
        return change.pod is None or _countable(change.pod)


def _countable(pod: Pod) -> bool:
    return any(volume.kind in CLAIMS or volume.kind in MIGRATED for volume in pod.volumes)
