"""The risk of exceeding a share, given the mean and deviation of use."""

import numpy as np
import pytest

from lamina.scheduling.plugins.agents.safe.risk import chances, fit


def risk(mean: float, deviation: float, threshold: float = 0.9, *, capped: bool = False) -> float:
    return float(chances(np.array([mean]), np.array([deviation]), threshold, capped=capped)[1][0])


@pytest.mark.parametrize("capped", [pytest.param(False, id="as it was"), pytest.param(True, id="capped")])
@pytest.mark.parametrize(
    ("mean", "deviation", "want"),
    [
        (0.425, 0.10, 8.51e-9),
        (0.70, 0.15, 0.073385),
        (0.80, 0.10, 0.158360),
        (0.85, 0.10, 0.371595),
        (0.85, 0.05, 0.157290),
        (0.30, 0.30, 0.049684),
        (0.60, 0.30, 0.215443),
        (0.95, 0.0, 1.0),
        (0.90, 0.0, 0.0),
        (0.0, 0.3, 0.0),
        (0.0, 0.0, 0.0),
    ],
    ids=str,
)
def test_published_values_are_met(mean, deviation, want, capped):
    assert pytest.approx(want, rel=1e-3 if want < 1e-6 else 1e-5, abs=0) == risk(mean, deviation, capped=capped)


@pytest.mark.parametrize(
    ("mean", "deviation", "alpha", "beta"),
    [
        (0.425, 0.10, 9.9609, 13.4766),
        (0.70, 0.15, 5.8333, 2.5),
        (0.80, 0.10, 12.0, 3.0),
        (0.85, 0.10, 9.9875, 1.7625),
        (0.85, 0.05, 42.5, 7.5),
        (0.30, 0.30, 0.4, 0.9333),
        (0.60, 0.30, 1.0, 0.6667),
    ],
    ids=str,
)
def test_published_distributions_are_met(mean, deviation, alpha, beta):
    found = fit(np.array([mean]), np.array([deviation**2]))

    assert pytest.approx((alpha, beta), abs=5e-5) == (found[0].item(), found[1].item())


@pytest.mark.parametrize(
    ("mean", "deviation", "at_first", "capped"),
    [
        # Of the largest variance 99 % is left: nearly all at 0 or 1, so nearly the mean exceeds.
        pytest.param(0.5, 0.5, 1.0, 0.49, id="as much as there can be"),
        pytest.param(0.1, 0.9, 1.0, 0.10, id="more than there can be"),
        pytest.param(1.0, 0.2, 1.0, 1.0, id="at the top"),
    ],
)
def test_a_deviation_too_large_for_any_distribution_is_taken_for_the_largest(mean, deviation, at_first, capped):
    assert at_first == risk(mean, deviation)
    assert pytest.approx(capped, abs=0.01) == risk(mean, deviation, capped=True)


@pytest.mark.parametrize(
    ("threshold", "want"),
    [
        pytest.param(0.0, 1.0, id="any use is too much"),
        pytest.param(1.0, 0.0, id="no use is too much"),
    ],
)
def test_thresholds_at_the_ends_are_certain(threshold, want):
    assert want == risk(0.5, 0.1, threshold)


@pytest.mark.parametrize("deviation", [1e-9, 1e-150, 1e-200, 5e-324])
def test_a_use_as_good_as_steady_is_on_one_side(deviation):
    assert (0.0, 1.0) == (risk(0.85, deviation), risk(0.95, deviation))


@pytest.mark.parametrize("mean", [5e-324, 1e-300, 1e-16, 1 - 2**-53])
@pytest.mark.parametrize("deviation", [1e-200, 1e-9, 0.3, 1.0])
@pytest.mark.parametrize("capped", [True, False])
def test_every_mean_and_deviation_has_a_risk(mean, deviation, capped):
    assert 0.0 <= risk(mean, deviation, capped=capped) <= 1.0


def test_each_node_may_have_its_own_threshold():
    mean, deviation = np.full(3, 0.8), np.full(3, 0.1)

    within, beyond = chances(mean, deviation, np.array([0.9, 0.5, 1.0]))

    assert [pytest.approx(0.158360, rel=1e-5), pytest.approx(0.993532, rel=1e-5), 0.0] == beyond.tolist()
    assert pytest.approx([1.0, 1.0, 1.0]) == (within + beyond).tolist()
