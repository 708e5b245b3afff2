"""
Writes of a scheduler about pods: bindings, conditions, nominations, evictions, deletions.

Every write names the pod's UID, so that a newer pod of the same name is never changed. Expected outcomes are return
values: the pod is gone (False), a disruption budget blocks an eviction (`EvictionBlocked`). Anything else raises
ApiError or UnreachableError. This module never retries.

Texts and fields are kube-scheduler's (1.36: schedule_one.go, framework/preemption/executor.go): tools parse them.
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
"""Bytes of a condition's message. The API server has no limit, but every watcher of the pod receives the message."""
_CUT: Final = " ..."


class WriteClient(Protocol):
    """The part of `lamina.clients.kube.transport.KubeClient` that writes need."""

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
        """Send a request and return the body of a 2xx response."""
        ...


class PodKey(msgspec.Struct, frozen=True):
    """Namespace, name and UID of a pod."""

    namespace: str
    name: str
    uid: str

    @property
    def path(self) -> str:
        """URL path of the pod."""
        return f"/api/v1/namespaces/{quote(self.namespace, safe='')}/pods/{quote(self.name, safe='')}"


class PodCondition(msgspec.Struct, frozen=True):
    """The fields of a pod condition that Lamina writes."""

    type: str
    status: str
    reason: str = ""
    message: str = ""

    def said_already(self, old: "PodCondition | None") -> bool:
        """Return whether the pod already has this condition."""
        return old is not None and self == old


class EvictionBlocked(msgspec.Struct, frozen=True):
    """A disruption budget or a server limit blocks an eviction for now."""

    message: str
    retry_after: float | None = None


def clipped(text: str, limit: int) -> str:
    """Cut text to *limit* bytes of UTF-8, never inside a character; a cut text ends in " ..." as in kube-scheduler."""
    # A character has at most four bytes, so short texts need not be encoded.
    if len(text) * 4 <= limit or len(data := text.encode(errors="replace")) <= limit:
        return text
    return data[: limit - len(_CUT)].decode(errors="ignore") + _CUT


def unscheduled_condition(reason: str, message: str) -> PodCondition:
    """Return the PodScheduled condition of a pod that is not scheduled, with the reason."""
    return PodCondition(POD_SCHEDULED, "False", reason, clipped(message, MESSAGE_LIMIT))


def preempted_condition(scheduler: str) -> PodCondition:
    """Return the DisruptionTarget condition of a preempted pod."""
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
    Return a patch of a pod's status; None if nothing changes.

    *old* is the pod's current condition of the same type. *now*, in seconds since 1970, becomes the transition time if
    the condition's status changes. *node* is a nomination; "" removes it.
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
    """Bind a pod. The server returns 409 if it is bound, terminating or newer, and 404 if it is gone."""
    path = PodKey(namespace, name, "").path
    await client.request("POST", f"{path}/binding", body=body)


async def patch_pod_status(client: WriteClient, pod: PodKey, patch: bytes) -> bool:
    """Patch a pod's status; return False if that pod is gone."""
    return await _unless_gone(client, "PATCH", f"{pod.path}/status", patch, STRATEGIC)


async def delete_pod(client: WriteClient, pod: PodKey, grace: int | None = None) -> bool:
    """Delete a pod, with its own grace period or *grace* seconds; return False if that pod is gone."""
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
    Preempt a pod: set its DisruptionTarget condition, then delete it. Return False if it is gone or was not deleted.

    *may_act* is checked again between the two writes, because leadership may have ended.
    """
    patch = status_patch(pod, now, condition=preempted_condition(scheduler), old=old)
    if patch is not None and not await patch_pod_status(client, pod, patch):
        return False
    return may_act() and await delete_pod(client, pod)


async def evict(client: WriteClient, pod: PodKey, grace: int | None = None) -> bool | EvictionBlocked:
    """
    Evict a pod through the eviction API, which respects disruption budgets; return False if that pod is gone.

    For a pod of another UID, a real server took ten seconds to respond.
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
    """Send a write; return False after a 404 or a UID mismatch, which mean that the pod is gone."""
    try:
        await client.request(method, path, body=body, content_type=content_type)
    except ApiError as error:
        # Messages: "Precondition failed: UID in precondition: …", and for a patch "metadata.uid: Invalid value: …".
        if error.status == 404 or (error.status in (409, 422) and "uid" in error.message.lower()):
            return False
        raise
    return True
