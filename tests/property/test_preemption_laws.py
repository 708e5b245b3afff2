"""Preemption: the same victims as by brute force, none of equal priority, and no budget violated without need."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.model import events
from lamina.model.disruption_budget import PodDisruptionBudget
from lamina.model.node import Node
from lamina.model.pod import Pod
from lamina.model.selectors import LabelSelector
from lamina.scheduling.contract.commands import Bind, Command, Evict, Nominate
from lamina.scheduling.loop.loop import Loop
from lamina.testing import a_loop, a_node, a_pod
from tests.property import preemption_oracle as oracle
from tests.property.opaque_filter import OpaqueFilter

pytestmark = pytest.mark.slow

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
APPS = ("x", "y", "z")


class Case(msgspec.Struct, frozen=True):
    """A cluster, its budgets, and a pod that arrives."""

    nodes: list[Node]
    placed: dict[str, list[Pod]]
    budgets: list[PodDisruptionBudget]
    pod: Pod

    def loop(self, *more: type) -> Loop:
        made = a_loop((*PLUGINS, *more))
        made.feed(events.TimePassed(50.0), *(events.ObjectSeen(one) for one in self.budgets))
        made.feed(*(events.NodeSeen(one) for one in self.nodes))
        made.feed(*(events.PodSeen(one) for pods in self.placed.values() for one in pods))
        return made


@st.composite
def cases(draw: st.DrawFn) -> Case:
    nodes = [
        a_node(f"n{number}", cpu=draw(st.integers(2, 6)), memory="8Gi", pods=draw(st.sampled_from((3, 6, 110))))
        for number in range(draw(st.integers(1, 5)))
    ]
    nodes = [msgspec.structs.replace(one, labels={"kubernetes.io/hostname": one.name}) for one in nodes]
    placed: dict[str, list[Pod]] = {}
    for node in nodes:
        placed[node.name] = [
            a_pod(
                f"{node.name}-{number}",
                cpu=cpu,
                memory=memory,
                priority=priority,
                labels={"app": app} if app else {},
                on=node.name,
                started=started > 0,
                started_at=float(started),
            )
            for number, (cpu, memory, priority, app, started) in enumerate(
                draw(
                    st.lists(
                        st.tuples(
                            st.sampled_from((None, 1, 2)),
                            st.sampled_from((None, "1Gi", "3Gi")),
                            st.sampled_from((-1, 0, 5, 9, 10)),
                            st.sampled_from((None, *APPS)),
                            st.integers(0, 40),
                        ),
                        max_size=6,
                    )
                )
            )
        ]
    budgets = [
        PodDisruptionBudget(
            namespace="default",
            name=f"b{number}",
            selector=LabelSelector((("app", app),)) if app else LabelSelector(),
            disruptions_allowed=allowed,
            disrupted_pods=tuple(disrupted),
        )
        for number, (app, allowed, disrupted) in enumerate(
            draw(
                st.lists(
                    st.tuples(
                        st.sampled_from((*APPS, "")),
                        st.integers(-1, 2),
                        st.lists(st.sampled_from(("n0-0", "n0-1", "n1-0")), max_size=2),
                    ),
                    max_size=4,
                )
            )
        )
    ]
    pod = a_pod("new", cpu=draw(st.integers(1, 6)), memory="2Gi", priority=draw(st.sampled_from((0, 6, 10))))
    return Case(nodes, placed, budgets, pod)


def decided(case: Case, pod: Pod, *more: type) -> tuple[str, list[Pod], list[Command]]:
    commands = case.loop(*more).feed(events.PodSeen(pod))
    node = next((one.node for one in commands if isinstance(one, Nominate)), "")
    return node, [one.pod for one in commands if isinstance(one, Evict)], commands


@given(cases())
def test_the_victims_are_those_of_brute_force(case):
    expected = oracle.candidates(case.nodes, case.placed, case.pod, case.budgets)
    node, victims, commands = decided(case, case.pod)

    if any(isinstance(one, Bind) for one in commands):
        assert "" == node
        return
    if not expected:
        assert ("", []) == (node, [])
        return
    best = min(cost for _, cost in expected.values())
    assert node in expected
    assert best == expected[node][1]
    assert expected[node][0] == victims


@given(cases())
def test_dry_runs_of_single_nodes_find_the_same_as_all_nodes_at_once(case):
    at_once = decided(case, case.pod)[:2]
    one_by_one = decided(case, case.pod, OpaqueFilter)[:2]

    assert at_once == one_by_one


@given(cases())
def test_no_pod_of_equal_or_higher_priority_goes_and_no_budget_is_violated_without_need(case):
    node, victims, _ = decided(case, case.pod)

    assert all(one.priority < case.pod.priority for one in victims)
    expected = oracle.candidates(case.nodes, case.placed, case.pod, case.budgets)
    if node and any(cost[0] == 0 for _, cost in expected.values()):
        assert 0 == expected[node][1][0]


@given(cases(), st.lists(st.sampled_from((3, 10, 20)), min_size=2, max_size=6))
def test_no_pod_is_evicted_twice(case, priorities):
    loop = case.loop()
    evicted: list[str] = []
    for number, priority in enumerate(priorities):
        pod = msgspec.structs.replace(case.pod, uid=f"p{number}", name=f"p{number}", priority=priority)
        commands = loop.feed(events.TimePassed(60.0 + 30 * number), events.PodSeen(pod))
        evicted += [one.pod.uid for one in commands if isinstance(one, Evict)]

    assert len(set(evicted)) == len(evicted)
