"""
Pods as the Kubernetes API writes them, and what the scheduler sees in them.

Used by whatever lists, watches or is sent pods. Nothing is defaulted that the API server defaults (limits that become
requests, priority classes): what comes from there has been through it.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Raw

from lamina.model.pod import DEFAULT_SCHEDULER, Container, HostPort, Pod, PodUid
from lamina.wire import kube_asks, kube_placement, timestamps
from lamina.wire.errors import WireError
from lamina.wire.kube_asks import ORDINARY, Named, Port, RestartRule, SchedulingGroup, Volume
from lamina.wire.kube_demand import INIT, SIDECAR, demand_of
from lamina.wire.kube_meta import ObjectMeta, controller
from lamina.wire.repeats import NULL

ALWAYS: Final = "Always"
NOT_STARTED: Final = frozenset({None, "", "Pending"})
FINISHED: Final = frozenset({"Succeeded", "Failed"})


class ContainerObject(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One of ``spec.containers`` or ``spec.initContainers``."""

    name: str = ""
    image: str | None = None
    resources: Raw = NULL
    restart_policy: str | None = None
    restart_policy_rules: list[RestartRule] | None = None
    ports: list[Port] | None = None


class Gate(msgspec.Struct, frozen=True, gc=False):
    """One of ``spec.schedulingGates``."""

    name: str = ""


class PodSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``spec`` of a pod."""

    containers: list[ContainerObject] | None = None
    init_containers: list[ContainerObject] | None = None
    volumes: list[Volume] | None = None
    resources: Raw = NULL
    overhead: Raw = NULL
    node_name: str | None = None
    node_selector: Raw = NULL
    affinity: Raw = NULL
    tolerations: Raw = NULL
    topology_spread_constraints: Raw = NULL
    priority: int | None = None
    scheduler_name: str | None = None
    scheduling_gates: list[Gate] | None = None
    image_pull_secrets: list[Named] | None = None
    resource_claims: list[Named] | None = None
    scheduling_group: SchedulingGroup | None = None
    workload_ref: Named | None = None
    host_network: bool | None = None
    host_users: bool | None = None


class PodStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``status`` of a pod."""

    phase: str | None = None
    nominated_node_name: str | None = None
    start_time: str | None = None


class PodObject(msgspec.Struct, frozen=True, gc=False):
    """A pod."""

    kind: str | None = None
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus | None = None


_NO_STATUS: Final = PodStatus()


def pod_from(pod: PodObject) -> Pod:
    """
    Return what the scheduler sees in a pod; `WireError` when a part of it makes no sense.

    A pod without a name is not refused, because bookmarks and dry runs have none.
    """
    try:
        return _convert(pod)
    except (ValueError, RecursionError) as error:
        raise WireError("Pod", str(error), pod.metadata.key) from error


def _convert(pod: PodObject) -> Pod:
    metadata, spec, status = pod.metadata, pod.spec, pod.status or _NO_STATUS
    containers, init = spec.containers or (), spec.init_containers or ()
    # Most volumes are nothing to a scheduler, and all of those are equal.
    volumes = [volume for volume in spec.volumes or () if volume != ORDINARY]
    placement = kube_placement.affinity(spec.affinity)
    demand = demand_of(
        spec.resources,
        spec.overhead,
        [container.resources for container in containers],
        [(SIDECAR if container.restart_policy == ALWAYS else INIT, container.resources) for container in init],
    )
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
        ),
        image_volumes=kube_asks.image_volumes(volumes) if volumes else (),
        requests=demand.requests,
        scoring_requests=demand.scoring_requests,
        limits=demand.limits,
        labels=metadata.labels or {},
        annotations=metadata.annotations or {},
        priority=spec.priority or 0,
        scheduler_name=spec.scheduler_name or DEFAULT_SCHEDULER,
        node_name=spec.node_name or "",
        nominated_node=status.nominated_node_name or "",
        node_selector=kube_placement.node_selector(spec.node_selector),
        required_nodes=placement.required_nodes,
        preferred_nodes=placement.preferred_nodes,
        repels=placement.repels,
        host_ports=_host_ports(containers, init),
        tolerations=kube_placement.tolerations(spec.tolerations),
        spread=kube_placement.spread(spec.topology_spread_constraints),
        gates=tuple([gate.name for gate in spec.scheduling_gates or ()]),
        pull_secrets=tuple([secret.name for secret in spec.image_pull_secrets]) if spec.image_pull_secrets else (),
        unmet=_unmet(spec, volumes, placement.unmet),
        ignored=placement.ignored,
        owner=controller(metadata.owner_references),
        created_at=timestamps.seconds(metadata.creation_timestamp),
        started=started,
        started_at=timestamps.seconds(status.start_time) if started else 0.0,
        finished=status.phase in FINISHED,
        deleting=metadata.deletion_timestamp is not None,
    )


def _host_ports(containers: Sequence[ContainerObject], init: Sequence[ContainerObject]) -> tuple[HostPort, ...]:
    """List the ports of containers that run as long as the pod does, as upstream has it: init containers only if sidecars."""
    ports = [port for one in containers if one.ports for port in one.ports if port.host_port]
    if init:
        ports[:0] = [port for one in init if one.ports and one.restart_policy == ALWAYS for port in one.ports]
    return kube_asks.host_ports(ports) if ports else ()


def _unmet(spec: PodSpec, volumes: list[Volume], known: tuple[str, ...]) -> tuple[str, ...]:
    """Add to what is *known* to be unmet what else is; for most pods, nothing."""
    rules = [
        rule
        for containers in (spec.init_containers, spec.containers)
        if containers
        for one in containers
        if one.restart_policy_rules
        for rule in one.restart_policy_rules
    ]
    if not (
        volumes
        or rules
        or spec.resource_claims
        or spec.scheduling_group
        or spec.workload_ref
        or spec.host_users is False
    ):
        return known
    return (
        *known,
        *kube_asks.unmet_by_volumes(volumes),
        *kube_asks.unmet_by_claims(spec.resource_claims or ()),
        *kube_asks.unmet_by_groups(spec.scheduling_group, spec.workload_ref),
        *kube_asks.unmet_by_features(rules, host_network=spec.host_network is True, own_users=spec.host_users is False),
    )
