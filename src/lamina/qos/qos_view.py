"""What the debug page shows: the standings of all controllers and of all replicas at one moment, as data."""

from collections.abc import Iterator
from itertools import chain, islice

import msgspec

from lamina.qos.controller_record import ControllerRecord
from lamina.qos.engine import QosEngine
from lamina.qos.promise import ControllerKey, Promise
from lamina.qos.standing import QosTimes, ReplicaCounts

PENDING = "Pending"
RUNNING = "Running"


class ControllerView(msgspec.Struct, frozen=True):
    """One controller; times in seconds."""

    name: str
    key: ControllerKey
    promise: Promise
    qos: float
    slack: float
    """How long its pods may still not run until its QoS is its SLO; negative if it is below."""
    times: QosTimes
    counts: ReplicaCounts
    succeeded: int


class ReplicaView(msgspec.Struct, frozen=True):
    """One replica slot with a pod; times in seconds, with respect to this pod."""

    name: str
    """Controller and slot."""
    key: ControllerKey
    slot: int
    pod: str
    phase: str
    promise: Promise
    qos: float
    metric: float
    """QoS metric; infinite if the controller keeps its promise without this pod (JSON: null)."""
    preemption_overhead: float
    times: QosTimes


class QosView(msgspec.Struct, frozen=True):
    """The page at one moment."""

    at: float
    """Seconds since 1970."""
    controllers: tuple[ControllerView, ...]
    replicas: tuple[ReplicaView, ...]
    omitted: int = 0
    """Controllers and replicas beyond the limits."""


def qos_view(engine: QosEngine, now: float, most: int | None = None) -> QosView:
    """Return all standings at *now*, sorted by the controllers' names; at most *most* controllers and replicas each."""
    t = engine.moment(now)
    records = sorted(engine.records(now), key=lambda record: (str(record.key), record.key.kind))
    listed = records[:most]
    controllers = [_controller_view(record, t) for record in listed]
    replicas = list(islice(chain.from_iterable(_replica_views(record, t) for record in listed), most))
    omitted = len(records) - len(listed) + sum(record.held for record in records) - len(replicas)
    return QosView(now, tuple(controllers), tuple(replicas), omitted)


def _controller_view(record: ControllerRecord, t: float) -> ControllerView:
    standing = record.standing(t)
    return ControllerView(
        str(record.key),
        record.key,
        record.promise,
        standing.qos,
        standing.times.slack(record.promise.slo),
        standing.times,
        standing.counts,
        record.succeeded,
    )


def _replica_views(record: ControllerRecord, t: float) -> Iterator[ReplicaView]:
    for slot in record.slots:
        if slot.holder is None:
            continue
        pod = record.pods[slot.holder]
        standing = record.standing(t, pod)
        yield ReplicaView(
            f"{record.key}-{slot.index}",
            record.key,
            slot.index,
            pod.name,
            RUNNING if pod.running else PENDING,
            record.promise,
            standing.qos,
            standing.metric,
            standing.preemption_overhead,
            standing.times,
        )
