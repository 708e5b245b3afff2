"""
How a controller's pods come into being and go: named, owned, counted, handed to the cluster.

Called by controllers while they look at what they have. A pod's name is that of its controller and a number, so the
same run always has the same names.
"""

from collections.abc import Callable

import msgspec

from lamina.model.pod import Owner, Pod, PodUid
from lamina.simulator.cluster import VirtualCluster
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle, Restart
from lamina.simulator.engine import Environment


class OwnedPodFactory:
    """Makes and removes the pods of one controller."""

    __slots__ = ("_claim", "_cluster", "_count", "_environment", "_name", "_scheduler")

    def __init__(
        self,
        environment: Environment,
        cluster: VirtualCluster,
        name: str,
        claim: Callable[[PodUid], object],
        scheduler: str,
    ) -> None:
        """Make pods of the controller *name*; *claim* is told of each, *scheduler* places those that name none."""
        self._environment = environment
        self._cluster = cluster
        self._name = name
        self._claim = claim
        self._scheduler = scheduler
        self._count = 0

    @property
    def now(self) -> float:
        """The time."""
        return self._environment.now

    def make(self, template: Pod, life: PodLifecycle, name: str = "") -> PodUid:
        """Submit a pod; a *name* of its own may come again, its uid does not."""
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

    def remove(self, uid: PodUid) -> None:
        """Delete a pod, which may take its time to stop."""
        self._cluster.remove(uid, None)


def with_owner(template: Pod, kind: str, name: str) -> Pod:
    """Return the template as that of one controller, by which plugins tell groups of pods apart."""
    return msgspec.structs.replace(template, owner=Owner(kind, name, f"{kind}/{name}"))


def with_image(template: Pod, image: str) -> Pod:
    """Return the template with another image in its first container."""
    first, *others = template.containers
    return msgspec.structs.replace(template, containers=(msgspec.structs.replace(first, image=image), *others))


def with_restart_policy(life: PodLifecycle, restart: Restart = "Always") -> PodLifecycle:
    """Return the life with another restart policy; pods of anything but Jobs have no choice but ``Always``."""
    return msgspec.structs.replace(life, restart=restart)
