"""The table as a person sees it: layouts for wide and narrow screens, signs, and what is told below."""

import csv
import io
from collections.abc import Mapping

import msgspec
import pytest
from rich.console import Console

from lamina.cli.compare import comparison_table
from lamina.cli.compare.comparison_notes import with_unsupported
from lamina.cli.compare.comparison_table import as_csv, print_comparison
from lamina.cli.output.screen import Screen
from lamina.evaluation.comparison import ComparisonRow, Population, ProfileComparison, Verdict
from lamina.evaluation.intervals import Estimate, Ratio
from lamina.evaluation.run_metrics import BY_NAME, METRICS, Metric

LESS = Ratio(0.5, 0.4, 0.6, 5, 0)
NOTHING: Mapping[str, float] = {}
SHOWN = [metric for metric in METRICS if metric.shown == "always"]


def a_comparison(
    against: Ratio = LESS,
    *,
    half: float | None = 0.25,
    others: int = 1,
    figures: Mapping[str, float] = NOTHING,
    comparable: bool = True,
    started: float = 8.0,
) -> ProfileComparison:
    """A baseline and *others*, the same everywhere but for *figures*; one seed when there is no half width."""
    profiles = ("base", *(f"other-{number}" for number in range(1, others + 1)))
    rows = [a_row(profile, metric, against, half, figures, comparable) for profile in profiles for metric in METRICS]
    return ProfileComparison(
        scenario="story",
        baseline="base",
        seeds=(1,) if half is None else (1, 2, 3, 4, 5),
        populations=tuple(Population(profile, 8.0, started, 8.0 - started) for profile in profiles),
        rows=tuple(rows),
    )


def a_row(
    profile: str, metric: Metric, against: Ratio, half: float | None, figures: Mapping[str, float], comparable: bool
) -> ComparisonRow:
    usual = 0.0 if metric.shown != "always" else 2_000_000.0 if metric.unit == "bytes" else 2.0
    estimate = Estimate(figures.get(metric.name, usual), half, 5)
    if profile == "base":
        return ComparisonRow(profile, metric.name, metric.unit, estimate, None)
    verdict: Verdict | None = {-1: "better", 0: None, 1: "worse"}[against.sign] if comparable else None
    return ComparisonRow(profile, metric.name, metric.unit, estimate, against, verdict=verdict, comparable=comparable)


def printed(compared: ProfileComparison, capsys: pytest.CaptureFixture[str]) -> str:
    print_comparison(compared, None)
    return capsys.readouterr().out


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_in_a_pipe_it_is_plain_text_of_two_tables(capsys):
    text = printed(a_comparison(), capsys)
    rows = [cells(line) for line in text.splitlines() if line.startswith("|")]

    assert text.isascii()
    assert "story under 2 profiles and 5 seeds" in text
    assert ["", "", "start", "start", "start", "start", "peak", ""] == rows[0]
    assert ["", "downloaded", "mean", "p50", "p95", "p99", "load", "imbalance"] == rows[1]
    assert ["profile", "(bytes)", *["(s)"] * 4, "(max/mean)", "(sd/mean)"] == rows[2]
    assert ["base", "2.0 MB", *["2.00"] * 6] == rows[3]
    assert ["", "+-0 B", *["+-0.25"] * 6] == rows[4]
    assert "against base" in text
    assert ["profile", *["(ratio)"] * 7] == rows[-3]
    assert ["other-1", *["0.50<"] * 7] == rows[-2]
    assert ["", *["0.40-0.60"] * 7] == rows[-1]


@pytest.mark.parametrize(
    ("against", "figure", "interval"),
    [
        pytest.param(Ratio(0.5, 0.4, 0.6, 5, 0), "0.50<", "0.40-0.60", id="less"),
        pytest.param(Ratio(2.0, 1.5, 2.5, 5, 0), "2.00>", "1.50-2.50", id="more"),
        pytest.param(Ratio(0.9, 0.7, 1.1, 5, 0), "0.90", "0.70-1.10", id="not sure"),
        pytest.param(
            Ratio(0.998, 0.997, 0.999, 5, 0), "0.998<", "0.997-0.999", id="digits enough to see the sign is right"
        ),
        pytest.param(Ratio(1.0, 1.0, 1.0, 5, 0), "1.00", "1.00-1.00", id="equal"),
    ],
)
def test_a_ratio_has_a_sign_when_its_interval_leaves_out_1(capsys, against, figure, interval):
    lines = [cells(line) for line in printed(a_comparison(against), capsys).splitlines() if line.startswith("|")]

    assert (figure, interval) == (lines[-2][1], lines[-1][1])


