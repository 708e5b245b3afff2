"""Pods drawn from a seed: shares, rates, bursts and updates as planned, and the same for the same seed."""

import itertools
import math
from collections import Counter
from collections.abc import Iterable

import msgspec
import pytest

from lamina.model.resources import amounts
from lamina.simulator.workloads import PodArrival
from lamina.simulator.workloads.pod_stream import (
    Application,
    Diurnal,
    DrawnWorkload,
    PodStream,
    Rollouts,
    Serverless,
    WorkloadPlan,
)

SMALL, LARGE = amounts({"cpu": "500m", "memory": "1Gi"}), amounts({"cpu": 2, "memory": "4Gi"})


def an_application(name: str, versions: int = 1) -> Application:
    return Application(name, tuple(f"{name}:{number}" for number in range(1, versions + 1)))


PLAN = WorkloadPlan(
    name="w",
    pods=4000,
    at=0.0,
    every=2.0,
    zipf=1.0,
    mean=60.0,
    spread="exponential",
    requests=((SMALL, 3.0), (LARGE, 1.0)),
    applications=tuple(an_application(f"app{number}", 5) for number in range(10)),
)


def draw(seed: int = 0, **changes):
    return PodStream(msgspec.structs.replace(PLAN, **changes), seed).arrivals()


def mean(numbers: Iterable[float]) -> float:
    numbers = list(numbers)
    return sum(numbers) / len(numbers)


def test_the_same_seed_draws_the_same_pods_and_another_seed_others():
    assert draw(7, updates=9) == draw(7, updates=9)
    assert draw(7) != draw(8)


def test_pods_have_names_in_the_order_they_come_and_know_when():
    drawn = draw(pods=3, at=100.0)

    assert ["w1", "w2", "w3"] == [arrival.pod.name for arrival in drawn] == [arrival.pod.uid for arrival in drawn]
    assert all(100.0 < arrival.at == arrival.pod.created_at for arrival in drawn)
    assert sorted(arrival.at for arrival in drawn) == [arrival.at for arrival in drawn]


def test_gaps_are_exponential_around_their_mean():
    times = [arrival.at for arrival in draw()]
    gaps = [after - before for before, after in itertools.pairwise(times)]

    assert 2.0 == pytest.approx(mean(gaps), rel=0.05)
    # Of exponential gaps 1 - 1/e are shorter than the mean.
    assert 0.632 == pytest.approx(mean(gap < 2.0 for gap in gaps), abs=0.03)


@pytest.mark.parametrize(
    ("spread", "below_the_mean"),
    [("exponential", 0.632), ("lognormal", 0.691), ("fixed", 0.0)],
)
def test_durations_have_the_mean_and_the_spread_that_was_asked_for(spread, below_the_mean):
    """A lognormal value with sigma 1 is below its mean in 69 of 100 cases."""
    durations = [arrival.duration for arrival in draw(spread=spread, mean=60.0)]

    assert 60.0 == pytest.approx(mean(durations), rel=0.06)
    assert below_the_mean == pytest.approx(mean(duration < 60.0 for duration in durations), abs=0.03)


def test_requests_have_their_shares():
    drawn = draw()

    assert 0.75 == pytest.approx(mean(arrival.pod.requests == SMALL for arrival in drawn), abs=0.03)
    assert {SMALL, LARGE} == {arrival.pod.containers[0].requests for arrival in drawn}


@pytest.mark.parametrize("zipf", [0.0, 1.0, 2.0])
def test_popularity_follows_zipf_over_applications_in_an_order_of_their_own(zipf):
    stream = PodStream(msgspec.structs.replace(PLAN, zipf=zipf), 0)
    counts = Counter(arrival.pod.owner.name for arrival in stream.arrivals())
    shares = [rank**-zipf for rank in range(1, 11)]

    assert [share / sum(shares) for share in shares] == pytest.approx(
        [counts[application.name] / 4000 for application in stream.ranked], abs=0.03
    )
    assert list(PLAN.applications) != stream.ranked


