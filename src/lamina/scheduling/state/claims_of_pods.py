"""Claims that a pod uses, and what is known about them; for all plugins that read volumes."""

from collections.abc import Hashable, Iterator

from lamina.model.pod import Pod
from lamina.model.pod_volumes import CLAIM, CLAIMS
from lamina.model.volumes import PersistentVolumeClaim
from lamina.scheduling.state.cluster_objects import ClusterObjects


def claim_names(pod: Pod, *, ephemeral: bool = True) -> list[str]:
    """List the claims of a pod, in the order of its volumes; without *ephemeral*, only those it names itself."""
    kinds = CLAIMS if ephemeral else {CLAIM}
    return [volume.claim(pod.name) for volume in pod.volumes if volume.kind in kinds]


def claims(pod: Pod, objects: ClusterObjects) -> Iterator[PersistentVolumeClaim]:
    """Return the claims of a pod that exist."""
    for name in claim_names(pod):
        found = objects.get(PersistentVolumeClaim, pod.namespace, name)
        if found is not None:
            yield found


def volumes_signature(pod: Pod) -> Hashable:
    """Return what the results of volume plugins depend on; pods without claims and disks share one value."""
    if not pod.volumes:
        return ()
    # The UID, because an ephemeral claim must belong to the pod; its name is part of the claim's name.
    owned = any(volume.kind in CLAIMS and volume.kind != CLAIM for volume in pod.volumes)
    return (pod.namespace, pod.volumes, (pod.name, pod.uid) if owned else ())