def test_what_the_signs_mean_stands_below(capsys):
    text = printed(a_comparison(), capsys)

    assert "95% confidence intervals over the seeds" in text
    assert "< and >: the whole interval lies below or above 1" in text


def test_one_seed_has_no_intervals_and_says_so(capsys):
    text = printed(a_comparison(Ratio(0.5, None, None, 1, 0), half=None), capsys)

    assert "+-" not in text.replace("+--", "")
    assert "one seed gives no intervals; use --seeds 2 or more" in text
    assert "< and >" not in text


def test_seeds_that_change_nothing_are_told(capsys):
    assert "all seeds gave the same" in printed(a_comparison(half=0.0), capsys)
    assert "all seeds gave the same" not in printed(a_comparison(half=0.1), capsys)


@pytest.mark.parametrize(
    "metric",
    [
        *("not_started", "pending", "pulling", "starting", "stopping", "failed_before_start", "removed_before_start"),
        *("rejected", "failures", "evictions", "overload_seconds", "pulls"),
    ],
)
def test_what_went_wrong_has_a_row_when_it_did_under_any_profile(capsys, metric):
    usual, wrong = a_comparison(), a_comparison(figures={metric: 3.0})
    title = BY_NAME[metric].title
    rows = tuple(row if row.profile == "base" else other for row, other in zip(usual.rows, wrong.rows, strict=True))

    assert f"{title} (" not in in_rows(usual)
    assert f"{title} ({BY_NAME[metric].label})" in in_rows(msgspec.structs.replace(usual, rows=rows))


def in_rows(compared: ProfileComparison, **more: bool) -> str:
    """What it looks like where profiles are columns."""
    text = io.StringIO()
    print_comparison(compared, None, Screen(Console(file=text, width=60)), **more)
    return text.getvalue()


def test_a_chosen_row_is_shown_even_if_all_of_it_is_zero():
    assert "failed pulls (pulls)" in in_rows(a_comparison(), every_row=True)


def test_a_difference_has_the_unit_in_its_head_and_says_why():
    compared = a_comparison(figures={"evictions": 2.0})
    told = {
        "difference": Estimate(-85.0, 12.5, 5),
        "against": Ratio(None, None, None, 0, 5),
        "basis": "difference",
        "verdict": "better",
    }
    rows = tuple(
        msgspec.structs.replace(row, **told) if row.against and row.metric == "evictions" else row
        for row in compared.rows
    )
    text = in_rows(msgspec.structs.replace(compared, rows=rows))

    assert ["evicted (difference, pods)", "-85.0< +-12.5"] in [cells(line) for line in text.splitlines()]
    assert "this profile minus the baseline, because a figure of 0 has no ratio" in " ".join(text.split())
    assert "left out" not in text


def test_figures_of_different_pods_have_a_question_mark_instead_of_a_verdict(capsys):
    text = printed(a_comparison(comparable=False, started=6.5), capsys)
    rows = [cells(line) for line in text.splitlines() if line.startswith("|")]

    assert ["other-1", *["0.50?"] * 7] == rows[-2]
    assert (
        "?: no verdict, because the two figures do not cover the same pods. "
        "Pods started per run: base 6.5 of 8.0, other-1 6.5 of 8.0"
    ) in " ".join(text.split())


def test_that_more_pods_started_elsewhere_is_said_even_without_rows_that_depend_on_it(capsys):
    compared = a_comparison()
    fewer = (Population("base", 8.0, 8.0, 0.0), Population("other-1", 8.0, 6.0, 2.0))
    text = " ".join(printed(msgspec.structs.replace(compared, populations=fewer), capsys).split())

    assert "not all pods started; start times cover the started pods only: base 8.0 of 8.0, other-1 6.0 of 8.0" in text
    assert "as many pods" not in text


def test_pods_that_did_not_start_are_named_even_if_they_are_as_many_everywhere(capsys):
    text = " ".join(printed(a_comparison(started=6.5), capsys).split())

    assert "not all pods started; start times cover the started pods only: base 6.5 of 8.0, other-1 6.5 of 8.0" in text
    assert "but the pods may differ" in text
    assert "not all pods" not in printed(a_comparison(), capsys)


