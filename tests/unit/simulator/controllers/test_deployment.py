"""Deployments: pods are replaced, scaled and rolled by upstream's rules. Stories end in exact logs."""

from collections import Counter

import pytest

from lamina.model.pod import Owner
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.testing import a_pod
from tests.unit.simulator.controllers.scripted import Script


@pytest.fixture
def world() -> Script:
    return Script()


def test_there_are_as_many_pods_as_asked_for_from_its_time_on(world):
    world.add("Deployment", replicas=2, at=5.0)

    assert [
        (5.0, "made", "app-1 app:1"),
        (5.0, "made", "app-2 app:1"),
        (6.0, "started", "app-1 app:1"),
        (6.0, "started", "app-2 app:1"),
    ] == world.run()


def test_its_pods_belong_to_a_replica_set_and_are_restarted_in_place(world):
    world.add("Deployment", life=PodLifecycle(seconds=60.0))
    world.run()
    pod = world.pods["app-1"]

    assert Owner("ReplicaSet", "app-1", "ReplicaSet/app-1") == pod.pod.owner
    assert ({"pod-template-hash": "1"}, "default-scheduler") == (pod.pod.labels, pod.pod.scheduler_name)
    assert PodLifecycle(seconds=60.0, restart="Always") == pod.life


@pytest.mark.parametrize("phase", ["failed", "rejected", "removed", "finished"])
def test_a_pod_that_ran_and_was_lost_is_replaced_at_once(world, phase):
    world.add("Deployment", replicas=2)
    world.run()
    world.env.at(20.0, world.end, "app-1", phase)
    world.run()

    assert ["app-2 app:1", "app-3 app:1"] == world.now_there()
    assert 20.0 == world.pods["app-3"].arrived


def test_pods_that_keep_being_refused_are_made_again_after_waits_that_double(world):
    world.refused = {"app:1"}
    world.add("Deployment", replicas=2)
    made = Counter(at for at, what, _ in world.run(100.0) if what == "made")

    # Both at once: what ends together counts as one.
    assert dict.fromkeys([0.0, 1.0, 3.0, 7.0, 15.0, 31.0, 63.0], 2) == made


def test_a_deployment_whose_pods_fit_nowhere_stops_trying_and_begins_anew_when_scaled(world):
    world.refused = {"app:1"}
    world.add("Deployment")
    tries = [at for at, what, _ in world.run() if what == "made"]
    world.refused = set()
    world.env.at(50_000.0, world.controllers.scale, "app", 2)
    world.run()

    assert 30 == len(tries)
    assert 2 == len(world.now_there())


def test_trouble_long_past_is_forgotten(world):
    """Refused at 0 s and 1 s, then well for long: the next one is made a second later again, not four."""
    world.refused = {"app:1"}
    world.add("Deployment")
    world.run(2.5)
    world.refused = set()
    world.run(2000.0)
    world.refused = {"app:1"}
    world.end("app-3", "failed")

    assert [2000.0, 2001.0, 2003.0] == [at for at, what, _ in world.run(2004.0) if what == "made"]


@pytest.mark.parametrize(
    ("count", "left"),
    [
        pytest.param(0, [], id="to zero"),
        pytest.param(1, ["app-1 app:1"], id="down: the youngest go"),
        pytest.param(4, ["app-1 app:1", "app-2 app:1", "app-3 app:1", "app-4 app:1"], id="up"),
    ],
)
def test_scaling(world, count, left):
    world.add("Deployment", replicas=3)
    world.run()
    world.controllers.scale("app", count)
    world.run()

    assert left == world.now_there()


def test_scaling_down_takes_pods_that_do_not_run_first(world):
    world.start = None
    world.add("Deployment", replicas=3)
    world.run()
    world.begin("app-2")
    world.controllers.scale("app", 2)
    world.run()

    assert ["app-1 app:1", "app-2 app:1"] == world.now_there()


def test_from_zero(world):
    world.add("Deployment", replicas=0)
    assert [] == world.run()
    world.controllers.scale("app", 1)

    assert [(0.0, "made", "app-1 app:1"), (1.0, "started", "app-1 app:1")] == world.run()


# ----------------------------------------------------------------------------------------------------------- rollouts


