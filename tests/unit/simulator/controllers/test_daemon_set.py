"""DaemonSets: one pod on each node that may have it."""

import msgspec
import pytest

from lamina.model.errors import WiringError
from lamina.model.pod import Owner
from lamina.model.selectors import NodeSelector, NodeSelectorTerm, Requirement
from lamina.model.taints import Taint, Toleration
from lamina.testing import a_pod
from tests.unit.simulator.controllers.scripted import Script


def places(world: Script) -> list[str]:
    """Name the nodes that pods which have not ended are pinned to."""
    there = [one.pod for one in world.pods.values() if one.ended is None]
    return [pod.required_nodes.terms[0].fields[0].values[0] for pod in there]


def test_each_node_has_one_and_those_that_join_get_one():
    world = Script()
    world.join("n1")
    world.add("DaemonSet", at=3.0)
    world.join("n2")
    world.env.at(5.0, world.join, "n3")

    assert [(3.0, "app-1 app:1"), (3.0, "app-2 app:1"), (5.0, "app-3 app:1")] == [
        (at, who) for at, what, who in world.run() if what == "made"
    ]
    assert ["n1", "n2", "n3"] == places(world)


def test_its_pods_are_pinned_by_name_and_tolerate_what_the_control_plane_does_to_nodes():
    world = Script()
    world.join("n1")
    world.add("DaemonSet")
    world.run()
    pod = world.pods["app-1"].pod

    pin = Requirement("metadata.name", "In", ("n1",))
    assert NodeSelector((NodeSelectorTerm(fields=(pin,)),)) == pod.required_nodes
    assert Owner("DaemonSet", "app", "DaemonSet/app") == pod.owner
    assert Toleration("node.kubernetes.io/unschedulable", "Exists", "", "NoSchedule") in pod.tolerations


@pytest.mark.parametrize(
    ("change", "chosen"),
    [
        pytest.param({}, ["plain", "disk"], id="no wishes: all but the tainted"),
        pytest.param({"node_selector": (("disk", "ssd"),)}, ["disk"], id="node selector"),
        pytest.param({"tolerations": (Toleration("gpu", "Exists"),)}, ["plain", "disk", "gpu"], id="toleration"),
        pytest.param(
            {"required_nodes": NodeSelector((NodeSelectorTerm((Requirement("disk", "DoesNotExist"),)),))},
            ["plain"],
            id="node affinity",
        ),
    ],
)
def test_only_nodes_that_may_have_it_count(change, chosen):
    world = Script()
    world.join("plain")
    world.join("disk", disk="ssd")
    world.join("gpu", Taint("gpu"))
    world.add("DaemonSet", template=msgspec.structs.replace(a_pod("template", scheduler=""), **change))
    world.run()

    assert chosen == places(world)


def test_a_node_that_leaves_takes_its_pod_along_even_one_that_waits():
    world = Script(start=None)
    world.join("n1")
    world.join("n2")
    world.add("DaemonSet")
    world.run()
    world.drop("n1")
    world.run()

    assert ["n2"] == places(world)
    assert 2 == len(world.pods)


def test_a_lost_pod_is_replaced_on_its_node_and_one_that_fails_early_after_a_wait():
    world = Script()
    world.join("n1")
    world.join("n2")
    world.add("DaemonSet")
    world.run(20.0)
    world.end("app-1", "removed")
    world.run(21.0)
    world.end("app-3", "failed")

    assert [22.0] == [at for at, what, _ in world.run() if what == "made"]
    assert ["n2", "n1"] == places(world)


def test_an_update_replaces_as_many_at_once_as_may_be_unavailable():
    world = Script()
    for number in range(1, 6):
        world.join(f"n{number}")
    world.add("DaemonSet", unavailable=2)
    world.run()
    world.env.at(10.0, world.controllers.update, "app", "app:2")
    removed = [at for at, what, _ in world.run() if what == "removed"]

    assert [10.0, 10.0, 11.0, 11.0, 12.0] == removed
    assert {"app:2"} == {name.split()[1] for name in world.now_there()}


def test_an_update_that_does_not_start_stops_at_the_bound():
    world = Script()
    for number in range(1, 6):
        world.join(f"n{number}")
    world.add("DaemonSet", unavailable=0.25)
    world.run()
    world.start = None
    world.controllers.update("app", "app:2")
    world.run()

    # A quarter of five, rounded up.
    assert 2 == sum(name.endswith("app:2") for name in world.now_there())
    assert 5 == len(world.now_there())


def test_it_cannot_be_scaled():
    world = Script()
    world.add("DaemonSet")

    with pytest.raises(WiringError, match="daemon set 'app' cannot be scaled to 3: it has a pod on every node"):
        world.controllers.scale("app", 3)
