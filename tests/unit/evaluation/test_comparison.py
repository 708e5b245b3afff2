"""From summaries to a table: which figures, in which order, against whom."""

from typing import Any

import pytest

from lamina.evaluation.comparison import EQUAL, NEITHER, NO_INTERVAL, NO_PAIRS, UNKNOWN_PODS, Population, Run, compare
from lamina.evaluation.intervals import Estimate, Ratio
from lamina.evaluation.run_metrics import METRICS, chosen, class_metrics
from lamina.model.errors import InputError

HARMS = ("failures", "evictions", "overload_seconds", "cleared_bytes", "restarts", "pull_failures")
"""Metrics that only grow with the number of pods."""


def a_summary(
    *,
    pulled: int = 100,
    start: float | None = 2.0,
    pending: int = 0,
    pulling: int = 0,
    peak_load: float | None = 1.5,
    evictions: int = 0,
    harm: int = 0,
) -> Any:
    """What the table reads of a summary, and a little more."""
    return {
        "scenario": "story",
        "bytes_pulled": pulled,
        "pulls": 3,
        "peak_load": peak_load,
        "imbalance": peak_load,
        **dict.fromkeys(HARMS, harm),
        "evictions": evictions or harm,
        "gc": {"bytes": harm},
        "pods": {
            "total": 9,
            "started": 9 - pending - pulling,
            "not_started": {"total": pending + pulling, "pending": pending, "pulling": pulling},
            "pending": [{"pod": f"p{number}"} for number in range(pending)],
        },
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
        a_run("other", 2, start=2.0, peak_load=None),
    ]
    row = compare(runs, "base").row("other", "startup_mean")

    assert Estimate(2.0, None, 1) == row.estimate
    assert Ratio(1.0, None, None, 1, 1) == row.against


def test_a_figure_that_no_run_has_has_no_estimate():
    row = compare([a_run("base", 1), a_run("other", 1, peak_load=None)], "base").row("other", "peak_load")

    assert row.estimate is None
    assert Ratio(None, None, None, 0, 1) == row.against


def test_a_baseline_without_runs_is_a_mistake():
    with pytest.raises(InputError, match="did you mean 'layers'"):
        compare([a_run("layers", 1)], "layer")


# ------------------------------------------------------------------------------------------------------------- verdicts


def judged(metric: str, base: list[dict[str, Any]], other: list[dict[str, Any]]) -> tuple[str | None, str | None]:
    """The verdict on *other*, and why there is none; a run for each entry."""
    runs = [
        a_run(name, seed, **one) for name, many in (("base", base), ("other", other)) for seed, one in enumerate(many)
    ]
    row = compare(runs, "base").row("other", metric)
    return row.verdict, row.no_verdict


@pytest.mark.parametrize(
    ("start", "verdict"),
    [
        pytest.param((1.0, 1.1), ("better", None), id="less in every run"),
        pytest.param((3.0, 3.1), ("worse", None), id="more in every run"),
        pytest.param((1.0, 3.0), (None, EQUAL), id="now less, now more"),
        pytest.param((2.0, 2.0), (None, EQUAL), id="equal"),
        pytest.param((1.0,), (None, NO_INTERVAL), id="one run"),
        pytest.param((None, None), (None, NO_PAIRS), id="a figure that one of them lacks"),
    ],
)
def test_a_verdict_needs_an_interval_without_equality(start, verdict):
    assert verdict == judged("startup_mean", [{}, {}], [{"start": one} for one in start])


@pytest.mark.parametrize(
    ("metric", "verdict"),
    [
        *(
            pytest.param(f"startup_{which}", "started 7.5 a run here, 9.0", id=which)
            for which in ("mean", "p50", "p99")
        ),
        pytest.param("bytes_pulled", "not started 1.5 a run here, 0.0", id="bytes that were never pulled"),
        pytest.param("peak_load", "not started 1.5 a run here, 0.0", id="load that never came"),
        pytest.param("imbalance", "not started 1.5 a run here, 0.0", id="imbalance of fewer pods"),
        *(pytest.param(metric, "not started 1.5 a run here, 0.0", id=metric) for metric in HARMS),
    ],
)
def test_figures_of_different_numbers_of_pods_have_no_verdict(metric, verdict):
    # Half of everything, which would be better; but one and two pods still pull when the run ends.
    less = [{"start": 1.0, "pulled": 50, "peak_load": 1.0, "harm": 0, "pulling": pulling} for pulling in (1, 2)]
    found, reason = judged(metric, [{"harm": 8}, {"harm": 8}], less)

    assert (None, f"different numbers of pods: {verdict} under the baseline") == (found, reason)