def test_weights_are_for_applications_in_the_order_of_the_catalog():
    stream = PodStream(msgspec.structs.replace(PLAN, weights=(1.0, 0.0, 3.0)), 0)
    counts = Counter(arrival.pod.owner.name for arrival in stream.arrivals())

    assert {"app0", "app2"} == set(counts)
    assert 0.75 == pytest.approx(counts["app2"] / 4000, abs=0.03)
    assert list(PLAN.applications) == stream.ranked


def test_a_pod_belongs_to_its_application():
    pod = draw(applications=(an_application("web"),))[0].pod

    assert ({"app": "web"}, "web", "ReplicaSet", ("web:1",)) == (pod.labels, pod.owner.name, pod.owner.kind, pod.images)


def test_a_burst_is_pods_of_one_application_at_one_time_with_an_owner_of_their_own():
    drawn = draw(burst=(5, 20), grouped=True)
    bursts: dict[str, list[PodArrival]] = {}
    for arrival in drawn:
        bursts.setdefault(arrival.pod.owner.uid, []).append(arrival)

    assert 4000 == len(drawn)
    assert all(1 == len({(arrival.at, arrival.pod.images) for arrival in burst}) for burst in bursts.values())
    # All but the last, which ends with the pods.
    assert {*range(5, 21)} == {len(burst) for burst in list(bursts.values())[:-1]}


def test_without_updates_everybody_runs_the_first_version():
    assert {"1"} == {arrival.pod.images[0].rpartition(":")[2] for arrival in draw()}


def test_an_update_holds_for_all_later_pods_of_the_application():
    drawn = draw(updates=12)
    versions: dict[str, list[int]] = {}
    for arrival in drawn:
        name, _, version = arrival.pod.images[0].partition(":")
        versions.setdefault(name, []).append(int(version))

    assert all(sorted(seen) == seen for seen in versions.values())
    # The last may come after the last pod of its application.
    assert 12 == pytest.approx(sum(max(seen) - 1 for seen in versions.values()), abs=2)


def test_updates_go_on_with_those_that_have_versions_left():
    """Forty is all there are: ten applications, four next versions each."""
    versions = {}
    for arrival in draw(updates=40):
        versions[arrival.pod.owner.name] = int(arrival.pod.images[0].rpartition(":")[2])

    assert 40 == pytest.approx(sum(version - 1 for version in versions.values()), abs=3)


def test_more_updates_change_nothing_but_versions():
    """Each kind of luck has its own dice, so that runs differ in what was changed alone."""
    few, many = draw(updates=1), draw(updates=30)

    def without_version(arrival):
        return arrival.at, arrival.duration, arrival.pod.owner, arrival.pod.requests

    assert [without_version(arrival) for arrival in few] == [without_version(arrival) for arrival in many]
    assert [arrival.pod.images for arrival in few] != [arrival.pod.images for arrival in many]


# -------------------------------------------------------------------------------------------------------- time of day


def test_by_day_there_are_more_pods_than_by_night_and_as_many_in_all():
    """
    Ten periods with 400 pods each on average, a depth of 0.8.

    In the rising half of a sine the mean is 2/pi: 1 + 0.8 * 2 / pi = 1.509 times the mean of the whole.
    """
    times = [arrival.at for arrival in draw(diurnal=Diurnal(800.0, 0.8))]
    by_day = mean(at % 800.0 < 400.0 for at in times)

    assert (1 + 0.8 * 2 / math.pi) / 2 == pytest.approx(by_day, abs=0.02)
    # Nine whole periods; the root of 3600 is 60.
    assert 3600 == pytest.approx(sum(at < 9 * 800.0 for at in times), abs=150)


def test_without_depth_the_time_of_day_makes_no_difference():
    gaps = [after.at - before.at for before, after in itertools.pairwise(draw(diurnal=Diurnal(800.0, 0.0)))]

    assert 2.0 == pytest.approx(mean(gaps), rel=0.05)
    assert 0.632 == pytest.approx(mean(gap < 2.0 for gap in gaps), abs=0.03)


def test_the_time_of_day_is_counted_from_the_beginning_of_the_workload():
    early, late = draw(diurnal=Diurnal(800.0, 0.8)), draw(diurnal=Diurnal(800.0, 0.8), at=123.0)

    assert [arrival.at + 123.0 for arrival in early] == pytest.approx([arrival.at for arrival in late])


