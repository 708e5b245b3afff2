"""Index of the volumes that claims can get; made again after a volume changed."""

from lamina.model.volumes import AVAILABLE, PersistentVolume, PersistentVolumeClaim
from lamina.scheduling.state.cluster_objects import ClusterObjects


class VolumeIndex:
    """Volumes by the claim they are reserved for, and free volumes by class."""

    def __init__(self, objects: ClusterObjects) -> None:
        """Read the volumes of *objects*."""
        self._objects = objects
        self._edition = -1
        self._free: dict[str, list[PersistentVolume]] = {}
        self._by_claim: dict[tuple[str, str], list[PersistentVolume]] = {}

    def reserved(self, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        """Return the volume that is reserved for a claim and can serve it, if there is one."""
        self._update()
        for volume in self._by_claim.get((claim.namespace, claim.name), ()):
            assert volume.claim is not None, "it is indexed by its claim"
            if volume.claim.means(claim) and volume.class_name == claim.class_name and _serves(volume, claim):
                return volume
        return None

    def candidates(self, claim: PersistentVolumeClaim) -> list[PersistentVolume]:
        """Return the free volumes that can serve a claim, smallest first."""
        self._update()
        modes = set(claim.access_modes)
        return [
            volume
            for volume in self._free.get(claim.class_name, ())
            if _serves(volume, claim)
            and (claim.selector is None or claim.selector.matches(volume.labels))
            and modes.issubset(volume.access_modes)
        ]

    def _update(self) -> None:
        edition = self._objects.edition(PersistentVolume)
        if edition == self._edition:
            return
        self._edition = edition
        self._free, self._by_claim = {}, {}
        for volume in self._objects.all_of(PersistentVolume):
            if volume.claim is not None:
                self._by_claim.setdefault((volume.claim.namespace, volume.claim.name), []).append(volume)
            elif volume.phase == AVAILABLE and not volume.deleting:
                self._free.setdefault(volume.class_name, []).append(volume)
        for volumes in self._free.values():
            # By name among equal sizes, where upstream's order is random.
            volumes.sort(key=lambda volume: (volume.size, volume.name))


def _serves(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return (
        volume.size >= (claim.size or 0)
        and volume.volume_mode == claim.volume_mode
        and volume.attributes_class == claim.attributes_class
        and not volume.deleting
    )
