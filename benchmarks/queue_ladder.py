"""
Cost of waiting pods for the loop, and how it grows with their number.

*event*: CPU time of `Loop.feed` for one `PodGone` of another scheduler's pod that helps no waiting pod: gated pods, or
that many unschedulable shapes. *woken* is a pod of a group that waited and finds room, *fresh* the same pod if it
arrives when there is room. *standby*: memory kept per pod that arrived, was bound by another instance and ended. *wide
pod*: 3,200 extended resources requested by one pod among 2,000 nodes, pending and placed; the slower of the two.
*taints*: one decision after a node's taints changed, on a cluster that has had none and 20,000 other sets of taints.

CPU time, the least of several interleaved rounds.
"""

import gc
import itertools
import json
import time
import tracemalloc
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from lamina.model import events
from lamina.model.pod import Pod, PodUid
from lamina.model.taints import PREFER_NO_SCHEDULE, Taint
from lamina.scheduling.loop.loop import Loop
from lamina.testing import a_loop, a_node, a_pod

NAME = "queue-ladder"
SUMMARY = "µs per event with many gated pods and unschedulable shapes, per pod woken; standby, wide pods and taints"

GATED: Final = (1_000, 5_000, 20_000)
SHAPES: Final = (500, 2_000, 8_000)
GROUPS: Final = (500, 2_000, 4_000)
EVENTS, ROUNDS, GROUP_ROUNDS = 100, 15, 4
STANDBY, WARM_UP = 20_000, 2_000
WIDE_NODES, WIDE_RESOURCES = 2_000, 3_200
WIDE_CASES: Final = {"pending": "", "placed": "n1"}
TAINT_CHANGES, TAINT_NODES, DECISIONS = 20_000, 100, 20
PLUGINS = (
    "SchedulingGates",
    "PrioritySort",
    "NodeUnschedulable",
    "TaintToleration",
    "NodeResourcesFit",
    "DefaultBinder",
)


def cpu(work: Callable[[], object]) -> float:
    """Return the CPU seconds of *work*; earlier garbage is collected before."""
    gc.collect()
    begin = time.process_time_ns()
    work()
    return (time.process_time_ns() - begin) / 1e9


def a_full_cluster(pods: Iterable[Pod]) -> Loop:
    """Return a loop over one nearly full node, with pods that wait."""
    loop = a_loop(PLUGINS)
    loop.feed(events.TimePassed(1.0), events.NodeSeen(a_node("n", cpu=1, memory="1000Gi", pods=100_000)))
    loop.feed(*(events.PodSeen(pod) for pod in pods))
    return loop


def gated(count: int) -> Loop:
    """Return a loop with *count* gated pods."""
    return a_full_cluster(msgspec.structs.replace(a_pod(f"g{n}"), gates=("example.com/quota",)) for n in range(count))


def shapes(count: int) -> Loop:
    """Return a loop with *count* waiting pods of different shapes, with two resources each."""
    return a_full_cluster(a_pod(f"s{n}", cpu=f"{2_000 + n}m", memory=f"{1 + n % 97}Gi") for n in range(count))


def crossed(count: int) -> Loop:
    """Return a loop with *count* waiting shapes: half of them need more cpu, the other half more memory."""
    return a_full_cluster(
        a_pod(f"c{n}", cpu=f"{2_000 + n}m", memory="1Mi")
        if n % 2
        else a_pod(f"c{n}", cpu="1m", memory=f"{2_000 + n}Gi")
        for n in range(count)
    )


def events_of(loops: dict[int, Loop]) -> dict[int, float]:
    """Return the least µs of an event on each loop."""
    best = dict.fromkeys(loops, float("inf"))
    for number in range(ROUNDS):
        for count, loop in loops.items():
            names = [PodUid(f"foreign-{number}-{n}") for n in range(EVENTS)]
            loop.feed(*(events.PodSeen(a_pod(name, cpu="1m", on="n", scheduler="another")) for name in names))

            def end(loop: Loop = loop, names: list[PodUid] = names) -> None:
                for name in names:
                    loop.feed(events.PodGone(name))

            best[count] = min(best[count], cpu(end) / EVENTS * 1e6)
            assert count == len(loop.queue), "the events help no pod"
    return best


def woken_and_fresh() -> tuple[dict[int, float], dict[int, float]]:
    """Return the least µs per pod of a group that waited, and of the same pods if there is room already."""
    big = events.NodeSeen(a_node("big", cpu=100_000, memory="100000Gi", pods=100_000))
    woken, fresh = (dict.fromkeys(GROUPS, float("inf")) for _ in range(2))
    for _, size in itertools.product(range(GROUP_ROUNDS), GROUPS):
        seen = [events.PodSeen(a_pod(f"p{n}", cpu=2)) for n in range(size)]
        loop, other = a_full_cluster(()), a_full_cluster(())
        loop.feed(*seen)
        loop.feed(events.TimePassed(20.0))
        other.feed(events.TimePassed(20.0), big)
        woken[size] = min(woken[size], cpu(lambda loop=loop: loop.feed(big)) / size * 1e6)  # type: ignore[misc]
        fresh[size] = min(fresh[size], cpu(lambda loop=other, seen=seen: loop.feed(*seen)) / size * 1e6)  # type: ignore[misc]
        assert len(loop.queue) + len(other.queue) == 0, "every pod found room"
    return woken, fresh