@pytest.mark.parametrize("metric", HARMS)
def test_less_harm_is_better_if_no_more_pods_never_started(metric):
    # What is evicted before it starts never starts: fewer evictions and more starts belong together.
    base = [{"harm": 8, "pulling": 2}, {"harm": 8, "pulling": 3}]
    other = [{"harm": 1, "pulling": 1}, {"harm": 1, "pulling": 3}]

    assert ("better", None) == judged(metric, base, other)
    assert ("worse", None) == judged(metric, other, base)


def test_less_harm_is_not_better_if_more_pods_never_started_under_one_seed():
    base, other = [{"harm": 8, "pulling": 2}, {"harm": 8}], [{"harm": 1}, {"harm": 1, "pulling": 1}]

    assert (None, "different numbers of pods: not started 0.5 a run here, 1.0 under the baseline") == judged(
        "evictions", base, other
    )


@pytest.mark.parametrize(
    ("metric", "lacking", "count"),
    [
        pytest.param("bytes_pulled", ("base", "other"), "not started", id="no summary has it"),
        pytest.param("evictions", ("other",), "not started", id="one profile lacks it"),
        pytest.param("startup_mean", ("base",), "started", id="started pods"),
    ],
)
def test_unknown_numbers_of_pods_mean_no_verdict(metric, lacking, count):
    runs = [a_run("base", seed, harm=8) for seed in (1, 2)]
    runs += [a_run("other", seed, start=1.0, pulled=50) for seed in (1, 2)]
    for run in runs:
        if run.profile in lacking:
            del run.summary["pods"][count.replace(" ", "_")]
    row = compare(runs, "base").row("other", metric)

    assert (None, UNKNOWN_PODS.format(count), False) == (row.verdict, row.no_verdict, row.comparable)


def test_numbers_of_pods_are_compared_seed_by_seed():
    # Seven started in one run and nine in the other, under both profiles, but not under the same seeds.
    base, other = [{"pending": 2}, {}], [{"start": 1.0}, {"pending": 2, "start": 1.0}]

    assert (None, "different numbers of pods: started 8.0 a run here, 8.0 under the baseline") == judged(
        "startup_mean", base, other
    )


def test_as_many_pods_under_both_can_be_compared_even_if_some_never_started():
    assert ("better", None) == judged("startup_mean", [{"pending": 2}] * 2, [{"pulling": 2, "start": 1.0}] * 2)


def test_a_figure_of_zero_is_judged_by_the_difference():
    base, other = [{"evictions": 80}, {"evictions": 90}], [{"evictions": 0}] * 2
    runs = [a_run(name, seed, **one) for name, many in (("b", base), ("o", other)) for seed, one in enumerate(many)]
    row = compare(runs, "b").row("o", "evictions")

    assert (None, 2) == (row.against.ratio, row.against.left_out)
    assert ("difference", "better", None) == (row.basis, row.verdict, row.no_verdict)
    # Student's t for one degree of freedom is 12.71; deviation 7.07, over the root of 2.
    assert pytest.approx((-85.0, 12.706 * 5.0), rel=1e-4) == (row.difference.mean, row.difference.half_width)


def test_all_profiles_of_a_metric_are_judged_on_the_same_basis():
    figures = {"base": 4, "none": 0, "some": 2}
    compared = compare([a_run(name, seed, evictions=one) for name, one in figures.items() for seed in (1, 2)], "base")

    assert ["difference"] * 2 == [compared.row(name, "evictions").basis for name in ("none", "some")]
    assert ["ratio"] * 2 == [compared.row(name, "startup_mean").basis for name in ("none", "some")]


def test_that_more_pods_started_is_neither_better_nor_worse():
    # An evicted pod is made again and starts again.
    assert (None, NEITHER) == judged("started", [{}, {}], [{"pulling": 1}, {"pulling": 1}])


