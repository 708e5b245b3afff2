"""The tables of a report as HTML: the data under every figure, readable without the script."""

import html
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from lamina.evaluation.comparison import ComparisonRow, ProfileComparison
from lamina.evaluation.report.run_record import PodTimes, RunRecord
from lamina.evaluation.run_metrics import Unit, metric_of
from lamina.model.quantity import human_bytes

NONE: Final = "–"
MANY: Final = 1000
"""Figures from which fractions are omitted."""
QUANTILES: Final = (10, 25, 50, 75, 90, 95, 99, 100)
SAMPLES: Final = 20
"""Rows of a table of a series: every tenth sample."""
WORDS: Final = {"better": "better", "worse": "worse"}


def table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str, *, ends_in_text: bool = False) -> str:
    """Return a table whose first column names the row; cells are text, and the last one may be long."""
    heads = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in head)
    wordy = ' class="wordy"' if ends_in_text else ""
    lines = []
    for name, *cells in rows:
        lines.append(
            f'<tr><th scope="row">{html.escape(name)}</th>'
            + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
            + "</tr>\n"
        )
    return (
        f'<div class="table" role="region" tabindex="0" aria-label="{html.escape(caption)}">'
        f"<table{wordy}><caption>{html.escape(caption)}</caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>\n{''.join(lines)}</tbody></table></div>\n"
    )


def amount(unit: Unit, figure: float | None) -> str:
    """Return a figure with its digits, without the unit unless it is bytes."""
    if figure is None:
        return NONE
    if unit == "bytes":
        return human_bytes(round(figure))
    return f"{figure:,.{1 if unit == 'count' else 0 if abs(figure) >= MANY else 2}f}"


def headline(compared: ProfileComparison, metrics: Sequence[str]) -> str:
    """Return the figures of every profile with their intervals, and the ratio to the baseline."""
    head = ["figure (unit)"]
    for profile in compared.profiles:
        head.append(profile)
        if profile != compared.baseline:
            head.append(f"{profile} against {compared.baseline}")
    rows = []
    for name in metrics:
        metric = metric_of(name)
        cells = [f"{metric.title} ({metric.label})"]
        for profile in compared.profiles:
            row = compared.row(profile, name)
            cells.append(_absolute(row))
            if profile != compared.baseline:
                cells.append(against(row))
        rows.append(cells)
    return table(head, rows, "Headline figures")


def _absolute(row: ComparisonRow) -> str:
    if row.estimate is None:
        return NONE
    half = row.estimate.half_width
    return amount(row.unit, row.estimate.mean) + ("" if half is None else f" ± {amount(row.unit, half)}")


def against(row: ComparisonRow) -> str:
    """Return the ratio or difference to the baseline with its interval, and the verdict in a word."""
    verdict = "" if row.verdict is None else f", {WORDS[row.verdict]}"
    if not row.comparable:
        verdict = ", not comparable"
    if row.basis == "difference":
        if row.difference is None:
            return NONE
        half = row.difference.half_width
        sign = "+" if row.difference.mean > 0 else ""
        spread = "" if half is None else f" ± {amount(row.unit, half)}"
        return f"{sign}{amount(row.unit, row.difference.mean)}{spread}{verdict}"
    if row.against is None or row.against.ratio is None:
        return NONE
    low, high = row.against.low, row.against.high
    spread = "" if low is None or high is None else f" [{low:.2f}, {high:.2f}]"
    return f"×{row.against.ratio:.2f}{spread}{verdict}"


def start_times(runs: Sequence[RunRecord]) -> str:
    """Return quantiles of the start times of each profile."""
    rows = []
    for profile, values in pooled_starts(runs).items():
        ranked = [values[max(0, -(-share * len(values) // 100) - 1)] for share in QUANTILES] if values else []
        rows.append(
            [profile, *(f"{value:,.2f}" for value in ranked)] if ranked else [profile, *[NONE] * len(QUANTILES)]
        )
    head = ["profile", *(f"p{share}" if share < QUANTILES[-1] else "slowest" for share in QUANTILES)]
    return table(head, rows, "Seconds from arrival to running, by share of the pods")


def pooled_starts(runs: Sequence[RunRecord]) -> dict[str, list[float]]:
    """Return the start quantiles of all runs of each profile together, ascending."""
    pooled: dict[str, list[float]] = {}
    for run in runs:
        pooled.setdefault(run.profile, []).extend(run.start_quantiles)
    return {profile: sorted(values) for profile, values in pooled.items()}


def bytes_over_time(runs: Sequence[RunRecord]) -> str:
    """Return the bytes that each run had downloaded by some times."""
    return _over_time(runs, "Downloaded until then", lambda run, at: human_bytes(run.series.bytes_pulled[at]))


def load_over_time(runs: Sequence[RunRecord]) -> str:
    """Return peak load and imbalance of each run at some times."""

    def both(run: RunRecord, at: int) -> str:
        peak, spread = run.series.peak_load[at], run.series.imbalance[at]
        return NONE if peak is None or spread is None else f"{peak:.2f} / {spread:.2f}"

    return _over_time(runs, "Peak load (max/mean) / imbalance (sd/mean)", both)


def _over_time(runs: Sequence[RunRecord], caption: str, cell: Callable[[RunRecord, int], str]) -> str:
    rows = []
    for run in runs:
        step = max(1, len(run.series.at) // SAMPLES)
        rows += [
            [f"{run.profile}, seed {run.seed}", f"{run.series.at[at]:,.1f}", cell(run, at)]
            for at in range(0, len(run.series.at), step)
        ]
    return table(["run", "time (s)", caption], rows, caption)


def pods(run: RunRecord) -> str:
    """Return the pods of the timeline with the parts of their time."""
    head = ["pod", "node", "at the end", "arrived (s)", "queue", "wait", "pull", "unpack", "start", "run"]
    head += ["needed", "downloaded", "why"]
    return table(
        head,
        map(_pod_cells, run.pods),
        f"Pods under {run.profile}, seed {run.seed}; parts in seconds",
        ends_in_text=True,
    )


def _pod_cells(pod: PodTimes) -> list[str]:
    parts = (pod.queue, pod.wait, pod.pull, pod.unpack, pod.start, pod.run)
    return [
        *(pod.pod, pod.node or NONE, pod.phase, f"{pod.arrived:,.1f}"),
        *(f"{part:,.2f}" for part in parts),
        *(human_bytes(pod.bytes_wanted), human_bytes(pod.bytes_pulled), " ".join(pod.why)),
    ]


def held_at_end(run: RunRecord) -> str:
    """Return, for each node of the map, the layers that it holds after the last change."""
    held: dict[int, dict[int, bool]] = {}
    for change in run.changes:
        held.setdefault(change.node, {})[change.layer] = change.held
    rows = []
    for node, name in enumerate(run.nodes):
        here = [run.layers[layer] for layer, there in sorted(held.get(node, {}).items()) if there]
        names = ", ".join(layer.name for layer in here)
        rows.append([name, str(len(here)), human_bytes(sum(layer.bytes for layer in here)), names or NONE])
    return table(
        ["node", "layers", "bytes", "which"],
        rows,
        f"Layers held at the end, {run.profile}, seed {run.seed}",
        ends_in_text=True,
    )


def layer_sizes(run: RunRecord) -> str:
    """Return the layers of the map with their sizes."""
    return table(["layer", "bytes"], [[one.name, human_bytes(one.bytes)] for one in run.layers], "Layers of the map")
