"""
A small summary of what the QoS engine cannot rebuild from the API after a restart: the times of deleted pods.

It has a few numbers for each controller, however many pods it has had. The times of existing pods follow from their
objects. The summary has them as well, because a pod may be deleted before the next summary is written, or while no
scheduler runs. Without a summary an engine starts with the existing pods only. With a sliding window, the history of a
summary counts for a full window from its adoption.
"""

from collections.abc import Iterable
from itertools import islice

import msgspec

from lamina.model.pod import PodUid
from lamina.qos.controller_record import ControllerRecord
from lamina.qos.pod_record import PodRecord
from lamina.qos.promise import ControllerKey, Promise
from lamina.qos.remembered_pod import RememberedPod
from lamina.qos.standing import QosTimes
from lamina.qos.time_sums import TimeSums


class SlotSummary(msgspec.Struct, frozen=True):
    """History of one slot of independent replicas."""

    past: QosTimes
    incarnations: int
    members: tuple[PodUid, ...]
    """Existing pods that had this slot."""


class ControllerSummary(msgspec.Struct, frozen=True):
    """History of one controller: times of pods that do not exist any more."""

    key: ControllerKey
    promise: Promise
    replicas: int | None
    past: QosTimes
    """For replicas that run together, the running time of all pods."""
    incarnations: int
    succeeded: int
    slots: tuple[SlotSummary, ...] = ()
    pods: tuple[RememberedPod, ...] = ()
    """Existing pods, in order of arrival."""


class QosSummary(msgspec.Struct, frozen=True):
    """History of all controllers at one moment, in seconds since 1970."""

    at: float
    controllers: tuple[ControllerSummary, ...]


def encoded(summary: QosSummary) -> bytes:
    """Return a summary as MessagePack."""
    return msgspec.msgpack.encode(summary)


def decoded(data: bytes) -> QosSummary:
    """Return the summary that `encoded` was given. Raises ValueError if *data* is something else."""
    return msgspec.msgpack.decode(data, type=QosSummary)


def summary_of_records(records: Iterable[ControllerRecord], t: float, at: float, most_pods: int) -> QosSummary:
    """Return the history of some controllers at *t*, which is *at* seconds since 1970, with at most so many pods."""
    controllers: list[ControllerSummary] = []
    for record in records:
        controllers.append(controller_summary(record, t, most_pods))
        most_pods -= len(controllers[-1].pods)
    return QosSummary(at, tuple(controllers))


def controller_summary(record: ControllerRecord, t: float, most_pods: int) -> ControllerSummary:
    """Return the history of a controller at *t*, in seconds since the engine's origin, with at most so many pods."""
    slots = [
        SlotSummary(
            QosTimes(*record.past(t, slot)),
            slot.incarnations - len(slot.members),
            tuple(uid for uid in record.pods if uid in slot.members),
        )
        for slot in record.slots
        if slot.sums is not None
    ]
    return ControllerSummary(
        record.key,
        record.promise,
        record.replicas,
        QosTimes(*record.past(t)),
        record.incarnations - len(record.pods),
        record.succeeded - sum(pod.succeeded for pod in record.pods.values()),
        tuple(slots),
        tuple(_remembered(pod, t) for pod in islice(record.pods.values(), most_pods)),
    )


def _remembered(pod: PodRecord, t: float) -> RememberedPod:
    return RememberedPod(pod.uid, pod.state, QosTimes(*pod.times(t)), pod.ended_at is not None, pod.succeeded)


def adopted_controller(summary: ControllerSummary, window: float, now: float, written_at: float) -> ControllerRecord:
    """Return a controller without pods that has the history of a summary which was written at *written_at*."""
    record = ControllerRecord(summary.key, summary.promise, summary.replicas, window, now)
    past = summary.past.amounts
    if record.sweep is not None:
        record.sweep = type(record.sweep)(record.needed, window, now, since=written_at)
        record.sweep.add_past(past[0], past[1])
        past[:2] = [0.0, 0.0]
    record.sums.add_past(past)
    record.incarnations, record.succeeded = summary.incarnations, summary.succeeded
    for index, each in enumerate(summary.slots):
        slot = record.slots.add(TimeSums(window, now))
        slot.incarnations = each.incarnations
        if slot.sums is not None:
            slot.sums.add_past(each.past.amounts)
        record.kept_slots.update(dict.fromkeys(each.members, index))
    record.kept_pods, record.kept_at = {pod.uid: pod for pod in summary.pods}, written_at
    return record
