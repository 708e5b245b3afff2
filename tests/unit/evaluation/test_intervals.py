"""Means, intervals and paired ratios against tables and against sums done by hand."""

import math

import pytest

from lamina.evaluation.intervals import Estimate, Ratio, estimate, paired, student


@pytest.mark.parametrize(
    ("freedom", "t"),
    # Two-sided 95 % points as printed tables of Student's distribution have them, to three places.
    [
        *[(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (6, 2.447), (7, 2.365), (8, 2.306)],
        *[(9, 2.262), (10, 2.228), (11, 2.201), (12, 2.179), (15, 2.131), (19, 2.093), (20, 2.086), (24, 2.064)],
        *[(25, 2.060), (29, 2.045), (30, 2.042), (40, 2.021), (60, 2.000), (120, 1.980)],
    ],
)
def test_quantiles_are_those_of_the_tables(freedom, t):
    assert t == round(student(freedom), 3)


def test_quantiles_have_closed_forms_for_one_and_two_degrees_of_freedom():
    # 1: the distribution function is arctan(t) / π + 1/2; 2: it is t / (2 √(2 + t²)) + 1/2.
    assert pytest.approx(math.tan(math.pi * 0.475), rel=1e-12) == student(1)
    assert pytest.approx(0.95 * math.sqrt(2 / (1 - 0.95**2)), rel=1e-12) == student(2)


def test_quantiles_fall_towards_that_of_the_normal_distribution():
    points = [student(freedom) for freedom in (*range(1, 60), 100, 1_000, 10_000)]

    assert sorted(points, reverse=True) == points
    assert pytest.approx(1.95996, abs=3e-4) == points[-1]


def test_without_a_degree_of_freedom_there_is_no_quantile():
    with pytest.raises(ValueError, match="0 degrees of freedom"):
        student(0)


@pytest.mark.parametrize(
    ("values", "mean", "half_width"),
    [
        pytest.param([5.0], 5.0, None, id="one value has no interval"),
        pytest.param([0.1, 0.1, 0.1], 0.1, 0.0, id="equal values: not a digit of doubt"),
        # Deviation √2, over √2, times t(1).
        pytest.param([1, 3], 2.0, 12.7062, id="two values"),
        # Deviation √2.5, over √5, times t(4) = 2.77645.
        pytest.param([1, 2, 3, 4, 5], 3.0, 2.77645 * math.sqrt(0.5), id="five values"),
    ],
)
def test_an_estimate_is_the_mean_with_students_interval(values, mean, half_width):
    found = estimate(values)

    assert mean == found.mean
    assert half_width == (None if half_width is None else pytest.approx(found.half_width, rel=1e-5))
    assert len(values) == found.runs


def test_nothing_has_no_estimate():
    assert estimate([]) is None


def test_pairs_are_compared_by_the_geometric_mean_of_their_ratios():
    """Half as much and twice as much even out."""
    found = paired({1: 50.0, 2: 200.0}, {1: 100.0, 2: 100.0})

    # Logarithms ∓ ln 2: deviation √2 ln 2, over √2, times t(1) = 12.7062.
    half = 12.7062047 * math.log(2)
    assert pytest.approx((1.0, math.exp(-half), math.exp(half))) == (found.ratio, found.low, found.high)
    assert (2, 0, 0) == (found.runs, found.left_out, found.sign)


def test_pairs_see_a_difference_that_the_spread_between_workloads_would_hide():
    """Always a tenth less, on workloads that differ by a factor of a hundred."""
    baseline = {1: 10.0, 2: 100.0, 3: 1000.0}
    found = paired({seed: 0.9 * value for seed, value in baseline.items()}, baseline)

    assert pytest.approx((0.9, 0.9, 0.9)) == (found.ratio, found.low, found.high)
    assert -1 == found.sign


@pytest.mark.parametrize(
    ("values", "baseline", "expected"),
    [
        pytest.param({1: 2.0, 2: 3.0}, {1: 2.0, 2: 3.0}, Ratio(1.0, 1.0, 1.0, 2, 0), id="equal"),
        pytest.param({1: 4.0}, {1: 4.0}, Ratio(1.0, None, None, 1, 0), id="a single pair has no interval"),
        pytest.param({1: 4.0, 2: 5.0}, {1: 0.0, 2: 5.0}, Ratio(1.0, None, None, 1, 1), id="a baseline of 0"),
        pytest.param({1: 0.0, 2: 5.0}, {1: 9.0, 2: 5.0}, Ratio(1.0, None, None, 1, 1), id="a figure of 0"),
        pytest.param({1: None, 2: 5.0}, {1: 9.0, 2: 5.0}, Ratio(1.0, None, None, 1, 1), id="a figure that is missing"),
        pytest.param({1: 0.0, 2: 0.0}, {1: 0.0, 2: 0.0}, Ratio(None, None, None, 0, 2), id="nothing but zeros"),
        pytest.param({1: 5.0, 2: 6.0}, {1: 5.0}, Ratio(1.0, None, None, 1, 0), id="a seed only one has run is no pair"),
        pytest.param({}, {}, Ratio(None, None, None, 0, 0), id="nothing"),
    ],
)
def test_pairs_without_a_ratio_are_left_out_and_counted(values, baseline, expected):
    assert expected == paired(values, baseline)


def test_an_interval_too_wide_for_numbers_has_no_upper_end():
    found = paired({1: 1e-300, 2: 1e300}, {1: 1e300, 2: 1e-300})

    assert (0.0, math.inf, 0) == (found.low, found.high, found.sign)


@pytest.mark.parametrize(
    ("low", "high", "sign"),
    [(0.5, 0.9, -1), (0.5, 1.0, 0), (0.5, 1.5, 0), (1.0, 1.0, 0), (1.0, 1.5, 0), (1.1, 1.5, 1), (None, None, 0)],
)
def test_a_sign_is_given_only_when_the_whole_interval_is_on_one_side(low, high, sign):
    assert sign == Ratio(1.0, low, high, 5, 0).sign


def test_estimates_are_values():
    assert Estimate(2.0, 0.0, 2) == estimate([2, 2])
