"""DefaultPreemption: which pods go, where, and in which words it says why none do."""

import msgspec
import pytest

from lamina.model import events
from lamina.model.disruption_budget import PodDisruptionBudget
from lamina.model.pod import HostPort, Pod
from lamina.model.selectors import LabelSelector
from lamina.model.taints import NO_SCHEDULE, Taint
from lamina.scheduling.contract.commands import Bind, Command, Evict, Nominate, ReportUnschedulable
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.plugins.upstream.default_preemption.args import PreemptionArgs
from lamina.testing import a_loop, a_node, a_pod

PLUGINS = (
    "PrioritySort",
    "TaintToleration",
    "NodePorts",
    "NodeResourcesFit",
    "PodTopologySpread",
    "InterPodAffinity",
    "DefaultPreemption",
    "DefaultBinder",
)


def a_cluster(*pods: Pod, budgets: tuple[PodDisruptionBudget, ...] = (), cpu: int = 4) -> Loop:
    """Nodes of 4 cores for the pods that are on them."""
    loop = a_loop(PLUGINS)
    loop.feed(events.TimePassed(1000.0), *(events.ObjectSeen(one) for one in budgets))
    loop.feed(*(events.NodeSeen(a_node(name, cpu=cpu)) for name in sorted({pod.node_name for pod in pods})))
    loop.feed(*(events.PodSeen(pod) for pod in pods))
    return loop


def low(name: str, on: str, priority: int = 0, cpu: int = 4, since: float = 100.0, app: str = "") -> Pod:
    labels = {"app": app} if app else {}
    return a_pod(name, cpu=cpu, on=on, priority=priority, started=True, started_at=since, labels=labels)


def a_budget(app: str, allowed: int, *disrupted: str, name: str = "b") -> PodDisruptionBudget:
    return PodDisruptionBudget(
        namespace="default",
        name=name,
        selector=LabelSelector((("app", app),)) if app else LabelSelector(),
        disruptions_allowed=allowed,
        disrupted_pods=disrupted,
    )


def evicted(commands: list[Command]) -> list[str]:
    return sorted(one.pod.name for one in commands if isinstance(one, Evict))


def nominated(commands: list[Command]) -> str:
    return next((one.node for one in commands if isinstance(one, Nominate)), "")


def message(commands: list[Command]) -> str:
    return next((one.decision.message for one in commands if isinstance(one, ReportUnschedulable)), "")


def high(cpu: int = 4, priority: int = 100, **parts: object) -> Pod:
    return msgspec.structs.replace(a_pod("high", cpu=cpu, priority=priority), **parts)


# -- choice of the node ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pods", "budgets", "node"),
    [
        pytest.param(
            [low("a", "n1", app="x"), low("b", "n2", priority=50)],
            [a_budget("x", 0)],
            "n2",
            id="fewest violated budgets, before lower priorities",
        ),
        pytest.param(
            [low("a", "n1", priority=9), *(low(f"b{n}", "n2", priority=8, cpu=1) for n in range(4))],
            [],
            "n2",
            id="lowest highest priority, before fewer victims",
        ),
        pytest.param(
            [
                low("a1", "n1", priority=5, cpu=2),
                low("a2", "n1", priority=5, cpu=2),
                low("b1", "n2", priority=5, cpu=2),
                low("b2", "n2", priority=4, cpu=2),
            ],
            [],
            "n2",
            id="lowest sum of priorities",
        ),
        pytest.param(
            [low("a1", "n1", -1, 2), low("a2", "n1", -1, 2), low("b", "n2", -1, 4, since=1.0)],
            [],
            "n2",
            id="a negative priority does not make more victims cheaper",
        ),
        pytest.param(
            [low("a", "n1", since=100.0), low("b", "n2", since=300.0), low("c", "n3", since=200.0)],
            [],
            "n2",
            id="latest start",
        ),
        pytest.param(
            [low("a", "n1", since=100.0), low("b", "n2", since=0.0)],
            [],
            "n2",
            id="a pod that has not started counts as the latest",
        ),
        pytest.param([low("b", "n2"), low("a", "n1")], [], "n1", id="then the first node"),
    ],
)
def test_the_cheapest_node_is_chosen(pods, budgets, node):
    commands = a_cluster(*pods, budgets=tuple(budgets)).feed(events.PodSeen(high()))

    assert node == nominated(commands)
    assert sorted(pod.name for pod in pods if pod.node_name == node) == evicted(commands)


def test_the_earliest_of_the_most_important_victims_counts():
    """On n1 the victims of priority 5 started at 10 and 900, on n2 both at 500: 500 is later than 10."""
    pods = [
        low("a1", "n1", 5, 2, since=10.0),
        low("a2", "n1", 5, 2, since=900.0),
        low("b1", "n2", 5, 2, since=500.0),
        low("b2", "n2", 5, 2, since=500.0),
    ]

    assert "n2" == nominated(a_cluster(*pods).feed(events.PodSeen(high())))


