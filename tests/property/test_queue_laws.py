"""
Laws of the scheduling queue, held against one that walks over everything (`queue_oracle`).

Two loops are fed the same history; one has the plain queue. Every command must be the same, and every pod must be in the
same place after the same number of attempts: the index wakes what the walk wakes, no pod more and no pod less.
"""

import random
from collections.abc import Hashable, Iterator
from typing import ClassVar

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, note, settings
from hypothesis import strategies as st

from lamina.model import events
from lamina.model.decision import Refusal
from lamina.model.pod import HostPort, Pod, PodUid
from lamina.model.taints import NO_SCHEDULE, Taint
from lamina.scheduling.contract.commands import Bind, Command, ReportUnschedulable, WakeAt
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.points import QueuedPod, Reads, Verdicts, Wait
from lamina.scheduling.contract.status import Status, unschedulable
from lamina.scheduling.contract.waiting_pods import WaitingPods
from lamina.scheduling.loop import amount_index
from lamina.scheduling.loop.amount_index import AmountIndex
from lamina.scheduling.loop.grouped_heap import GroupedHeap
from lamina.scheduling.loop.lazy_heap import FEW, LazyHeap
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.state.cluster_changes import ChangeKind, ClusterChange
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView
from lamina.testing import a_loop, a_node, a_pod
from tests.property.queue_oracle import PlainQueue


class Ageing:
    """An order that changes with time alone."""

    name: ClassVar = "Ageing"
    changes_with_time: ClassVar = True

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def sort_key(self, queued: QueuedPod, now: float) -> tuple[float, ...]:
        return (-(queued.pod.priority + (now - queued.arrived_at) * (3 - queued.pod.priority)),)


class AnyGate:
    """Names no change, so that it is asked again after each; opens at a time as well."""

    name: ClassVar = "AnyGate"

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        self.asked: dict[str, int] = {}

    def pre_enqueue(self, pod: Pod) -> Status | None:
        if pod.labels.get("gate") != "any":
            return None
        self.asked[pod.uid] = self.asked.get(pod.uid, 0) + 1
        return unschedulable("closed") if self.asked[pod.uid] % 4 else None

    def retry_at(self, pod: Pod, now: float) -> float | None:
        return now + 7.0 if pod.priority else None


class NodeGate(AnyGate):
    """Opens when a node joins that has an even row."""

    name: ClassVar = "NodeGate"
    retry_on: ClassVar = frozenset({ChangeKind.NODE_ADDED})

    def pre_enqueue(self, pod: Pod) -> Status | None:
        return unschedulable("closed") if pod.labels.get("gate") == "node" and pod.uid not in self.asked else None

    def worth_retrying(self, pod: Pod, change: ClusterChange) -> bool:
        self.asked.update({pod.uid: 1} if change.row % 2 == 0 else {})
        return change.row % 2 == 0


class Curfew:
    """Refuses pods three times of four, and says when to come back: later, at once, or in the past."""

    name: ClassVar = "Curfew"
    reads: ClassVar = Reads()
    retry_on: ClassVar = frozenset({ChangeKind.LAYERS})

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        self.asked = 0

    def sign(self, pod: Pod) -> Hashable:
        return pod.labels.get("curfew")

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
        if "curfew" not in pod.labels:
            return None
        self.asked += 1
        if self.asked % 4 == 0:
            return None
        return Verdicts(np.ones(len(nodes), dtype=np.bool_), lambda code: Refusal("Curfew", ("too late",)))

    def retry_at(self, pod: Pod, now: float) -> float | None:
        return now + float(pod.labels["curfew"])


class Permit:
    """Holds pods with a label, so that they can be refused later."""

    name: ClassVar = "Permit"

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def permit(self, state: CycleState, pod: Pod, node: str, waiting: WaitingPods) -> Wait | None:
        return Wait(30.0) if "wait" in pod.labels else None


