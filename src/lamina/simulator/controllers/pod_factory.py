"""
Factory for the pods of a controller: names them, sets their owner and submits them to the cluster.

A pod's name is its controller's name and a number, so that the same run always has the same names.
"""

from collections.abc import Callable

import msgspec

from lamina.model.pod import Owner, Pod, PodUid
from lamina.model.volumes import PersistentVolumeClaim
from lamina.simulator.cluster import VirtualCluster
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle, Restart
from lamina.simulator.engine import Environment


class OwnedPodFactory:
    """Creates and removes the pods of one controller."""

    __slots__ = ("_claim", "_cluster", "_count", "_environment", "_name", "_scheduler")

    def __init__(
        self,
        environment: Environment,
        cluster: VirtualCluster,
        name: str,
        claim: Callable[[PodUid], object],
        scheduler: str,
    ) -> None:
        """Create pods for controller *name*; *claim* receives each uid; *scheduler* is the default scheduler name."""
        self._environment = environment
        self._cluster = cluster
        self._name = name
        self._claim = claim
        self._scheduler = scheduler
        self._count = 0

    @property
    def now(self) -> float:
        """The current virtual time."""
        return self._environment.now

    def make(self, template: Pod, life: PodLifecycle, name: str = "") -> PodUid:
        """Submit a pod and return its uid, which is unique even if *name* is used again."""
        self._count += 1
        uid = PodUid(f"{self._name}-{self._count}")
        if name:
            uid = PodUid(f"{name}.{self._count}")
        self._claim(uid)
        pod = msgspec.structs.replace(
            template,
            uid=uid,
            name=name or uid,
            created_at=self._environment.now,
            scheduler_name=template.scheduler_name or self._scheduler,
        )
        self._cluster.submit(pod, life)
        return uid

    def make_claim(self, claim: PersistentVolumeClaim) -> None:
        """Create a claim, unless there is one of the same name."""
        if self._cluster.objects.get(PersistentVolumeClaim, claim.namespace, claim.name) is None:
            self._cluster.objects.put(claim)

    def remove(self, uid: PodUid) -> None:
        """Delete a pod with its own grace period."""
        self._cluster.remove(uid, None)


def with_owner(template: Pod, kind: str, name: str) -> Pod:
    """Return the template with this owner, by which plugins group pods."""
    return msgspec.structs.replace(template, owner=Owner(kind, name, f"{kind}/{name}"))


def with_image(template: Pod, image: str) -> Pod:
    """Return the template with another image in its first container."""
    first, *others = template.containers
    return msgspec.structs.replace(template, containers=(msgspec.structs.replace(first, image=image), *others))


def with_restart_policy(life: PodLifecycle, restart: Restart = "Always") -> PodLifecycle:
    """Return the lifecycle with another restart policy; pods of all controllers except Jobs need ``Always``."""
    return msgspec.structs.replace(life, restart=restart)
