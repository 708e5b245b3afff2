"""The complete state of the QoS engine as data, for recordings: a restored engine gives the same answers."""

import msgspec

from lamina.model.pod import PodUid
from lamina.qos.concurrent_sweep import ConcurrentSweepSnapshot
from lamina.qos.controller_record import ControllerRecord
from lamina.qos.pod_record import PodRecord, PodRecordSnapshot
from lamina.qos.promise import ControllerKey, Promise
from lamina.qos.remembered_pod import RememberedPod
from lamina.qos.replica_slots import ReplicaSlot
from lamina.qos.time_sums import TimeSums, TimeSumsSnapshot


class SlotSnapshot(msgspec.Struct, frozen=True):
    """Serializable form of a replica slot, in use or dropped."""

    index: int
    holder: PodUid | None
    incarnations: int
    members: tuple[PodUid, ...]
    dropped: bool
    sums: TimeSumsSnapshot | None


class ControllerSnapshot(msgspec.Struct, frozen=True):
    """Serializable form of a controller."""

    key: ControllerKey
    promise: Promise
    replicas: int | None
    sums: TimeSumsSnapshot
    sweep: ConcurrentSweepSnapshot | None
    pods: tuple[PodRecordSnapshot, ...]
    slots: tuple[SlotSnapshot, ...]
    incarnations: int
    succeeded: int
    running: int
    held: int
    reserved: int
    gone: bool
    kept_slots: tuple[tuple[PodUid, int], ...]
    kept_pods: tuple[RememberedPod, ...]
    kept_at: float


class QosSnapshot(msgspec.Struct, frozen=True):
    """Serializable form of the engine."""

    origin: float | None
    now: float
    controllers: tuple[ControllerSnapshot, ...]
    idle: tuple[tuple[ControllerKey, float], ...]


def controller_snapshot(record: ControllerRecord) -> ControllerSnapshot:
    """Return a controller as data."""
    slots = list(dict.fromkeys([*record.slots, *record.shares.values()]))
    return ControllerSnapshot(
        record.key,
        record.promise,
        record.replicas,
        record.sums.snapshot(),
        None if record.sweep is None else record.sweep.snapshot(),
        tuple(pod.snapshot() for pod in record.pods.values()),
        tuple(_slot_snapshot(slot, record) for slot in slots),
        record.incarnations,
        record.succeeded,
        record.running,
        record.held,
        record.reserved,
        record.gone,
        tuple(record.kept_slots.items()),
        tuple(record.kept_pods.values()),
        record.kept_at,
    )


def restored_controller(snapshot: ControllerSnapshot, window: float, now: float) -> ControllerRecord:
    """Return the controller of a snapshot."""
    record = ControllerRecord(snapshot.key, snapshot.promise, snapshot.replicas, window, now)
    record.sums.restore(snapshot.sums)
    if record.sweep is not None and snapshot.sweep is not None:
        record.sweep.restore(snapshot.sweep)
    record.pods = {pod.uid: PodRecord.restored(pod) for pod in snapshot.pods}
    slots = [_restored_slot(slot, window, now) for slot in snapshot.slots]
    record.slots.restore([slot for slot in slots if not slot.dropped])
    record.shares = {uid: slot for slot in slots for uid in slot.members}
    record.incarnations, record.succeeded = snapshot.incarnations, snapshot.succeeded
    record.running, record.held, record.reserved = snapshot.running, snapshot.held, snapshot.reserved
    record.gone = snapshot.gone
    record.kept_slots = dict(snapshot.kept_slots)
    record.kept_pods = {pod.uid: pod for pod in snapshot.kept_pods}
    record.kept_at = snapshot.kept_at
    return record


def _slot_snapshot(slot: ReplicaSlot, record: ControllerRecord) -> SlotSnapshot:
    members = tuple(uid for uid in record.pods if uid in slot.members)
    sums = None if slot.sums is None else slot.sums.snapshot()
    return SlotSnapshot(slot.index, slot.holder, slot.incarnations, members, slot.dropped, sums)


def _restored_slot(snapshot: SlotSnapshot, window: float, now: float) -> ReplicaSlot:
    slot = ReplicaSlot(snapshot.index, None if snapshot.sums is None else TimeSums(window, now))
    if slot.sums is not None and snapshot.sums is not None:
        slot.sums.restore(snapshot.sums)
    slot.holder, slot.incarnations = snapshot.holder, snapshot.incarnations
    slot.members, slot.dropped = set(snapshot.members), snapshot.dropped
    return slot
