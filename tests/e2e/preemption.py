"""
Preemption on a real API server: graceful evictions, disruption budgets, and a scheduler that is killed in between.

The controller-manager counts what budgets allow, and kwok plays kubelets that let a deleted pod run until its grace ends.
The story has three parts on the same full nodes:

    without permission   the scheduler must not delete pods: one warning, no nomination is left, the pods say why
    graceful             preemptors of one moment; each goes to its nominated node, and no budget is violated
    killed               SIGKILL at RUNS (default 30) moments while pods are evicted; low-priority pods wait for the room

In the last part each preemptor needs a whole node, so evictions in vain show as nodes that no preemptor uses.
"""

import os
import random
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, Final

import yaml

from lamina.scheduling.loop.evictions import EVICTIONS_OFF
from testbed import Testbed
from testbed.kwok_stages import IS_DELETED, STAGES, stage
from tests.e2e._preemption_seen import Chronicle, SeenPod
from tests.integration.scheduler.live import DEPLOY, Lamina, install, until
from tests.integration.scheduler.truth import Arrivals, add_pods, pod, waiting

NAME = "preemption"
SUMMARY = (
    "Real evictions: graceful, within budgets, onto the nominated node; then kill -9 at RUNS (30) moments of them."
)
NEEDS = ()

SEED: Final = 40
NODES: Final = [f"n{number}" for number in range(8)]
CORES: Final = 4
GRACE: Final = 2
GRACES: Final = (1, 2, 3, 4)
PRIORITIES: Final = {"low": 1, "middle": 5, "high": 1000}
ROLE: Final = DEPLOY / "rbac" / "optional" / "scheduler-preemption.yaml"
NO_PERMISSION: Final = "evictions are forbidden"
PER_ROUND: Final = 3
"""Kills in one round."""
ARRIVING: Final = 6
"""Preemptors of one round, each as large as a node."""
THIEVES: Final = 2
"""Low-priority pods of one round that wait for any room."""
SETTLED_WITHIN: Final = 60.0
PODS: Final = "/api/v1/namespaces/default/pods"


def main() -> dict[str, Any]:
    """Run the three parts."""
    kills = int(os.environ.get("RUNS", "30"))
    with Testbed.start(parts=("etcd", "kube-apiserver", "kube-controller-manager")) as bed:
        prepare(bed)
        with Chronicle(bed) as seen:
            found = without_permission(bed, seen)
            bed.kubectl("apply", "-f", str(ROLE))
            with Lamina(bed) as scheduler:
                found |= graceful(bed, seen)
                found |= killed(bed, seen, scheduler, kills)
                assert [] == scheduler.complaints()
                assert [] == scheduler.differences()
            twice = [one.name for one in seen.select(lambda one: len(one.deletions) > 1)]
            found |= {"overfull": len(seen.overfull), "deletions_changed": len(twice)}
            assert [] == seen.overfull
    assert found["victims"] == found["victims_graceful"], found
    assert found["preemptor_on_nominated"], found
    assert (0, 0) == (found["pdb_violations"], found["evicted_twice"]), found
    return found


