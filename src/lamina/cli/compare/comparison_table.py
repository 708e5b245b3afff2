"""
A comparison as two tables: every profile's figures, and how they compare to the baseline's.

A cell has a figure and its confidence interval. On a wide screen both are on one line, else below each other. If even
that is too wide, profiles become columns and figures rows. Column heads give the unit.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
from rich import box
from rich.table import Table

from lamina.cli.compare.comparison_notes import more_or_less, notes, signs
from lamina.cli.output.screen import Screen, literal
from lamina.evaluation.comparison import ComparisonRow, ProfileComparison
from lamina.evaluation.intervals import Estimate, Ratio
from lamina.evaluation.run_metrics import Metric, Unit, metric_of
from lamina.model.plain import plural
from lamina.model.quantity import human_bytes

CSV_HEAD: Final = (
    *("profile", "metric", "unit", "mean", "half_width", "runs"),
    *("ratio", "ratio_low", "ratio_high", "ratio_runs", "ratio_left_out"),
    *("difference", "difference_half_width", "basis", "verdict", "no_verdict"),
)

SIGNS: Final = {"better": "<", "worse": ">"}
COLOURS: Final = {"better": "green", "worse": "red"}
OTHER_PODS: Final = "?"
"""Replaces the sign if the two figures do not cover the same number of pods."""

FEWEST_DIGITS: Final = 2
MOST_DIGITS: Final = 6
MANY: Final = 1000
"""Seconds from which fractions are omitted."""

TableCell = tuple[str, str]
"""The figure, and the interval that may go below it."""

TableLine = tuple[str, Sequence[TableCell]]
"""The row's label, and its cells."""

TableHead = tuple[str, str]
"""A metric's title, and the unit of its cells."""


class ComparisonBlock(msgspec.Struct, frozen=True):
    """One of the two tables, before layout."""

    title: str
    heads: Sequence[TableHead]
    lines: Sequence[TableLine]


def print_comparison(
    compared: ProfileComparison, out: Path | None, screen: Screen | None = None, *, every_row: bool = False
) -> None:
    """Print both tables and the notes; *every_row* also prints rows that are 0 or equal everywhere."""
    screen = screen or Screen()
    profiles, seeds = compared.profiles, len(compared.seeds)
    screen.say(
        f"[bold]{literal(compared.scenario)}[/bold] under {plural(len(profiles), 'profile')} "
        f"and {plural(seeds, 'seed')}"
    )
    metrics = [metric_of(name) for name in shown_metrics(compared, every_row=every_row)]
    others = [profile for profile in profiles if profile != compared.baseline]
    blocks = [_absolute(screen, compared, metrics)]
    if others:
        blocks.append(_relative(screen, compared, metrics, others))
    for block, drawn in zip(blocks, _fitting(screen, blocks), strict=True):
        screen.title(literal(block.title))
        screen.console.print(drawn)
    for line in notes(screen, compared, metrics, others):
        screen.say(line)
    if out is not None:
        screen.say(literal(f"every run and both tables are in {out}"))


def shown_metrics(compared: ProfileComparison, *, every_row: bool = False) -> list[str]:
    """Return the names of the metrics to show; *every_row* adds those that are 0 or equal everywhere."""
    return [name for name in compared.metrics if every_row or _worth_a_row(compared, metric_of(name))]


