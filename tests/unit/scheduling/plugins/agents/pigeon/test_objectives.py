"""The objectives: their values on the published example, and at the edges."""

import numpy as np
import pytest

from lamina.scheduling.plugins.agents.pigeon import objectives
from lamina.scheduling.plugins.agents.pigeon.cluster_resources import ClusterResources
from lamina.scheduling.plugins.agents.pigeon.demand_statistics import DemandStatistics

PRECISION = 1e-5  # as published


def cluster(capacity: list[list[float]], usage: list[list[float]]) -> ClusterResources:
    """Build a cluster from a row for each node."""
    return ClusterResources(np.array(capacity).T, np.array(usage).T, np.ones(len(capacity), dtype=np.bool_))


PUBLISHED = cluster([[4000, 8192]] * 3, [[2000, 2048], [1000, 4096], [0, 0]])
POD = np.array([500.0, 1024.0])


def demand(*pods: tuple[float, float]) -> DemandStatistics:
    noted = DemandStatistics(2)
    for number, pod in enumerate(pods):
        noted.note(f"p{number}", np.array(pod))
    return noted


EARLIER = demand((500, 1024), (1000, 512), (500, 1024))


def test_the_published_demand_varies_as_published():
    assert pytest.approx(0.174790, abs=PRECISION) == objectives.demand_variation(PUBLISHED, EARLIER)


def test_adaptive_packing_is_worth_what_was_published():
    supply = np.array([0.728431, 0.728431, 0.404061])
    values = objectives.adaptive_bin_packing(PUBLISHED, POD, EARLIER)

    assert pytest.approx([0.553641, 0.553641, 0.229271], abs=PRECISION) == values
    assert pytest.approx(supply, abs=PRECISION) == values + objectives.demand_variation(PUBLISHED, EARLIER)


def test_balance_is_worth_what_was_published():
    assert pytest.approx([0.256851, 0.212459, 0.155902], abs=PRECISION) == objectives.load_balance(PUBLISHED, POD, 0)


def test_consolidation_is_worth_what_was_published():
    assert pytest.approx([0.356608, 0.394375, 0.619893], abs=PRECISION) == objectives.consolidate(PUBLISHED, POD, 0)


@pytest.mark.parametrize(
    ("prime", "expected"),
    [
        # Shares of memory 1/4, 1/2, 0 and 1/8 more: deviations of (3/8 1/2 0), (1/4 5/8 0), (1/4 1/2 1/8).
        pytest.param(0, [0.256851, 0.212459, 0.155902], id="cpu"),
        pytest.param(1, [0.212459, 0.256851, 0.155902], id="memory"),
    ],
)
def test_what_is_balanced_is_the_prime_resource(prime, expected):
    assert pytest.approx(expected, abs=PRECISION) == objectives.load_balance(PUBLISHED, POD, prime)


def test_a_cluster_that_would_be_quite_full_is_as_consolidated_as_can_be():
    full = cluster([[10.0], [10.0]], [[10.0], [8.0]])

    assert [0.0] == objectives.consolidate(full, np.array([2.0]), 0)[1:].tolist()


def test_a_node_without_the_resource_is_full_and_stays_so():
    some = cluster([[0.0], [10.0]], [[0.0], [5.0]])

    # Shares 1 and 1/2, without and with 1/10 more on the second.
    assert pytest.approx([0.25, 0.2]) == objectives.load_balance(some, np.array([1.0]), 0)


def test_one_resource_varies_by_its_deviation_over_its_mean():
    one = cluster([[10.0], [10.0]], [[2.0], [4.0]])
    nothing = DemandStatistics(1)

    # Shares .4 and .4: 0. Shares .2 and .6: .2/.4.
    assert pytest.approx([0.0, 0.5]) == objectives.adaptive_bin_packing(one, np.array([2.0]), nothing)


def test_more_than_all_in_use_counts_as_all():
    """A share of 1.3 counts as 1; with the pod the other is at .3: .35/.65."""
    over = cluster([[10.0], [10.0]], [[13.0], [2.0]])

    assert (
        pytest.approx(0.53846, abs=PRECISION)
        == objectives.adaptive_bin_packing(over, np.array([1.0]), DemandStatistics(1))[1]
    )


def test_demand_is_compared_with_what_a_node_has_that_has_any():
    """
    Half of the nodes have none of the second resource; those that have, have 8.

    Means 2/10 and 3/8, deviations 1/10 and 1/8 together: (.2 · .1 + .375 · .125) / (.2² + .375²).
    """
    some = cluster([[10.0, 0.0], [10.0, 8.0]], [[2.0, 0.0], [4.0, 0.0]])

    assert [10.0, 8.0] == some.mean_capacity().tolist()
    assert pytest.approx(0.370242, abs=PRECISION) == objectives.demand_variation(some, demand((1, 2), (3, 4)))


def test_where_no_node_has_a_resource_demand_for_it_does_not_count():
    none = cluster([[10.0, 0.0], [10.0, 0.0]], [[2.0, 0.0], [4.0, 0.0]])
    first = DemandStatistics(1)
    for number, amount in enumerate((1.0, 3.0)):
        first.note(f"p{number}", np.array([amount]))
    both = demand((1, 7), (3, 9))

    assert objectives.demand_variation(cluster([[10.0]], [[0.0]]), first) == pytest.approx(0.5)
    assert objectives.demand_variation(none, both) == pytest.approx(0.5)