def prepare(bed: Testbed) -> None:
    """Install, let kwok respect the grace of pods, and add nodes and priorities."""
    install(bed)
    bed.start_part("kwok", config=stages_with_grace(bed.folder / "stages.yaml"))
    bed.add_nodes({"name": name, "cpu": str(CORES), "memory": "64Gi"} for name in NODES)
    for name, value in PRIORITIES.items():
        body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        bed.api("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {**body, "value": value})


def stages_with_grace(path: Path) -> Path:
    """Write the testbed's stages, but a deleted pod runs until its deletion timestamp."""
    leaving = stage(
        "pod-gone",
        "Pod",
        [IS_DELETED],
        {"delete": True},
        {"durationFrom": {"expressionFrom": ".metadata.deletionTimestamp"}},
    )
    others = [one for one in STAGES if one["metadata"]["name"] != "pod-gone"]
    path.write_text(yaml.safe_dump_all([*others, leaving]), encoding="utf-8")
    return path


# -- pods --------------------------------------------------------------------------------------------------------------


def made(name: str, cores: int, priority: str = "low", **more: Any) -> dict[str, Any]:
    """Return a pod; its name's first word becomes a label."""
    spec = {"priorityClassName": priority, "terminationGracePeriodSeconds": GRACE, **more}
    wanted = pod(name, cpu=str(cores), **spec)
    wanted["metadata"]["labels"] = {"kind": name.partition("-")[0]}
    return wanted


def fill(bed: Testbed, pods: list[dict[str, Any]]) -> None:
    """Create pods that are on a node already, and wait until they run."""
    add_pods(bed, pods)

    def all_run() -> bool:
        found = bed.api("GET", PODS)["items"]
        return len(found) == len(pods) and all(one["status"].get("phase") == "Running" for one in found)

    until(all_run, SETTLED_WITHIN, f"{len(pods)} pods run")


def clear(bed: Testbed) -> None:
    """Delete all pods without grace."""
    bed.api("DELETE", f"{PODS}?gracePeriodSeconds=0")
    until(lambda: not bed.api("GET", PODS)["items"], SETTLED_WITHIN, "all pods are gone")


def kind(one: SeenPod) -> str:
    """Return the first word of a pod's name."""
    return one.name.partition("-")[0]


# -- without permission ------------------------------------------------------------------------------------------------


def without_permission(bed: Testbed, seen: Chronicle) -> dict[str, Any]:
    """Let pods arrive that need evictions, while the scheduler may not delete pods."""
    fill(bed, [made(f"resident-{node}", CORES, nodeName=node) for node in NODES])
    with Lamina(bed) as scheduler:
        add_pods(bed, [made(f"rejected-{number}", CORES, "high") for number in range(3)])

        def all_say_so() -> bool:
            pods = [one for one in bed.api("GET", PODS)["items"] if one["metadata"]["name"].startswith("rejected")]
            return all(EVICTIONS_OFF in message_of(one) and not nominated(one) for one in pods)

        until(all_say_so, SETTLED_WITHIN, "the pods mention the missing permission and are not nominated")
        warnings = [one for one in scheduler.said() if NO_PERMISSION in one["msg"]]
        complaints = scheduler.complaints()
    left, evictions = bed.api("GET", PODS)["items"], seen.evictions
    clear(bed)
    assert [] == complaints
    assert 1 == len(warnings), warnings
    assert len(NODES) + 3 == len(left), "no pod leaves"
    assert 0 == evictions
    print(f"without permission: {len(warnings)} warning, 3 pods unschedulable, 0 evicted", flush=True)
    return {"warnings_without_permission": len(warnings)}


def message_of(item: dict[str, Any]) -> str:
    """Return why a pod is not scheduled."""
    conditions = item["status"].get("conditions", ())
    return next((one.get("message", "") for one in conditions if one["type"] == "PodScheduled"), "")


def nominated(item: dict[str, Any]) -> str:
    """Return the node a pod is nominated for."""
    return str(item["status"].get("nominatedNodeName", ""))


# -- graceful ----------------------------------------------------------------------------------------------------------


def graceful(bed: Testbed, seen: Chronicle) -> dict[str, Any]:
    """
    Let ten preemptors of two cores arrive, for which there is just enough room within the budgets.

        n0, n1       four pods of `tight` each; nothing may be disrupted
        n2           two pods of `tight`, two that are free
        n3           four pods of `loose`, of which two may go; their priority is higher, so they are the last choice
        n4 .. n7     four free pods each
    """
    kinds = {"n0": ["tight"] * 4, "n1": ["tight"] * 4, "n2": ["tight", "tight", "free", "free"], "n3": ["loose"] * 4}
    fill(
        bed,
        [
            made(f"{name}-{node}-{place}", 1, "middle" if name == "loose" else "low", nodeName=node)
            for node in NODES
            for place, name in enumerate(kinds.get(node, ["free"] * 4))
        ],
    )
    budgets = {"tight": (10, 0), "loose": (2, 2)}
    for name, (at_least, allowed) in budgets.items():
        make_budget(bed, name, at_least, allowed)
    add_pods(bed, [made(f"preemptor-{number}", 2, "high") for number in range(10)])
    until(lambda: not waiting(bed), SETTLED_WITHIN, "all preemptors are bound")
    preemptors = seen_bound(seen, "preemptor", 10)
    victims = seen.select(lambda one: one.targeted and kind(one) in {"tight", "loose", "free"})
    count = Counter(kind(one) for one in victims)
    violations = sum(max(0, count[name] - allowed) for name, (_, allowed) in budgets.items())
    twice = evicted_twice(bed, needed=2)
    for name in budgets:
        bed.api("DELETE", f"/apis/policy/v1/namespaces/default/poddisruptionbudgets/{name}")
    clear(bed)
    gentle = sum(one.evicted and one.graceful and len(one.deletions) == 1 for one in victims)
    on_nominated = sum([one.node] == one.nominated for one in preemptors)
    print(
        f"graceful: {len(victims)} victims, {gentle} with their grace; "
        f"{on_nominated} of {len(preemptors)} preemptors on the only node they were nominated for",
        flush=True,
    )
    assert 20 == len(victims), count
    return {
        "preemptors": len(preemptors),
        "victims": len(victims),
        "victims_graceful": gentle,
        "preemptor_on_nominated": on_nominated == len(preemptors) == 10,
        "pdb_violations": violations,
        "evicted_twice": twice,
    }


def make_budget(bed: Testbed, name: str, at_least: int, allowed: int) -> None:
    """Create a disruption budget and wait until the controller has counted."""
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    spec = {"minAvailable": at_least, "selector": {"matchLabels": {"kind": name}}}
    body = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec}
    bed.api("POST", path, body)

    def counted() -> bool:
        status = bed.api("GET", f"{path}/{name}").get("status", {})
        return bool(status.get("currentHealthy")) and bool(status.get("disruptionsAllowed") == allowed)

    until(counted, SETTLED_WITHIN, f"budget {name} allows {allowed} disruptions")


