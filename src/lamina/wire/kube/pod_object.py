"""
Decoder of Kubernetes pods.

The decoder sets no defaults that the API server sets (limits that become requests, priority classes), because objects
from the API server already have them.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Raw

from lamina.model.pod import DEFAULT_SCHEDULER, Container, HostPort, Pod, PodUid
from lamina.wire import timestamps
from lamina.wire.decode_cache import NULL
from lamina.wire.errors import WireError
from lamina.wire.kube import constraints, pod_requirements
from lamina.wire.kube.meta import ObjectMeta, controller
from lamina.wire.kube.pod_requirements import NamedRef, RestartRule, SchedulingGroup, WorkloadRef
from lamina.wire.kube.pod_resources import HELD, INFEASIBLE, INIT, SIDECAR, WHOLE, pod_resources_of
from lamina.wire.kube.pod_status_object import ContainerStatus, PodStatus, conditions_of, differing, ended_at, reported
from lamina.wire.kube.pod_volume_objects import read_volumes

ALWAYS: Final = "Always"
NEVER: Final = "Never"
NOT_STARTED: Final = frozenset({None, "", "Pending"})
FAILED: Final = "Failed"
FINISHED: Final = frozenset({"Succeeded", FAILED})


class ContainerObject(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One of ``spec.containers`` or ``spec.initContainers``."""

    name: str = ""
    image: str | None = None
    resources: Raw = NULL
    restart_policy: str | None = None
    restart_policy_rules: list[RestartRule] | None = None
    ports: Raw = NULL
    volume_mounts: Raw = NULL


class SchedulingGate(msgspec.Struct, frozen=True, gc=False):
    """One of ``spec.schedulingGates``."""

    name: str = ""


class PodSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``spec`` of a pod."""

    containers: list[ContainerObject] | None = None
    init_containers: list[ContainerObject] | None = None
    ephemeral_containers: list[ContainerObject] | None = None
    volumes: Raw = NULL
    resources: Raw = NULL
    overhead: Raw = NULL
    node_name: str | None = None
    node_selector: Raw = NULL
    affinity: Raw = NULL
    tolerations: Raw = NULL
    topology_spread_constraints: Raw = NULL
    priority: int | None = None
    preemption_policy: str | None = None
    scheduler_name: str | None = None
    scheduling_gates: list[SchedulingGate] | None = None
    image_pull_secrets: list[NamedRef] | None = None
    resource_claims: list[NamedRef] | None = None
    scheduling_group: SchedulingGroup | None = None
    workload_ref: WorkloadRef | None = None
    active_deadline_seconds: float | None = None
    host_network: bool | None = None
    host_users: bool | None = None


class PodObject(msgspec.Struct, frozen=True, gc=False):
    """A pod."""

    kind: str | None = None
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus | None = None


_NO_STATUS: Final = PodStatus()


def pod_from(pod: PodObject) -> Pod:
    """
    Return the model of a pod. Raises WireError when a part of it is invalid.

    A pod without a name is accepted, because bookmarks and dry runs have none.
    """
    try:
        return _convert(pod)
    except (ValueError, RecursionError) as error:
        raise WireError("Pod", str(error), pod.metadata.key) from error


def _convert(pod: PodObject) -> Pod:
    metadata, spec, status = pod.metadata, pod.spec, pod.status or _NO_STATUS
    containers, init = spec.containers or (), spec.init_containers or ()
    images, volumes = ((), ()) if spec.volumes is NULL else read_volumes(spec.volumes)
    placement = constraints.affinity(spec.affinity)
    made = metadata.creation_timestamp
    made_at = timestamps.seconds(made)
    conditions = conditions_of(status, made, made_at)
    demand = pod_resources_of(
        spec.resources,
        spec.overhead,
        [container.resources for container in containers],
        [(SIDECAR if container.restart_policy == ALWAYS else INIT, container.resources) for container in init],
        _held(spec, status, infeasible=conditions.infeasible) if spec.node_name else (),
    )
    finished = status.phase in FINISHED
    started = status.phase not in NOT_STARTED
    return Pod(
        uid=PodUid(metadata.uid),
        name=metadata.name,
        namespace=metadata.namespace or "default",
        containers=tuple(
            [
                Container(container.image or "", requests, container.name, limits=limits)
                for container, requests, limits in zip(
                    containers, demand.containers, demand.container_limits, strict=True
                )
            ]
        ),
        init_containers=tuple(
            [
                Container(container.image or "", requests, container.name, container.restart_policy == ALWAYS, limits)
                for container, requests, limits in zip(
                    init, demand.init_containers, demand.init_container_limits, strict=True
                )
            ]
        )
        if init
        else (),
        image_volumes=images,
        volumes=volumes,
        requests=demand.requests,
        scoring_requests=demand.scoring_requests,
        limits=demand.limits,
        labels=metadata.labels or {},
        annotations=metadata.annotations or {},
        priority=spec.priority or 0,
        preempts=spec.preemption_policy != NEVER,
        scheduler_name=spec.scheduler_name or DEFAULT_SCHEDULER,
        node_name=spec.node_name or "",
        nominated_node=status.nominated_node_name or "",
        node_selector=constraints.node_selector(spec.node_selector),
        required_nodes=placement.required_nodes,
        preferred_nodes=placement.preferred_nodes,
        required_pods=placement.required_pods,
        repels=placement.repels,
        preferred_pods=placement.preferred_pods,
        avoided_pods=placement.avoided_pods,
        host_ports=_host_ports(containers, init),
        tolerations=constraints.tolerations(spec.tolerations),
        spread=constraints.spread(spec.topology_spread_constraints),
        gates=tuple([gate.name for gate in spec.scheduling_gates]) if spec.scheduling_gates else (),
        group=pod_requirements.native_group(spec.scheduling_group, spec.workload_ref)
        if spec.scheduling_group or spec.workload_ref
        else "",
        pull_secrets=tuple([secret.name for secret in spec.image_pull_secrets]) if spec.image_pull_secrets else (),
        required_features=_required_features(spec),
        unmet=_unmet(spec, placement.unmet),
        ignored=placement.ignored,
        owner=controller(metadata.owner_references),
        deadline=spec.active_deadline_seconds,
        created_at=made_at,
        bound_at=conditions.bound_at,
        started=started,
        started_at=0.0
        if not started
        else made_at
        if status.start_time == made
        else timestamps.seconds(status.start_time),
        ready=conditions.ready,
        ready_at=conditions.ready_at,
        finished=finished,
        failed=status.phase == FAILED,
        ended_at=ended_at(status) if finished else 0.0,
        deleting=metadata.deletion_timestamp is not None,
        deleting_since=_deleting_since(metadata) if metadata.deletion_timestamp else 0.0,
        preempted=conditions.preempted,
    )


def _held(spec: PodSpec, status: PodStatus, *, infeasible: bool) -> list[bytes]:
    """Return resources in a bound pod's status that differ from its spec, for `pod_resources_of`; mostly empty."""
    parts: list[bytes] = []
    if known := reported(status):
        containers = spec.containers or ()
        for place, one in enumerate(containers):
            _add(parts, place, known.get(one.name), one.resources)
        for place, one in enumerate(spec.init_containers or (), len(containers)):
            if one.restart_policy == ALWAYS:
                _add(parts, place, known.get(one.name), one.resources)
    if spec.resources is not NULL and status.resources is not NULL:
        _add(parts, WHOLE, ContainerStatus("", status.resources, status.allocated_resources), spec.resources)
    if parts and infeasible:
        parts.append(INFEASIBLE)
    return parts


