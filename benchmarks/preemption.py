"""
Preemption: milliseconds for one attempt to make room on a full cluster.

Every node has ten pods of ten priorities and no room. Each attempt is one pod that fits nowhere: the loop evaluates the
filters, compares the victims on all nodes, nominates one and evicts there.

- `first` is the first attempt, which sorts all pods; `steady` is a later one.
- `budgets`: a disruption budget for every controller protects every pod.
- `spread`: the pod has spread constraints for nodes and zones.
- `affinity`: the pod and all placed pods have required anti-affinity, and the pod has required affinity.
- `ports`: the pod requests a host port that is in use on every node.
- `disks`: it needs a disk that is in use on every node.
- `hopeless`: the spread constraints refuse all nodes, and the attempt only counts reasons.

CPU time, because that is what the loop is blocked for on a quiet machine; the median of several attempts.
"""

import json
import statistics
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from lamina.model import events
from lamina.model.disruption_budget import PodDisruptionBudget
from lamina.model.pod import HostPort, Pod, PodTerm, SpreadConstraint
from lamina.model.pod_volumes import GCE_DISK, PodVolume
from lamina.model.selectors import LabelSelector
from lamina.scheduling.config.named_profiles import KUBE_DEFAULT, named
from lamina.scheduling.contract.commands import Evict
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.plugins.in_tree import registry
from lamina.testing import a_node, a_pod

NAME = "preemption"
SUMMARY = "CPU ms per preemption attempt on 1,000 to 15,000 full nodes"

LADDER: Final = (1000, 5000, 15000)
PER_NODE: Final = 10
ATTEMPTS: Final = 20
FEW: Final = 5
GOAL_MS: Final = 50.0
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
NEW: Final = LabelSelector((("app", "new"),))
SPREAD: Final = (SpreadConstraint(5, HOST, selector=NEW), SpreadConstraint(5, ZONE, selector=NEW))
CROWDED: Final = (SpreadConstraint(1, ZONE, selector=LabelSelector((("app", "app-1"),)), min_domains=9),)
PORTS: Final = (HostPort(8080),)
DISKS: Final = (PodVolume(GCE_DISK, "disk"),)
KINDS: Final = ("steady", "spread", "affinity", "ports", "disks", "hopeless")
"""Attempts that are measured one after the other."""


def full_cluster(nodes: int, change: Callable[[Pod], Pod], *, budgets: bool = False) -> Loop:
    """Return a loop that knows a full cluster; *change* completes the placed pods."""
    loop = Loop(named(KUBE_DEFAULT, registry(entry_points=False)).profiles, lambda _: 0)
    loop.feed(
        *(
            events.NodeSeen(a_node(f"n{number}", cpu=PER_NODE, labels={HOST: f"n{number}", ZONE: f"z{number % 3}"}))
            for number in range(nodes)
        )
    )
    for number in range(nodes):
        loop.take(*(events.PodSeen(change(_placed(number, place))) for place in range(PER_NODE)))
    if budgets:
        loop.take(*(events.ObjectSeen(_budget(number)) for number in range(200)))
    return loop


def _placed(number: int, place: int) -> Pod:
    app = f"app-{(number * PER_NODE + place) % 200}"
    return a_pod(
        f"low-{number}-{place}",
        cpu=1,
        priority=(number + place) % PER_NODE,
        labels={"app": app},
        on=f"n{number}",
        started=True,
        started_at=1.0 + (number * 7919 + place * 31) % 100_000,
    )


def _budget(number: int) -> PodDisruptionBudget:
    selector = LabelSelector((("app", f"app-{number}"),))
    return PodDisruptionBudget(
        namespace="default", name=f"b{number}", selector=selector, disruptions_allowed=number % 3
    )


def attempts(loop: Loop, make: Callable[[int], Pod], count: int) -> list[float]:
    """Return the milliseconds of each attempt; the victims leave after it."""
    found = []
    for number in range(count):
        pod = make(number)
        began = time.process_time()
        commands = loop.feed(events.PodSeen(pod))
        found.append((time.process_time() - began) * 1000)
        victims = [one.pod for one in commands if isinstance(one, Evict)]
        assert victims, "room was made"
        loop.take(*(events.PodGone(one.uid) for one in victims), events.PodGone(pod.uid))
        loop.take(*(events.PodSeen(one) for one in victims))
    return found


def high(number: int) -> Pod:
    """Return a pod that preempts."""
    return a_pod(f"high-{number}", cpu=3, priority=100 + number % 7, labels={"app": "new"})


def _apart(app: str) -> tuple[PodTerm, ...]:
    return (PodTerm(HOST, LabelSelector((("app", app),))),)


def _placed_for(kind: str, pod: Pod) -> Pod:
    """Return a placed pod as it is when attempts of a kind are measured."""
    first = pod.name.endswith("-0")
    if kind == "affinity":
        return msgspec.structs.replace(pod, repels=_apart(pod.labels["app"]))
    if kind == "ports" and first:
        return msgspec.structs.replace(pod, host_ports=PORTS)
    if kind == "disks" and first:
        return msgspec.structs.replace(pod, volumes=DISKS)
    return pod


def _preemptor(kind: str, number: int) -> Pod:
    """Return the pod of one attempt of a kind."""
    pod = high(number)
    if kind == "spread":
        return msgspec.structs.replace(pod, spread=SPREAD)
    if kind == "affinity":
        near = (PodTerm(ZONE, LabelSelector((("app", "app-8"),))),)
        return msgspec.structs.replace(pod, labels={"app": "app-7"}, repels=_apart("app-7"), required_pods=near)
    if kind == "ports":
        return msgspec.structs.replace(pod, host_ports=PORTS)
    if kind == "disks":
        return msgspec.structs.replace(pod, volumes=DISKS)
    return pod


def hopeless(loop: Loop, count: int) -> list[float]:
    """Return the milliseconds of attempts that find no candidate."""
    found = []
    for number in range(count):
        pod = msgspec.structs.replace(high(number), spread=CROWDED)
        began = time.process_time()
        commands = loop.feed(events.PodSeen(pod))
        found.append((time.process_time() - began) * 1000)
        assert not any(isinstance(one, Evict) for one in commands), "no room can be made"
        loop.take(events.PodGone(pod.uid))
    return found


def main() -> dict[str, Any]:
    """Run the ladder; return the figures."""
    figures: dict[str, Any] = {"goal_ms_5000": GOAL_MS}
    for nodes in LADDER:
        for kind in KINDS:
            loop = full_cluster(nodes, lambda pod, kind=kind: _placed_for(kind, pod))  # type: ignore[misc]
            first = attempts(loop, lambda number, kind=kind: _preemptor(kind, number), 1)  # type: ignore[misc]
            if kind == "steady":
                figures[f"ms_first_{nodes}"] = round(first[0], 2)
            count = ATTEMPTS if kind == "steady" else FEW
            if kind == "hopeless":
                times = hopeless(loop, count)
            else:
                times = attempts(loop, lambda number, kind=kind: _preemptor(kind, number), count)  # type: ignore[misc]
            figures[f"ms_{kind}_{nodes}"] = round(statistics.median(times), 2)
        loop = full_cluster(nodes, lambda pod: pod, budgets=True)
        attempts(loop, high, 1)
        figures[f"ms_budgets_{nodes}"] = round(statistics.median(attempts(loop, high, FEW)), 2)
    limited = ("first", "budgets", *KINDS)
    return {**figures, "ok": all(figures[f"ms_{kind}_5000"] <= GOAL_MS for kind in limited)}


if __name__ == "__main__":
    print(json.dumps({"benchmark": NAME, **main()}))
