"""A slow QoS engine for comparison: keeps every interval of every pod and computes each answer from them afresh."""

import itertools
import math
from dataclasses import dataclass, field

from lamina.model.pod import PodUid
from lamina.qos.life_cycle_facts import (
    ControllerResized,
    PodCreated,
    PodDeleted,
    PodEnded,
    PodIsReady,
    PodIsTerminating,
    PodIsUnready,
    PodRuns,
    PodWasBound,
    QosFact,
)
from lamina.qos.promise import ControllerKey, Promise, QosApproach, RunningFrom

CLEAR = 1e-6
"""Differences below this are rounding."""


@dataclass
class PodStory:
    """One pod: the states that it entered, with their times."""

    controller: ControllerKey
    created: float
    states: list[tuple[str, float]]
    bound: bool = False
    ended: float | None = None
    succeeded: bool = False
    terminating: bool = False

    @property
    def state(self) -> str:
        return self.states[-1][0]

    def enter(self, state: str, at: float) -> None:
        self.states.append((state, max(at, self.states[-1][1])))

    def intervals(self, now: float) -> list[tuple[str, float, float]]:
        """State, start and end of every stay."""
        last = now if self.ended is None else self.ended
        ends = [at for _, at in self.states[1:]] + [last]
        return [(state, start, end) for (state, start), end in zip(self.states, ends, strict=True)]

    def spent(self, state: str, now: float) -> float:
        return sum(end - start for each, start, end in self.intervals(now) if each == state)


@dataclass
class QosOracle:
    """Every pod that ever existed, and what each controller needs."""

    running_from: RunningFrom
    margin: float
    pods: dict[PodUid, PodStory] = field(default_factory=dict)
    promises: dict[ControllerKey, Promise] = field(default_factory=dict)
    needed: dict[ControllerKey, list[tuple[float, int]]] = field(default_factory=dict)

    def feed(self, fact: QosFact, now: float) -> None:
        at = min(fact.at, now)
        if isinstance(fact, PodCreated):
            self.promises.setdefault(fact.controller, fact.promise)
            # What every pod states is what the last resize said.
            self.needed.setdefault(fact.controller, [(-math.inf, fact.replicas or 1)])
            self.pods[fact.uid] = PodStory(fact.controller, at, [("W", at)])
            return
        if isinstance(fact, ControllerResized):
            if fact.controller in self.needed:
                self.needed[fact.controller].append((at, fact.replicas or 1))
            return
        pod = self.pods[fact.uid]
        if pod.ended is not None:
            return
        if isinstance(fact, PodWasBound | PodRuns | PodIsReady) and not pod.bound:
            pod.bound = True
            since = fact.binding_since if isinstance(fact, PodWasBound) else None
            pod.enter("B", at if since is None else min(since, at))
            if self.running_from is RunningFrom.BINDING:
                pod.enter("E", at)
        job = self.promises[pod.controller].approach is QosApproach.AGGREGATE
        if (isinstance(fact, PodRuns) and self.running_from is RunningFrom.RUNNING and pod.state == "B") or (
            isinstance(fact, PodIsReady) and self.running_from is not RunningFrom.BINDING and pod.state != "E"
        ):
            pod.enter("E", at)
        elif isinstance(fact, PodIsUnready) and self.running_from is RunningFrom.READY and pod.state == "E" and not job:
            pod.enter("D", at)
        elif isinstance(fact, PodIsTerminating):
            pod.terminating = True
        elif isinstance(fact, PodEnded | PodDeleted):
            pod.ended = max(at, pod.states[-1][1])
            pod.succeeded = isinstance(fact, PodEnded) and fact.succeeded

    def of(self, key: ControllerKey) -> list[PodStory]:
        return [pod for pod in self.pods.values() if pod.controller == key]

    def times(self, key: ControllerKey, now: float) -> tuple[float, float, float, float]:
        """Effective, discarded, waiting and binding time of a controller."""
        pods, approach = self.of(key), self.promises[key].approach
        waiting, binding = (sum(pod.spent(state, now) for pod in pods) for state in "WB")
        runs, unready = (sum(pod.spent(state, now) for pod in pods) for state in "ED")
        if approach is QosApproach.AGGREGATE:
            lost = sum(pod.spent("E", now) for pod in pods if pod.ended is not None and not pod.succeeded)
            return runs - lost, unready + lost, waiting, binding
        if approach is QosApproach.CONCURRENT:
            together = self.together(key, now)
            return together, unready + runs - together, waiting, binding
        return runs, unready, waiting, binding

    def together(self, key: ControllerKey, now: float) -> float:
        """Running time while at least as many replicas ran as were needed."""
        runs = [(start, end) for pod in self.of(key) for state, start, end in pod.intervals(now) if state == "E"]
        moments = sorted(
            {now, *(t for run in runs for t in run), *(at for at, _ in self.needed[key] if at > -math.inf)}
        )
        total = 0.0
        for start, end in itertools.pairwise(moments):
            running = sum(begin <= start and end <= until for begin, until in runs)
            needed = [number for at, number in self.needed[key] if at <= start][-1]
            total += (end - start) * running if running >= needed else 0.0
        return total

    def metric(self, key: ControllerKey, now: float) -> float:
        """The QoS metric of a waiting pod, as the specification says it."""
        promise, (effective, discarded, waiting, binding) = self.promises[key], self.times(key, now)
        s, total = promise.slo, effective + discarded + waiting + binding
        overhead = binding / len(self.of(key)) if binding > CLEAR else 2.4
        held = [pod for pod in self.of(key) if pod.ended is None and not pod.terminating]
        running = sum(pod.state == "E" for pod in held)
        qos = effective / total if total > 0 else 0.0
        if s == 0:
            return math.inf if effective > CLEAR else 0.0
        if promise.approach is QosApproach.INDEPENDENT or effective - s * total < -CLEAR or qos == 0:
            return effective / s - total - overhead
        if promise.approach is QosApproach.CONCURRENT:
            needed = max(self.needed[key][-1][1], 1)
            return effective / (needed * s) - total / needed
        if abs(effective - s * total) <= CLEAR:
            return 0.0
        if running / len(held) >= s:
            return math.inf
        return (effective - s * total) / (len(held) * s - running) - overhead

    def clearly_precedes(self, one: ControllerKey, other: ControllerKey, now: float) -> bool:
        """Whether one goes before the other by more than rounding."""
        metric, against = self.metric(one, now), self.metric(other, now)
        if any(abs(each - self.margin) < CLEAR for each in (metric, against)):
            return False
        if metric < self.margin and against < self.margin:
            importance, its = self.promises[one].importance, self.promises[other].importance
            if importance != its:
                return importance > its
        return metric < against - CLEAR * max(1.0, abs(against)) if math.isfinite(against) else metric < against
