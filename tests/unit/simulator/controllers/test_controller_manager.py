"""All controllers together: names, times, and pods that are nobody's."""

import pytest

from lamina.model.errors import WiringError
from lamina.simulator.cluster.pod_lifecycle import RUNS_FOREVER
from lamina.testing import a_pod
from tests.unit.simulator.controllers.scripted import Script


def test_two_controllers_cannot_have_one_name():
    world = Script()
    world.add("Job")

    with pytest.raises(WiringError, match="a second controller 'app' cannot be added"):
        world.add("Deployment")


@pytest.mark.parametrize("call", [("scale", 3), ("update", "app:2")], ids=["scale", "update"])
def test_a_controller_that_is_not_there_cannot_be_told_anything(call):
    what, value = call

    with pytest.raises(WiringError, match="there is no controller 'web'"):
        getattr(Script().controllers, what)("web", value)


def test_only_the_template_of_a_deployment_has_versions():
    world = Script()
    world.add("Job")

    with pytest.raises(WiringError, match="the controller 'app' is no Deployment"):
        world.controllers.replace("app", a_pod("template"), "x")


def test_what_is_asked_before_a_controller_s_time_holds_from_then_on():
    world = Script()
    world.add("Deployment", replicas=1, at=10.0)
    world.env.at(5.0, world.controllers.scale, "app", 2)
    world.env.at(6.0, world.controllers.update, "app", "app:2")

    assert [(10.0, "made", "app-1 app:2"), (10.0, "made", "app-2 app:2")] == world.run(10.0)


def test_pods_of_others_are_left_alone():
    world = Script()
    world.add("Deployment", replicas=1)
    world.submit(a_pod("mine"), RUNS_FOREVER)
    world.run()
    world.end("mine", "failed")

    assert [(1.0, "failed", "mine app:1")] == world.run()


def test_a_controller_looks_once_at_an_instant_however_much_happens():
    """Two pods are lost at once, one of them told twice: two are made."""
    world = Script()
    world.add("Deployment", replicas=3)
    world.run(20.0)
    for uid in ("app-1", "app-2"):
        world.end(uid)
    world.controllers.pod_ended(world.pods["app-2"])

    assert ["app-4 app:1", "app-5 app:1"] == [who for _, what, who in world.run() if what == "made"]


def test_a_template_s_own_scheduler_is_kept():
    world = Script()
    world.add("Deployment", template=a_pod("t", scheduler="mine"))
    world.run()

    assert "mine" == world.pods["app-1"].pod.scheduler_name