REST = (
    "SchedulingGates",
    AnyGate,
    NodeGate,
    Curfew,
    "NodeUnschedulable",
    "TaintToleration",
    "NodePorts",
    "NodeResourcesFit",
    Permit,
    "DefaultBinder",
)
NODES, PODS, STEPS = 3, 16, 70
LABELS: list[dict[str, str]] = [
    {"gate": "any"},
    {"gate": "node"},
    {"wait": ""},
    *({"curfew": seconds} for seconds in ("-5", "0.3", "2.5", "12", "1000")),
]
Step = tuple[object, ...]


def thrown(rng: random.Random) -> Iterator[tuple[Step, int]]:
    """
    Throw a history: steps, and after each how many pods are decided.

    0 stands for all that are ready, and -1 for a loop that does not get to decide. Few shapes, so that pods wait in groups
    and one step has to do with another; hypothesis by itself keeps such histories too short.
    """
    yield ("node", 0, 4, False, 1), 0
    for _ in range(STEPS):
        pod, node = rng.randrange(PODS), rng.randrange(NODES)
        kind = rng.choices(
            ["pod", "node", "node gone", "pod gone", "foreign", "foreign gone", "answer", "time"],
            [30, 8, 2, 8, 12, 12, 15, 30],
        )[0]
        more: dict[str, int] = rng.choice([{}, {}, {}, {}, {"example.com/gpu": 1}, {"example.com/nothing": 1}])
        labels = rng.choice(LABELS) if rng.random() < 0.3 else {}
        memory = rng.choice([None, None, "5Gi"])
        special = rng.choice([*[""] * 8, "port", "gates"])
        steps: dict[str, Step] = {
            "pod": ("pod", pod, rng.choice([2, 2, 3]), memory, more, rng.randrange(3), labels, special),
            "node": ("node", node, rng.randint(1, 6), rng.random() < 0.3, rng.randrange(3)),
            "node gone": ("node gone", node),
            "pod gone": ("pod gone", pod),
            "foreign": ("foreign", pod, node, rng.randint(1, 4)),
            "foreign gone": ("foreign gone", pod),
            "answer": ("answer", pod, rng.choice(["bound", "fails", "permit", "refuse"])),
            "time": ("time", rng.choice([0.1, 0.3, 0.5, 0.7, 1.0, 3.3, 20.0, 310.0])),
        }
        yield steps[kind], rng.choice([0, 0, 0, 1, 2, -1])


def with_nominations(seed: int) -> Iterator[tuple[Step, int]]:
    """Throw a history in which another scheduler nominates nodes for its pods, and gives them up again."""
    rng = random.Random(seed)
    for step in thrown(random.Random(seed)):
        yield step
        if rng.random() < 0.3:
            number, node = rng.randrange(4), rng.randrange(NODES)
            how = rng.choice(["nominated", "nominated", "nominated gone"])
            yield (how, number, node, rng.randint(1, 4), rng.randrange(3)), rng.choice([0, -1])


def happening(step: Step, now: float) -> list[events.Event]:
    """Say what a step of a history is, in events."""
    event: events.Event | None = None
    match step:
        case ("pod", int(number), int(cpu), memory, dict(more), int(priority), dict(labels), str(special)):
            pod = a_pod(f"p{number}", cpu or None, memory, more=more, priority=priority, labels=labels)  # type: ignore[arg-type]
            ports, gates = ((HostPort(80),) if special == "port" else ()), (("a",) if special == "gates" else ())
            event = events.PodSeen(msgspec.structs.replace(pod, host_ports=ports, gates=gates))
        case ("node", int(number), int(cpu), bool(tainted), int(gpus)):
            taints = [Taint("a", "", NO_SCHEDULE)] if tainted else []
            more = {"example.com/gpu": gpus} if gpus else {}
            event = events.NodeSeen(a_node(f"n{number}", cpu, "8Gi", 3, taints=taints, more=more))
        case ("node gone", int(number)):
            event = events.NodeGone(f"n{number}")
        case ("pod gone", int(number)):
            event = events.PodGone(PodUid(f"p{number}"))
        case ("foreign", int(number), int(node), int(cpu)):
            event = events.PodSeen(a_pod(f"f{number}", cpu, on=f"n{node}"))
        case ("nominated", int(number), int(node), int(cpu), int(priority)):
            other = a_pod(f"x{number}", cpu, priority=priority, nominated=f"n{node}", scheduler="another")
            event = events.PodSeen(other)
        case ("nominated gone", int(number), *_):
            event = events.PodGone(PodUid(f"x{number}"))
        case ("foreign gone", int(number)):
            event = events.PodGone(PodUid(f"f{number}"))
        case ("answer", int(number), str(how)):
            uid = PodUid(f"p{number}")
            answers: dict[str, events.Event] = {
                "bound": events.BindDone(uid),
                "fails": events.BindFailed(uid, "conflict"),
                "permit": events.PermitGiven(uid, "Permit"),
                "refuse": events.PermitRefused(uid, "Permit", "no"),
            }
            event = answers[how]
        case ("time", float()):
            event = events.TimePassed(now)
    return [] if event is None else [event]


