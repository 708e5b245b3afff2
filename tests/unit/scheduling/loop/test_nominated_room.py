"""Nominated pods hold their room: pods of lower priority do not take what was freed for them."""

from typing import ClassVar

import pytest
from msgspec.structs import replace

from lamina.model import events
from lamina.model.pod import HostPort, Pod, PodTerm, PodUid
from lamina.model.selectors import LabelSelector
from lamina.scheduling.contract.commands import Bind, Command, Evict, Nominate
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.points import PostFilterResult
from lamina.scheduling.contract.status import Status, unschedulable
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.state.columns import Bools
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView
from lamina.testing import a_loop, a_node, a_pod
from tests.work import steps

CORE = ("PrioritySort", "NodeResourcesFit", "NodePorts", "DefaultBinder")


class Bully:
    """Evicts every pod of the first node that a pod of priority 100 could use."""

    name: ClassVar = "Bully"

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        self._context = context

    def post_filter(self, state: CycleState, pod: Pod, nodes: NodeView, resolvable: Bools) -> Status | PostFilterResult:
        node = nodes.node(0)
        there = () if node is None else self._context.pods_on(node.name)
        victims = tuple(one for one in there if one.priority < pod.priority and not one.deleting)
        if pod.priority < 100 or node is None or not victims:
            return unschedulable("preemption: no victims")
        return PostFilterResult(node.name, victims)


def bound(commands: list[Command]) -> list[tuple[str, str]]:
    return [(one.pod.name, one.node) for one in commands if isinstance(one, Bind)]


def nominated(commands: list[Command]) -> list[tuple[str, str]]:
    return [(one.pod.name, one.node) for one in commands if isinstance(one, Nominate)]


@pytest.mark.parametrize(
    ("priority", "expected"),
    [
        pytest.param(5, [], id="lower priority"),
        pytest.param(10, [], id="equal priority"),
        pytest.param(11, [("p", "n")], id="higher priority"),
    ],
)
def test_a_pod_leaves_room_for_nominated_pods_of_equal_or_higher_priority(
    priority: int, expected: list[tuple[str, str]]
) -> None:
    loop = a_loop(CORE)
    nominee = a_pod("nominee", cpu=3, priority=10, nominated="n", scheduler="another")
    loop.feed(events.NodeSeen(a_node("n", cpu=4)), events.PodSeen(nominee))

    assert expected == bound(loop.feed(events.PodSeen(a_pod("p", cpu=2, priority=priority))))


def test_room_beside_a_nominated_pod_is_free() -> None:
    loop = a_loop(CORE)
    nominee = a_pod("nominee", cpu=3, priority=10, nominated="n", scheduler="another")
    loop.feed(events.NodeSeen(a_node("n", cpu=4)), events.PodSeen(nominee))

    assert [("p", "n")] == bound(loop.feed(events.PodSeen(a_pod("p", cpu=1))))


def test_every_filter_counts_nominated_pods() -> None:
    """
    A port that a nominated pod will need is not free, although nothing holds it yet.
    """
    loop = a_loop(CORE)
    port = (HostPort(80),)
    nominee = a_pod("nominee", priority=10, nominated="n", scheduler="another")
    loop.feed(events.NodeSeen(a_node("n")), events.PodSeen(_with_ports(nominee, port)))

    assert [] == bound(loop.feed(events.PodSeen(_with_ports(a_pod("p"), port))))
    assert [("q", "n")] == bound(loop.feed(events.PodSeen(_with_ports(a_pod("q"), (HostPort(81),)))))


APART = PodTerm("zone", LabelSelector((("app", "web"),)))
"""Keeps pods with the label app=web away."""


