"""Pods drawn from a seed: shares, rates, bursts and updates as planned, and the same for the same seed."""

import itertools
from collections import Counter
from collections.abc import Iterable

import msgspec
import pytest

from lamina.model.resources import amounts
from lamina.simulator.workloads import Arrival
from lamina.simulator.workloads.stream import Application, Plan, Stream

SMALL, LARGE = amounts({"cpu": "500m", "memory": "1Gi"}), amounts({"cpu": 2, "memory": "4Gi"})


def an_application(name: str, versions: int = 1) -> Application:
    return Application(name, tuple(f"{name}:{number}" for number in range(1, versions + 1)))


PLAN = Plan(
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
    return Stream(msgspec.structs.replace(PLAN, **changes), seed).arrivals()


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
    stream = Stream(msgspec.structs.replace(PLAN, zipf=zipf), 0)
    counts = Counter(arrival.pod.owner.name for arrival in stream.arrivals())
    shares = [rank**-zipf for rank in range(1, 11)]

    assert [share / sum(shares) for share in shares] == pytest.approx(
        [counts[application.name] / 4000 for application in stream.ranked], abs=0.03
    )
    assert list(PLAN.applications) != stream.ranked


def test_a_pod_belongs_to_its_application():
    pod = draw(applications=(an_application("web"),))[0].pod

    assert ({"app": "web"}, "web", "ReplicaSet", ("web:1",)) == (pod.labels, pod.owner.name, pod.owner.kind, pod.images)


def test_a_burst_is_pods_of_one_application_at_one_time_with_an_owner_of_their_own():
    drawn = draw(burst=(5, 20), grouped=True)
    bursts: dict[str, list[Arrival]] = {}
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