def test_the_baseline_itself_is_not_judged():
    row = compare([a_run("base", 1)], "base").row("base", "startup_mean")

    assert (None, None, None) == (row.verdict, row.no_verdict, row.difference)


def test_a_comparison_says_how_many_pods_started():
    compared = compare([a_run("one", 1, pulling=3, pending=1), a_run("one", 2)], "one")

    assert (Population("one", 9.0, 7.0, 2.0),) == compared.populations


def test_equal_figures_of_summaries_without_counts_of_pods_are_equal():
    old = {"scenario": "s", "bytes_pulled": 4, "pods": {}}
    compared = compare([Run(name, seed, old) for name in ("a", "b") for seed in (1, 2)], "a")

    assert (EQUAL, True) == (compared.row("b", "bytes_pulled").no_verdict, compared.row("b", "bytes_pulled").comparable)
    assert Population("a", None, None, None) == compared.populations[0]


# -------------------------------------------------------------------------------------------------------------- metrics


def test_metrics_can_be_chosen_and_come_in_that_order():
    compared = compare([a_run("one", 1)], "one", chosen(["pulls", "startup_p50"], "--metrics"))

    assert ("pulls", "startup_p50") == compared.metrics == tuple(row.metric for row in compared.rows)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        pytest.param(["eviction"], "--metrics: there is no metric 'eviction'; did you mean 'evictions'?", id="unknown"),
        pytest.param(["pulls", ""], "--metrics: an empty name", id="empty"),
        pytest.param(["pulls", "pulls"], "--metrics: 'pulls' is listed 2 times", id="twice"),
    ],
)
def test_a_wrong_choice_of_metrics_says_what_to_try(names, words):
    with pytest.raises(InputError) as told:
        chosen(names, "--metrics")

    assert str(told.value).startswith(words)
    assert 1 == len(told.value.mistakes)


def test_names_and_titles_of_metrics_are_unique():
    assert len(METRICS) == len({metric.name for metric in METRICS}) == len({metric.title for metric in METRICS})


def test_a_figure_that_older_summaries_lack_is_none():
    assert None is next(metric for metric in METRICS if metric.name == "slowdown_mean").read({"pulls": 3})


@pytest.mark.parametrize(
    ("names", "found"),
    [
        pytest.param(["balance", "pulls", "heating"], ["imbalance", "pulls", "peak_load"], id="former names"),
        pytest.param(["heating", "peak_load"], ["peak_load"], id="both names"),
    ],
)
def test_a_former_name_chooses_the_metric_under_its_new_name(names, found):
    assert found == [metric.name for metric in chosen(names, "--metrics")]


@pytest.mark.parametrize(
    ("summary", "figure"),
    [
        pytest.param({"heating": 1.5}, 1.5, id="older release"),
        pytest.param({"peak_load": 2.0, "heating": 1.5}, 2.0, id="both keys"),
        pytest.param({"peak_load": None, "heating": None}, None, id="no load"),
    ],
)
def test_a_summary_is_read_under_the_new_key_and_then_under_the_former_one(summary, figure):
    peak_load = next(metric for metric in METRICS if metric.name == "peak_load")

    assert figure == peak_load.read(summary)


def test_each_class_of_controllers_has_a_metric_of_its_own():
    """With one class it would repeat the metric of all controllers."""

    def summary_of(**missed: float) -> dict[str, object]:
        return {"qos": {"classes": {group: {"missed": share} for group, share in missed.items()}}}

    two = class_metrics([summary_of(prod=0.0), summary_of(prod=0.5, free=1.0), {"pulls": 3}])

    assert ["slo_missed:free", "slo_missed:prod"] == [metric.name for metric in two]
    assert [1.0, 0.5] == [metric.read(summary_of(prod=0.5, free=1.0)) for metric in two]
    assert None is two[0].read({"pulls": 3})
    assert two == chosen(["slo_missed:free", "slo_missed:prod"], "--metrics")
    assert () == class_metrics([summary_of(prod=0.0), {}])


def test_a_metric_of_no_class_is_none():
    with pytest.raises(InputError):
        chosen(["slo_missed:"], "--metrics")
