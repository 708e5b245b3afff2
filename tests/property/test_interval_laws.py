"""Laws of intervals and comparisons, whatever the figures are."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.evaluation.comparison import Run, compare
from lamina.evaluation.intervals import estimate, paired

AMOUNTS = st.floats(1e-9, 1e15)
FIGURES = st.none() | st.just(0.0) | AMOUNTS
BY_SEED = st.dictionaries(st.integers(1, 30), FIGURES, max_size=12)


@st.composite
def summaries(draw: st.DrawFn) -> dict[str, Any]:
    spread = {name: draw(FIGURES) for name in ("mean", "p50", "p95", "p99")}
    return {
        "scenario": "drawn",
        "bytes_pulled": draw(st.integers(0, 10**15)),
        "pulls": draw(st.integers(0, 100)),
        "peak_load": draw(FIGURES),
        "imbalance": draw(FIGURES),
        "pods": {
            "started": draw(st.integers(0, 1)),
            "not_started": {"total": draw(st.integers(0, 1))},
            "pending": draw(st.lists(st.just({}), max_size=3)),
        },
        "startup_seconds": {"total": spread},
    }


@given(st.lists(AMOUNTS, min_size=1, max_size=12))
def test_a_mean_lies_between_the_values_and_in_its_interval(values):
    found = estimate(values)

    assert min(values) <= found.mean <= max(values)
    assert (found.half_width is None) == (len(values) == 1)
    assert found.half_width is None or found.half_width >= 0.0


@given(st.lists(AMOUNTS, min_size=2, max_size=12), st.floats(0.001, 1000))
def test_an_interval_grows_with_the_unit(values, unit):
    """Seconds or hours: the same interval."""
    found, scaled = estimate(values), estimate([unit * value for value in values])

    assert pytest.approx(unit * found.half_width, rel=1e-6, abs=1e-9 * unit * max(values)) == scaled.half_width


@given(BY_SEED, BY_SEED, st.randoms(use_true_random=False))
def test_the_order_of_the_seeds_does_not_matter(values, baseline, random):
    shuffled = list(values.items())
    random.shuffle(shuffled)

    assert paired(values, baseline) == paired(dict(shuffled), baseline)
    there = [value for value in values.values() if value is not None]
    again = [value for _, value in shuffled if value is not None]
    assert estimate(there) == estimate(again)


@given(BY_SEED, BY_SEED)
def test_a_ratio_lies_in_its_interval_and_every_pair_is_accounted_for(values, baseline):
    found = paired(values, baseline)

    assert len(set(values) & set(baseline)) == found.runs + found.left_out
    assert (found.ratio is None) == (found.runs == 0)
    assert (found.low is None) == (found.high is None) == (found.runs < 2)
    if found.ratio is not None and found.low is not None and found.high is not None:
        assert found.low <= found.ratio <= found.high


@given(st.dictionaries(st.integers(1, 30), AMOUNTS, min_size=2, max_size=12))
def test_what_is_equal_has_a_ratio_of_exactly_1(values):
    found = paired(values, dict(values))

    assert (1.0, 1.0, 1.0, 0) == (found.ratio, found.low, found.high, found.sign)


@given(BY_SEED, BY_SEED)
def test_turned_around_a_ratio_is_one_over_it(values, baseline):
    there, back = paired(values, baseline), paired(baseline, values)

    assert (there.runs, there.left_out, there.sign) == (back.runs, back.left_out, -back.sign)
    if there.ratio is not None and back.ratio is not None:
        assert pytest.approx(0.0, abs=1e-9) == math.log(there.ratio) + math.log(back.ratio)


@given(st.lists(summaries(), min_size=1, max_size=5))
def test_a_profile_under_another_name_compares_as_equal(drawn):
    """Where both have a figure above 0 the ratio is 1, and the means are the same everywhere."""
    runs = [Run(name, seed, one) for seed, one in enumerate(drawn) for name in ("original", "copy")]
    compared = compare(runs, "original")

    for row in compared.rows:
        if row.profile == "copy":
            assert compared.row("original", row.metric).estimate == row.estimate
            assert row.against is not None
            assert row.against.ratio in {None, 1.0}
            assert {row.against.low, row.against.high} <= {None, 1.0}


@given(st.lists(summaries(), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_a_table_does_not_depend_on_which_seed_ran_first(drawn, random):
    by_seed = [
        [Run(name, seed, one) for name, one in (("base", first), ("other", second))]
        for seed, (first, second) in enumerate(zip(drawn, reversed(drawn), strict=True))
    ]
    before = compare([run for pair in by_seed for run in pair], "base")
    random.shuffle(by_seed)

    assert before == compare([run for pair in by_seed for run in pair], "base")


@given(st.lists(st.tuples(summaries(), summaries()), min_size=1, max_size=4))
def test_a_row_has_a_verdict_or_says_why_not_and_the_opposite_one_from_the_other_side(pairs):
    runs = [Run(name, seed, one) for seed, both in enumerate(pairs) for name, one in zip("ab", both, strict=True)]
    opposite = {"better": "worse", "worse": "better"}

    for row in compare(runs, "a").rows:
        if row.profile == "b":
            assert (row.verdict is None) == bool(row.no_verdict)
            assert row.comparable or row.verdict is None
            other = compare(runs, "b").row("a", row.metric)
            assert (row.comparable, row.basis) == (other.comparable, other.basis)
            # An interval that ends at equality, but for rounding, may be on either side of it.
            if row.verdict and other.verdict:
                assert opposite[row.verdict] == other.verdict


@given(st.lists(st.tuples(summaries(), summaries()), min_size=2, max_size=4))
def test_start_times_of_different_numbers_of_pods_have_no_verdict(pairs):
    runs = [Run(name, seed, one) for seed, both in enumerate(pairs) for name, one in zip("ab", both, strict=True)]
    differ = any(one["pods"]["started"] != other["pods"]["started"] for one, other in pairs)
    rows = [row for row in compare(runs, "a").rows if row.profile == "b" and row.metric.startswith("startup_")]

    assert [not differ] * 4 == [row.comparable for row in rows]
    assert not differ or not [row for row in rows if row.verdict]