def _add(parts: list[bytes], place: int, one: ContainerStatus | None, spec: Raw) -> None:
    if (held := differing(one, spec)) is not None:
        parts += (HELD, b"%d" % place, *held)


def _deleting_since(metadata: ObjectMeta) -> float:
    """Return when the deletion began: the deletion timestamp minus the grace period."""
    until = timestamps.seconds(metadata.deletion_timestamp)
    return max(until - (metadata.deletion_grace_period_seconds or 0), 0.0)


def _host_ports(containers: Sequence[ContainerObject], init: Sequence[ContainerObject]) -> tuple[HostPort, ...]:
    """Return the host ports of all containers that run as long as the pod: of init containers, only sidecars."""
    ports = [port for one in containers if one.ports is not NULL for port in pod_requirements.host_ports(one.ports)]
    if init:
        ports[:0] = [
            port
            for one in init
            if one.ports is not NULL and one.restart_policy == ALWAYS
            for port in pod_requirements.host_ports(one.ports)
        ]
    return tuple(ports) if ports else ()


def _unmet(spec: PodSpec, known: tuple[str, ...]) -> tuple[str, ...]:
    """Return *known* and the other requirements that Lamina does not support; mostly empty."""
    return (*known, *pod_requirements.unmet_by_claims(spec.resource_claims)) if spec.resource_claims else known


def _required_features(spec: PodSpec) -> tuple[str, ...]:
    """Return the features that a node must declare; mostly none."""
    rules: list[RestartRule] = []
    bind_options = False
    for one in (*(spec.containers or ()), *(spec.init_containers or ()), *(spec.ephemeral_containers or ())):
        if one.restart_policy_rules:
            rules += one.restart_policy_rules
        if one.volume_mounts is not NULL:
            bind_options = bind_options or pod_requirements.has_bind_mount_options(one.volume_mounts)
    if not rules and not bind_options and spec.host_users is not False:
        return ()
    return pod_requirements.required_features(
        rules,
        host_network=spec.host_network is True,
        own_users=spec.host_users is False,
        bind_options=bind_options,
    )