# ------------------------------------------------------------------------------------------------------------ requests

SERVERLESS = Serverless(requests=4000, idle=30.0)


def test_requests_need_fewer_pods_than_there_are_requests_and_each_outlives_its_work_by_the_idle_time():
    drawn = draw(serverless=SERVERLESS, mean=10.0)

    assert 100 < len(drawn) < 4000
    assert all(arrival.duration > 30.0 for arrival in drawn)
    assert [f"w{number}" for number in range(1, len(drawn) + 1)] == [arrival.pod.name for arrival in drawn]
    assert sorted(arrival.at for arrival in drawn) == [arrival.at for arrival in drawn]


@pytest.mark.parametrize("change", [{"idle": 300.0}, {"concurrency": 10}], ids=["kept longer", "more at once"])
def test_pods_that_are_kept_longer_or_serve_more_at_once_are_fewer(change):
    usual = draw(serverless=SERVERLESS, mean=10.0)

    assert len(draw(serverless=msgspec.structs.replace(SERVERLESS, **change), mean=10.0)) < len(usual)


def test_no_more_pods_are_needed_than_the_plan_allows():
    assert 50 == len(draw(serverless=SERVERLESS, mean=10.0, pods=50))


def test_an_update_brings_new_pods_for_a_function_that_had_some():
    """One function, never idle for long: one pod, and one more for each version."""
    one = (an_application("web", 3),)
    drawn = draw(serverless=Serverless(requests=4000, idle=1e6, concurrency=1000), applications=one, updates=2)

    assert ["web:1", "web:2", "web:3"] == [arrival.pod.images[0] for arrival in drawn]


# ------------------------------------------------------------------------------------------------------------ rollouts

ROLLOUTS = Rollouts(deployments=4, of=(2, 5), every=60.0, batch=0.5, pause=20.0)


def rolled(seed: int = 0, **changes) -> DrawnWorkload:
    plan = msgspec.structs.replace(PLAN, rollouts=msgspec.structs.replace(ROLLOUTS, **changes))
    return PodStream(plan, seed).draw()


def test_deployments_are_there_from_the_start_in_the_first_version():
    drawn = rolled()

    assert 4 == len({one.name for one in drawn.controllers})
    for one in drawn.controllers:
        assert ("Deployment", 0.0, 0.5, 0, 20.0) == (one.kind, one.at, one.surge, one.unavailable, one.min_ready)
        assert 2 <= one.replicas <= 5
        assert (f"{one.name.removeprefix('w-')}:1",) == one.template.images
        assert one.template.requests in (SMALL, LARGE)


def test_each_rollout_goes_to_the_next_version_until_there_is_none():
    """Four Deployments, four next versions each."""
    drawn = rolled(count=100)
    images: dict[str, list[str]] = {}
    for happening in drawn.events:
        assert "update" == happening.kind
        images.setdefault(happening.name, []).append(happening.image.rpartition(":")[2])

    assert [["2", "3", "4", "5"]] * 4 == list(images.values())
    assert sorted(one.at for one in drawn.events) == [one.at for one in drawn.events]


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        pytest.param({"count": 3, "every": 1e6}, 3, id="as many as asked for, however long that takes"),
        pytest.param({"every": 1e9}, 0, id="or those before the last pod"),
        pytest.param({"count": 0}, 0, id="none"),
    ],
)
def test_how_many_rollouts_there_are(changes, count):
    assert count == len(rolled(**changes).events)


def test_without_as_many_applications_there_are_fewer_deployments():
    few = (an_application("a", 2), an_application("b", 1), an_application("c", 3))
    plan = msgspec.structs.replace(PLAN, rollouts=ROLLOUTS, applications=few)

    # The second has nowhere to go.
    assert {"w-a", "w-c"} == {one.name for one in PodStream(plan, 0).draw().controllers}


def test_rollouts_leave_the_pods_as_they_were_and_come_again_with_the_seed():
    assert draw(3) == list(rolled(3).arrivals)
    assert rolled(3) == rolled(3)
    assert rolled(3).controllers != rolled(4).controllers
