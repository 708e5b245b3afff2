"""
State behind the façade's API: the store, the resource types, the clock of the run, and the cluster that reacts.

All parts of the API share one `ApiState`. Times are those of the run: the clock returns virtual seconds, and *epoch*
is the Unix time of virtual second 0.
"""

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, Protocol

from lamina.simulator.facade.api_errors import no_such_path
from lamina.simulator.facade.kube_object import KubeObject, NamespacedName
from lamina.simulator.facade.object_store import ObjectStore, ObjectVersion, ResourceTable
from lamina.simulator.facade.resource_type import ResourceType
from lamina.simulator.facade.resource_types import ResourceTypes

SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Letters of a generated name, as in Kubernetes."""


class ClusterInputs(Protocol):
    """The simulated cluster, as far as clients of the API can act on it. Objects are those of the store."""

    def pod_created(self, pod: KubeObject) -> None:
        """Submit a pod to the cluster."""
        ...

    def pod_bound(self, pod: KubeObject, node: str) -> None:
        """Report that a client bound a pod to a node."""
        ...

    def pod_refused(self, pod: KubeObject, message: str) -> None:
        """Report that a client wrote why a pod cannot be scheduled."""
        ...

    def pod_deleted(self, pod: KubeObject, grace: float) -> None:
        """Stop a bound pod; the cluster removes the object when the pod has stopped."""
        ...

    def pod_removed(self, pod: KubeObject) -> None:
        """Forget a pod whose object is gone already."""
        ...

    def node_written(self, node: KubeObject) -> None:
        """Let a node join, or change its labels, taints, resources and cordon."""
        ...

    def node_deleted(self, name: str) -> None:
        """Let a node leave."""
        ...

    def workload_written(self, found: KubeObject) -> None:
        """Create or change a workload: Deployment, ReplicaSet, StatefulSet, DaemonSet or Job."""
        ...

    def workload_deleted(self, found: KubeObject) -> None:
        """Remove a workload and its pods."""
        ...


class ApiState:
    """Everything that the verbs of the API share."""

    def __init__(
        self, types: ResourceTypes, clock: Callable[[], float], inputs: ClusterInputs, epoch: float = 0.0, seed: int = 0
    ) -> None:
        """Serve *types*; *clock* returns virtual seconds; *seed* makes uids and generated names of the run."""
        self.store = ObjectStore()
        self.types = types
        self.inputs = inputs
        self.epoch = epoch
        self._clock = clock
        self._seed = seed
        self._drawn = 0

    # -- tables ------------------------------------------------------------------------------------------------------

    def table(self, type_: ResourceType) -> ResourceTable:
        """Return the table of a resource."""
        return self.store.table(type_.group, type_.resource)

    def built_in(self, group: str, resource: str) -> ResourceType:
        """Return a built-in resource type by its storage group."""
        for version in ("v1", "v2"):
            found = self.types.find(group, version, resource)
            if found is not None:
                return found
        raise no_such_path()

    def get(self, group: str, resource: str, namespace: str, name: str) -> ObjectVersion | None:
        """Return an object of a built-in resource."""
        return self.store.table(group, resource).get(NamespacedName(namespace, name))

    def namespace_exists(self, name: str) -> bool:
        """Return whether a namespace exists."""
        return self.get("", "namespaces", "", name) is not None

    def priority_class(self, name: str) -> KubeObject | None:
        """Return a priority class."""
        found = self.get("scheduling.k8s.io", "priorityclasses", "", name)
        return None if found is None else found.object

    def default_priority_class(self) -> KubeObject | None:
        """Return the priority class of pods that name none, if there is one."""
        for one in self.store.table("scheduling.k8s.io", "priorityclasses").all():
            if one.object.get("globalDefault") is True:
                return one.object
        return None

    # -- time and identity -------------------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """The current time of the run in Unix seconds."""
        return self.epoch + self._clock()

    def timestamp(self, later: float = 0.0) -> str:
        """Return the current time, or *later* seconds after it, as the API writes it: whole seconds, UTC."""
        return rfc3339(self.now + later)

    def uid(self) -> str:
        """Return a new uid; the same run draws the same uids."""
        self._drawn += 1
        digest = hashlib.sha256(f"{self._seed}/{self._drawn}".encode()).hexdigest()
        return f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"

    def name_suffix(self) -> str:
        """Return five letters for a generated name."""
        self._drawn += 1
        digest = hashlib.sha256(f"name/{self._seed}/{self._drawn}".encode()).digest()
        return "".join(SUFFIX_LETTERS[byte % len(SUFFIX_LETTERS)] for byte in digest[:5])


def rfc3339(seconds: float) -> str:
    """Return Unix seconds as text in whole seconds, UTC."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def shifted_timestamp(found: str, seconds: float) -> str:
    """Return a time of the API *seconds* later."""
    return rfc3339(datetime.fromisoformat(found).timestamp() + seconds)