def standby() -> float:
    """Return the bytes kept per pod that an instance has seen arrive and end without a decision."""
    loop = a_full_cluster(())

    def come_and_go(numbers: range) -> None:
        for number in numbers:
            pod = a_pod(f"pod-{number}", cpu="1m")
            loop.take(events.TimePassed(2.0 + number / 10), events.PodSeen(pod))
            loop.take(events.PodSeen(msgspec.structs.replace(pod, node_name="n")), events.PodGone(pod.uid))

    tracemalloc.start()
    come_and_go(range(WARM_UP))
    gc.collect()
    before, _ = tracemalloc.get_traced_memory()
    come_and_go(range(WARM_UP, WARM_UP + STANDBY))
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (after - before) / STANDBY


def wide(case: str, node: str) -> Pod:
    """Return a pod that requests many resources."""
    return a_pod(case, more={f"example.com/r{n}": 1 for n in range(WIDE_RESOURCES)}, on=node)


def wide_pod() -> dict[str, float]:
    """Return the seconds that a pod with many resources takes, pending and placed."""
    loop = a_wide_cluster()
    took: dict[str, float] = {}
    for case, node in WIDE_CASES.items():
        pod = wide(case, node)
        took[case] = cpu(lambda pod=pod: loop.feed(events.PodSeen(pod)))  # type: ignore[misc]
        loop.feed(events.PodGone(pod.uid))
    return took


def a_wide_cluster() -> Loop:
    """Return a loop over nodes that have none of these resources."""
    loop = a_loop(PLUGINS)
    loop.feed(events.TimePassed(1.0), *(events.NodeSeen(a_node(f"n{n}")) for n in range(WIDE_NODES)))
    loop.feed(events.PodSeen(a_pod("ordinary", cpu=1)))
    return loop


def kept_of_wide_pod() -> int:
    """Return the bytes kept after a pod with many resources has ended; separate, because tracing takes time."""
    loop = a_wide_cluster()
    gc.collect()
    tracemalloc.start()
    for case, node in WIDE_CASES.items():
        loop.feed(events.PodSeen(wide(case, node)))
        loop.feed(events.PodGone(PodUid(case)))
    gc.collect()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return kept


def tainted(name: str, value: str) -> events.NodeSeen:
    """Return the event of a node with a taint as cluster-autoscaler sets it on nodes it may delete."""
    taints = [Taint("DeletionCandidateOfClusterAutoscaler", value, PREFER_NO_SCHEDULE)] if value else []
    return events.NodeSeen(a_node(name, cpu=100_000, pods=100_000, taints=taints))


def taints() -> dict[int, float]:
    """Return the least µs of a decision after a change of taints, by the number of earlier changes."""
    loops = {changes: a_loop(PLUGINS) for changes in (0, TAINT_CHANGES)}
    for changes, loop in loops.items():
        loop.feed(events.TimePassed(1.0), *(tainted(f"n{n}", "") for n in range(TAINT_NODES)))
        for number in range(changes):
            name = f"n{number % TAINT_NODES}"
            loop.feed(tainted(name, str(1_700_000_000 + number)), tainted(name, ""))
    best = dict.fromkeys(loops, float("inf"))
    for number, (changes, loop) in itertools.product(range(ROUNDS), loops.items()):
        total = 0
        for n in range(DECISIONS):
            loop.take(tainted("n0", f"{number}-{n}"), events.PodSeen(a_pod(f"t-{number}-{n}", cpu=f"{n + 1}m")))
            begin = time.process_time_ns()
            loop.decide()
            total += time.process_time_ns() - begin
        best[changes] = min(best[changes], total / DECISIONS / 1e3)
    return best


def main() -> dict[str, object]:
    """Run all sizes and print the tables."""
    by_gated = events_of({count: gated(count) for count in GATED})
    by_shapes = events_of({count: shapes(count) for count in SHAPES})
    by_crossed = events_of({count: crossed(count) for count in SHAPES})
    woken, fresh = woken_and_fresh()
    by_taints = taints()
    rows = {
        "gated pods, µs per event": by_gated,
        "shapes, µs per event": by_shapes,
        "shapes that lack one of two": by_crossed,
        "size of group, µs per pod woken": woken,
        "and fresh": fresh,
        "taint changes, µs per decision": by_taints,
    }
    for title, row in rows.items():
        print(f"{title:>32}  " + "  ".join(f"{count:>7,}: {value:8.1f}" for count, value in row.items()))
    bytes_standby = standby()
    print(f"{'bytes kept per pod on a standby':>32}  {bytes_standby:.1f}")
    took = wide_pod()
    kept = kept_of_wide_pod()
    print(f"{'wide pod, s':>32}  " + "  ".join(f"{case}: {value:.3f}" for case, value in took.items()))
    print(f"{'bytes kept of it':>32}  {kept:,}")
    return {
        "us_per_event_gated": _rounded(by_gated),
        "growth_gated": round(by_gated[GATED[-1]] / by_gated[GATED[0]], 2),
        "us_per_event_shapes": _rounded(by_shapes),
        "growth_shapes": round(by_shapes[SHAPES[-1]] / by_shapes[SHAPES[0]], 2),
        "us_per_event_shapes_crossed": _rounded(by_crossed),
        "us_per_pod_woken": _rounded(woken),
        "us_per_pod_fresh": _rounded(fresh),
        "bytes_per_pod_standby": round(bytes_standby, 1),
        "seconds_wide_pod": round(max(took.values()), 3),
        "seconds_wide_pod_by_case": {case: round(value, 3) for case, value in took.items()},
        "bytes_kept_wide_pod": kept,
        "us_per_decision_taints": _rounded(by_taints),
    }


def _rounded(row: dict[int, float]) -> dict[str, float]:
    return {str(count): round(value, 1) for count, value in row.items()}


if __name__ == "__main__":
    print(json.dumps({"benchmark": NAME, **main()}))
