"""Jobs: so many good ends, so many at once, and an end to trying."""

import pytest

from lamina.model.errors import WiringError
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from tests.unit.simulator.controllers.scripted import Script


def made(world: Script, until: float | None = None) -> list[float]:
    return [at for at, what, _ in world.run(until) if what == "made"]


def test_pods_come_until_enough_have_ended_well():
    world = Script(start=None)
    world.add("Job", replicas=3, parallelism=2)
    world.run()
    assert ["app-1 app:1", "app-2 app:1"] == world.now_there()
    world.end("app-2", "finished")
    world.run()
    assert ["app-1 app:1", "app-3 app:1"] == world.now_there()
    world.end("app-1", "finished")
    world.run()
    assert ["app-3 app:1"] == world.now_there()
    world.end("app-3", "finished")

    assert [] == made(world)


@pytest.mark.parametrize("phase", ["failed", "rejected", "removed"])
def test_a_pod_that_did_not_end_well_is_made_again_after_waits_that_double_to_six_minutes(phase):
    world = Script(start=None)
    world.add("Job", backoff_limit=7)
    begun = made(world)
    for number in range(1, 9):
        world.end(f"app-{number}", phase)
        begun += made(world)

    # 10, 20, 40, 80, 160, 320, then 360 each; the eighth failure is one too many.
    assert [0.0, 10.0, 30.0, 70.0, 150.0, 310.0, 630.0, 990.0] == begun


def test_a_good_end_makes_the_next_wait_short_again():
    world = Script(start=None)
    world.add("Job", replicas=2)
    world.run()
    world.end("app-1")
    world.run()
    world.end("app-2", "finished")
    world.run()
    world.end("app-3")

    assert [20.0] == made(world)


def test_a_job_that_failed_too_often_removes_its_other_pods():
    world = Script(start=None)
    world.add("Job", replicas=5, parallelism=3, backoff_limit=0)
    world.run()
    world.end("app-2")
    world.run()

    assert [] == world.now_there()
    assert 3 == len(world.pods)


def test_scaled_it_has_other_numbers_at_once_and_zero_suspends_it():
    world = Script(start=None)
    world.add("Job", replicas=5, parallelism=3)
    world.run()
    world.controllers.scale("app", 1)
    world.run()
    assert ["app-1 app:1"] == world.now_there()
    world.controllers.scale("app", 0)
    world.run()
    assert [] == world.now_there()
    world.controllers.scale("app", 9)
    world.run()

    # Nothing failed: what the Job removes itself is no failure.
    assert 5 == len(world.now_there())


@pytest.mark.parametrize(
    ("said", "lives"), [("Never", "Never"), ("OnFailure", "OnFailure"), ("Always", "OnFailure")], ids=str
)
def test_pods_of_a_job_may_end(said, lives):
    world = Script()
    world.add("Job", life=PodLifecycle(seconds=5.0, restart=said))
    world.run()

    assert lives == world.pods["app-1"].life.restart


def test_what_a_job_runs_cannot_be_changed():
    world = Script()
    world.add("Job")

    with pytest.raises(WiringError, match="job 'app' cannot be updated to 'app:2'; create another job"):
        world.controllers.update("app", "app:2")


@pytest.mark.parametrize("reason", ["Preempted", "Evicted", "node.kubernetes.io/unreachable"])
def test_a_job_that_ignores_disruptions_replaces_a_preempted_or_evicted_pod_at_once_and_counts_no_failure(reason):
    world = Script(start=None)
    world.add("Job", replicas=5, parallelism=2, backoff_limit=0, ignore_disruptions=True)
    begun = made(world)
    for number in (1, 2, 3):
        world.pods[f"app-{number}"].reason = reason
        world.end(f"app-{number}", "removed")
        begun += made(world)

    assert [0.0] * 5 == begun


def test_a_job_that_ignores_disruptions_still_counts_pods_that_failed_by_themselves():
    world = Script(start=None)
    world.add("Job", replicas=5, parallelism=2, backoff_limit=0, ignore_disruptions=True)
    world.run()
    world.end("app-1")
    world.run()

    assert [] == world.now_there()
