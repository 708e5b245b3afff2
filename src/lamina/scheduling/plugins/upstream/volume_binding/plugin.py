"""
VolumeBinding: runs a pod where its volumes are, and has volumes bound or made for claims that wait for it.

A reservation is an assumption about the volume or claim (`ClusterObjects.assume`), so that pods in flight never share a
volume. Before the pod is bound, the host writes the reservations and waits until the claims are bound (`BindVolumes`).
Everything after `reserve` is derived from the cluster's objects, so that it survives a restored snapshot. Rules and
messages are upstream's. Nothing is scored: upstream scores only with StorageCapacityScoring, which is off by default.
"""

from collections.abc import Hashable, Iterator
from typing import ClassVar, Final

import msgspec

from lamina.model.decision import Refusal
from lamina.model.pod import Pod
from lamina.model.pod_volumes import CLAIMS, EPHEMERAL
from lamina.model.volumes import (
    LOST,
    BindVolumes,
    ClaimRef,
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeReservation,
)
from lamina.scheduling.contract.cycle_state import CycleState, StateKey
from lamina.scheduling.contract.points import Reads, Verdicts, Work
from lamina.scheduling.contract.status import SKIP, Status, failed, unresolvable
from lamina.scheduling.plugins.upstream.volume_binding.args import VolumeBindingArgs
from lamina.scheduling.plugins.upstream.volume_binding.claim_matches import (
    NO_SPACE,
    NO_VOLUME,
    NONE,
    NOT_FOUND,
    OUT_OF_REACH,
    ClaimMatcher,
    ClaimMatches,
    SortedClaims,
)
from lamina.scheduling.plugins.upstream.volume_binding.node_reach import NodeReach
from lamina.scheduling.state.claims_of_pods import claim_names, claims, volumes_signature
from lamina.scheduling.state.cluster_changes import ChangeKind, ClusterChange
from lamina.scheduling.state.columns import Ints
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView

NAME: Final = "VolumeBinding"
REASONS: Final = {
    OUT_OF_REACH: "node(s) didn't match PersistentVolume's node affinity",
    NOT_FOUND: "node(s) didn't find available persistent volumes to bind",
    NO_SPACE: "node(s) did not have enough free storage",
    NO_VOLUME: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
}
UNBOUND: Final = "pod has unbound immediate PersistentVolumeClaims"

MATCHES: Final[StateKey[ClaimMatches]] = StateKey("volume-binding/matches")