def test_seeds_that_were_left_out_are_told(capsys):
    text = printed(a_comparison(Ratio(0.5, 0.4, 0.6, 4, 1)), capsys)

    assert "other-1, downloaded: 1 of 5 seeds left out of the ratio, because one of the two figures is 0 or" in text


def test_a_figure_that_nobody_has_is_a_dash(capsys):
    compared = a_comparison(Ratio(None, None, None, 0, 5))
    lines = [cells(line) for line in printed(compared, capsys).splitlines() if line.startswith("|")]

    assert ["other-1", *["-"] * 7] == lines[-1]


def test_a_single_profile_is_compared_to_nobody(capsys):
    text = printed(a_comparison(others=0), capsys)

    assert "story under 1 profile and 5 seeds" in text
    assert "against" not in text


@pytest.mark.parametrize(
    ("width", "heads", "height"),
    [
        # Height of the first table: two lines of titles, two profiles.
        pytest.param(200, "profile", 1, id="wide: a figure and its interval on one line"),
        pytest.param(100, "profile", 2, id="narrower: below each other"),
        pytest.param(60, "base", 1, id="narrow: figures become rows"),
        pytest.param(35, "base", 2, id="very narrow: and below each other"),
    ],
)
def test_the_layout_follows_the_screen(width, heads, height):
    screen = Screen(Console(file=io.StringIO(), width=width))
    lines = [("base", [("1.23", "+-0.12")] * 7), ("other", [("1.23", "0.40-0.60")] * 7)]
    block = comparison_table.ComparisonBlock("absolute", [(metric.title, metric.label) for metric in SHOWN], lines)
    drawn, again = comparison_table._fitting(screen, [block, block])

    assert heads in str(drawn.columns[0].header) + str(drawn.columns[1].header)
    assert height == max(str(cell).count("\n") + 1 for cell in drawn.columns[1].cells)
    assert [column.header for column in drawn.columns] == [column.header for column in again.columns]


def test_names_are_not_taken_for_markup(capsys):
    rows = tuple(
        ComparisonRow(profile, metric.name, metric.unit, Estimate(1.0, 0.5, 2), LESS if profile == "[/bold]" else None)
        for profile in ("[red]base", "[/bold]")
        for metric in SHOWN
    )
    text = printed(ProfileComparison(scenario="[b]", baseline="[red]base", seeds=(1, 2), rows=rows), capsys)

    assert "[b] under 2 profiles" in text
    assert "against [red]base" in text
    assert "|[/bold]" in text


def test_csv_has_a_line_for_every_figure_of_every_profile():
    lines = list(csv.DictReader(io.StringIO(as_csv(a_comparison()))))

    assert 2 * len(METRICS) == len(lines)
    assert {"profile": "base", "metric": "bytes_pulled", "unit": "bytes", "mean": "2000000.0", "ratio": ""} == {
        name: lines[0][name] for name in ("profile", "metric", "unit", "mean", "ratio")
    }
    assert ["0.5", "0.4", "0.6", "5", "0", "", "", "ratio", "better", ""] == list(lines[-1].values())[6:]


def test_csv_leaves_empty_what_there_is_not():
    row = ComparisonRow("p", "peak_load", "times", None, Ratio(None, None, None, 0, 2))
    text = as_csv(ProfileComparison(scenario="s", baseline="b", seeds=(1, 2), rows=(row,)))

    assert "p,peak_load,times,,,0,,,,0,2,,,ratio,," == text.splitlines()[1]


@pytest.mark.parametrize(
    ("profile", "lines"),
    [
        pytest.param("kube-default", 1, id="kube-default stands for kube-scheduler"),
        pytest.param("lamina-balanced", 0, id="the product's own stand for themselves"),
        pytest.param("my-config.yaml", 0, id="a file"),
    ],
)
def test_what_a_profile_does_not_do_yet_stands_below_the_table(capsys, profile, lines):
    rows = tuple(msgspec.structs.replace(row, profile=profile) for row in a_comparison(others=0).rows)
    compared = with_unsupported(msgspec.structs.replace(a_comparison(others=0), baseline=profile, rows=rows))

    assert lines == len(compared.unsupported)
    assert lines == printed(compared, capsys).count(
        "kube-default is kube-scheduler's default profile without: resource claims"
    )
