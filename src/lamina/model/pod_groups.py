"""
Gangs and queues: pods that start together or not at all, and shares of the cluster between teams.

Several projects have such objects. They are read into the same classes; `GroupRef` names the one that a pod means.
"""

from typing import Final

import msgspec

from lamina.model.pod import Pod
from lamina.model.resources import Amounts

GROUP_LABEL: Final = "scheduling.x-k8s.io/pod-group"
"""Label of scheduler-plugins: the name of a PodGroup of scheduling.x-k8s.io."""
GROUP_ANNOTATION: Final = "scheduling.k8s.io/group-name"
"""Annotation of Volcano and kube-batch: the name of one of their PodGroups."""
LIGHT_NAME: Final = "pod-group.scheduling.sigs.k8s.io/name"
LIGHT_MIN: Final = "pod-group.scheduling.sigs.k8s.io/min-available"
"""Labels of a gang without an object, as early versions of scheduler-plugins read them."""
LIGHT_TIMEOUT: Final = "pod-group.scheduling.sigs.k8s.io/timeout"
"""Annotation: seconds that such a gang may be incomplete. Lamina's own."""
QUEUE_KEY: Final = "scheduling.volcano.sh/queue-name"
"""Annotation or label: the queue of a pod whose PodGroup names none."""


class PodGroup(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """A gang, in any dialect."""

    namespace: str
    name: str
    min_member: int = 1
    """Pods that must start together."""
    min_resources: Amounts = ()
    """What the cluster must have free before a pod of the gang is placed."""
    timeout: float | None = None
    """Seconds that some of its pods may hold resources while others wait; None: the profile's."""
    queue: str = ""


class Workload(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """The gangs of a workload, as Kubernetes 1.35 has them."""

    namespace: str
    name: str
    gangs: tuple[tuple[str, int], ...] = ()
    """Name and minimum size of each pod group; groups without the policy ``gang`` have 1."""


class Queue(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """A share of the cluster."""

    name: str
    namespace: str = ""
    """Always empty: queues belong to the cluster."""
    weight: int = 1
    deserved: Amounts = ()
    """Its share as written; resources without an amount follow from the weights."""
    capability: Amounts = ()
    """The most that its pods may have."""
    reclaimable: bool = True
    """Whether other queues can reclaim what it has beyond its share."""
    open: bool = True


class GroupRef(msgspec.Struct, frozen=True, gc=False):
    """The gang that a pod names."""

    namespace: str
    name: str
    part: str = ""
    """The pod group within a workload, and the number of its replica."""
    min_member: int = 0
    """The minimum size if the pod itself says it; 0: its object does."""
    timeout: float | None = None

    @property
    def key(self) -> str:
        """Identifies the gang."""
        return f"{self.namespace}/{self.name}" + (f"/{self.part}" if self.part else "")


def group_of(pod: Pod) -> GroupRef | None:
    """Return the gang that a pod names; None if it names none."""
    if pod.group:
        name, _, part = pod.group.partition("/")
        return GroupRef(pod.namespace, name, part)
    name = pod.labels.get(GROUP_LABEL) or pod.annotations.get(GROUP_ANNOTATION) or ""
    if name:
        return GroupRef(pod.namespace, name)
    name = pod.labels.get(LIGHT_NAME, "")
    if not name:
        return None
    least, wait = pod.labels.get(LIGHT_MIN, ""), pod.annotations.get(LIGHT_TIMEOUT, "")
    return GroupRef(
        pod.namespace,
        name,
        min_member=min(int(least), 2**31) if least.isascii() and least.isdigit() else 1,
        timeout=float(wait) if wait.isascii() and wait.isdigit() else None,
    )
