"""
Preemption: milliseconds for one attempt to make room on a full cluster.

Every node has ten pods of ten priorities and no room. Each attempt is one pod that fits nowhere: the loop evaluates the
filters, compares the victims on all nodes, nominates one and evicts there. `budgets` has a disruption budget for every
controller, so that every pod is protected by one. `cold` is the first attempt, which reads all pods. `each_node` is a
pod with a spread constraint: every candidate needs a dry run of its own, and the search ends after enough of them.

CPU time, because that is what the loop is blocked for on a quiet machine; the median of several attempts.
"""

import json
import statistics
import time
from collections.abc import Callable
from typing import Any

from lamina.model import events
from lamina.model.disruption_budget import PodDisruptionBudget
from lamina.model.pod import Pod, SpreadConstraint
from lamina.model.selectors import LabelSelector
from lamina.scheduling.config.named_profiles import KUBE_DEFAULT, named
from lamina.scheduling.contract.commands import Evict
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.plugins.in_tree import registry
from lamina.testing import a_node, a_pod

NAME = "preemption"
SUMMARY = "CPU ms per preemption attempt on 1,000 to 15,000 full nodes"

LADDER = (1000, 5000, 15000)
PER_NODE = 10
ATTEMPTS = 30
GOAL_MS = 50.0
SPREAD = (SpreadConstraint(5, "kubernetes.io/hostname", selector=LabelSelector((("app", "new"),))),)


def full_cluster(nodes: int, *, budgets: bool) -> Loop:
    """Return a loop that knows a full cluster."""
    loop = Loop(named(KUBE_DEFAULT, registry(entry_points=False)).profiles, lambda _: 0)
    loop.feed(
        *(
            events.NodeSeen(a_node(f"n{number}", cpu=PER_NODE, labels={"kubernetes.io/hostname": f"n{number}"}))
            for number in range(nodes)
        )
    )
    for number in range(nodes):
        loop.take(*(events.PodSeen(_placed(number, place)) for place in range(PER_NODE)))
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
    return a_pod(f"high-{number}", cpu=3, priority=100 + number % 7)


def spread(number: int) -> Pod:
    """Return a preempting pod with a spread constraint."""
    return a_pod(f"spread-{number}", cpu=3, priority=100, labels={"app": "new"}, spread=SPREAD)


def main() -> dict[str, Any]:
    """Run the ladder; return the figures."""
    figures: dict[str, Any] = {"goal_ms_5000": GOAL_MS}
    for nodes in LADDER:
        loop = full_cluster(nodes, budgets=False)
        cold = attempts(loop, high, 1)
        figures[f"ms_cold_{nodes}"] = round(cold[0], 2)
        figures[f"ms_per_attempt_{nodes}"] = round(statistics.median(attempts(loop, high, ATTEMPTS)), 2)
        figures[f"ms_each_node_{nodes}"] = round(statistics.median(attempts(loop, spread, 3)), 2)
        loop = full_cluster(nodes, budgets=True)
        attempts(loop, high, 1)
        figures[f"ms_budgets_{nodes}"] = round(statistics.median(attempts(loop, high, ATTEMPTS)), 2)
    return {**figures, "ok": figures["ms_per_attempt_5000"] <= GOAL_MS}


if __name__ == "__main__":
    print(json.dumps({"benchmark": NAME, **main()}))