def as_csv(compared: ProfileComparison) -> str:
    """Return a comparison as CSV: one line per row, figures in full precision."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(CSV_HEAD)
    for row in compared.rows:
        mean, against = row.estimate, row.against
        lines.writerow(
            (
                *(row.profile, row.metric, row.unit),
                *((mean.mean, mean.half_width, mean.runs) if mean else ("", "", 0)),
                *((against.ratio, against.low, against.high, against.runs, against.left_out) if against else [""] * 5),
                *((row.difference.mean, row.difference.half_width) if row.difference else [""] * 2),
                *((row.basis, row.verdict, row.no_verdict) if against else [""] * 3),
            )
        )
    return text.getvalue()


# -- rows ----------------------------------------------------------------------------------------------------------------


def _worth_a_row(compared: ProfileComparison, metric: Metric) -> bool:
    if metric.shown in ("always", "on request"):
        return metric.shown == "always"
    means = [row.estimate.mean for row in compared.rows if row.metric == metric.name and row.estimate is not None]
    return any(means) if metric.shown == "non-zero" else len(set(means)) > 1


def _absolute(screen: Screen, compared: ProfileComparison, metrics: Sequence[Metric]) -> ComparisonBlock:
    lines = [
        (profile, [_amount(screen, compared.row(profile, metric.name)) for metric in metrics])
        for profile in compared.profiles
    ]
    return ComparisonBlock("absolute", [(metric.title, metric.label) for metric in metrics], lines)


def _relative(
    screen: Screen, compared: ProfileComparison, metrics: Sequence[Metric], others: Sequence[str]
) -> ComparisonBlock:
    heads: list[TableHead] = []
    for metric in metrics:
        basis = compared.row(others[0], metric.name).basis
        heads.append((metric.title, "ratio" if basis == "ratio" else f"difference, {metric.label}"))
    lines = [
        (profile, [_against(screen, compared.row(profile, metric.name)) for metric in metrics]) for profile in others
    ]
    return ComparisonBlock(f"against {compared.baseline}", heads, lines)


# -- cells ---------------------------------------------------------------------------------------------------------------


def _amount(screen: Screen, row: ComparisonRow) -> TableCell:
    return "-" if row.estimate is None else _written(row.unit, row.estimate.mean), _half(screen, row, row.estimate)


def _half(screen: Screen, row: ComparisonRow, estimate: Estimate | None) -> str:
    if estimate is None or estimate.half_width is None:
        return ""
    return f"{more_or_less(screen)}{_written(row.unit, estimate.half_width)}"


def _written(unit: Unit, figure: float) -> str:
    if unit == "bytes":
        return human_bytes(round(figure))
    return f"{figure:,.{1 if unit == 'count' else 0 if abs(figure) >= MANY else 2}f}"


def _against(screen: Screen, row: ComparisonRow) -> TableCell:
    return _ratio(screen, row) if row.basis == "ratio" else _difference(screen, row)


def _ratio(screen: Screen, row: ComparisonRow) -> TableCell:
    against = row.against
    if against is None or against.ratio is None:
        return "-", ""
    digits = _digits(against)
    figure = _signed(row, f"{against.ratio:.{digits}f}")
    if against.low is None or against.high is None:
        return figure, ""
    return figure, f"{against.low:.{digits}f}{'–' if signs(screen) else '-'}{against.high:.{digits}f}"


def _difference(screen: Screen, row: ComparisonRow) -> TableCell:
    if row.difference is None:
        return "-", ""
    mean = row.difference.mean
    before = "-" if mean < 0 else "+" if mean > 0 else ""
    return _signed(row, f"{before}{_written(row.unit, abs(mean))}"), _half(screen, row, row.difference)


def _signed(row: ComparisonRow, figure: str) -> str:
    """Append the sign of the verdict, or the sign for a missing verdict."""
    if not row.comparable:
        return f"{figure}{OTHER_PODS}"
    if row.verdict is None:
        return figure
    colour = COLOURS[row.verdict]
    return f"[{colour}]{figure}{SIGNS[row.verdict]}[/{colour}]"


def _digits(against: Ratio) -> int:
    """Return enough digits to show that an interval excludes 1: usually two."""
    nearest = against.high if against.sign < 0 else against.low
    if not against.sign or nearest is None:
        return FEWEST_DIGITS
    return next((digits for digits in range(FEWEST_DIGITS, MOST_DIGITS) if round(nearest, digits) != 1.0), MOST_DIGITS)


# -- tables --------------------------------------------------------------------------------------------------------------


def _fitting(screen: Screen, blocks: Sequence[ComparisonBlock]) -> Sequence[Table]:
    """Draw all blocks in the first layout that fits all of them, else in the narrowest."""
    layouts = list(zip(*(_layouts(screen, block) for block in blocks), strict=True))
    room = screen.console.width
    return next((drawn for drawn in layouts if all(screen.width_of(one) <= room for one in drawn)), layouts[-1])


def _layouts(screen: Screen, block: ComparisonBlock) -> Iterator[Table]:
    """Draw one block in every layout, the widest first."""
    across = [(literal(profile), cells) for profile, cells in block.lines]
    turned = [
        (f"{title} ({unit})", [cells[index] for _, cells in block.lines])
        for index, (title, unit) in enumerate(block.heads)
    ]
    titles = ["\n".join([*title.split(), *f"({unit})".split()]) for title, unit in block.heads]
    for corner, head, body in (("profile", titles, across), ("", [profile for profile, _ in across], turned)):
        for between in (" ", "\n"):
            yield _table(screen, [corner, *head], body, between)


def _table(screen: Screen, head: Sequence[str], body: Sequence[TableLine], between: str) -> Table:
    drawn = Table(box=box.SIMPLE_HEAD if screen.is_terminal else box.ASCII2, pad_edge=False)
    for index, title in enumerate(head):
        drawn.add_column(title, justify="right" if index else "left", overflow="fold")
    for name, cells in body:
        drawn.add_row(name, *(between.join(filter(None, cell)) for cell in cells))
    return drawn
