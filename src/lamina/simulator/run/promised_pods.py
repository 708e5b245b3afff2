"""
Service levels of a run: the promises in the annotations of its pods, and the summary of how they were kept.

A pod with the annotation ``slo`` belongs to the controller in its annotation ``controller``, or else to its owner, or
else to itself. Its class is its label ``class``, or else ``slo-`` and its SLO.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from lamina.model.pod import Pod
from lamina.model.resources import CPU
from lamina.simulator.cluster import VirtualCluster, VirtualPod
from lamina.simulator.cluster.admission import EVICTED
from lamina.simulator.cluster.outage import UNREACHABLE
from lamina.simulator.cluster.virtual_cluster import PREEMPTED
from lamina.simulator.run.run_counters import RecordHandlers
from lamina.simulator.run.service_levels import (
    AvailabilityPromise,
    PodSpan,
    RunServiceLevels,
    capacity_lost,
    class_levels,
    controller_levels,
)
from lamina.simulator.workloads.qos_entries import CLASS_LABEL, CONTROLLER_ANNOTATION, SLO_ANNOTATION
from lamina.trace.trace_records import NodeJoined, NodeLeft

CAUSES: Final = {PREEMPTED: "preempted", EVICTED: "evicted", UNREACHABLE: "unreachable"}
"""Reasons of evicted pods, and the causes that a summary counts."""


class CapacityRecorder:
    """Keeps how the cpu of all nodes changed in a run."""

    def __init__(self) -> None:
        """Start without nodes."""
        self._nodes: dict[str, int] = {}
        self.steps: list[tuple[float, float]] = []
        """Times, and the cpu of all nodes from then on, in thousandths of a core."""
        self.handlers: RecordHandlers = {NodeJoined: self._joined, NodeLeft: self._left}

    def _joined(self, record: NodeJoined) -> None:
        self._nodes[record.node] = record.allocatable.get(CPU, 0)
        self.steps.append((record.at, float(sum(self._nodes.values()))))

    def _left(self, record: NodeLeft) -> None:
        self._nodes.pop(record.node, None)
        self.steps.append((record.at, float(sum(self._nodes.values()))))


def run_service_levels(
    cluster: VirtualCluster, capacity: Sequence[tuple[float, float]], end: float
) -> RunServiceLevels | None:
    """Return the service levels of a run that lasted until *end*; None if no pod has a valid SLO."""
    promises: dict[str, AvailabilityPromise] = {}
    for pod in cluster.pods.values():
        slo = promised_slo(pod.pod)
        if slo is not None and (name := controller_of(pod.pod)) not in promises:
            promises[name] = AvailabilityPromise(name, slo, pod.pod.labels.get(CLASS_LABEL) or f"slo-{slo:g}")
    if not promises:
        return None
    spans = [_span(pod) for pod in cluster.pods.values()]
    levels = controller_levels(promises.values(), spans, end)
    return RunServiceLevels(
        controllers=tuple(levels), classes=class_levels(levels), capacity_lost=capacity_lost(spans, capacity, end)
    )


def levels_summary(levels: RunServiceLevels) -> dict[str, Any]:
    """Return service levels as plain data, for `summary.json`."""
    members = levels.controllers
    causes: Counter[str] = Counter()
    for member in members:
        causes.update(member.disruptions)
    return {
        "controllers": len(members),
        "missed": sum(not member.met for member in members) / len(members) if members else None,
        "violation_seconds": sum(member.violation_seconds for member in members) / len(members) if members else None,
        "deficit": sum(member.deficit for member in members) / len(members) if members else None,
        "spread": max((one.spread for one in levels.classes.values()), default=None),
        "disruptions": {"total": causes.total(), **dict(sorted(causes.items()))},
        "capacity_lost": levels.capacity_lost,
        "classes": {
            name: {**msgspec.structs.asdict(one), "met": one.met, "spread": one.spread}
            for name, one in levels.classes.items()
        },
    }


def promised_slo(pod: Pod) -> float | None:
    """Return the SLO of a pod; None without the annotation, or if it is no share."""
    if SLO_ANNOTATION not in pod.annotations:
        return None
    try:
        slo = float(pod.annotations[SLO_ANNOTATION])
    except ValueError:
        return None
    return slo if 0.0 <= slo <= 1.0 else None


def controller_of(pod: Pod) -> str:
    """Return the name of the controller that a pod counts for."""
    named = pod.annotations.get(CONTROLLER_ANNOTATION)
    if named:
        return f"{pod.namespace}/{named}"
    return f"{pod.namespace}/{pod.name if pod.owner is None else pod.owner.name}"


def _span(pod: VirtualPod) -> PodSpan:
    return PodSpan(
        controller=controller_of(pod.pod),
        created=pod.arrived,
        started=pod.started,
        ended=pod.ended,
        disruption=CAUSES.get(pod.reason, ""),
        requested=float(dict(pod.pod.requests).get(CPU, 0)),
    )