def said(commands: list[Command]) -> list[tuple[object, ...]]:
    lines: list[tuple[object, ...]] = []
    for command in commands:
        match command:
            case Bind(pod, node, _):
                lines.append(("bind", pod.name, node))
            case ReportUnschedulable(pod, decision):
                lines.append(("pending", pod.name, decision.message))
            case WakeAt(at):
                lines.append(("wake", at))
    return lines


def places(loop: Loop) -> dict[str, tuple[object, ...]]:
    return {
        one.pod.uid: (one.place, one.attempts, one.queued_at, one.backoff_until, one.refused_by) for one in loop.queue
    }


@pytest.mark.parametrize("order", [pytest.param("PrioritySort", id="a fixed order"), pytest.param(Ageing, id="ageing")])
@given(seed=st.integers(0, 2**32 - 1))
# Time leaps over the end of a broken pod's back-off and of a refused pod's window at once.
@example(seed=1213)
def test_the_queue_does_what_a_walk_over_everything_does(order: str | type, seed: int) -> None:
    compare_queues(order, thrown(random.Random(seed)))


@given(seed=st.integers(0, 2**32 - 1))
def test_the_queue_does_what_a_walk_over_everything_does_while_nodes_are_nominated(seed: int) -> None:
    compare_queues("PrioritySort", with_nominations(seed))


def compare_queues(order: str | type, history: Iterator[tuple[Step, int]]) -> None:
    indexed, plain = a_loop([order, *REST]), a_loop([order, *REST])
    plain.queue = plain._state.queue = PlainQueue(plain._state.settings.backoff)  # type: ignore[assignment]
    now = 0.0
    for step, limit in history:
        now += step[1] if step[0] == "time" else 0.0  # type: ignore[operator]
        happened = happening(step, now)
        for loop in (indexed, plain):
            loop.take(*happened)
        note(f"{now:6.1f} {step}, {limit}")
        if limit >= 0:
            assert said(plain.decide(limit)) == said(indexed.decide(limit))
        assert places(plain) == places(indexed)
        assert plain.queue.counts() == indexed.queue.counts()
        assert plain.queue.next_time() == indexed.queue.next_time()


AMOUNTS = st.one_of(
    st.fixed_dictionaries({"a": st.integers(1, 6), "b": st.integers(1, 6)}),
    st.dictionaries(st.sampled_from("abcdefghijkl"), st.integers(1, 4), min_size=1, max_size=10),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(AMOUNTS, st.booleans()), max_size=30), st.lists(AMOUNTS, min_size=1, max_size=5))
