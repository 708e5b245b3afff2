"""From summaries to a table: which figures, in which order, against whom."""

from typing import Any

import pytest

from lamina.evaluation.comparison import METRICS, Run, compare
from lamina.evaluation.intervals import Estimate, Ratio
from lamina.model.errors import InputError


def a_summary(*, pulled: int = 100, start: float | None = 2.0, pending: int = 0, heating: float | None = 1.5) -> Any:
    """What the table reads of a summary, and a little more."""
    return {
        "scenario": "story",
        "bytes_pulled": pulled,
        "pulls": 3,
        "heating": heating,
        "balance": heating,
        "pods": {"total": 9, "pending": [{"pod": f"p{number}"} for number in range(pending)]},
        "startup_seconds": {
            "waiting": dict.fromkeys(("p50", "p95", "p99", "mean", "max"), 77.0),
            "total": dict.fromkeys(("p50", "p95", "p99", "mean", "max"), start),
        },
    }


def a_run(profile: str, seed: int, **figures) -> Run:
    return Run(profile, seed, a_summary(**figures))


def test_every_profile_has_a_row_for_every_figure_in_order():
    runs = [a_run(profile, seed) for seed in (1, 2) for profile in ("second", "first")]
    compared = compare(runs, "first")

    assert [(profile, metric.name) for profile in ("second", "first") for metric in METRICS] == [
        (row.profile, row.metric) for row in compared.rows
    ]
    assert ("story", "first", 0.95, (1, 2)) == (
        compared.scenario,
        compared.baseline,
        compared.confidence,
        compared.seeds,
    )
    assert ("second", "first") == compared.profiles


def test_figures_are_means_over_the_seeds_and_ratios_to_the_baseline_of_the_same_seed():
    compared = compare(
        [
            a_run("base", 1, pulled=100),
            a_run("less", 1, pulled=50),
            a_run("base", 2, pulled=300),
            a_run("less", 2, pulled=150),
        ],
        "base",
    )
    base, less = compared.row("base", "bytes_pulled"), compared.row("less", "bytes_pulled")

    assert (200.0, 100.0) == (base.estimate.mean, less.estimate.mean)
    assert base.against is None
    assert pytest.approx((0.5, 0.5, 0.5)) == (less.against.ratio, less.against.low, less.against.high)


def test_start_times_are_counted_from_the_arrival():
    compared = compare([a_run("one", 1, start=4.0)], "one")

    assert [4.0] * 4 == [
        compared.row("one", f"startup_{which}").estimate.mean for which in ("mean", "p50", "p95", "p99")
    ]


def test_pending_pods_are_counted():
    compared = compare([a_run("one", 1, pending=3), a_run("one", 2, pending=1)], "one")

    assert 2.0 == compared.row("one", "pending").estimate.mean


def test_a_figure_that_a_run_does_not_have_is_left_out_and_told():
    runs = [
        *(a_run("base", seed) for seed in (1, 2)),
        a_run("other", 1, start=None),
        a_run("other", 2, start=2.0, heating=None),
    ]
    row = compare(runs, "base").row("other", "startup_mean")

    assert Estimate(2.0, None, 1) == row.estimate
    assert Ratio(1.0, None, None, 1, 1) == row.against


def test_a_figure_that_no_run_has_has_no_estimate():
    row = compare([a_run("base", 1), a_run("other", 1, heating=None)], "base").row("other", "heating")

    assert row.estimate is None
    assert Ratio(None, None, None, 0, 1) == row.against


def test_a_baseline_that_nobody_ran_is_a_mistake():
    with pytest.raises(InputError, match="did you mean 'layers'"):
        compare([a_run("layers", 1)], "layer")


def test_a_figure_that_older_summaries_lack_is_none():
    assert None is next(metric for metric in METRICS if metric.name == "slowdown_mean").read({"pulls": 3})
