"""The table as a person sees it: layouts for wide and narrow screens, signs, and what is told below."""

import csv
import io

import pytest
from rich.console import Console

from lamina.cli import comparison_table
from lamina.cli.comparison_table import as_csv, show
from lamina.cli.screen import Screen
from lamina.evaluation.comparison import METRICS, Comparison, Row
from lamina.evaluation.intervals import Estimate, Ratio

LESS = Ratio(0.5, 0.4, 0.6, 5, 0)


def a_comparison(
    against: Ratio = LESS, *, half: float | None = 0.25, pending: float = 0.0, others: int = 1
) -> Comparison:
    """A baseline and *others*, the same figures everywhere; one seed when there is no half width."""
    rows = []
    for profile in ("base", *(f"other-{number}" for number in range(1, others + 1))):
        for metric in METRICS:
            mean = pending if metric.name == "pending" else 2_000_000.0 if metric.unit == "bytes" else 2.0
            ratio = None if profile == "base" else against
            rows.append(Row(profile, metric.name, metric.unit, Estimate(mean, half, 5), ratio))
    seeds = (1,) if half is None else (1, 2, 3, 4, 5)
    return Comparison(scenario="story", baseline="base", seeds=seeds, rows=tuple(rows))


def printed(compared: Comparison, capsys: pytest.CaptureFixture[str]) -> str:
    show(compared, None)
    return capsys.readouterr().out


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_in_a_pipe_it_is_plain_text_of_two_tables(capsys):
    text = printed(a_comparison(), capsys)
    rows = [cells(line) for line in text.splitlines() if line.startswith("|")]

    assert text.isascii()
    assert "story under 2 profiles and 5 seeds" in text
    assert ["profile", "downloaded", "mean", "p50", "p95", "p99", "heating", "balance"] == rows[1]
    assert ["base", "2.0 MB", *["2.00"] * 6] == rows[2]
    assert ["", "+-0 B", *["+-0.25"] * 6] == rows[3]
    assert "against base" in text
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
    assert "intervals need --seeds 2 or more" in text
    assert "< and >" not in text


def test_seeds_that_change_nothing_are_told(capsys):
    assert "all seeds gave the same" in printed(a_comparison(half=0.0), capsys)
    assert "all seeds gave the same" not in printed(a_comparison(half=0.1), capsys)


def test_pods_that_found_no_node_are_told(capsys):
    text = printed(a_comparison(pending=1.5), capsys)

    assert "base: 1.5 pods a run found no node; start times are of the others" in text


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
    drawn, again = comparison_table._fitting(screen, [lines, lines])

    assert heads in str(drawn.columns[0].header) + str(drawn.columns[1].header)
    assert height == max(str(cell).count("\n") + 1 for cell in drawn.columns[1].cells)
    assert [column.header for column in drawn.columns] == [column.header for column in again.columns]


def test_names_are_not_taken_for_markup(capsys):
    rows = tuple(
        Row(profile, metric.name, metric.unit, Estimate(1.0, 0.5, 2), LESS if profile == "[/bold]" else None)
        for profile in ("[red]base", "[/bold]")
        for metric in METRICS
    )
    text = printed(Comparison(scenario="[b]", baseline="[red]base", seeds=(1, 2), rows=rows), capsys)

    assert "[b] under 2 profiles" in text
    assert "against [red]base" in text
    assert "|[/bold]" in text


def test_csv_has_a_line_for_every_figure_of_every_profile():
    lines = list(csv.DictReader(io.StringIO(as_csv(a_comparison()))))

    assert 2 * len(METRICS) == len(lines)
    assert {"profile": "base", "metric": "bytes_pulled", "unit": "bytes", "mean": "2000000.0", "ratio": ""} == {
        name: lines[0][name] for name in ("profile", "metric", "unit", "mean", "ratio")
    }
    assert ["0.5", "0.4", "0.6", "5", "0"] == list(lines[-1].values())[6:]


def test_csv_leaves_empty_what_there_is_not():
    row = Row("p", "heating", "times", None, Ratio(None, None, None, 0, 2))
    text = as_csv(Comparison(scenario="s", baseline="b", seeds=(1, 2), rows=(row,)))

    assert "p,heating,times,,,0,,,,0,2" == text.splitlines()[1]
