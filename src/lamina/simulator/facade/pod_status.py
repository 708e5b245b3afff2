"""
Status of a pod's object as its kubelet writes it: phase, conditions and containers.

The cluster publishes its own model of a pod (`lamina.model.pod.Pod`). This module applies that state to the stored
object and leaves everything else as the client sent it.
"""

from typing import Any, Final

from lamina.model.pod import Pod
from lamina.simulator.facade.kube_object import KubeObject, part

KUBELET_CONDITIONS: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
ADDRESS: Final = "10.0.0.1"
"""Address of all pods: nothing listens there."""


def with_condition(
    status: KubeObject, type_: str, value: str, now: str, reason: str = "", message: str = ""
) -> KubeObject:
    """Return a copy of a status with this condition; its transition time changes only if its value does."""
    condition: KubeObject = {"type": type_, "status": value, "lastProbeTime": None, "lastTransitionTime": now}
    if reason:
        condition["reason"] = reason
    if message:
        condition["message"] = message
    kept: list[Any] = []
    for one in status.get("conditions") or ():
        if isinstance(one, dict) and one.get("type") == type_:
            if one.get("status") == value:
                condition["lastTransitionTime"] = one.get("lastTransitionTime", now)
            continue
        kept.append(one)
    return {**status, "conditions": [*kept, condition]}


def with_state(found: KubeObject, pod: Pod, now: str, reason: str = "", host: str = "") -> KubeObject:
    """Return a copy of a pod's object with the state of *pod*; *reason* says why it failed, *host* is its node's address."""
    spec, status = dict(part(found, "spec")), dict(part(found, "status"))
    if pod.node_name and spec.get("nodeName") != pod.node_name:
        spec["nodeName"] = pod.node_name
        status = with_condition(status, "PodScheduled", "True", now)
        status.pop("nominatedNodeName", None)
    if spec.get("schedulingGates") and not pod.gates:
        spec.pop("schedulingGates")
    if pod.finished:
        status = _ended(status, spec, pod, now, reason)
    elif pod.started and status.get("phase") != "Running":
        status = _running(status, spec, now, host or ADDRESS)
    return {**found, "spec": spec, "status": status}


def _running(status: KubeObject, spec: KubeObject, now: str, host: str) -> KubeObject:
    for type_ in KUBELET_CONDITIONS:
        status = with_condition(status, type_, "True", now)
    return {
        **status,
        "phase": "Running",
        "startTime": status.get("startTime") or now,
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "podIP": ADDRESS,
        "podIPs": [{"ip": ADDRESS}],
        "containerStatuses": [
            _container(one, {"running": {"startedAt": now}}, ready=True) for one in spec.get("containers") or ()
        ],
    }


def _ended(status: KubeObject, spec: KubeObject, pod: Pod, now: str, reason: str) -> KubeObject:
    phase = "Failed" if pod.failed else "Succeeded"
    if status.get("phase") == phase:
        return status
    ran = status.get("phase") == "Running"
    if ran:
        for type_ in ("Ready", "ContainersReady"):
            status = with_condition(status, type_, "False", now, "PodFailed" if pod.failed else "PodCompleted")
        code, why = (1, "Error") if pod.failed else (0, "Completed")
        ended = {
            "terminated": {"exitCode": code, "reason": why, "startedAt": status.get("startTime"), "finishedAt": now}
        }
        status = {
            **status,
            "containerStatuses": [_container(one, ended, ready=False) for one in spec.get("containers") or ()],
        }
    status = {**status, "phase": phase, "startTime": status.get("startTime") or now}
    if pod.failed and reason and reason != "Error":
        status["reason"] = reason
        status["message"] = f"Pod was rejected: {reason}" if not ran else f"The pod ended: {reason}"
    return status


def _container(container: Any, state: KubeObject, *, ready: bool) -> KubeObject:
    found = container if isinstance(container, dict) else {}
    image = found.get("image", "")
    return {
        "name": found.get("name", ""),
        "state": state,
        "lastState": {},
        "ready": ready,
        "restartCount": 0,
        "image": image,
        "imageID": image,
        "started": ready,
    }
