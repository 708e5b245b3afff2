"""
Decoder of a pod's ``status``: conditions, end times, and the resources that its node has allocated.

A pod can be resized while it runs. Its spec then has the desired resources, and its status has what the node has
allocated and what its containers run with. Until both agree, the pod occupies the larger of them. If the node cannot do
the resize (`INFEASIBLE`), the spec is ignored. Kubernetes 1.36 computes it the same way
(component-helpers/resource/helpers.go, ``UseStatusResources``), for containers, for sidecars and for the whole pod.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple, TypeVar

import msgspec
from msgspec import Raw

from lamina.wire import timestamps
from lamina.wire.decode_cache import NULL

E = TypeVar("E")

TRUE: Final = "True"
SCHEDULED: Final = "PodScheduled"
READY: Final = "Ready"
RESIZE_PENDING: Final = "PodResizePending"
DISRUPTION_TARGET: Final = "DisruptionTarget"
PREEMPTED: Final = "PreemptionByScheduler"
INFEASIBLE: Final = "Infeasible"
NULL_TEXT: Final = bytes(NULL)


class PodConditionEntry(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One of ``status.conditions``."""

    type: str = ""
    status: str = ""
    last_transition_time: str | None = None
    reason: str | None = None


class TerminatedState(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``state.terminated`` of a container."""

    finished_at: str | None = None


class ContainerState(msgspec.Struct, frozen=True, gc=False):
    """``state`` of a container."""

    terminated: TerminatedState | None = None


class EndedContainerStatus(msgspec.Struct, frozen=True, gc=False):
    """One of ``status.containerStatuses`` or ``status.initContainerStatuses``, restricted to the end time."""

    state: ContainerState | None = None


class ContainerStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One of ``status.containerStatuses`` or ``status.initContainerStatuses``, restricted to resources."""

    name: str = ""
    resources: Raw = NULL
    allocated_resources: Raw = NULL


class PodStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """
    ``status`` of a pod.

    Lists are decoded on demand: a list of pods would otherwise create many objects that Python's garbage collector
    tracks.
    """

    phase: str | None = None
    nominated_node_name: str | None = None
    start_time: str | None = None
    conditions: Raw = NULL
    container_statuses: Raw = NULL
    init_container_statuses: Raw = NULL
    resources: Raw = NULL
    allocated_resources: Raw = NULL
    resize: str | None = None
    """State of a resize in Kubernetes before 1.33."""


class PodConditions(NamedTuple):
    """Decoded conditions of a pod."""

    bound_at: float = 0.0
    ready: bool = False
    ready_at: float = 0.0
    infeasible: bool = False
    """Whether the node cannot do the requested resize."""
    preempted: bool = False
    """Whether a scheduler evicts the pod in favour of another one."""


_NO_CONDITIONS: Final = PodConditions()
_CONDITIONS: Final = msgspec.json.Decoder(list[PodConditionEntry] | None)
_STATUSES: Final = msgspec.json.Decoder(list[ContainerStatus] | None)
_ENDED: Final = msgspec.json.Decoder(list[EndedContainerStatus] | None)


def _read(field: str, decoder: msgspec.json.Decoder[list[E] | None], text: Raw) -> list[E]:
    try:
        return decoder.decode(text) or []
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{field}: {error}") from error


def conditions_of(status: PodStatus, made: str | None, made_at: float) -> PodConditions:
    """
    Return when a pod was bound and became ready, whether its resize is infeasible, and whether it is preempted.

    *made* is the pod's creation timestamp and *made_at* its value: conditions often have the same text, which then need
    not be parsed.
    """
    infeasible = status.resize == INFEASIBLE
    if status.conditions is NULL:
        return PodConditions(infeasible=True) if infeasible else _NO_CONDITIONS
    bound_at = ready_at = 0.0
    ready = preempted = False
    for one in _read("status.conditions", _CONDITIONS, status.conditions):
        kind = one.type
        if kind == READY:
            if one.status == TRUE:
                since = one.last_transition_time
                ready, ready_at = True, made_at if since == made else timestamps.seconds(since)
        elif kind == SCHEDULED:
            if one.status == TRUE:
                since = one.last_transition_time
                bound_at = made_at if since == made else timestamps.seconds(since)
        elif kind == RESIZE_PENDING:
            infeasible = one.reason == INFEASIBLE
        elif kind == DISRUPTION_TARGET:
            preempted = one.status == TRUE and one.reason == PREEMPTED
    return PodConditions(bound_at, ready, ready_at, infeasible, preempted)


def ended_at(status: PodStatus) -> float:
    """Return when the last container of a finished pod ended, or 0 when the status has no time."""
    return max(map(timestamps.seconds, _ends(status)), default=0.0)


def _ends(status: PodStatus) -> Iterator[str | None]:
    for statuses in (status.container_statuses, status.init_container_statuses):
        for one in _read("status.containerStatuses", _ENDED, statuses):
            if one.state is not None and one.state.terminated is not None:
                yield one.state.terminated.finished_at


def reported(status: PodStatus) -> dict[str, ContainerStatus]:
    """Return container statuses with resources, by container name."""
    return {
        one.name: one
        for statuses in (status.container_statuses, status.init_container_statuses)
        if statuses is not NULL
        for one in _read("status.containerStatuses", _STATUSES, statuses)
        if one.resources is not NULL
    }


def differing(one: ContainerStatus | None, spec: Raw) -> tuple[Raw, Raw] | None:
    """
    Return the running and the allocated resources of a container if they differ from *spec*, else None.

    The texts are compared, because they are equal in nearly every pod. Then no amounts have to be parsed.
    """
    if one is None or (running := bytes(one.resources)) == NULL_TEXT:
        return None
    asked, allocated = bytes(spec), bytes(one.allocated_resources)
    if running == asked and (allocated == NULL_TEXT or asked.endswith(b'"requests":' + allocated + b"}")):
        return None
    return one.resources, one.allocated_resources
