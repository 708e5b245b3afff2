"""Nodes about which little or nothing is known."""

import numpy as np
import pytest

from lamina.scheduling.plugins.agents.safe.confidence import ScoresWithConfidence, mix_in_mean, settle, weakest


def judged(*pairs: tuple[float, float]) -> ScoresWithConfidence:
    points, trust = zip(*pairs, strict=True)
    return ScoresWithConfidence(np.array(points), np.array(trust))


@pytest.mark.parametrize(
    ("first", "second", "want"),
    [
        # points, trust
        pytest.param((40.0, 1.0), (60.0, 1.0), 40.0, id="the first is worse"),
        pytest.param((60.0, 1.0), (40.0, 1.0), 40.0, id="the second is worse"),
        pytest.param((60.0, 1.0), (40.0, 0.5), 40.0, id="the worse is half known"),
        pytest.param((60.0, 1.0), (0.0, 0.0), 60.0, id="what is not known decides nothing"),
        pytest.param((0.0, 0.0), (60.0, 1.0), 60.0, id="what is not known decides nothing, the other way round"),
    ],
)
def test_the_worst_of_what_is_known_decides(first, second, want):
    decided = weakest([judged(first), judged(second)])

    assert (want, 1.0) == (decided.points.item(), decided.trust.item())


@pytest.mark.parametrize(
    ("first", "want"),
    [
        # The other node has 80 for the first resource: with trust t the mean of both is 80/(1 + t).
        pytest.param((0.0, 1.0), 0, id="a fresh bad reading"),
        pytest.param((0.0, 0.75), 11, id="one that is mostly believed: 0.25 · 45.7"),
        pytest.param((0.0, 0.25), 30, id="one that is hardly believed hides nothing: 0.75 · 64 is more than 30"),
        pytest.param((0.0, 0.0), 30, id="one that is not believed"),
        pytest.param((80.0, 1.0), 30, id="a good reading"),
    ],
)
@pytest.mark.parametrize("turned", [False, True], ids=["first", "second"])
def test_an_old_bad_reading_of_one_resource_does_not_hide_a_fresh_one_of_the_other(first, want, turned):
    both = [judged(first, (80.0, 1.0)), judged((30.0, 1.0), (90.0, 1.0))]

    assert [want, 80] == settle(both[::-1] if turned else both, np.ones(2, dtype=np.bool_)).tolist()


def test_a_node_of_which_neither_is_known_is_the_mean_of_what_the_others_come_to():
    """The worse of 80 and 90, and the worse of 60 and 20."""
    both = [judged((80.0, 1.0), (60.0, 1.0), (0.0, 0.0)), judged((90.0, 1.0), (20.0, 1.0), (0.0, 0.0))]

    assert [80, 20, 50] == settle(both, np.ones(3, dtype=np.bool_)).tolist()


def test_what_is_not_known_of_either_stays_so():
    assert 0.0 == weakest([judged((10.0, 0.0)), judged((20.0, 0.0))]).trust.item()


@pytest.mark.parametrize(
    ("feasible", "want"),
    [
        pytest.param([True, True, False, True], [90, 30, 60, 60], id="one that is half known is not feasible"),
        # Weighed by trust: (90 + 30 + 0.5 · 60) / 2.5 = 60
        pytest.param([True, True, True, True], [90, 30, 60, 60], id="it is, and counts half"),
        pytest.param([True, False, False, True], [90, 30, 75, 90], id="the mean of one"),
        pytest.param([False, False, False, True], [90, 30, 55, 50], id="of none"),
    ],
)
def test_nodes_count_as_the_mean_as_far_as_they_are_not_believed(feasible, want):
    points = judged((90.0, 1.0), (30.0, 1.0), (60.0, 0.5), (0.0, 0.0))

    assert want == settle([points], np.array(feasible)).tolist()


def test_what_is_believed_in_full_stays_as_it_is_to_the_last_digit():
    values = np.array([0.1, 62.5, 1 / 3])

    assert values.tolist() == mix_in_mean(values, np.ones(3), np.ones(3, dtype=np.bool_), 50.0).tolist()


def test_points_are_rounded_half_up():
    points = judged((62.5, 1.0), (62.49, 1.0), (0.0, 1.0), (99.5, 1.0))

    assert [63, 62, 0, 100] == settle([points], np.ones(4, dtype=np.bool_)).tolist()
