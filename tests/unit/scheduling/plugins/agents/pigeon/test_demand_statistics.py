"""What pods ask for, of each and of all that came lately."""

import numpy as np
import pytest

from lamina.scheduling.plugins.agents.pigeon import demand_statistics
from lamina.scheduling.plugins.agents.pigeon.demand_statistics import MOST_COUNTED, DemandStatistics, requested_amounts
from lamina.testing import a_pod

MIB = 1 << 20


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(a_pod(cpu="500m", memory="1Gi"), [500, 1024 * MIB, 1, 0, 0], id="cpu and memory"),
        pytest.param(a_pod(), [10, 16 * MIB, 1, 0, 0], id="nothing"),
        pytest.param(a_pod(cpu=0, memory="0"), [10, 16 * MIB, 1, 0, 0], id="none of it"),
        pytest.param(
            a_pod(cpu=1, memory="1Mi", more={"a.com/gpu": 1, "gpu": 2, "b.com/gpus": 4}),
            [1000, MIB, 1, 3, 0],
            id="gpus of two makers, and something else",
        ),
        pytest.param(
            a_pod(cpu=1, memory="1Mi", more={"ephemeral-storage": "1Ki", "pods": 7}),
            [1000, MIB, 1, 0, 1024],
            id="storage, and more than itself",
        ),
        pytest.param(a_pod(cpu=str(2**60), memory="1Mi"), [2**53, MIB, 1, 0, 0], id="more than there can be"),
    ],
)
def test_a_pod_asks_for_amounts_in_a_fixed_order(pod, expected):
    assert expected == requested_amounts(pod, 5).tolist()
    assert expected[:2] == requested_amounts(pod, 2).tolist()


def of(*amounts: list[float]) -> DemandStatistics:
    noted = DemandStatistics(len(amounts[0]))
    for number, one in enumerate(amounts):
        noted.note(f"p{number}", np.array(one, dtype=np.float64))
    return noted


def test_mean_and_covariance_are_those_of_the_pods():
    noted = of([1, 10], [3, 10], [2, 40])

    assert [2, 20] == pytest.approx(noted.mean.tolist())
    # ((1-2)² + (3-2)² + 0)/3; ((1-2)(10-20) + (3-2)(10-20) + 0)/3; (100 + 100 + 400)/3
    assert pytest.approx(np.array([[2 / 3, 0], [0, 200]])) == noted.covariance


def test_pods_that_are_alike_do_not_vary_at_all():
    noted = of(*[[0.1, 0.7]] * 300)

    assert [[0, 0], [0, 0]] == noted.covariance.tolist()


def test_a_pod_that_is_tried_again_does_not_count_again():
    noted = of([1], [3])
    noted.note("p1", np.array([3.0]))

    assert (2, [2.0]) == (noted.count, noted.mean.tolist())


def test_older_pods_are_forgotten_bit_by_bit():
    noted = of(*[[1]] * MOST_COUNTED, [2])

    assert noted.count == MOST_COUNTED
    assert [1.01] == pytest.approx(noted.mean.tolist())


def test_so_many_pods_are_remembered_and_those_asked_about_lately_longest(monkeypatch):
    monkeypatch.setattr(demand_statistics, "REMEMBERED", 3)
    noted = of([1], [1], [1])
    noted.note("p0", np.array([1.0]))
    noted.note("p3", np.array([1.0]))

    assert ["p2", "p0", "p3"] == list(noted._seen)
    assert noted.count == 4
