"""When a scheduler hears what nodes are used for, of which nodes, and when there is nothing more to say."""

import pytest

from lamina.model.events import UsageReported
from lamina.model.resources import amounts
from lamina.simulator.cluster import UsageSpec
from lamina.simulator.cluster.pod_lifecycle import LifecycleStage
from tests.unit.simulator.cluster.world import TOOL, World

GI = 2**30


def a_world(every: float = 60.0, window: float = 120.0, **more) -> World:
    """Pods start half a second after they are bound, because their image is there."""
    world = World(**{"usage": UsageSpec(every=every, window=window), "report": 1.0, **more})
    world.node("n1", TOOL)
    return world


def heard(world: World) -> list[tuple[float, dict[str, float]]]:
    """When reports came, and the mean cpu of each node."""
    return [
        (when, {one.node: round(one.cpu.mean, 6) for one in event.usages}) for when, event in world.heard(UsageReported)
    ]


def stages(*said: tuple[float, float, str]) -> tuple[LifecycleStage, ...]:
    return tuple(LifecycleStage(seconds, amounts({"cpu": cpu, "memory": memory})) for seconds, cpu, memory in said)


def test_reports_come_at_multiples_of_the_interval_as_late_as_others():
    """From 0.5 on the pod uses 2 cpu, until 90.5; the third window goes from 60 to 180, the fourth from 120 to 240."""
    world = a_world()
    world.run_on("n1", "p", "tool:1", stages=stages((30.0, 2, "1Gi"), (60.0, 2, "3Gi")))
    world.env.run()

    assert [
        (61.0, {"n1": pytest.approx(2000 * 59.5 / 60, abs=1e-6)}),
        (121.0, {"n1": 2000 * 90 / 120}),
        (181.0, {"n1": pytest.approx(2000 * 30.5 / 120, abs=1e-6)}),
        (241.0, {"n1": 0.0}),
    ] == heard(world)
    first, second, *_ = (event.usages[0] for _, event in world.heard(UsageReported))
    assert (0.0, 60.0, 61.0) == (first.since, first.until, first.renews_within)
    # 30 seconds of 1Gi and 60 of 3Gi in two minutes.
    assert pytest.approx(1.75 * GI) == second.memory.mean


def test_nobody_hears_of_use_unless_somebody_measures():
    world = World()
    world.node("n1", TOOL)
    world.run_on("n1", "p", "tool:1", seconds=600.0)
    world.env.run()

    assert [] == world.heard(UsageReported)
    assert (None, None) == (world.cluster.usage_sampler, world.cluster.nodes["n1"].meter)


def test_a_pod_without_stages_uses_what_it_asks_for_and_one_that_starts_again_nothing_in_between():
    """It runs from 0.5 to 20.5 and from 22 to 42, after a second of back-off and half a second for the start."""
    world = a_world(window=60.0)
    world.run_on("n1", "p", "tool:1", cpu=3, seconds=20.0, failures=1, restart="OnFailure")
    world.env.run()

    assert [(61.0, {"n1": 2000.0}), (121.0, {"n1": 0.0})] == heard(world)


def test_a_node_that_joins_is_measured_from_then_on_and_one_that_left_is_not_told_of():
    world = a_world(window=60.0)
    world.run_on("n1", "p", "tool:1", cpu=1)
    world.at(30.0, world.node, "n2", TOOL)
    world.at(45.0, world.run_on, "n2", "q", "tool:1")
    world.at(60.5, world.cluster.drop, "n1")
    world.env.run()

    # The report of 60 was on its way when n1 left. n2 was empty for 15.5 of 30 seconds.
    assert [(61.0, {"n2": pytest.approx(1000 * 14.5 / 30, abs=1e-6)}), (121.0, {"n2": 1000.0})] == heard(world)[:2]


def test_a_node_that_fails_does_not_answer_and_is_measured_in_full_when_it_does_again():
    world = a_world(window=120.0)
    world.node("n2", TOOL)
    world.run_on("n1", "p", "tool:1", cpu=1)
    world.at(50.0, world.cluster.fail, "n1")
    world.at(70.0, world.cluster.recover, "n1")
    world.env.run()

    assert [["n2"], ["n1", "n2"]] == [list(means) for _, means in heard(world)][:2]
    assert {"n1": pytest.approx(1000 * 119.5 / 120, abs=1e-6), "n2": 0.0} == heard(world)[1][1]


def test_reports_end_with_the_window_after_the_last_change_and_begin_again_with_the_next():
    """Otherwise a run with a pod that never ends would never end."""
    world = a_world()
    world.run_on("n1", "p", "tool:1", cpu=1)
    world.env.run()

    assert [61.0, 121.0, 181.0] == [when for when, _ in heard(world)]
    world.run_on("n1", "q", "tool:1", cpu=2)  # Bound at 181, runs from 181.5.
    world.env.run()
    assert [
        (241.0, {"n1": 1000 + 2000 * 58.5 / 120}),
        (301.0, {"n1": 1000 + 2000 * 118.5 / 120}),
        (361.0, {"n1": 3000.0}),
    ] == heard(world)[3:]


def test_reports_go_on_as_long_as_anything_else_is_to_happen():
    world = a_world(window=60.0)
    world.run_on("n1", "p", "tool:1", cpu=1)
    world.at(400.0, lambda: None)
    world.env.run()

    assert [61.0, 121.0, 181.0, 241.0, 301.0, 361.0, 421.0] == [when for when, _ in heard(world)]


def test_reports_that_take_longer_than_the_interval_keep_no_run_going():
    world = a_world(window=60.0, report=150.0)
    world.run_on("n1", "p", "tool:1", cpu=1)
    world.env.run()

    assert [210.0, 270.0] == [when for when, _ in heard(world)]
    assert 60.0 + 150.0 == world.heard(UsageReported)[0][1].usages[0].renews_within


@pytest.mark.parametrize("report", [0.0, 60.0, 120.0], ids=["at once", "with the next", "with the one after"])
def test_reports_that_arrive_when_another_is_made_keep_no_run_going(report):
    """Whoever hears them does something then: a scheduler decides."""
    world = a_world(window=60.0, report=report)
    hear = world.publish
    world.cluster.usage_sampler._tell = lambda event: (hear(event), world.env.after(0.0, lambda: None, priority=10))
    world.run_on("n1", "p", "tool:1", cpu=1)
    world.env.run()

    assert [60.0 + report, 120.0 + report] == [when for when, _ in heard(world)]


def test_an_interval_that_no_number_says_exactly_does_not_stand_still():
    """7 times 0.1 is a little more than 0.7, and 0.7 divided by 0.1 a little less than 7."""
    world = a_world(every=0.1, window=0.1, report=0.0)
    world.at(2.0, lambda: None)
    world.env.run()

    assert [round(number / 10, 9) for number in range(1, 21)] == [round(when, 9) for when, _ in heard(world)][:20]


def test_seconds_of_overload_are_those_of_all_nodes_also_of_one_that_left():
    """4 cpu a node: 3.7 are too much, 3.6 are not. On n1 for 10 seconds; on n2 for 9.5, until it leaves."""
    world = a_world()
    world.node("n2", TOOL)
    world.run_on("n1", "p", "tool:1", stages=stages((10.0, 3.7, "0"), (10.0, 3.6, "0")))
    world.run_on("n2", "q", "tool:1", stages=stages((90.0, 1, "7.5Gi")))
    world.at(10.0, world.cluster.drop, "n2")
    world.env.run()

    assert world.cluster.usage_sampler is not None
    assert 19.5 == world.cluster.usage_sampler.overloaded_seconds(world.env.now)