# -- victims -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pods", "budgets", "victims"),
    [
        pytest.param(
            [low("a", "n1", 3, 1), low("b", "n1", 2, 1), low("c", "n1", 1, 1), low("d", "n1", 0, 1)],
            [],
            ["c", "d"],
            id="the least important",
        ),
        pytest.param(
            [low("old", "n1", 0, 2, since=10.0), low("young", "n1", 0, 2, since=20.0)],
            [],
            ["young"],
            id="of equal priority the younger",
        ),
        pytest.param([low("a", "n1", 100, 2), low("b", "n1", 99, 2)], [], ["b"], id="never one of the same priority"),
        pytest.param(
            [low("kept", "n1", 5, 2), low("guarded", "n1", 0, 2, app="x")],
            [a_budget("x", 0)],
            ["kept"],
            id="one whose budget would be violated is put back first",
        ),
        pytest.param(
            [low("kept", "n1", 5, 2), low("guarded", "n1", 0, 2, app="x")],
            [a_budget("x", 1)],
            ["guarded"],
            id="a budget that allows it",
        ),
        pytest.param(
            [low("kept", "n1", 5, 2), low("guarded", "n1", 0, 2, app="x")],
            [a_budget("x", 0, "guarded")],
            ["guarded"],
            id="a pod that the budget has counted already",
        ),
        pytest.param(
            [low("kept", "n1", 5, 2), low("guarded", "n1", 0, 2, app="x")],
            [a_budget("", 0)],
            ["guarded"],
            id="a budget with an empty selector protects nothing",
        ),
        pytest.param(
            [low("a", "n1", 1, 1, app="x"), low("b", "n1", 1, 1, app="x"), low("c", "n1", 9, 2)],
            [a_budget("x", 1)],
            ["c"],
            id="the budget allows one of two, and the second is put back before the more important pod",
        ),
    ],
)
def test_only_victims_that_are_needed_go(pods, budgets, victims):
    commands = a_cluster(*pods, budgets=tuple(budgets)).feed(events.PodSeen(high(cpu=2)))

    assert victims == evicted(commands)


def test_every_budget_of_a_pod_counts():
    """The pod `both` has two budgets, and one of them allows nothing."""
    both = msgspec.structs.replace(low("both", "n1", 0, 2), labels={"app": "x", "tier": "y"})
    other = PodDisruptionBudget(namespace="default", name="c", selector=LabelSelector((("tier", "y"),)))
    loop = a_cluster(low("kept", "n1", 5, 2), both, budgets=(a_budget("x", 5), other))

    assert ["kept"] == evicted(loop.feed(events.PodSeen(high(cpu=2))))


def test_a_port_is_freed_by_the_pod_that_holds_it():
    holder = msgspec.structs.replace(low("holder", "n1", 5, 1), host_ports=(HostPort(80),))
    loop = a_cluster(low("other", "n1", 0, 1), holder)

    assert ["holder"] == evicted(loop.feed(events.PodSeen(high(cpu=1, host_ports=(HostPort(80),)))))


def test_gpus_are_freed_as_well():
    loop = a_loop(PLUGINS)
    loop.feed(events.NodeSeen(a_node("n1", cpu=4, more={"example.com/gpu": 2})))
    loop.feed(
        events.PodSeen(a_pod("gpu", on="n1", more={"example.com/gpu": 2}, priority=3)),
        events.PodSeen(a_pod("plain", on="n1", cpu=1)),
    )

    commands = loop.feed(events.PodSeen(a_pod("high", more={"example.com/gpu": 1}, priority=9)))

    assert ["gpu"] == evicted(commands)


# -- eligibility and words ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pods", "pod", "said"),
    [
        pytest.param([low("a", "n1")], high(preempts=False), "not eligible due to preemptionPolicy=Never.", id="never"),
        pytest.param(
            [low("a", "n1", 200)],
            high(),
            "0/1 nodes are available: 1 No preemption victims found for incoming pod.",
            id="nothing of lower priority",
        ),
        pytest.param(
            [low("a", "n1")],
            high(cpu=9),
            "0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
            id="larger than the node",
        ),
        pytest.param(
            [low("a", "n1", 200, 3), low("b", "n1", 0, 1), low("c", "n2", 200, 3), low("d", "n2", 0, 1)],
            high(),
            "0/2 nodes are available: 2 Insufficient cpu.",
            id="not enough of lower priority",
        ),
    ],
)
def test_a_pod_that_cannot_preempt_says_why(pods, pod, said):
    commands = a_cluster(*pods).feed(events.PodSeen(pod))

    assert [] == evicted(commands)
    assert "" == nominated(commands)
    assert message(commands).endswith(f"preemption: {said}")