@pytest.mark.parametrize(
    ("placed_repels", "own", "expected"),
    [
        pytest.param((), (), [("p", "n")], id="no term of a placed pod matches: the filter is skipped"),
        pytest.param((APART,), (), [], id="a term of a pod on another node matches: the filter runs"),
        pytest.param((), (APART,), [], id="the pod has a term of its own: the filter runs"),
    ],
)
def test_the_anti_affinity_of_a_nominated_pod_counts_if_the_filter_runs_at_all(
    placed_repels: tuple[PodTerm, ...], own: tuple[PodTerm, ...], expected: list[tuple[str, str]]
) -> None:
    """
    As upstream: a filter that does not apply as the cluster is stays out when nominated pods are added.
    """
    loop = a_loop([*CORE, "InterPodAffinity"])
    nominee = replace(a_pod("nominee", priority=10, nominated="n", scheduler="another"), repels=(APART,))
    placed = replace(a_pod("placed", cpu=4), repels=placed_repels, node_name="full")
    loop.feed(
        *(events.NodeSeen(a_node(name, cpu=4, labels={"zone": name})) for name in ("n", "full")),
        events.PodSeen(placed),
        events.PodSeen(nominee),
    )
    pod = replace(a_pod("p", cpu=1, labels={"app": "web"}), repels=own)

    assert expected == bound(loop.feed(events.PodSeen(pod)))


def _with_ports(pod: Pod, ports: tuple[HostPort, ...]) -> Pod:
    return replace(pod, host_ports=ports)


def test_a_refusal_names_the_reason_and_the_node_counts_as_refused() -> None:
    loop = a_loop(CORE)
    nominee = a_pod("nominee", cpu=3, priority=10, nominated="n", scheduler="another")
    loop.feed(events.NodeSeen(a_node("n", cpu=4)), events.NodeSeen(a_node("m", cpu=1)), events.PodSeen(nominee))

    commands = loop.feed(events.PodSeen(a_pod("p", cpu=2)))

    messages = [one.decision.message for one in commands if hasattr(one, "decision") and one.decision is not None]
    assert ["0/2 nodes are available: 2 Insufficient cpu."] == messages


@pytest.mark.parametrize(
    "ending",
    [
        pytest.param(events.PodGone(PodUid("nominee")), id="the nominated pod is deleted"),
        pytest.param(events.PodSeen(a_pod("nominee", cpu=3, priority=10, on="m")), id="it is bound elsewhere"),
        pytest.param(
            events.PodSeen(a_pod("nominee", cpu=3, priority=10, nominated="m", scheduler="another")),
            id="another node is nominated",
        ),
        pytest.param(
            events.PodSeen(a_pod("nominee", cpu=3, priority=10, scheduler="another")), id="the nomination is withdrawn"
        ),
    ],
)
def test_pods_that_wait_for_held_room_are_tried_when_the_nomination_ends(ending: events.Event) -> None:
    loop = a_loop(CORE)
    nominee = a_pod("nominee", cpu=3, priority=10, nominated="n", scheduler="another")
    loop.feed(events.NodeSeen(a_node("n", cpu=4)), events.PodSeen(nominee), events.PodSeen(a_pod("p", cpu=2)))

    assert [("p", "n")] == bound(loop.feed(events.TimePassed(20.0), ending))


def full_node() -> tuple[Loop, list[Command]]:
    """A node is full of a pod that a more important one has just got evicted."""
    loop = a_loop((*CORE, Bully))
    loop.feed(events.NodeSeen(a_node("n", cpu=4)), events.PodSeen(a_pod("victim", cpu=4, on="n")))
    return loop, loop.feed(events.PodSeen(a_pod("vip", cpu=3, priority=100)))


def test_a_pod_that_had_others_evicted_gets_the_room_although_others_come_first() -> None:
    loop, commands = full_node()
    assert ["victim"] == [one.pod.name for one in commands if isinstance(one, Evict)]
    assert [("vip", "n")] == nominated(commands)

    # Tried in the same instant as the victim goes: `late` would fit, and has to leave the room to `vip`.
    late = loop.feed(events.TimePassed(0.5), events.PodGone(PodUid("victim")), events.PodSeen(a_pod("late", cpu=3)))
    later = loop.feed(events.TimePassed(20.0))

    assert [("vip", "n")] == bound([*late, *later])


