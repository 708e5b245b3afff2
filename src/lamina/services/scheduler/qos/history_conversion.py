"""Converts summaries of the QoS engine to the custom resource QosHistory and back."""

from typing import Final

from lamina.model.pod import PodUid
from lamina.qos.promise import ControllerKey, Promise, QosApproach
from lamina.qos.qos_summary import ControllerSummary, QosSummary, SlotSummary
from lamina.qos.remembered_pod import RememberedPod
from lamina.qos.standing import QosTimes
from lamina.qos.time_sums import BINDING, DISCARDED, EFFECTIVE, WAITING
from lamina.wire.custom_resources.qos_history import (
    MOST_PODS,
    QosHistory,
    State,
    StoredController,
    StoredPod,
    StoredSlot,
    StoredTimes,
    storable,
)

STATES: Final[dict[int, State]] = {
    EFFECTIVE: "effective",
    DISCARDED: "discarded",
    WAITING: "waiting",
    BINDING: "binding",
}
_KINDS: Final = {name: kind for kind, name in STATES.items()}
_DIGITS: Final = 3
"""Times are stored in milliseconds."""
_MOST_MEMBERS: Final = 100
"""Existing pods of one slot that are stored, the last ones; the others would only lose their slot."""


def stored_history(summary: QosSummary, most_slots: int = MOST_PODS) -> QosHistory:
    """
    Return a summary as it is stored, with at most *most_slots* slots of independent replicas.

    A controller that a reader would reject is left out: users choose its name and its importance.
    """
    controllers: list[StoredController] = []
    for each in summary.controllers:
        stored = _stored_controller(each, most_slots)
        if storable(stored):
            controllers.append(stored)
            most_slots -= len(stored.slots)
    return QosHistory(summary.at, tuple(controllers))


def summary_of(history: QosHistory) -> QosSummary:
    """Return the summary that was stored."""
    return QosSummary(history.observed_at, tuple(map(_controller, history.controllers)))


def _stored_controller(one: ControllerSummary, most_slots: int) -> StoredController:
    promise = one.promise
    return StoredController(
        one.key.namespace,
        one.key.name,
        promise.slo,
        promise.importance,
        promise.approach.value,
        promise.overhead_limit,
        one.key.kind,
        one.replicas,
        _stored_times(one.past),
        one.incarnations,
        one.succeeded,
        tuple(
            StoredSlot(_stored_times(slot.past), slot.incarnations, slot.members[-_MOST_MEMBERS:])
            for slot in one.slots[:most_slots]
        ),
        tuple(
            StoredPod(pod.uid, STATES[pod.state], _stored_times(pod.times), pod.ended, pod.succeeded)
            for pod in one.pods
        ),
    )


def _controller(one: StoredController) -> ControllerSummary:
    return ControllerSummary(
        ControllerKey(one.namespace, one.kind, one.name),
        Promise(one.slo, one.importance, QosApproach(one.approach), one.overhead_limit),
        one.replicas,
        _times(one.times),
        one.incarnations,
        one.succeeded,
        tuple(
            SlotSummary(_times(slot.times), slot.incarnations, tuple(map(PodUid, slot.members))) for slot in one.slots
        ),
        tuple(
            RememberedPod(PodUid(pod.uid), _KINDS[pod.state], _times(pod.times), pod.ended, pod.succeeded)
            for pod in one.pods
        ),
    )


def _stored_times(times: QosTimes) -> StoredTimes:
    return StoredTimes(*(max(round(amount, _DIGITS), 0.0) for amount in times.amounts))


def _times(times: StoredTimes) -> QosTimes:
    return QosTimes(times.effective, times.discarded, times.waiting, times.binding)
