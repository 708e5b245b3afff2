"""Room of nominated pods: examining all nodes at once gives the same refusals as one by one."""

import hypothesis.strategies as st
import msgspec
import numpy as np
import pytest
from hypothesis import given

from lamina.model import events
from lamina.model.decision import Refusal
from lamina.model.node import Node
from lamina.model.pod import HostPort, Pod, PodTerm, SpreadConstraint
from lamina.model.selectors import LabelSelector
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.loop.nominated_room import withheld_from
from lamina.scheduling.runtime.profile import Profile
from lamina.scheduling.runtime.shape_evaluation import ShapeEvaluation
from lamina.scheduling.runtime.what_if import refusal_if, skipped_in
from lamina.scheduling.state.hypothesis import as_if
from lamina.testing import a_loop, a_node, a_pod

pytestmark = pytest.mark.slow

PLUGINS = (
    "PrioritySort",
    "TaintToleration",
    "NodePorts",
    "NodeResourcesFit",
    "PodTopologySpread",
    "InterPodAffinity",
    "DefaultBinder",
)
WEB = LabelSelector((("app", "web"),))
APART = (PodTerm("zone", WEB),)
SPREAD = (SpreadConstraint(1, "zone", selector=WEB),)


class Case(msgspec.Struct, frozen=True):
    """Nodes, pods on them, pods nominated for them, and a pod that arrives."""

    nodes: list[Node]
    placed: list[Pod]
    nominated: list[Pod]
    pod: Pod

    def loop(self) -> Loop:
        loop = a_loop(PLUGINS)
        loop.take(*(events.NodeSeen(one) for one in self.nodes))
        loop.take(*(events.PodSeen(one) for one in (*self.placed, *self.nominated)))
        return loop


def one_by_one(loop: Loop, profile: Profile, pod: Pod, evaluation: ShapeEvaluation) -> dict[int, Refusal]:
    """Add the pods that are nominated for a node to that node only, and ask every filter about it."""
    columns, found = loop.cluster.columns, {}
    for row in np.flatnonzero(evaluation.feasible).tolist():
        node = columns.nodes[row]
        assert node is not None
        there = [one for one in loop.cluster.nominations.on(node.name) if one.priority >= pod.priority]
        supposed = as_if(columns, there=[(row, one) for one in there])
        refusal = refusal_if(profile, supposed, pod, row, skipped_in(evaluation))
        if refusal is not None:
            found[row] = refusal
    return found


@st.composite
def some_pods(draw: st.DrawFn, name: str, *, on: str = "", nominated: str = "", peculiar: bool = True) -> Pod:
    cpu, priority, port, terms = draw(
        st.tuples(
            st.sampled_from((None, None, 1, 3)),
            st.sampled_from((5, 5, 0, 9)),
            st.sampled_from((0, 0, 0, 80)),
            st.sampled_from(("repels", "spread", "app", "") if peculiar else ("", "app")),
        )
    )
    made = a_pod(
        name,
        cpu=cpu,
        priority=priority,
        labels={"app": "web"} if terms else {},
        on=on,
        nominated=nominated,
        scheduler="another" if nominated else "default-scheduler",
    )
    return msgspec.structs.replace(
        made,
        host_ports=(HostPort(port),) if port else (),
        repels=APART if terms == "repels" else (),
        spread=SPREAD if terms == "spread" else (),
    )


@st.composite
def cases(draw: st.DrawFn) -> Case:
    count = draw(st.integers(2, 5))
    nodes = [a_node(f"n{number}", cpu=4, labels={"zone": f"z{number % 2}"}) for number in range(count)]
    peculiar = draw(st.booleans())
    placed = [
        draw(some_pods(f"placed-{number}", on=node.name, peculiar=peculiar))
        for number, node in enumerate(nodes)
        if draw(st.booleans())
    ]
    nominated = [
        draw(some_pods(f"nominated-{number}", nominated=f"n{number % (count + 1)}", peculiar=peculiar))
        for number in range(draw(st.integers(1, 7)))
    ]
    return Case(nodes, placed, nominated, draw(some_pods("new", peculiar=peculiar)))


@given(cases())
def test_nodes_examined_at_once_are_refused_like_nodes_examined_one_by_one(case: Case) -> None:
    loop = case.loop()
    profile = loop.profiles["default-scheduler"]
    evaluation = ShapeEvaluation(profile, loop.cluster.columns, case.pod)

    expected = one_by_one(loop, profile, case.pod, evaluation)

    assert expected == withheld_from(loop.cluster, profile, case.pod, evaluation)