def test_a_nomination_stays_while_the_evicted_pods_are_on_their_way_out() -> None:
    """
    The next attempt sees the victim still running, and then being deleted: room is still being made.
    """
    loop, _ = full_node()
    victim = a_pod("victim", cpu=4, on="n")

    again = loop.feed(events.TimePassed(2.0), events.NodeSeen(a_node("n", cpu=4, labels={"new": "label"})))
    leaving = loop.feed(events.TimePassed(4.0), events.PodSeen(replace(victim, deleting=True)))

    assert ("vip", "") not in nominated([*again, *leaving])
    assert "n" == loop.cluster.nominations.node_of(PodUid("vip"))


def test_a_nomination_ends_when_the_node_would_not_take_the_pod_any_more() -> None:
    """
    Another scheduler put something there that will not go: the room is lost. The attempt after the victim is gone finds
    that out.
    """
    loop, _ = full_node()

    loop.feed(events.TimePassed(2.0), events.PodSeen(a_pod("rude", cpu=4, priority=1000, on="n", scheduler="another")))
    commands = loop.feed(events.TimePassed(20.0), events.PodGone(PodUid("victim")))

    assert [("vip", "")] == nominated(commands)
    assert "" == loop.cluster.nominations.node_of(PodUid("vip"))


def test_a_nominated_pod_is_tried_although_a_pod_of_its_shape_was_refused() -> None:
    """
    What nominations have to do with a refusal holds for one pod: its twin may be let in.
    """
    loop = a_loop(CORE)
    loop.feed(
        events.NodeSeen(a_node("n1", cpu=4)),
        events.NodeSeen(a_node("n2", cpu=4)),
        events.PodSeen(replace(a_pod("v1", cpu=4, on="n1"), deleting=True)),
        events.PodSeen(replace(a_pod("v2", cpu=4, on="n2"), deleting=True)),
        events.PodSeen(a_pod("a", cpu=3, priority=10, nominated="n1")),
        events.PodSeen(a_pod("b", cpu=3, priority=10, nominated="n2")),
    )

    assert [("b", "n2")] == bound(loop.feed(events.TimePassed(20.0), events.PodGone(PodUid("v2"))))


def test_a_nominated_pod_that_goes_elsewhere_gives_its_room_back_at_once() -> None:
    loop = a_loop(CORE)
    loop.feed(
        events.NodeSeen(a_node("n1", cpu=4)),
        events.NodeSeen(a_node("n2", cpu=4)),
        events.PodSeen(replace(a_pod("x", cpu=2, on="n1"), deleting=True)),
        events.PodSeen(a_pod("y", cpu=4, on="n2")),
        events.PodSeen(a_pod("a", cpu=3, priority=10, nominated="n1")),
        events.PodSeen(a_pod("c", cpu=2)),
    )

    assert [("a", "n2"), ("c", "n1")] == bound(loop.feed(events.TimePassed(20.0), events.PodGone(PodUid("y"))))


def test_news_older_than_another_nomination_of_ours_do_not_undo_it() -> None:
    """
    The API server still names the node that was nominated before; the victims were evicted on the new one.
    """
    cluster = a_loop(CORE).cluster
    seen = a_pod("vip", nominated="n0")
    cluster.apply(events.PodSeen(seen))
    cluster.nominate(seen, "n1", [a_pod("victim", on="n1")])

    assert [] == cluster.apply(events.PodSeen(replace(seen, labels={"changed": "yes"})))
    assert "n1" == cluster.nominations.node_of(PodUid("vip"))
    assert {"victim"} == cluster.nominations.victims_of(PodUid("vip"))


class Clumsy:
    """Raises for the pod it is about."""

    name: ClassVar = "Clumsy"

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> None:
        if pod.name == "nominee":
            raise ZeroDivisionError


