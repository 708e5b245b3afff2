"""
Encoder of a pod's ``status``: phase, conditions, container statuses, and what the kubelet adds.

    Pending      waiting, or bound and not started
    Running      started
    Succeeded    finished
    Failed       finished and failed

A pod's history has the order created, bound, started, ready, ended. An unknown time of a step (0 in the model) becomes
the time of the step before it.
"""

from typing import Any, Final, NamedTuple

import msgspec

from lamina.model.pod import Pod
from lamina.wire.kube.encoded_values import encode_timestamp
from lamina.wire.kube.pod_containers_encoder import EncodedContainers, EncodedObject, encode_containers

DEFAULT_GRACE: Final = 30
"""Seconds of grace that the API server gives a pod without a value of its own."""

PENDING: Final = "Pending"
RUNNING: Final = "Running"
SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"


class PodDetails(msgspec.Struct, frozen=True, kw_only=True):
    """Values of a v1 Pod that the model does not have."""

    grace: float = DEFAULT_GRACE
    """``spec.terminationGracePeriodSeconds``."""
    deletion_grace: float | None = None
    """``metadata.deletionGracePeriodSeconds`` of a pod that is being deleted; None: the same as *grace*."""
    restart_policy: str = ""
    """``spec.restartPolicy``; empty: Never for pods of jobs, else Always."""
    restarts: int = 0
    """Restarts of every container."""
    reason: str = ""
    """``status.reason``, such as Evicted."""
    message: str = ""
    """``status.message``."""
    pod_ip: str = ""
    host_ip: str = ""


NO_DETAILS: Final = PodDetails()


class PodHistory(NamedTuple):
    """When a started pod was bound, started, became ready and ended, as timestamps."""

    bound: str
    started: str
    ready: str
    """When its readiness last changed."""
    ended: str


def encode_pod_status(pod: Pod, epoch: float = 0.0, details: PodDetails = NO_DETAILS) -> dict[str, Any]:
    """Return ``status`` of a v1 Pod; *epoch* is the Unix time of the model's time 0."""
    encoded = encode_containers(pod.containers, pod.init_containers)
    written: EncodedObject = {"phase": phase_of(pod), "qosClass": encoded.qos_class}
    if pod.started or pod.finished:
        written |= _started_status(pod, _history(pod, epoch), details, encoded)
    elif pod.node_name or pod.bound_at or pod.ready:
        written["conditions"] = _early_conditions(pod, epoch)
    if pod.preempted:
        since = encode_timestamp(epoch + (pod.deleting_since or pod.created_at))
        preempted = _condition("DisruptionTarget", since, reason="PreemptionByScheduler")
        written["conditions"] = [*written.get("conditions", ()), preempted]
    if pod.nominated_node:
        written["nominatedNodeName"] = pod.nominated_node
    if details is not NO_DETAILS:
        written |= _details(details)
    return written


def phase_of(pod: Pod) -> str:
    """Return the phase of a pod."""
    if pod.finished:
        return FAILED if pod.failed else SUCCEEDED
    return RUNNING if pod.started else PENDING


def _history(pod: Pod, epoch: float) -> PodHistory:
    bound = pod.bound_at or pod.created_at
    started = pod.started_at or bound
    ready = pod.ready_at or started
    ended = pod.ended_at or ready
    return PodHistory(
        encode_timestamp(epoch + bound),
        encode_timestamp(epoch + started),
        encode_timestamp(epoch + (ended if pod.finished and not pod.ready else ready)),
        encode_timestamp(epoch + ended),
    )


def _early_conditions(pod: Pod, epoch: float) -> list[EncodedObject]:
    """Return the conditions of a pod that has not started."""
    history = _history(pod, epoch)
    scheduled = [_condition("PodScheduled", history.bound)] if pod.node_name or pod.bound_at else []
    return [*scheduled, _condition("Ready", history.ready)] if pod.ready else scheduled


def _started_status(pod: Pod, history: PodHistory, details: PodDetails, encoded: EncodedContainers) -> EncodedObject:
    since = history.ready
    if pod.ready:
        ready, containers_ready = _condition("Ready", since), _condition("ContainersReady", since)
    else:
        reason = "PodCompleted" if pod.finished and not pod.failed else "ContainersNotReady"
        ready = _condition("Ready", since, "False", reason)
        containers_ready = _condition("ContainersReady", since, "False", reason)
    conditions = [_condition("Initialized", history.started), ready, containers_ready]
    if pod.node_name or pod.bound_at:
        conditions.append(_condition("PodScheduled", history.bound))
    return {
        "conditions": conditions,
        "startTime": history.started,
        "containerStatuses": _container_statuses(pod, history, details, encoded),
    }


def _condition(kind: str, since: str, status: str = "True", reason: str = "") -> EncodedObject:
    written = {"type": kind, "status": status, "lastTransitionTime": since}
    if reason:
        written["reason"] = reason
    return written


def _container_statuses(
    pod: Pod, history: PodHistory, details: PodDetails, encoded: EncodedContainers
) -> list[EncodedObject]:
    state: EncodedObject
    if pod.finished:
        code, reason = (1, "Error") if pod.failed else (0, "Completed")
        ended = {"exitCode": code, "reason": reason, "startedAt": history.started, "finishedAt": history.ended}
        state = {"terminated": ended}
    else:
        # Containers of a ready pod started when it became ready at the latest; the kubelet accepted it earlier.
        state = {"running": {"startedAt": history.ready if pod.ready else history.started}}
    running = not pod.finished
    return [
        {
            "name": name,
            "image": container.image,
            "imageID": "",
            "ready": pod.ready,
            "started": running,
            "restartCount": details.restarts,
            "state": state,
        }
        for name, container in zip(encoded.names, pod.containers, strict=True)
    ]


def _details(details: PodDetails) -> EncodedObject:
    written: EncodedObject = {}
    if details.reason:
        written["reason"] = details.reason
    if details.message:
        written["message"] = details.message
    if details.host_ip:
        written |= {"hostIP": details.host_ip, "hostIPs": [{"ip": details.host_ip}]}
    if details.pod_ip:
        written |= {"podIP": details.pod_ip, "podIPs": [{"ip": details.pod_ip}]}
    return written
