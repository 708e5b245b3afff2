"""The record of one finished incarnation, as it is logged: the pod's own times and its controller's standing."""

import msgspec

from lamina.qos.controller_record import ControllerRecord
from lamina.qos.pod_record import PodRecord
from lamina.qos.promise import ControllerKey, QosApproach
from lamina.qos.standing import QosTimes


class FinishedIncarnation(msgspec.Struct, frozen=True):
    """One pod that gave up its replica slot; times in seconds."""

    at: float
    """When the slot became free, in seconds since 1970."""
    pod: str
    controller: ControllerKey
    slo: float
    slot: int
    approach: QosApproach
    created_at: float
    times: QosTimes
    """Times of the pod."""
    succeeded: bool
    qos: float
    """QoS of the controller, or of the slot if replicas are independent."""
    metric: float
    controller_times: QosTimes


def finished_incarnation(
    record: ControllerRecord, pod: PodRecord, slot: int, t: float, origin: float
) -> FinishedIncarnation:
    """Return the record of a pod that gives up its slot at *t*, in seconds since *origin*."""
    standing = record.standing(t, pod)
    return FinishedIncarnation(
        t + origin,
        pod.name,
        record.key,
        record.promise.slo,
        slot,
        record.promise.approach,
        pod.created_at + origin,
        QosTimes(*pod.times(t)),
        pod.succeeded,
        standing.qos,
        standing.metric,
        standing.times,
    )