def test_a_nomination_ends_when_the_attempts_of_its_pod_break() -> None:
    loop = a_loop((*CORE, Clumsy))
    loop.feed(events.NodeSeen(a_node("n", cpu=4)))

    commands = loop.feed(
        events.PodSeen(a_pod("nominee", cpu=100, priority=10, nominated="n")), events.PodSeen(a_pod("p", cpu=2))
    )

    assert [("nominee", "")] == nominated(commands)
    assert [("p", "n")] == bound(commands)


# ------------------------------------------------------------------------------------------------------------------ work


@pytest.mark.parametrize("count", [4, 40])
def test_room_that_is_held_for_a_nominated_pod_wakes_no_other_that_would_have_to_leave_it(count: int) -> None:
    """
    Each pod is tried once to evict, and once when its victim is gone, however many others wait for theirs.
    """
    loop = a_loop((*CORE, "DefaultPreemption"))
    loop.take(*(events.NodeSeen(a_node(f"n{number}", cpu=4)) for number in range(count)))
    loop.take(*(events.PodSeen(a_pod(f"victim-{number}", cpu=3, on=f"n{number}")) for number in range(count)))
    loop.feed(*(events.PodSeen(a_pod(f"vip-{number}", cpu=3, priority=10)) for number in range(count)))
    loop.feed(events.TimePassed(60.0))

    tried: list[int] = []
    for number in range(count):
        loop.feed(events.TimePassed(61.0 + number), events.PodGone(PodUid(f"victim-{number}")))
        tried.append(len(loop.tried))

    assert [1] * count == tried
    assert count == len(loop.bindings)


@pytest.mark.parametrize(
    ("memory", "tried"),
    [
        pytest.param("1Gi", 1, id="of another shape: only that pod is tried"),
        pytest.param(None, 2, id="of the same shape: the next one is tried after it"),
    ],
)
def test_room_that_is_held_wakes_pods_that_go_before_the_nominated_one(memory: str | None, tried: int) -> None:
    loop = a_loop(CORE)
    loop.feed(
        events.NodeSeen(a_node("n", cpu=4)),
        events.PodSeen(a_pod("victim", cpu=4, on="n")),
        events.PodSeen(a_pod("nominee", cpu=3, priority=10, nominated="n", scheduler="another")),
        events.PodSeen(a_pod("equal", cpu=3, priority=10)),
        events.PodSeen(a_pod("higher", cpu=3, memory=memory, priority=11)),
    )
    loop.feed(events.TimePassed(60.0))

    assert [("higher", "n")] == bound(loop.feed(events.PodGone(PodUid("victim"))))
    assert tried == len(loop.tried)


def crowded(nominations: int) -> Loop:
    """Return a loop with 120 empty nodes, and pods of other schedulers nominated for the first of them."""
    loop = a_loop(("PrioritySort", "NodeName", "NodePorts", "NodeResourcesFit", "InterPodAffinity", "DefaultBinder"))
    loop.take(*(events.NodeSeen(a_node(f"n{number}", cpu=4)) for number in range(120)))
    for number in range(nominations):
        other = a_pod(f"other-{number}", cpu=3, priority=10, nominated=f"n{number}", scheduler="another")
        loop.take(events.PodSeen(other))
    return loop


def work(nominations: int, pod: Pod) -> int:
    loop = crowded(nominations)
    loop.take(events.PodSeen(pod))
    return steps(loop.decide)


def test_a_pod_that_fits_where_it_is_nominated_costs_the_same_however_many_others_are_nominated() -> None:
    own = a_pod("p", cpu=3, priority=10, nominated="n119")

    assert work(10, own) == work(100, own)


def test_another_nominated_pod_costs_an_attempt_little() -> None:
    """
    All filters examine all nodes of nominated pods at once: one by one, each costs more than a thousand steps.
    """
    pod = a_pod("p", cpu=3, priority=10)
    each = (work(100, pod) - work(10, pod)) / 90

    assert each < 400
