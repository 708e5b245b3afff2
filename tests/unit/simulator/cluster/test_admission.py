"""What a kubelet refuses, in kubelet's words."""

import msgspec
import pytest

from lamina.model.pod import HostPort, Pod, PodUid
from lamina.model.selectors import NodeSelector, NodeSelectorTerm, Requirement
from lamina.model.taints import NO_EXECUTE, NO_SCHEDULE, Taint, Toleration
from lamina.simulator.cluster.admission import refusal
from lamina.testing import a_pod
from tests.unit.simulator.cluster.world import WEB, World

IN_ZONE_B = NodeSelector((NodeSelectorTerm((Requirement("zone", "In", ("b",)),)),))


def a_pod_here(name: str, cpu: int = 1, **more) -> Pod:
    """A pod that tolerates what the node has against it, unless it says otherwise."""
    made = a_pod(name, cpu, image="web:1", tolerations=(Toleration("going", "Exists"),))
    return msgspec.structs.replace(made, **more)


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        pytest.param({}, "", id="a pod that may"),
        pytest.param({"cpu": 5}, "OutOfcpu", id="too large"),
        pytest.param({"node_selector": (("zone", "a"),)}, "", id="selects the node"),
        pytest.param({"node_selector": (("zone", "b"),)}, "NodeAffinity", id="selects others"),
        pytest.param({"required_nodes": IN_ZONE_B}, "NodeAffinity", id="its affinity wants others"),
        pytest.param({"cpu": 5, "required_nodes": IN_ZONE_B}, "OutOfcpu", id="room is looked at first"),
        pytest.param({"host_ports": (HostPort(80),)}, "NodePorts", id="a port that is taken"),
        pytest.param({"host_ports": (HostPort(80, ip="10.0.0.1"),)}, "NodePorts", id="taken on all addresses"),
        pytest.param({"host_ports": (HostPort(80, "UDP"),)}, "", id="another protocol"),
        pytest.param({"tolerations": ()}, "TaintToleration", id="a taint it does not tolerate"),
    ],
)
def test_a_kubelet_refuses_what_does_not_belong_on_its_node(pod, reason):
    world = World()
    taints = (Taint("slow", effect=NO_SCHEDULE), Taint("going", effect=NO_EXECUTE))
    node = world.node("n1", WEB, labels={"zone": "a"}, taints=taints)
    world.cluster.submit(a_pod_here("first", host_ports=(HostPort(80),)))
    world.cluster.bind(PodUid("first"), "n1")

    assert reason == refusal(node, a_pod_here("second", **pod))


@pytest.mark.parametrize(
    ("priority", "reason"),
    [pytest.param(0, "Evicted", id="an ordinary pod"), pytest.param(2_000_000_000, "", id="a critical one")],
)
def test_a_node_short_of_disk_takes_only_critical_pods(priority, reason):
    node = World().node("n1", WEB)
    node.disk_pressure = True

    assert reason == refusal(node, a_pod("p", priority=priority))
