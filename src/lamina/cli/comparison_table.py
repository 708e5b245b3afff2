"""
A comparison as two tables: every profile's figures, and how many times the baseline's they are.

A cell is a figure and how sure it is. On a wide screen both stand on one line, else below each other; where even that
is too wide, profiles become columns and figures rows.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from rich import box
from rich.measure import Measurement
from rich.table import Table

from lamina.cli.screen import Screen, literal
from lamina.evaluation.comparison import Comparison, Row
from lamina.evaluation.intervals import Ratio
from lamina.model.quantity import human_bytes

SHOWN: Final = {
    "bytes_pulled": "downloaded",
    "startup_mean": "start mean",
    "startup_p50": "p50",
    "startup_p95": "p95",
    "startup_p99": "p99",
    "heating": "heating",
    "balance": "balance",
}
"""The figures there is room for, and their titles; seconds are from arrival to running."""

CSV_HEAD: Final = (
    *("profile", "metric", "unit", "mean", "half_width", "runs"),
    *("ratio", "ratio_low", "ratio_high", "ratio_runs", "ratio_left_out"),
)

SIGNS: Final = {-1: "<", 0: "", 1: ">"}
COLOURS: Final = {-1: "green", 0: "default", 1: "red"}

FEWEST_DIGITS: Final = 2
MOST_DIGITS: Final = 6

Cell = tuple[str, str]
"""What is written first, and what may stand below it."""

Line = tuple[str, Sequence[Cell]]
"""Whose cells they are, and the cells."""


def show(compared: Comparison, out: Path | None) -> None:
    """Print both tables, and what one has to know to read them."""
    screen = Screen()
    profiles, seeds = compared.profiles, len(compared.seeds)
    screen.say(
        f"[bold]{literal(compared.scenario)}[/bold] under {_several(len(profiles), 'profile')} "
        f"and {_several(seeds, 'seed')}"
    )
    others = [profile for profile in profiles if profile != compared.baseline]
    blocks = {
        "absolute": [(profile, [_amount(screen, row) for row in _rows(compared, profile)]) for profile in profiles]
    }
    if others:
        blocks[f"against {compared.baseline}"] = [
            (profile, [_ratio(screen, row) for row in _rows(compared, profile)]) for profile in others
        ]
    for title, drawn in zip(blocks, _fitting(screen, list(blocks.values())), strict=True):
        screen.title(literal(title))
        screen.console.print(drawn)
    for line in _notes(screen, compared, others):
        screen.say(line)
    if out is not None:
        screen.say(literal(f"every run and both tables are in {out}"))


def as_csv(compared: Comparison) -> str:
    """Write every row of a comparison as a line, figures in full."""
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
            )
        )
    return text.getvalue()


# -- cells ---------------------------------------------------------------------------------------------------------------


def _rows(compared: Comparison, profile: str) -> list[Row]:
    return [compared.row(profile, metric) for metric in SHOWN]


def _amount(screen: Screen, row: Row) -> Cell:
    if row.estimate is None:
        return "-", ""
    half = row.estimate.half_width
    more_or_less = "±" if _signs(screen) else "+-"
    return _written(row, row.estimate.mean), "" if half is None else f"{more_or_less}{_written(row, half)}"


def _written(row: Row, figure: float) -> str:
    return human_bytes(round(figure)) if row.unit == "bytes" else f"{figure:,.2f}"


def _ratio(screen: Screen, row: Row) -> Cell:
    against = row.against
    if against is None or against.ratio is None:
        return "-", ""
    colour, digits = COLOURS[against.sign], _digits(against)
    figure = f"[{colour}]{against.ratio:.{digits}f}{SIGNS[against.sign]}[/{colour}]"
    if against.low is None or against.high is None:
        return figure, ""
    return figure, f"{against.low:.{digits}f}{'–' if _signs(screen) else '-'}{against.high:.{digits}f}"


def _digits(against: Ratio) -> int:
    """As many as it takes to see that an interval without 1 in it is one: two, mostly."""
    nearest = against.high if against.sign < 0 else against.low
    if not against.sign or nearest is None:
        return FEWEST_DIGITS
    return next((digits for digits in range(FEWEST_DIGITS, MOST_DIGITS) if round(nearest, digits) != 1.0), MOST_DIGITS)


def _signs(screen: Screen) -> bool:
    return screen.is_terminal and screen.console.encoding.startswith("utf")


def _several(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


# -- tables --------------------------------------------------------------------------------------------------------------


def _fitting(screen: Screen, blocks: Sequence[Sequence[Line]]) -> Sequence[Table]:
    """Draw all blocks in the first layout that fits all of them, or else in the narrowest."""
    layouts = list(zip(*(_layouts(screen, lines) for lines in blocks), strict=True))
    room = screen.console.width
    return next((drawn for drawn in layouts if all(_width(screen, one) <= room for one in drawn)), layouts[-1])


def _layouts(screen: Screen, lines: Sequence[Line]) -> Iterator[Table]:
    """Draw one block in every layout, the widest first."""
    across = [(literal(profile), cells) for profile, cells in lines]
    turned = [(title, [cells[index] for _, cells in lines]) for index, title in enumerate(SHOWN.values())]
    titles = [title.replace(" ", "\n") for title in SHOWN.values()]
    for corner, head, body in (("profile", titles, across), ("", [profile for profile, _ in across], turned)):
        for between in (" ", "\n"):
            yield _table(screen, [corner, *head], body, between)


def _table(screen: Screen, head: Sequence[str], body: Sequence[Line], between: str) -> Table:
    drawn = Table(box=box.SIMPLE_HEAD if screen.is_terminal else box.ASCII2, pad_edge=False)
    for index, title in enumerate(head):
        drawn.add_column(title, justify="right" if index else "left", overflow="fold")
    for name, cells in body:
        drawn.add_row(name, *(between.join(filter(None, cell)) for cell in cells))
    return drawn


def _width(screen: Screen, table: Table) -> int:
    # Measured without an upper bound: otherwise everything would fit.
    return Measurement.get(screen.console, screen.console.options.update(max_width=10_000), table).maximum


# -- words ---------------------------------------------------------------------------------------------------------------


def _notes(screen: Screen, compared: Comparison, others: Sequence[str]) -> Iterator[str]:
    percent = f"{compared.confidence:.0%}"
    if len(compared.seeds) == 1:
        yield "one seed tells nothing about luck: intervals need --seeds 2 or more"
    else:
        more_or_less = "±" if _signs(screen) else "+-"
        yield f"{more_or_less} and ranges are {percent} confidence intervals over the seeds; less is better everywhere"
        if others:
            yield "< and >: the whole interval lies below or above 1; no sign: these seeds do not tell the two apart"
        if all(row.estimate is None or not row.estimate.half_width for row in compared.rows):
            yield "all seeds gave the same: nothing here depends on them, and the intervals say nothing about luck"
    for profile in compared.profiles:
        pending = compared.row(profile, "pending").estimate
        if pending is not None and pending.mean:
            yield (
                f"[yellow]{literal(profile)}[/yellow]: {pending.mean:,.1f} pods a run found no node; "
                "start times are of the others"
            )
    for row in compared.rows:
        if row.metric in SHOWN and row.against is not None and row.against.left_out:
            yield f"{literal(row.profile)}, {SHOWN[row.metric]}: {_left_out(row.against)}"


def _left_out(against: Ratio) -> str:
    pairs = against.runs + against.left_out
    return f"{against.left_out} of {_several(pairs, 'seed')} left out of the ratio, because one of the two figures is 0 or missing"