def test_each_reason_is_counted_by_its_nodes():
    loop = a_cluster(low("a", "n1", 200), low("b", "n2", 200, 3), low("c", "n2", 0, 1), low("d", "n3", 200))
    loop.feed(events.NodeSeen(a_node("n4", cpu=4, taints=[Taint("k", "", NO_SCHEDULE)])))

    assert message(loop.feed(events.PodSeen(high()))).endswith(
        "preemption: 0/4 nodes are available: 1 Insufficient cpu, 1 Preemption is not helpful for scheduling, "
        "2 No preemption victims found for incoming pod."
    )


# -- nominations -------------------------------------------------------------------------------------------------------


def leaving(pod: Pod) -> Pod:
    return msgspec.structs.replace(pod, deleting=True, preempted=True)


def test_a_pod_waits_while_its_victims_leave():
    victim = low("a", "n1")
    loop = a_cluster(victim, low("b", "n2"))
    assert ["a"] == evicted(loop.feed(events.PodSeen(high())))

    # Evicted, not seen leaving yet; then leaving; a change wakes the pod each time.
    for number, seen in enumerate((victim, leaving(victim))):
        loop.feed(events.PodSeen(seen))
        commands = loop.feed(
            events.TimePassed(1100.0 + number * 100),
            events.NodeSeen(a_node(f"new{number}", cpu=4, taints=[Taint("k", "", NO_SCHEDULE)])),
        )
        assert [] == evicted(commands)
    commands = loop.feed(events.TimePassed(1400.0), events.PodGone("a"))

    assert [("high", "n1")] == [(one.pod.name, one.node) for one in commands if isinstance(one, Bind)]


def test_after_a_restart_a_pod_waits_for_victims_of_the_earlier_process():
    loop = a_cluster(leaving(low("a", "n1")), low("b", "n2"))

    commands = loop.feed(events.PodSeen(high(nominated_node="n1")))

    assert [] == evicted(commands)
    assert message(commands).endswith("preemption: not eligible due to a terminating pod on the nominated node.")


@pytest.mark.parametrize(
    ("on_node", "taints"),
    [
        pytest.param(msgspec.structs.replace(low("a", "n1"), deleting=True), [], id="deleted for another reason"),
        pytest.param(leaving(low("a", "n1")), [Taint("k", "", NO_SCHEDULE)], id="on a node that is tainted now"),
    ],
)
def test_a_terminating_pod_does_not_always_hold_preemption_back(on_node, taints):
    loop = a_cluster(on_node, low("b", "n2"))
    loop.feed(events.NodeSeen(a_node("n1", cpu=4, taints=taints)))

    commands = loop.feed(events.PodSeen(high(nominated_node="n1")))

    assert "" != nominated(commands)


def test_a_pod_fits_beside_the_pods_nominated_before_it():
    """On n1 a nominated pod of the same priority holds 3 of 4 cores, so n2 is chosen although its victim is older."""
    loop = a_cluster(low("a", "n1", since=900.0), low("b", "n2", since=100.0))
    first = msgspec.structs.replace(a_pod("first", cpu=3, priority=100), nominated_node="n1")
    loop.feed(events.PodSeen(first))

    assert "n2" == nominated(loop.feed(events.PodSeen(high())))


def test_lower_nominations_on_the_chosen_node_end():
    loop = a_cluster(low("a", "n1"))
    assert ["a"] == evicted(loop.feed(events.PodSeen(a_pod("middle", cpu=4, priority=50))))

    commands = loop.feed(events.PodSeen(high()))

    assert [("middle", ""), ("high", "n1")] == [
        (one.pod.name, one.node) for one in commands if isinstance(one, Nominate)
    ]
    assert [] == evicted(commands), "the victim is being evicted already"


# -- arguments ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("percentage", "absolute", "nodes", "enough"),
    [
        pytest.param(10, 100, 5000, 500, id="the percentage"),
        pytest.param(10, 100, 300, 100, id="at least the absolute number"),
        pytest.param(10, 100, 40, 40, id="at most all"),
        pytest.param(0, 1, 40, 1, id="one"),
    ],
)
def test_enough_candidates(percentage, absolute, nodes, enough):
    args = PreemptionArgs(min_candidate_nodes_percentage=percentage, min_candidate_nodes_absolute=absolute)

    assert enough == args.enough(nodes)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        pytest.param({"minCandidateNodesPercentage": 101}, "<= 100", id="more than all"),
        pytest.param({"minCandidateNodesPercentage": -1}, ">= 0", id="a negative percentage"),
        pytest.param({"minCandidateNodesAbsolute": -1}, ">= 0", id="a negative number"),
        pytest.param({"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0}, "cannot both be 0", id="none"),
    ],
)
def test_arguments_that_upstream_rejects(args, words):
    with pytest.raises(msgspec.ValidationError, match=words):
        msgspec.convert(args, PreemptionArgs)
