"""How far the work of `BindVolumes` is: the rule by which every host decides whether a pod can be bound."""

from collections.abc import Callable

from lamina.model.errors import LaminaError
from lamina.model.volumes import BindVolumes, ClaimRef, PersistentVolume, PersistentVolumeClaim

FindVolume = Callable[[str], PersistentVolume | None]
FindClaim = Callable[[str, str], PersistentVolumeClaim | None]
"""Returns the claim of a namespace and a name."""


class VolumeWorkError(LaminaError):
    """A pod's claims cannot be bound as planned any more; the pod has to be tried again."""


def all_bound(task: BindVolumes, volume_of: FindVolume, claim_of: FindClaim) -> bool:
    """Return whether all claims are bound. Raise VolumeWorkError if one of them cannot become so any more."""
    every = True
    for reservation in task.reservations:
        volume = volume_of(reservation.volume)
        if volume is None or volume.claim is None or not refers_to(volume.claim, reservation.claim):
            raise VolumeWorkError(f'binding volumes: ClaimRef got reset for pv "{reservation.volume}"')
        every = _claim(reservation.claim, claim_of).bound and every
    for wanted in task.provisions:
        claim = _claim(wanted, claim_of)
        if not claim.bound and claim.selected_node != task.node:
            # A provisioner that fails removes the annotation, so that another node is chosen.
            raise VolumeWorkError(f'binding volumes: provisioning failed for PVC "{claim.name}"')
        every = claim.bound and every
    return every


def may_reserve(volume: PersistentVolume, claim: ClaimRef) -> bool:
    """Return whether a volume can be reserved for a claim. Raise VolumeWorkError if it is another claim's."""
    if volume.claim == claim:
        return False
    if volume.deleting or (volume.claim is not None and not refers_to(volume.claim, claim)):
        raise VolumeWorkError(f'persistentvolume "{volume.name}" is not free any more')
    return True


def may_select(claim: PersistentVolumeClaim, wanted: ClaimRef, node: str) -> bool:
    """Return whether a node can be selected for a claim. Raise VolumeWorkError if it is provisioned for another one."""
    if claim.uid != wanted.uid:
        raise VolumeWorkError(f'persistentvolumeclaim "{wanted.name}" was replaced')
    if claim.selected_node == node or claim.volume_name:
        return False
    if claim.selected_node is not None:
        raise VolumeWorkError(
            f'persistentvolumeclaim "{wanted.name}" is being provisioned for node "{claim.selected_node}"'
        )
    return True


def refers_to(held: ClaimRef, claim: ClaimRef) -> bool:
    """Return whether a volume's reference names a claim; a reference without uid names any claim of that name."""
    return (held.namespace, held.name) == (claim.namespace, claim.name) and held.uid in ("", claim.uid)


def _claim(wanted: ClaimRef, claim_of: FindClaim) -> PersistentVolumeClaim:
    claim = claim_of(wanted.namespace, wanted.name)
    if claim is None or claim.uid != wanted.uid:
        raise VolumeWorkError(f'binding volumes: persistentvolumeclaim "{wanted.name}" not found')
    return claim