def test_the_index_finds_exactly_what_needs_no_more_than_is_offered(
    monkeypatch: pytest.MonkeyPatch, groups: list[tuple[dict[str, int], bool]], offers: list[dict[str, int]]
) -> None:
    # Small blocks, so that few groups fill several.
    monkeypatch.setattr(amount_index, "BLOCK", 2)
    index = AmountIndex()
    for number, (needs, _) in enumerate(groups):
        index.add(number, needs)
    for number, (_, leaves) in enumerate(groups):
        if leaves:
            index.remove(number)
    waiting = {number: needs for number, (needs, leaves) in enumerate(groups) if not leaves}

    for offered in offers:
        fitting = [
            number
            for number, needs in waiting.items()
            if all(offered.get(name, 0) >= amount for name, amount in needs.items())
        ]
        assert fitting == sorted(index.within(offered))
    assert len(waiting) == len(index)


@given(st.lists(st.tuples(st.sampled_from(["put", "discard", "pop", "anew"]), st.integers(0, 9), st.integers(0, 3))))
def test_a_lazy_heap_is_a_sorted_list_and_keeps_no_more_stale_entries_than_live_ones(
    steps: list[tuple[str, int, int]],
) -> None:
    heap: LazyHeap[int, int] = LazyHeap()
    plain: dict[int, tuple[int, int]] = {}
    for number, (what, value, order) in enumerate(steps):
        first = min(plain, key=lambda one: plain[one], default=None)
        match what:
            case "put":
                heap.put(value, order)
                plain[value] = (order, number)
            case "discard":
                heap.discard(value)
                plain.pop(value, None)
            case "pop":
                assert first == heap.pop()
                if first is not None:
                    del plain[first]
            case "anew":
                heap.reorder(lambda one: one % 4)
                plain = {one: (one % 4, since) for one, (_, since) in plain.items()}
        first = min(plain, key=lambda one: plain[one], default=None)
        assert (None if first is None else (plain[first][0], first)) == heap.first()
        assert (sorted(plain), len(plain)) == (sorted(heap), len(heap))
        assert heap.entries <= 2 * len(plain) + FEW


HEAP_STEPS = st.tuples(st.sampled_from(["put", "put", "discard", "pop", "take", "anew"]), st.integers(0, 8))


@given(st.lists(st.tuples(HEAP_STEPS, st.tuples(*[st.integers(0, 1)] * 3), st.integers(0, 1))))
# Two groups of equal order: the pods leave in the order of arrival, whatever joins one of the groups.
@example([(("put", 0), (0, 0, 0), 0), (("put", 1), (0, 0, 0), 1), (("put", 3), (0, 0, 0), 1)])
@example(
    [(("put", 1), (0, 0, 0), 0), (("put", 0), (0, 0, 0), 0), (("put", 4), (0, 0, 0), 0), (("pop", 0), (0, 0, 0), 0)]
)
def test_a_grouped_heap_has_the_order_of_a_lazy_heap_and_a_snapshot_of_it_too(
    steps: list[tuple[tuple[str, int], tuple[int, int, int], int]],
) -> None:
    heap: GroupedHeap[int] = GroupedHeap(lambda value: value % 3, 1)
    plain: LazyHeap[int, tuple[int, int]] = LazyHeap()
    parts, rest = [0, 0, 0], dict.fromkeys(range(9), 0)

    def order(value: int) -> tuple[int, int]:
        return parts[value % 3], rest[value]

    for (what, value), new_parts, new_rest in steps:
        match what:
            case "put":
                rest[value] = new_rest
                heap.put(value, order(value))
                plain.put(value, order(value))
            case "discard":
                heap.discard(value)
                plain.discard(value)
            case "pop":
                assert plain.pop() == heap.pop()
            case "take":
                assert plain.take(lambda one: one % 2 == 0, 2, 1) == heap.take(lambda one: one % 2 == 0, 2, 1)
            case "anew":
                parts[:] = new_parts
                for one in (heap, plain):
                    one.reorder(order)
        assert plain.first() == heap.first()
        assert plain.snapshot() == heap.snapshot()

    again: GroupedHeap[int] = GroupedHeap(lambda value: value % 3, 1)
    for value, saved in heap.snapshot():
        again.put(value, saved)
    assert [plain.pop() for _ in range(9)] == [again.pop() for _ in range(9)]
