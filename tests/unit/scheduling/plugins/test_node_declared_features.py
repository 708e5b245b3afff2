"""NodeDeclaredFeatures: pods go to nodes that declare the features which they require."""

import msgspec
import pytest

from lamina.model import events
from lamina.model.node_features import HOST_NETWORK_USERS, RESTART_ALL_CONTAINERS
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.status import SKIP
from lamina.scheduling.plugins.upstream.node_declared_features.plugin import NAME, REASON
from lamina.scheduling.state.cluster_changes import ChangeKind
from lamina.testing import LoopHarness, a_loop, a_node, a_pod
from tests.unit.scheduling.bench import Bench, refused

PLUGINS = ["PrioritySort", NAME, "DefaultBinder"]
BOTH = (RESTART_ALL_CONTAINERS, HOST_NETWORK_USERS)


def node(name, *features):
    return msgspec.structs.replace(a_node(name), declared_features=features)


def pod(*features, name="p1"):
    return msgspec.structs.replace(a_pod(name), required_features=features)


def bench(*nodes):
    """Make the plugin first: its fact must know all nodes."""
    on = Bench()
    plugin = on.make(NAME)
    on.put(*nodes)
    return on, plugin


@pytest.mark.parametrize(
    ("required", "refuses"),
    [
        pytest.param((RESTART_ALL_CONTAINERS,), {"none", "users", "other"}, id="one feature"),
        pytest.param((HOST_NETWORK_USERS,), {"none", "restart", "other"}, id="another feature"),
        pytest.param(BOTH, {"none", "restart", "users", "other"}, id="both"),
        pytest.param(("Unknown",), {"none", "restart", "users", "both", "other"}, id="a feature that no node declares"),
    ],
)
def test_nodes_without_a_required_feature_are_refused(required, refuses):
    on, plugin = bench(
        node("none"),
        node("restart", RESTART_ALL_CONTAINERS),
        node("users", HOST_NETWORK_USERS),
        node("both", *BOTH),
        node("other", "ExtendWebSocketsToKubelet"),
    )
    found = refused(on, plugin, pod(*required))

    assert refuses == set(found)
    assert {((REASON,), True)} == {(refusal.reasons, refusal.final) for refusal in found.values()}


def test_a_pod_without_requirements_is_skipped():
    on, plugin = bench(node("none"))

    assert plugin.pre_filter(CycleState(), pod(), on.view) is SKIP


def test_pods_are_of_one_shape_if_they_require_the_same():
    _, plugin = bench()

    assert plugin.sign(pod(RESTART_ALL_CONTAINERS)) == plugin.sign(pod(RESTART_ALL_CONTAINERS, name="p2"))
    assert plugin.sign(pod(RESTART_ALL_CONTAINERS)) != plugin.sign(pod())


def test_the_fact_follows_nodes_that_change_and_leave():
    on, plugin = bench(node("a", RESTART_ALL_CONTAINERS), node("b"))
    on.put(node("a"), node("b", RESTART_ALL_CONTAINERS))
    assert {"a"} == set(refused(on, plugin, pod(RESTART_ALL_CONTAINERS)))

    on.remove("b")
    on.put(node("c"))
    assert {"a", "c"} == set(refused(on, plugin, pod(RESTART_ALL_CONTAINERS)))


def test_a_refused_pod_waits_for_a_node_that_declares_the_feature():
    made = LoopHarness(a_loop(PLUGINS))
    made.tell(events.NodeSeen(node("n1")))
    made.see(pod(RESTART_ALL_CONTAINERS))
    assert f"0/1 nodes are available: 1 {REASON}." in made.pending["p1"]

    made.tell(events.NodeSeen(node("n1", RESTART_ALL_CONTAINERS)))
    made.at(20.0)
    assert {"p1": "n1"} == made.bound


@pytest.mark.parametrize("kind", [ChangeKind.NODE_ADDED, ChangeKind.NODE_FEATURES, ChangeKind.POD_UPDATED])
def test_nodes_and_the_pod_itself_can_lift_a_refusal(kind):
    _, plugin = bench()

    assert kind in plugin.retry_on
    assert ChangeKind.NODE_LABELS not in plugin.retry_on
