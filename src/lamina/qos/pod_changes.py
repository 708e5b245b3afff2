"""
Turns successive states of a pod object into facts for the QoS engine.

Times come from the object where the API states them, and are the time of observation otherwise. So the life of a pod
that is first seen after a restart is rebuilt from its object.
"""

from collections.abc import Iterator

from lamina.model.pod import Pod
from lamina.qos.life_cycle_facts import (
    PodCreated,
    PodEnded,
    PodIsReady,
    PodIsTerminating,
    PodIsUnready,
    PodRuns,
    PodWasBound,
    QosFact,
)
from lamina.qos.promise_sources import ResolvedPromise


def facts_of_change(
    before: Pod | None, after: Pod, resolved: ResolvedPromise, replicas: int | None, now: float
) -> tuple[QosFact, ...]:
    """
    Return what happened between two states of a pod, in order of the life cycle.

    *before* is None for a pod that was not known. A deleted pod has no state; the caller makes its `PodDeleted`.
    """
    return tuple(_facts(before, after, resolved, replicas, now))


def _facts(
    before: Pod | None, after: Pod, resolved: ResolvedPromise, replicas: int | None, now: float
) -> Iterator[QosFact]:
    uid = after.uid
    if before is None:
        yield PodCreated(
            after.created_at or now, uid, after.namespace, after.name, resolved.controller, resolved.promise, replicas
        )
    if after.node_name and not (before and before.node_name):
        yield PodWasBound(after.bound_at or now, uid)
    if _ran(after) and not (before and _ran(before)):
        # The API states when the kubelet accepted the pod, before it pulled images: that is the last resort.
        known = (after.ready_at or after.started_at) if before is None else 0.0
        yield PodRuns(known or now, uid)
    was_ready, is_ready = bool(before and before.ready), after.ready
    if is_ready and not was_ready:
        yield PodIsReady(after.ready_at or now, uid)
    elif was_ready and not is_ready and not after.finished:
        yield PodIsUnready(now, uid)
    if after.deleting and not (before and before.deleting):
        yield PodIsTerminating(after.deleting_since or now, uid)
    if after.finished and not (before and before.finished):
        yield PodEnded(after.ended_at or now, uid, succeeded=not after.failed)


def _ran(pod: Pod) -> bool:
    """Return whether a pod's containers run, or ran and succeeded."""
    return pod.started or (pod.finished and not pod.failed)
