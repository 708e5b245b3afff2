"""Owners of pods, as the cluster objects of the core show them."""

from typing import Final

from lamina.model.cluster_objects import ClusterObject
from lamina.model.pod_controllers import CronJob, Deployment, Job, PodController
from lamina.model.selecting_objects import OwningObject, ReplicaSet, ReplicationController, StatefulSet
from lamina.qos.owner_directory import OwnerDirectory, OwnerFacts
from lamina.qos.promise import ControllerKey
from lamina.scheduling.state.cluster_objects import ClusterObjects

OWNERS: Final[frozenset[type[ClusterObject]]] = frozenset(
    {ReplicaSet, ReplicationController, StatefulSet, Deployment, Job, CronJob}
)
"""Classes that can be found; a host watches them."""
_KINDS: Final = {kind.__name__: kind for kind in OWNERS}


class ObjectOwners(OwnerDirectory):
    """Reads owners when they are needed, so that nothing has to be kept up to date."""

    def __init__(self, objects: ClusterObjects) -> None:
        """Read *objects*."""
        super().__init__()
        self._objects = objects

    def find(self, key: ControllerKey) -> OwnerFacts | None:
        """Return what is known about an owner; None if it is not known."""
        kind = _KINDS.get(key.kind)
        found = None if kind is None else self._objects.get(kind, key.namespace, key.name)
        if isinstance(found, OwningObject):
            return OwnerFacts(key.namespace, key.kind, key.name, found.replicas, None, found.owner)
        if isinstance(found, PodController):
            return OwnerFacts(key.namespace, key.kind, key.name, found.replicas, found.completions, found.owner)
        return None
