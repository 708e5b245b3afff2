"""
Service levels: how well controllers kept the availability that they promised, by controller and by class.

    availability(t)    seconds that its pods ran / seconds that its pods existed, from its first pod until t
    violation          seconds in which availability(t) was below the SLO by more than TOLERANCE
    deficit            integral over time of (SLO - availability(t)), where that is above 0, in seconds
    capacity lost      1 - requests of running pods / requests that could have run: those of all pods, at most the capacity

A pod exists from its creation to its end, and runs from its start to its end. All functions are pure and take facts, so
the same code measures simulated runs and recorded event logs. Integrals are exact: availability is a quotient of two
linear functions of time between two events.
"""

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

TOLERANCE: Final = 0.005
"""Availability may be this far below the SLO and still meet it, as in the published evaluation of the experiments."""


class PodSpan(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The life of one pod; times are in seconds."""

    controller: str
    created: float
    started: float | None = None
    ended: float | None = None
    """None: it existed until the end of the run."""
    disruption: str = ""
    """Why it was evicted; empty: it was not."""
    requested: float = 1.0
    """What it requests of the capacity."""


class AvailabilityPromise(msgspec.Struct, frozen=True):
    """The SLO of one controller."""

    controller: str
    slo: float
    group: str
    """Its class."""


class ControllerServiceLevel(msgspec.Struct, frozen=True, kw_only=True):
    """How well one controller kept its promise."""

    promise: AvailabilityPromise
    availability: float
    """At the end of the run."""
    violation_seconds: float
    deficit: float
    disruptions: dict[str, int]
    """Evicted pods by cause."""

    @property
    def met(self) -> bool:
        """Whether the availability at the end meets the SLO."""
        return self.availability >= self.promise.slo - TOLERANCE


class ClassServiceLevel(msgspec.Struct, frozen=True, kw_only=True):
    """The controllers of one class: mean, standard deviation and extremes of their availability, and means per controller."""

    controllers: int
    mean: float
    sd: float
    min: float
    max: float
    missed: float
    """Share of controllers that do not meet their SLO."""
    violation_seconds: float
    deficit: float
    disruptions: dict[str, int]

    @property
    def met(self) -> float:
        """Share of controllers that meet their SLO."""
        return 1.0 - self.missed

    @property
    def spread(self) -> float:
        """Difference between the highest and the lowest availability."""
        return self.max - self.min


class RunServiceLevels(msgspec.Struct, frozen=True, kw_only=True):
    """Service levels of a whole run."""

    controllers: tuple[ControllerServiceLevel, ...]
    classes: dict[str, ClassServiceLevel]
    capacity_lost: float | None
    """Share of the cpu that pods could have used and did not (`capacity_lost`)."""


def controller_levels(
    promises: Iterable[AvailabilityPromise], spans: Iterable[PodSpan], end: float
) -> list[ControllerServiceLevel]:
    """Return the service level of each promised controller that has a pod before the *end* of the run."""
    lives: dict[str, list[PodSpan]] = {}
    for span in spans:
        if span.created < end:
            lives.setdefault(span.controller, []).append(span)
    return [_level(promise, lives[promise.controller], end) for promise in promises if promise.controller in lives]


def class_levels(levels: Iterable[ControllerServiceLevel]) -> dict[str, ClassServiceLevel]:
    """Return the service level of each class, in the order of their first controllers."""
    groups: dict[str, list[ControllerServiceLevel]] = {}
    for level in levels:
        groups.setdefault(level.promise.group, []).append(level)
    return {group: _joined(members) for group, members in groups.items()}


def capacity_lost(spans: Iterable[PodSpan], capacity: Sequence[tuple[float, float]], end: float) -> float | None:
    """
    Return the share of usable capacity in which no pod ran; None if none was usable.

    *capacity* has pairs of a time and the capacity from then on. Usable is what the existing pods request, and at most
    the capacity. Time between the binding and the start of a pod is lost, and so are remainders that fit no pod.
    """
    changes: list[tuple[float, float, float, float]] = []
    for span in spans:
        if span.created < end:
            ended = end if span.ended is None else min(span.ended, end)
            changes += ((span.created, span.requested, 0.0, 0.0), (ended, -span.requested, 0.0, 0.0))
            if span.started is not None and span.started < end:
                changes += ((span.started, 0.0, span.requested, 0.0), (ended, 0.0, -span.requested, 0.0))
    before = 0.0
    for at, amount in capacity:
        changes.append((min(at, end), 0.0, 0.0, amount - before))
        before = amount
    changes.sort(key=lambda change: change[0])
    existing = running = offered = usable = used = 0.0
    for change, following in itertools.pairwise([*changes, (end, 0.0, 0.0, 0.0)]):
        existing, running, offered = existing + change[1], running + change[2], offered + change[3]
        seconds = following[0] - change[0]
        usable += seconds * min(existing, offered)
        used += seconds * running
    return max(0.0, 1.0 - used / usable) if usable > 0.0 else None


def _joined(members: Sequence[ControllerServiceLevel]) -> ClassServiceLevel:
    shares = [member.availability for member in members]
    causes: Counter[str] = Counter()
    for member in members:
        causes.update(member.disruptions)
    return ClassServiceLevel(
        controllers=len(members),
        mean=statistics.fmean(shares),
        sd=statistics.pstdev(shares),
        min=min(shares),
        max=max(shares),
        missed=sum(not member.met for member in members) / len(members),
        violation_seconds=statistics.fmean(member.violation_seconds for member in members),
        deficit=statistics.fmean(member.deficit for member in members),
        disruptions=dict(sorted(causes.items())),
    )


def _level(promise: AvailabilityPromise, spans: Sequence[PodSpan], end: float) -> ControllerServiceLevel:
    """Go through the events of one controller's pods in order of time."""
    changes: list[tuple[float, int, int]] = []
    for span in spans:
        ended = end if span.ended is None else min(span.ended, end)
        changes += ((span.created, 1, 0), (ended, -1, 0))
        if span.started is not None and span.started < ended:
            changes += ((span.started, 0, 1), (ended, 0, -1))
    changes.sort()
    bound = promise.slo - TOLERANCE
    existed = ran = violation = deficit = 0.0
    existing = running = 0
    for change, following in itertools.pairwise([*changes, (end, 0, 0)]):
        existing, running = existing + change[1], running + change[2]
        seconds = following[0] - change[0]
        if seconds > 0.0:
            stretch = _Stretch(ran, existed, running, existing, seconds)
            violation += stretch.seconds_below(bound)
            deficit += stretch.deficit(promise.slo)
            ran, existed = ran + running * seconds, existed + existing * seconds
    causes = Counter(span.disruption for span in spans if span.disruption and (span.ended or 0.0) <= end)
    return ControllerServiceLevel(
        promise=promise,
        availability=ran / existed if existed else 0.0,
        violation_seconds=violation,
        deficit=deficit,
        disruptions=dict(causes),
    )


class _Stretch:
    """Time without an event: *ran* and *existed* seconds grow by *running* and *existing* per second."""

    __slots__ = ("existed", "existing", "ran", "running", "seconds")

    def __init__(self, ran: float, existed: float, running: int, existing: int, seconds: float) -> None:
        self.ran, self.existed, self.running, self.existing, self.seconds = ran, existed, running, existing, seconds

    def _below(self, bound: float) -> tuple[float, float]:
        """Return from when to when the availability is below *bound*: one interval, since it is monotone."""
        # Below means: ran + running · t < bound · (existed + existing · t).
        lacking, slope = bound * self.existed - self.ran, bound * self.existing - self.running
        if slope == 0.0:
            return (0.0, self.seconds) if lacking > 0.0 else (0.0, 0.0)
        crossing = min(max(-lacking / slope, 0.0), self.seconds)
        return (crossing, self.seconds) if slope > 0.0 else (0.0, crossing)

    def seconds_below(self, bound: float) -> float:
        begin, end = self._below(bound)
        return end - begin

    def deficit(self, slo: float) -> float:
        begin, end = self._below(slo)
        return slo * (end - begin) - (self._primitive(end) - self._primitive(begin)) if end > begin else 0.0

    def _primitive(self, t: float) -> float:
        """Return the integral of the availability from 0 to *t*."""
        if not self.existing:
            return t * self.ran / self.existed
        rate = self.running / self.existing
        if not self.existed:
            return t * rate
        grown = math.log1p(self.existing * t / self.existed)
        return t * rate + (self.ran - rate * self.existed) / self.existing * grown