def test_a_rollout_adds_a_surge_and_removes_old_pods_as_new_ones_are_ready(world):
    """Four replicas: one more at most, one less at least."""
    world.add("Deployment", replicas=4)
    world.env.at(10.0, world.controllers.update, "app", "app:2")
    world.run(9.0)

    assert [
        # One for the surge, and one for the one that may be lacking.
        (10.0, "removed", "app-4 app:1"),
        (10.0, "made", "app-5 app:2"),
        (10.0, "made", "app-6 app:2"),
        (11.0, "started", "app-5 app:2"),
        (11.0, "started", "app-6 app:2"),
        (11.0, "removed", "app-3 app:1"),
        (11.0, "removed", "app-2 app:1"),
        (11.0, "made", "app-7 app:2"),
        (11.0, "made", "app-8 app:2"),
        (12.0, "started", "app-7 app:2"),
        (12.0, "started", "app-8 app:2"),
        (12.0, "removed", "app-1 app:1"),
    ] == [line for line in world.run() if line[0] >= 10.0]


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "most", "least"),
    [
        pytest.param(10, 0.25, 0.25, 13, 8, id="2.5: up for the surge, down for what may lack"),
        pytest.param(10, 2, 0, 12, 10, id="numbers"),
        pytest.param(10, 0, 3, 10, 7, id="no surge"),
        pytest.param(3, 0.0, 0.25, 3, 2, id="both come to nothing: one may lack"),
        pytest.param(1, 0.25, 0.25, 2, 1, id="one: the new one first"),
        pytest.param(2, 0, 5, 2, 0, id="more than there are"),
    ],
)
def test_bounds_of_a_rollout(replicas, surge, unavailable, most, least):
    world = Script()
    world.add("Deployment", replicas=replicas, surge=surge, unavailable=unavailable)
    world.run()
    world.controllers.update("app", "app:2")
    there = ready = replicas
    seen_there, seen_ready = {there}, {ready}
    old_ready = dict.fromkeys(world.pods, True)
    for at, what, name in world.run():
        uid = name.split()[0]
        there += {"made": 1, "removed": -1}.get(what, 0)
        old_ready[uid] = old_ready.get(uid, False) or what == "started"
        ready += (what == "started") - (what == "removed" and old_ready[uid])
        seen_there.add(there)
        seen_ready.add(ready)
        assert at >= 1.0

    assert (most, least) == (max(seen_there), min(seen_ready))
    assert {"app:2"} == {name.split()[1] for name in world.now_there()}
    assert replicas == len(world.now_there())


def test_a_rollout_does_not_wait_for_old_pods_to_stop():
    world = Script(stop=100.0)
    world.add("Deployment", replicas=4)
    world.run()
    world.controllers.update("app", "app:2")
    made = [at for at, what, _ in world.run() if what == "made"]

    assert [1.0, 1.0, 2.0, 2.0] == made


def test_a_rollout_pauses_until_new_pods_have_run_for_a_while(world):
    world.add("Deployment", replicas=2, surge=1, unavailable=0, min_ready=30.0)
    world.env.at(100.0, world.controllers.update, "app", "app:2")
    world.run(99.0)

    assert [
        (100.0, "made", "app-3 app:2"),
        (101.0, "started", "app-3 app:2"),
        (131.0, "removed", "app-2 app:1"),
        (131.0, "made", "app-4 app:2"),
        (132.0, "started", "app-4 app:2"),
        (162.0, "removed", "app-1 app:1"),
    ] == world.run()


def test_a_rollout_whose_pods_do_not_start_leaves_enough_old_ones(world):
    world.add("Deployment", replicas=4)
    world.run()
    world.start = None
    world.controllers.update("app", "app:2")
    world.run()

    # Five in all, three of them ready.
    assert Counter({"app:1": 3, "app:2": 2}) == Counter(name.split()[1] for name in world.now_there())


def test_old_pods_that_do_not_run_are_the_first_to_go(world):
    world.start = None
    world.add("Deployment", replicas=4)
    world.run()
    for uid in ("app-1", "app-2", "app-3"):
        world.begin(uid)
    world.controllers.update("app", "app:2")
    world.run()

    assert ["app-1 app:1", "app-2 app:1", "app-3 app:1", "app-5 app:2", "app-6 app:2"] == world.now_there()


def test_going_back_takes_up_the_old_replica_set(world):
    world.add("Deployment", replicas=2)
    world.run()
    world.controllers.update("app", "app:2")
    world.run()
    world.controllers.update("app", "app:1")
    world.run()

    assert {"app-1"} == {world.pods[name.split()[0]].pod.owner.name for name in world.now_there()}


def test_scaled_in_a_rollout_both_versions_grow_in_proportion(world):
    """Of 13 pods at most, 8 are old and 5 new; of 25 that makes 15 and 10."""
    world.add("Deployment", replicas=10)
    world.run()
    world.start = None
    world.controllers.update("app", "app:2")
    world.run()
    before = Counter(name.split()[1] for name in world.now_there())
    world.controllers.scale("app", 20)
    world.run()

    assert Counter({"app:1": 8, "app:2": 5}) == before
    assert Counter({"app:1": 15, "app:2": 10}) == Counter(name.split()[1] for name in world.now_there())


def test_scaled_to_zero_in_a_rollout_nothing_is_left(world):
    world.add("Deployment", replicas=10)
    world.run()
    world.start = None
    world.controllers.update("app", "app:2")
    world.run()
    world.controllers.scale("app", 0)
    world.run()

    assert [] == world.now_there()


def test_another_template_is_a_rollout_and_an_earlier_version_is_used_again(world):
    """Versions have names; the same template under the newest name changes nothing."""
    first = a_pod("template", 1, image="app:1", scheduler="")
    second = a_pod("template", 1, image="app:1", scheduler="", labels={"tier": "front"})
    world.add("Deployment", template=first, version="x")
    world.env.at(10.0, world.controllers.replace, "app", second, "y")
    world.env.at(20.0, world.controllers.replace, "app", second, "y")
    world.env.at(30.0, world.controllers.replace, "app", first, "x")
    world.run()

    assert [("app-1", "app-x"), ("app-2", "app-y"), ("app-3", "app-x")] == [
        (name, one.pod.owner.name) for name, one in world.pods.items()
    ]
    assert {"tier": "front", "pod-template-hash": "y"} == world.pods["app-2"].pod.labels