class VolumeBinding:
    """Filters nodes by volumes, reserves volumes, and has them bound."""

    name: ClassVar = NAME
    Args: ClassVar = VolumeBindingArgs
    objects: ClassVar = frozenset(
        {PersistentVolumeClaim, PersistentVolume, StorageClass, CSIDriver, CSIStorageCapacity}
    )
    reads: ClassVar = Reads(others=frozenset({Facet.VOLUMES, Facet.LABELS}))
    retry_on: ClassVar = frozenset(
        {
            ChangeKind.CLAIM,
            ChangeKind.VOLUME,
            ChangeKind.STORAGE_CLASS,
            ChangeKind.CSI_DRIVER,
            ChangeKind.STORAGE_CAPACITY,
            ChangeKind.NODE_ADDED,
            ChangeKind.NODE_LABELS,
            ChangeKind.POD_REMOVED,
        }
    )

    def __init__(self, context: PluginContext, args: VolumeBindingArgs) -> None:
        """Read and assume the objects of *context*."""
        self._context = context
        self._objects = context.objects
        self._matcher = ClaimMatcher(context.objects)
        self._timeout = float(args.bind_timeout_seconds)

    def sign(self, pod: Pod) -> Hashable:
        """Return the pod's claims."""
        return volumes_signature(pod)

    # -- filter ------------------------------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | None:
        """Refuse a pod whose claims cannot be used yet; otherwise match its claims with all nodes."""
        if not any(volume.kind in CLAIMS for volume in pod.volumes):
            return SKIP
        problem = self._problem(pod)
        if problem:
            return unresolvable(problem)
        sorted_claims = self._sorted(pod)
        if sorted_claims is None:
            return unresolvable(UNBOUND)
        state[MATCHES] = self._matcher.match(sorted_claims, NodeReach(nodes), self._selected_row(sorted_claims))
        return None

    def _problem(self, pod: Pod) -> str:
        for volume in pod.volumes:
            if volume.kind not in CLAIMS:
                continue
            name = volume.claim(pod.name)
            claim = self._objects.get(PersistentVolumeClaim, pod.namespace, name)
            if claim is None and volume.kind == EPHEMERAL:
                return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
            if claim is None:
                return f'persistentvolumeclaim "{name}" not found'
            if claim.phase == LOST:
                return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.volume_name}"'
            if claim.deleting:
                return f'persistentvolumeclaim "{name}" is being deleted'
            if volume.kind == EPHEMERAL and claim.owner_uid != pod.uid:
                key = f"{pod.namespace}/{name}"
                return f"PVC {key} was not created for pod {pod.key} (pod is not owner)"
        return ""

    def _sorted(self, pod: Pod) -> SortedClaims | None:
        """Return the claims of a pod, None if one of them should be bound without the scheduler and is not."""
        bound: list[PersistentVolumeClaim] = []
        waiting: list[PersistentVolumeClaim] = []
        for claim in claims(pod, self._objects):
            if claim.bound:
                bound.append(claim)
                continue
            known = self._objects.get(StorageClass, "", claim.class_name) if claim.class_name else None
            if claim.volume_name or known is None or not known.waits:
                return None
            waiting.append(claim)
        return SortedClaims(tuple(bound), tuple(waiting))

    def _selected_row(self, found: SortedClaims) -> int | None:
        selected = {claim.selected_node for claim in found.waiting if claim.selected_node is not None}
        if not selected:
            return None
        return self._context.row(selected.pop()) if len(selected) == 1 else -1

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
        """Refuse nodes that cannot serve the claims."""
        codes: Ints = state[MATCHES].codes[nodes.rows]
        return Verdicts(codes.copy(), _tell) if codes.any() else None

    # -- reservations ------------------------------------------------------------------------------------------------

    def reserve(self, state: CycleState, pod: Pod, node: str) -> Status | None:
        """Assume the volumes that the claims get on the node, and the node for claims that need a volume made."""
        found = state.get(MATCHES)
        if found is None or not pod.volumes:
            return None
        row = self._context.row(node)
        for claim in self._claims(pod):
            # Another pod in flight may have the same claim, and may fail.
            self._objects.share(pod.uid, claim)
        for claim, chosen in zip(found.claims, found.chosen, strict=True):
            number = int(chosen[row])
            if number == NONE:
                self._objects.assume(pod.uid, msgspec.structs.replace(claim, selected_node=node))
                continue
            volume, wanted = found.volumes[number], ClaimRef(claim.namespace, claim.name, claim.uid)
            if volume.claim == wanted:
                self._objects.share(pod.uid, volume)
            else:
                self._objects.assume(pod.uid, msgspec.structs.replace(volume, claim=wanted))
        return None

    def unreserve(self, state: CycleState, pod: Pod, node: str) -> None:
        """End the pod's assumptions that did not come true."""
        if pod.volumes:
            self._objects.release(pod.uid)

    def pre_bind(self, state: CycleState, pod: Pod, node: str) -> Status | Work | None:
        """Ask the host to reserve or request volumes for the claims that are not bound yet."""
        if not pod.volumes:
            return None
        reservations: list[VolumeReservation] = []
        provisions: list[ClaimRef] = []
        assumed = self._assumed(pod)
        for name in dict.fromkeys(claim_names(pod)):
            claim = self._objects.get(PersistentVolumeClaim, pod.namespace, name)
            if claim is None:
                return failed(f'persistentvolumeclaim "{name}" not found')
            if claim.bound:
                continue
            key = ClaimRef(claim.namespace, claim.name, claim.uid)
            volume = assumed.get((claim.namespace, claim.name)) or self._already_reserved(claim)
            if volume is None:
                provisions.append(key)
            else:
                reservations.append(VolumeReservation(volume.name, key))
        if not reservations and not provisions:
            return None
        return Work(BindVolumes(node, tuple(reservations), tuple(provisions), self._timeout))

    def _assumed(self, pod: Pod) -> dict[tuple[str, str], PersistentVolume]:
        return {
            (found.claim.namespace, found.claim.name): found
            for found in self._objects.assumed_for(pod.uid)
            if isinstance(found, PersistentVolume) and found.claim is not None
        }

    def _already_reserved(self, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        """Return the volume that was reserved for a claim before, unless a volume is being made for it."""
        return None if claim.selected_node is not None else self._matcher.index.reserved(claim)

    # -- retries -----------------------------------------------------------------------------------------------------

    def worth_retrying(self, pod: Pod, change: ClusterChange) -> bool:
        """Return whether an object that the claims of the pod depend on changed; True for nodes."""
        match change.found:
            case None:
                return change.pod is None or self._gives_up(change.pod)
            case PersistentVolumeClaim(namespace=namespace, name=name):
                return namespace == pod.namespace and name in claim_names(pod)
            case PersistentVolume(name=name, class_name=class_name):
                return any(claim.volume_name == name or claim.class_name == class_name for claim in self._claims(pod))
            case StorageClass(name=class_name) | CSIStorageCapacity(class_name=class_name):
                return any(claim.class_name == class_name for claim in self._claims(pod))
            case CSIDriver(name=driver):
                classes = (self._objects.get(StorageClass, "", claim.class_name) for claim in self._claims(pod))
                return any(known is not None and known.provisioner == driver for known in classes)
        return False

    def _claims(self, pod: Pod) -> Iterator[PersistentVolumeClaim]:
        return claims(pod, self._objects)

    def _gives_up(self, other: Pod) -> bool:
        """Return whether a pod that is gone may have released volumes: it has a claim that is not bound."""
        return bool(other.volumes) and any(not claim.bound for claim in self._claims(other))


def _tell(code: int) -> Refusal:
    return Refusal(NAME, tuple(reason for bit, reason in REASONS.items() if code & bit), final=True)
