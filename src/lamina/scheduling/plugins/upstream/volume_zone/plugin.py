"""
VolumeZone: keeps pods in the zones and regions of their bound volumes.

A volume names them in labels, several joined by ``__``. A node without any of the labels is in all zones, as in
upstream, for clusters of a single zone. Claims that wait for their first consumer are left to VolumeBinding.
"""

from collections.abc import Hashable, Iterator
from typing import ClassVar, Final

import numpy as np

from lamina.model.decision import Refusal
from lamina.model.pod import Pod
from lamina.model.selectors import IN, Requirement
from lamina.model.volumes import PersistentVolume, PersistentVolumeClaim, StorageClass
from lamina.scheduling.contract.cycle_state import CycleState, StateKey
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.points import Reads, Verdicts
from lamina.scheduling.contract.status import SKIP, Status, unresolvable
from lamina.scheduling.state.claims_of_pods import claim_names, claims, volumes_signature
from lamina.scheduling.state.cluster_changes import ChangeKind, ClusterChange
from lamina.scheduling.state.columns import Bools
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.topology import MISSING
from lamina.scheduling.state.view import NodeView

NAME: Final = "VolumeZone"
REASON: Final = "node(s) had no available volume zone"
NO_NAME: Final = "PersistentVolumeClaim had no name"
NO_CLASS: Final = "PersistentVolumeClaim had no pv name and storageClass name"
UNBOUND: Final = "PersistentVolume had no name"

ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
OLD_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
OLD_REGION: Final = "failure-domain.beta.kubernetes.io/region"
LABELS: Final = {OLD_ZONE: ZONE, OLD_REGION: REGION, ZONE: ZONE, REGION: REGION}
"""The labels, and the label of a node that stands in for each if it is missing."""
BETWEEN_ZONES: Final = "__"

ZONES: Final[StateKey[tuple[Requirement, ...]]] = StateKey("volume-zone/zones")


class VolumeZone:
    """Refuses nodes outside of the zones and regions of a pod's volumes."""

    name: ClassVar = NAME
    objects: ClassVar = frozenset({PersistentVolumeClaim, PersistentVolume, StorageClass})
    reads: ClassVar = Reads(others=frozenset({Facet.VOLUMES, Facet.LABELS}))
    retry_on: ClassVar = frozenset(
        {
            ChangeKind.STORAGE_CLASS,
            ChangeKind.NODE_ADDED,
            ChangeKind.NODE_LABELS,
            ChangeKind.CLAIM,
            ChangeKind.VOLUME,
        }
    )

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        """Read the volumes in *context*."""
        self._objects = context.objects

    def sign(self, pod: Pod) -> Hashable:
        """Return the pod's claims."""
        return volumes_signature(pod)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | None:
        """Collect the zones of all bound volumes; skip pods without claims."""
        names = claim_names(pod, ephemeral=False)
        if not names:
            return SKIP
        wanted: list[Requirement] = []
        for name in names:
            found = self._volume(pod.namespace, name)
            if isinstance(found, Status):
                return found
            if found is not None:
                wanted.extend(zones_of(found))
        state[ZONES] = tuple(wanted)
        return None

    def _volume(self, namespace: str, name: str) -> PersistentVolume | Status | None:
        """Return the volume of a claim, None if the claim waits for its first consumer, or a refusal."""
        if not name:
            return unresolvable(NO_NAME)
        claim = self._objects.get(PersistentVolumeClaim, namespace, name)
        if claim is None:
            return unresolvable(f'persistentvolumeclaim "{name}" not found')
        if claim.volume_name:
            volume = self._objects.get(PersistentVolume, "", claim.volume_name)
            return unresolvable(f'persistentvolume "{claim.volume_name}" not found') if volume is None else volume
        if not claim.class_name:
            return unresolvable(NO_CLASS)
        known = self._objects.get(StorageClass, "", claim.class_name)
        if known is None:
            return unresolvable(f'storageclass.storage.k8s.io "{claim.class_name}" not found')
        return None if known.waits else unresolvable(UNBOUND)

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
        """Refuse nodes with zone labels that do not match those of a volume."""
        wanted = state[ZONES]
        if not wanted:
            return None
        outside: Bools = np.zeros(len(nodes), dtype=np.bool_)
        for one in wanted:
            outside |= ~_within(one, nodes)
        labelled: Bools = np.zeros(len(nodes), dtype=np.bool_)
        for key in LABELS:
            labelled |= nodes.domains(key) != MISSING
        outside &= labelled
        return Verdicts(outside, lambda code: Refusal(NAME, (REASON,), final=True)) if outside.any() else None

    def worth_retrying(self, pod: Pod, change: ClusterChange) -> bool:
        """Return whether a claim, volume or class of the pod changed; True for nodes."""
        match change.found:
            case PersistentVolumeClaim(namespace=namespace, name=name):
                return namespace == pod.namespace and name in claim_names(pod, ephemeral=False)
            case PersistentVolume(name=name):
                return any(claim.volume_name == name for claim in claims(pod, self._objects))
            case StorageClass(name=name) as known:
                return known.waits and any(claim.class_name == name for claim in claims(pod, self._objects))
        return True


def zones_of(volume: PersistentVolume) -> Iterator[Requirement]:
    """Return the requirements of a volume's zone and region labels; a label with an empty zone is ignored."""
    for key in LABELS:
        if key in volume.labels:
            values = tuple(value.strip() for value in volume.labels[key].split(BETWEEN_ZONES))
            if all(values):
                yield Requirement(key, IN, values)


def _within(wanted: Requirement, nodes: NodeView) -> Bools:
    """Return which nodes meet a requirement, by the label itself or by the one that stands in for it."""
    met = nodes.meeting(wanted)
    instead = LABELS[wanted.key]
    if instead != wanted.key:
        missing = nodes.domains(wanted.key) == MISSING
        met |= missing & nodes.meeting(Requirement(instead, IN, wanted.values))
    return met
