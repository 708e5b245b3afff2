"""
What a scheduler writes about pods: bindings, conditions, nominations, evictions, deletions.

Every write names the pod's UID, so that a pod of the same name that came later is never touched. What may well happen
in a live cluster is an answer and no exception: the pod is gone (False), a disruption budget says no (`EvictionBlocked`).
Anything else raises ApiError or Unreachable, as the client does; nothing here is tried again.

Words and fields are kube-scheduler's (1.36: schedule_one.go, framework/preemption/executor.go), as tools parse them.
"""

from collections.abc import Callable, Mapping
from typing import Final, Protocol
from urllib.parse import quote

import msgspec

from lamina.clients.kube.api_timestamps import whole_time
from lamina.clients.kube.errors import ApiError

STRATEGIC: Final = "application/strategic-merge-patch+json"

POD_SCHEDULED: Final = "PodScheduled"
UNSCHEDULABLE: Final = "Unschedulable"
SCHEDULER_ERROR: Final = "SchedulerError"
SCHEDULING_GATED: Final = "SchedulingGated"
DISRUPTION_TARGET: Final = "DisruptionTarget"
PREEMPTED: Final = "PreemptionByScheduler"

MESSAGE_LIMIT: Final = 4096
"""Bytes of a condition's message. The API server has no limit of its own; every watcher of the pod gets it."""
_CUT: Final = " ..."


class WriteClient(Protocol):
    """What writing needs of `lamina.clients.kube.transport.KubeClient`."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout: float = 30.0,
    ) -> bytes:
        """Send a request and give the body of a 2xx answer."""
        ...


class PodKey(msgspec.Struct, frozen=True):
    """The one pod that is meant."""

    namespace: str
    name: str
    uid: str

    @property
    def path(self) -> str:
        """Where it is served."""
        return f"/api/v1/namespaces/{quote(self.namespace, safe='')}/pods/{quote(self.name, safe='')}"


class PodCondition(msgspec.Struct, frozen=True):
    """A condition of a pod, as far as it is ours to say."""

    type: str
    status: str
    reason: str = ""
    message: str = ""

    def said_already(self, old: "PodCondition | None") -> bool:
        """Whether the pod has exactly this one."""
        return old is not None and self == old


class EvictionBlocked(msgspec.Struct, frozen=True):
    """A disruption budget, or the server's own limits, do not allow an eviction now."""

    message: str
    retry_after: float | None = None


def clipped(text: str, limit: int) -> str:
    """Cut text to so many bytes of UTF-8, never inside a character; what was cut ends in dots, as upstream's."""
    # A character has four bytes at most, so that most texts need not be encoded.
    if len(text) * 4 <= limit or len(data := text.encode(errors="replace")) <= limit:
        return text
    return data[: limit - len(_CUT)].decode(errors="ignore") + _CUT


def unscheduled_condition(reason: str, message: str) -> PodCondition:
    """Say that a pod is not scheduled, and why."""
    return PodCondition(POD_SCHEDULED, "False", reason, clipped(message, MESSAGE_LIMIT))


def preempted_condition(scheduler: str) -> PodCondition:
    """Say that a pod has to make room."""
    message = f"{scheduler}: preempting to accommodate a higher priority pod"
    return PodCondition(DISRUPTION_TARGET, "True", PREEMPTED, message)


def status_patch(
    pod: PodKey,
    now: float,
    *,
    condition: PodCondition | None = None,
    old: PodCondition | None = None,
    node: str | None = None,
) -> bytes | None:
    """
    Write a change of a pod's status, or None if nothing would change.

    *old* is the condition of that type which the pod has; *now* is when the new one began, in seconds since 1970, and
    counts if the condition's status changes. *node* is a nomination, empty to take one back.
    """
    status: dict[str, object] = {}
    if condition is not None and not condition.said_already(old):
        said = {field: value for field, value in msgspec.structs.asdict(condition).items() if value}
        if old is None or old.status != condition.status:
            said["lastTransitionTime"] = whole_time(now)
        status["conditions"] = [said]
    if node is not None:
        status["nominatedNodeName"] = node or None
    return msgspec.json.encode({"metadata": {"uid": pod.uid}, "status": status}) if status else None


async def bind(client: WriteClient, namespace: str, name: str, body: bytes) -> None:
    """Bind a pod. A pod that is bound, is going or came later is refused with 409, one that is gone with 404."""
    path = PodKey(namespace, name, "").path
    await client.request("POST", f"{path}/binding", body=body)


async def patch_pod_status(client: WriteClient, pod: PodKey, patch: bytes) -> bool:
    """Change a pod's status; False if that pod is gone."""
    return await _unless_gone(client, "PATCH", f"{pod.path}/status", patch, STRATEGIC)


async def delete_pod(client: WriteClient, pod: PodKey, grace: int | None = None) -> bool:
    """Delete a pod, with its own grace or with so many seconds; False if that pod is gone."""
    options = {"apiVersion": "v1", "kind": "DeleteOptions", **_options(pod, grace)}
    return await _unless_gone(client, "DELETE", pod.path, msgspec.json.encode(options))


async def preempt_pod(
    client: WriteClient,
    pod: PodKey,
    scheduler: str,
    now: float,
    old: PodCondition | None = None,
    *,
    may_act: Callable[[], bool] = lambda: True,
) -> bool:
    """
    Make a pod leave for a more important one: say why, then delete it. False if it was not deleted or is gone.

    *may_act* is asked once more between the two, because leadership may have ended meanwhile.
    """
    patch = status_patch(pod, now, condition=preempted_condition(scheduler), old=old)
    if patch is not None and not await patch_pod_status(client, pod, patch):
        return False
    return may_act() and await delete_pod(client, pod)


async def evict(client: WriteClient, pod: PodKey, grace: int | None = None) -> bool | EvictionBlocked:
    """
    Ask to evict a pod, which respects disruption budgets; False if that pod is gone.

    For a pod of another UID a real server was seen to answer only after ten seconds.
    """
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
        "deleteOptions": _options(pod, grace),
    }
    try:
        return await _unless_gone(client, "POST", f"{pod.path}/eviction", msgspec.json.encode(body))
    except ApiError as error:
        if error.status != 429:
            raise
        return EvictionBlocked(error.message, error.retry_after)


def _options(pod: PodKey, grace: int | None) -> dict[str, object]:
    return {"preconditions": {"uid": pod.uid}} | ({} if grace is None else {"gracePeriodSeconds": grace})


async def _unless_gone(
    client: WriteClient, method: str, path: str, body: bytes, content_type: str = "application/json"
) -> bool:
    """Send a write; a 404, or a refusal because of the UID, means that the pod which was meant is gone."""
    try:
        await client.request(method, path, body=body, content_type=content_type)
    except ApiError as error:
        # "Precondition failed: UID in precondition: …", and for a patch "metadata.uid: Invalid value: …".
        if error.status == 404 or (error.status in (409, 422) and "uid" in error.message.lower()):
            return False
        raise
    return True
