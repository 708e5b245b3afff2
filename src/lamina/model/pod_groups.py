"""
Gangs and queues: pods that start together or not at all, and shares of the cluster between teams.

Several projects have such objects. They are read into the same classes; `GroupRef` names the one that a pod means.
"""

import math
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
GANG_NAME: Final = "lamina.dev/gang"
GANG_MIN: Final = "lamina.dev/gang-min-member"
GANG_TIMEOUT: Final = "lamina.dev/gang-timeout-seconds"
"""Annotations of a gang without an object, which scenarios and imported batch jobs have."""
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
    name, least = pod.annotations.get(GANG_NAME, ""), pod.annotations.get(GANG_MIN, "")
    if not name:
        name, least = pod.labels.get(LIGHT_NAME, ""), pod.labels.get(LIGHT_MIN, "")
    if not name:
        return None
    timeout = _count(pod.annotations.get(GANG_TIMEOUT, ""))
    return GroupRef(
        pod.namespace,
        name,
        min_member=max(1, _count(least) or 1),
        timeout=None if timeout is None else float(timeout),
    )


def gang_annotations(name: str, least: int, timeout: float | None = None, queue: str = "") -> dict[str, str]:
    """Return the annotations of the pods of a gang without an object."""
    written = {GANG_NAME: name, GANG_MIN: str(least)}
    if timeout is not None:
        written[GANG_TIMEOUT] = str(math.ceil(timeout))
    if queue:
        written[QUEUE_KEY] = queue
    return written


def _count(text: str) -> int | None:
    """Return a written number of at most nine digits; None for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None
