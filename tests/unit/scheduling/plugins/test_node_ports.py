"""NodePorts: two pods cannot have the same port of a node."""

import msgspec
import pytest

from lamina.model import events
from lamina.model.decision import Refusal
from lamina.model.pod import HostPort, Pod
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.status import SKIP
from lamina.scheduling.state.cluster_changes import ChangeKind, ClusterChange
from lamina.testing import LoopHarness, a_loop, a_node, a_pod
from tests.unit.scheduling.bench import Bench, refused

TAKEN = Refusal("NodePorts", ("node(s) didn't have free ports for the requested pod ports",))


def asking(*ports: HostPort, name: str = "p1", on: str = "") -> Pod:
    """Build a pod that wants ports of its node."""
    return msgspec.structs.replace(a_pod(name, on=on), host_ports=ports)


@pytest.mark.parametrize(
    ("held", "wanted", "refuses"),
    [
        pytest.param([HostPort(80)], [HostPort(80)], True, id="the same port"),
        pytest.param([HostPort(80)], [HostPort(81)], False, id="another port"),
        pytest.param([HostPort(80)], [HostPort(80, "UDP")], False, id="another protocol"),
        pytest.param([HostPort(80, "UDP")], [HostPort(80, "UDP")], True, id="the same of another protocol"),
        pytest.param([HostPort(80, ip="10.0.0.1")], [HostPort(80, ip="10.0.0.2")], False, id="another address"),
        pytest.param([HostPort(80, ip="10.0.0.1")], [HostPort(80, ip="10.0.0.1")], True, id="the same address"),
        pytest.param([HostPort(80, ip="10.0.0.1")], [HostPort(80)], True, id="one address and all of them"),
        pytest.param([HostPort(80)], [HostPort(80, ip="10.0.0.1")], True, id="all addresses and one of them"),
        pytest.param(
            [HostPort(80, ip="::")], [HostPort(80, ip="::1")], False, id=":: stands for itself, as upstream has it"
        ),
        pytest.param([HostPort(80), HostPort(443)], [HostPort(1), HostPort(443)], True, id="one of two"),
    ],
)
def test_a_node_where_a_port_is_taken_is_refused(held, wanted, refuses):
    """In upstream's words; evicting who holds it would help."""
    bench = Bench(a_node("free"), a_node("busy"))
    bench.place("busy", asking(*held, name="holder"))

    assert ({"busy": TAKEN} if refuses else {}) == refused(bench, bench.make("NodePorts"), asking(*wanted))


def test_a_pod_that_wants_no_port_is_none_of_its_business():
    assert SKIP == Bench(a_node("n1")).make("NodePorts").pre_filter(CycleState(), a_pod(), Bench(a_node("n1")).view)


def test_a_port_that_two_pods_hold_is_free_when_both_are_gone():
    """They were placed by somebody who did not ask; upstream would call it free after the first."""
    bench = Bench(a_node("n1"))
    one, two = asking(HostPort(80), name="one"), asking(HostPort(80), name="two")
    bench.place("n1", one, two)
    plugin = bench.make("NodePorts")

    bench.columns.release(0, one)
    assert {"n1": TAKEN} == refused(bench, plugin, asking(HostPort(80)))

    bench.columns.release(0, two)
    assert {} == refused(bench, plugin, asking(HostPort(80)))


def test_ports_leave_with_their_node():
    """A node that takes the row over has all of its own."""
    bench = Bench(a_node("n1"))
    bench.place("n1", asking(HostPort(80)))
    bench.remove("n1")
    bench.put(a_node("n2"))

    assert {} == refused(bench, bench.make("NodePorts"), asking(HostPort(80)))


@pytest.mark.parametrize(
    ("change", "want"),
    [
        pytest.param(ClusterChange(ChangeKind.NODE_ADDED, 0), True, id="a new node"),
        pytest.param(ClusterChange(ChangeKind.POD_REMOVED, 0, pod=asking(HostPort(80))), True, id="who held it left"),
        pytest.param(
            ClusterChange(ChangeKind.POD_REMOVED, 0, pod=asking(HostPort(80, ip="10.0.0.1"))), True, id="on one address"
        ),
        pytest.param(
            ClusterChange(ChangeKind.POD_REMOVED, 0, pod=asking(HostPort(80, "UDP"))), False, id="who held another left"
        ),
        pytest.param(ClusterChange(ChangeKind.POD_REMOVED, 0, pod=a_pod()), False, id="who held none left"),
    ],
)
def test_a_pod_is_tried_again_when_its_port_may_be_free(change, want):
    assert want == Bench().make("NodePorts").worth_retrying(asking(HostPort(1), HostPort(80)), change)


def test_pods_that_want_one_port_go_to_one_node_each_and_the_last_one_waits_for_it():
    """One after another, as the ports become taken and free again."""
    desk = LoopHarness(a_loop(["PrioritySort", "NodePorts", "NodeResourcesFit", "DefaultBinder"]))
    desk.tell(events.NodeSeen(a_node("n1")), events.NodeSeen(a_node("n2")))
    pods = [asking(HostPort(80), name=name) for name in "abc"]
    desk.see(*pods)
    assert {"a": "n1", "b": "n2"} == desk.bound
    assert {
        "c": "0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod ports."
    } == desk.pending

    desk.tell(events.PodGone(pods[0].uid))
    desk.at(1.0)

    assert "n1" == desk.bound["c"]
