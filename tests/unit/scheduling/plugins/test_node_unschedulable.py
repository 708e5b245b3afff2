"""NodeUnschedulable: cordoned nodes."""

import pytest

from lamina.model.decision import Refusal
from lamina.model.taints import NO_EXECUTE, NO_SCHEDULE, Toleration
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.testing import a_node, a_pod
from tests.unit.scheduling.bench import Bench, refused

CORDONED = Refusal("NodeUnschedulable", ("node(s) were unschedulable",), final=True)
KEY = "node.kubernetes.io/unschedulable"


@pytest.mark.parametrize(
    ("tolerations", "want"),
    [
        pytest.param([], {"shut": CORDONED}, id="none"),
        pytest.param([Toleration(KEY, "Exists", "", NO_SCHEDULE)], {}, id="a daemon set's"),
        pytest.param([Toleration(KEY, "Equal", "")], {}, id="Equal with the taint's empty value"),
        pytest.param([Toleration(KEY, "Equal", "true")], {"shut": CORDONED}, id="Equal with another value"),
        pytest.param([Toleration("", "Exists")], {}, id="everything"),
        pytest.param([Toleration("", "Exists", "", NO_EXECUTE)], {"shut": CORDONED}, id="everything that evicts"),
        pytest.param([Toleration("gpu", "Exists")], {"shut": CORDONED}, id="another taint"),
    ],
)
def test_a_cordoned_node_takes_only_pods_that_tolerate_the_cordon(tolerations, want):
    """In upstream's words; the taint itself need not have been put on the node yet."""
    bench = Bench(a_node("open"), a_node("shut", unschedulable=True))

    assert want == refused(bench, bench.make("NodeUnschedulable"), a_pod(tolerations=tolerations))


def test_without_a_cordoned_node_it_says_nothing():
    """None stands for all nodes passing."""
    bench = Bench(a_node("n1"), a_node("n2"))

    assert bench.make("NodeUnschedulable").filter(CycleState(), a_pod(), bench.view) is None


def test_uncordoning_lifts_the_refusal():
    """The answer goes by how the node is now."""
    bench = Bench(a_node("n1", unschedulable=True))
    bench.put(a_node("n1"))

    assert {} == refused(bench, bench.make("NodeUnschedulable"), a_pod())


def test_pods_are_told_apart_by_whether_they_tolerate_a_cordon():
    """Not by how they say so."""
    plugin = Bench().make("NodeUnschedulable")

    assert plugin.sign(a_pod()) == plugin.sign(a_pod(tolerations=[Toleration("gpu", "Exists")]))
    assert plugin.sign(a_pod(tolerations=[Toleration("", "Exists")])) == plugin.sign(
        a_pod(tolerations=[Toleration(KEY, "Exists")])
    )
    assert plugin.sign(a_pod()) != plugin.sign(a_pod(tolerations=[Toleration("", "Exists")]))
