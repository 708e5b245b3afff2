"""
Decoders of PodGroups and Queues in the dialects that schedulers use, and of Kubernetes' own PodGroup and Workload.

    scheduling.x-k8s.io/v1alpha1          PodGroup                scheduler-plugins
    scheduling.volcano.sh/v1beta1         PodGroup, Queue         Volcano
    scheduling.sigs.dev/v1alpha2          PodGroup, Queue         kube-batch
    scheduling.incubator.k8s.io/v1alpha1  PodGroup, Queue         kube-batch, earlier versions
    scheduling.k8s.io/v1alpha2            PodGroup                Kubernetes 1.36
    scheduling.k8s.io/v1alpha1            Workload                Kubernetes 1.35
"""

import msgspec

from lamina.model import resources
from lamina.model.pod_groups import PodGroup, Queue, Workload
from lamina.model.resources import Amounts
from lamina.wire.kube.meta import ObjectMeta
from lamina.wire.kube.storage_objects import reader

Quantities = dict[str, str | int | float]


class GangPolicy(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``policy.gang``."""

    min_count: int = 1


class GroupPolicy(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``policy`` of a pod group."""

    gang: GangPolicy | None = None

    @property
    def least(self) -> int:
        """The minimum size of the gang; 1 without the policy ``gang``."""
        return 1 if self.gang is None else self.gang.min_count


class PodGroupSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``spec`` of a PodGroup."""

    min_member: int | None = None
    min_resources: Quantities | None = None
    schedule_timeout_seconds: int | None = None
    queue: str | None = None
    policy: GroupPolicy | None = None
    scheduling_policy: GroupPolicy | None = None


class PodGroupObject(msgspec.Struct, frozen=True, gc=False):
    """A PodGroup."""

    kind: str | None = None
    metadata: ObjectMeta = ObjectMeta()
    spec: PodGroupSpec | None = None


class WorkloadGroup(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One of ``spec.podGroups``."""

    name: str = ""
    policy: GroupPolicy | None = None


class WorkloadSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``spec`` of a Workload."""

    pod_groups: list[WorkloadGroup] | None = None


class WorkloadObject(msgspec.Struct, frozen=True, gc=False):
    """A Workload."""

    kind: str | None = None
    metadata: ObjectMeta = ObjectMeta()
    spec: WorkloadSpec | None = None


class QueueSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``spec`` of a Queue."""

    weight: int | None = None
    deserved: Quantities | None = None
    capability: Quantities | None = None
    reclaimable: bool | None = None


class QueueStatus(msgspec.Struct, frozen=True, gc=False):
    """``status`` of a Queue."""

    state: str | None = None


class QueueObject(msgspec.Struct, frozen=True, gc=False):
    """A Queue."""

    kind: str | None = None
    metadata: ObjectMeta = ObjectMeta()
    spec: QueueSpec | None = None
    status: QueueStatus | None = None


def _pod_group(found: PodGroupObject) -> PodGroup:
    spec = found.spec or PodGroupSpec()
    least = spec.min_member
    if least is None:
        least = (spec.scheduling_policy or spec.policy or GroupPolicy()).least
    return PodGroup(
        namespace=found.metadata.namespace or "default",
        name=found.metadata.name,
        min_member=max(1, least),
        min_resources=_amounts(spec.min_resources),
        timeout=None if spec.schedule_timeout_seconds is None else float(spec.schedule_timeout_seconds),
        queue=spec.queue or "",
    )


def _workload(found: WorkloadObject) -> Workload:
    spec = found.spec or WorkloadSpec()
    gangs = tuple([(one.name, max(1, (one.policy or GroupPolicy()).least)) for one in spec.pod_groups or ()])
    return Workload(namespace=found.metadata.namespace or "default", name=found.metadata.name, gangs=gangs)


def _queue(found: QueueObject) -> Queue:
    spec, state = found.spec or QueueSpec(), (found.status or QueueStatus()).state
    return Queue(
        name=found.metadata.name,
        weight=max(1, 1 if spec.weight is None else spec.weight),
        deserved=_amounts(spec.deserved),
        capability=_amounts(spec.capability),
        reclaimable=spec.reclaimable is not False,
        open=state in (None, "", "Open"),
    )


def _amounts(written: Quantities | None) -> Amounts:
    return resources.amounts(written) if written else ()


decode_pod_group = reader("PodGroup", "podgroups", PodGroupObject, _pod_group)
"""Return a decoded PodGroup of any dialect. Raises WireError."""
decode_workload = reader("Workload", "workloads", WorkloadObject, _workload)
"""Return a decoded Workload of Kubernetes 1.35. Raises WireError."""
decode_queue = reader("Queue", "queues", QueueObject, _queue)
"""Return a decoded Queue. Raises WireError."""
