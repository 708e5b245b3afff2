"""StatefulSets: names that stay, one step after the other."""

from lamina.model.pod import Owner
from tests.unit.simulator.controllers.scripted import Script


def test_pods_come_one_after_the_other_and_go_in_reverse():
    world = Script(stop=2.0)
    world.add("StatefulSet", replicas=3)
    world.env.at(10.0, world.controllers.scale, "app", 1)

    assert [
        (0.0, "made", "app-0 app:1"),
        (1.0, "started", "app-0 app:1"),
        (1.0, "made", "app-1 app:1"),
        (2.0, "started", "app-1 app:1"),
        (2.0, "made", "app-2 app:1"),
        (3.0, "started", "app-2 app:1"),
        (10.0, "removed", "app-2 app:1"),
        # When it is gone, not before.
        (12.0, "removed", "app-1 app:1"),
    ] == world.run()


def test_a_lost_pod_comes_back_under_its_name_with_another_uid():
    world = Script()
    world.add("StatefulSet", replicas=2)
    world.run()
    world.end("app-0.1", "removed")
    world.run()

    assert ["app-1 app:1", "app-0 app:1"] == world.now_there()
    assert ["app-0.1", "app-1.2", "app-0.3"] == list(world.pods)
    assert {Owner("StatefulSet", "app", "StatefulSet/app")} == {one.pod.owner for one in world.pods.values()}


def test_an_update_begins_with_the_highest_and_waits_for_each():
    world = Script(stop=2.0)
    world.add("StatefulSet", replicas=2)
    world.run()
    world.env.at(10.0, world.controllers.update, "app", "app:2")

    assert [
        (10.0, "removed", "app-1 app:1"),
        (12.0, "made", "app-1 app:2"),
        (13.0, "started", "app-1 app:2"),
        (13.0, "removed", "app-0 app:1"),
        (15.0, "made", "app-0 app:2"),
        (16.0, "started", "app-0 app:2"),
    ] == world.run()


def test_a_pod_that_is_not_ready_holds_up_those_behind_it():
    world = Script(start=None)
    world.add("StatefulSet", replicas=3)
    world.run()
    world.controllers.update("app", "app:2")
    world.run()

    assert ["app-0 app:1"] == world.now_there()


def test_a_pod_that_is_refused_is_made_again_after_a_wait():
    world = Script(refused={"app:1"})
    world.add("StatefulSet", replicas=3)

    assert [0.0, 1.0, 3.0, 7.0] == [at for at, what, _ in world.run(10.0) if what == "made"]


def test_to_zero_and_from_zero():
    world = Script()
    world.add("StatefulSet", replicas=2)
    world.run()
    world.controllers.scale("app", 0)
    world.run()
    assert [] == world.now_there()
    world.controllers.scale("app", 1)
    world.run()

    assert ["app-0 app:1"] == world.now_there()
