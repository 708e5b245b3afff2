"""How the seconds between binding and running are split_startup into queue, download, unpacking and start."""

import math

import pytest

from lamina.simulator.pulls import ImagePullRequest
from lamina.simulator.pulls.runtime_image import runtime_image_of
from lamina.simulator.run.result import PodOutcome
from lamina.simulator.run.run_outcomes import split_startup
from lamina.testing import an_image

IMAGE = an_image("registry.example/a:1", {"base": 1})


def pulled(began: float | None, fetched: float | None, done: float | None) -> ImagePullRequest:
    """A pull that came so far."""
    pull = ImagePullRequest(IMAGE, runtime_image_of(IMAGE, None), 0.0, lambda: None)
    pull.began_at, pull.downloaded_at, pull.done_at = began, fetched, done
    return pull


@pytest.mark.parametrize(
    ("pulls", "pieces"),
    [
        pytest.param([], (0.0, 0.0, 0.0, 20.0), id="everything was there"),
        pytest.param([(13.0, 18.0, 24.0)], (3.0, 5.0, 6.0, 6.0), id="one image"),
        pytest.param([(10.0, 12.0, 13.0), (15.0, 18.0, 28.0)], (2.0, 5.0, 11.0, 2.0), id="two images: sums"),
        pytest.param([(10.0, 10.0, 10.0)], (0.0, 0.0, 0.0, 20.0), id="came meanwhile"),
        pytest.param([(10.0, 40.0, 50.0)], (0.0, 20.0, 0.0, 0.0), id="lazy: goes on after the start"),
        pytest.param([(12.0, None, None)], (2.0, 0.0, 0.0, 18.0), id="lazy: was never whole"),
        pytest.param([(12.0, 20.0, 22.0), (11.0, 15.0, 25.0)], (2.0, 8.0, 5.0, 5.0), id="side by side: counted once"),
    ],
)
def test_the_pieces_follow_each_other_without_a_gap(pulls, pieces):
    found = split_startup(10.0, 30.0, [pulled(*times) for times in pulls])

    assert pieces == found
    assert 20.0 == math.fsum(found)


@pytest.mark.parametrize(("bound", "started"), [(None, None), (10.0, None)])
def test_who_never_started_has_no_pieces(bound, started):
    assert (None, None, None, None) == split_startup(bound, started, [pulled(11.0, None, None)])


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        pytest.param((0.0, 0.0, 100.0), 1.0, id="never waited"),
        pytest.param((0.0, 100.0, 200.0), 2.0, id="waited as long as it ran"),
        pytest.param((0.0, 9.0, 10.0), 1.0, id="ran a second: counts as ten"),
        pytest.param((0.0, 39.0, 40.0), 4.0, id="ran a second and waited long"),
        pytest.param((0.0, 0.0, 1.0), 1.0, id="never below one"),
    ],
)
def test_slowdown_is_bounded(times, expected):
    arrived, started, ended = times
    pod = PodOutcome(pod="default/p", phase="finished", arrived=arrived, bound=arrived, started=started, ended=ended)

    assert expected == pod.slowdown


@pytest.mark.parametrize("phase", ["running", "removed", "failed"])
def test_only_who_finished_has_a_slowdown(phase):
    assert PodOutcome(pod="default/p", phase=phase, arrived=0.0, started=1.0, ended=100.0).slowdown is None


def test_what_was_never_reached_is_none():
    pod = PodOutcome(pod="default/p", phase="pending", arrived=3.0)

    assert [None] * 6 == [pod.queue, pod.decision, pod.waiting, pod.pulling, pod.total, pod.slowdown]