def evicted_twice(bed: Testbed, needed: int) -> int:
    """Return how many victims preemptors took beyond the *needed* ones or on a second node, by the scheduler's events."""
    events = bed.api("GET", "/apis/events.k8s.io/v1/namespaces/default/events")["items"]
    taken: dict[str, set[str]] = defaultdict(set)
    nodes: dict[str, set[str]] = defaultdict(set)
    for one in events:
        if one.get("reason") == "Preempted":
            preemptor = one["related"]["uid"]
            taken[preemptor].add(one["regarding"]["uid"])
            nodes[preemptor].add(one["note"].rpartition(" ")[2])
    assert taken, "the scheduler's events are there"
    return sum(max(0, len(one) - needed) for one in taken.values()) + sum(len(one) - 1 for one in nodes.values())


# -- killed ------------------------------------------------------------------------------------------------------------


def killed(bed: Testbed, seen: Chronicle, scheduler: Lamina, kills: int) -> dict[str, Any]:
    """Kill the scheduler *kills* times in rounds of preemptions."""
    dice = random.Random(SEED)
    done = in_vain = most = stolen = at_work = bound = 0
    slowest = 0.0
    for number in range(-(-kills // PER_ROUND)):
        # The victims of a node leave one after another, and each leaves as much room as a thief needs.
        residents = [(node, grace) for node in NODES for grace in GRACES]
        fill(
            bed,
            [
                made(f"victim{number}-{node}-{grace}", 1, nodeName=node, terminationGracePeriodSeconds=grace)
                for node, grace in residents
            ],
        )
        add_pods(bed, [made(f"thief{number}-{place}", 1) for place in range(THIEVES)])
        coming = [made(f"taker{number}-{place}", CORES, "high") for place in range(ARRIVING)]
        arrivals = Arrivals(bed, coming, over=6.0)
        for _ in range(min(PER_ROUND, kills - done)):
            at_work += strike(seen, scheduler, dice)
            done += 1
        arrivals.wait()
        slowest = max(slowest, until(lambda: all_bound(bed, "taker"), SETTLED_WITHIN, "all preemptors are bound"))
        takers = seen_bound(seen, f"taker{number}", ARRIVING)
        emptied = {one.node for one in of_round(seen, f"victim{number}") if one.evicted}
        vain = emptied - {one.node for one in takers}
        most = max(most, *(len(vain & set(one.nominated)) for one in takers))
        stolen += sum(bool(one.node) for one in of_round(seen, f"thief{number}"))
        in_vain += len(vain)
        bound += len(takers)
        print(f"killed: round {number}, {done} kills, {len(emptied)} nodes emptied, {len(vain)} in vain", flush=True)
        until(scheduler.is_ready, SETTLED_WITHIN, "the scheduler is ready")
        clear(bed)
    assert most <= 1, "no pod evicts in vain more than once"
    assert 0 == stolen, "no pod of low priority takes the room of a preemptor"
    return {
        "kills": done,
        "killed_at_work": at_work,
        "bound_after_kills": bound,
        "nodes_emptied_in_vain": in_vain,
        "most_in_vain_for_one_pod": most,
        "low_priority_pods_bound": stolen,
        "settled_s": round(slowest, 1),
    }


def strike(seen: Chronicle, scheduler: Lamina, dice: random.Random) -> int:
    """Kill the scheduler at any moment, or right after a write of a preemption; return whether something was written."""
    before = seen.work_seen()
    if dice.random() < 0.5:
        time.sleep(dice.uniform(0.2, 2.5))
    else:
        patience = time.monotonic() + 4.0
        while seen.work_seen() == before and time.monotonic() < patience:
            time.sleep(0.002)
        time.sleep(dice.uniform(0.0, 0.04))
    at_work = int(seen.work_seen() > before)
    scheduler.kill()
    scheduler.start(wait=False)
    return at_work


def seen_bound(seen: Chronicle, name: str, count: int) -> list[SeenPod]:
    """Return the *count* pods whose name begins with the word *name*, once the watch has shown each on a node."""

    def all_seen() -> bool:
        found = of_round(seen, name)
        return len(found) == count and all(one.node for one in found)

    until(all_seen, SETTLED_WITHIN, f"{count} pods {name} seen on a node")
    return of_round(seen, name)


def of_round(seen: Chronicle, name: str) -> list[SeenPod]:
    """Return the pods whose name begins with the word *name*."""
    return seen.select(lambda one: kind(one) == name)


def all_bound(bed: Testbed, name: str) -> bool:
    """Return whether no pod whose name begins with *name* waits."""
    return not any(one.startswith(name) for one in waiting(bed))
