"""
The page of a report: one HTML file with its data, styles and scripts, which loads nothing.

Text and tables are written here; the charts are drawn in the browser, from data in the page, with Observable Plot
(docs/decisions/0036-reports-carry-their-plotting-library.md). The same input gives the same bytes.
"""

import functools
import html
from collections.abc import Sequence
from importlib import resources
from typing import Any, Final

import msgspec

from lamina.evaluation.comparison import ProfileComparison
from lamina.evaluation.report import html_tables
from lamina.evaluation.report.run_record import RunRecord, quantiles
from lamina.evaluation.report.weak_points import weak_points
from lamina.evaluation.run_metrics import metric_of
from lamina.model.plain import plural

ASSETS: Final = resources.files("lamina.evaluation.report") / "assets"
LINES: Final = 10
"""Most seeds whose series are drawn."""
ZOOMS: Final = (1, 2, 5, 10, 20, 50, 100, 200)
"""Shares of a run that the timeline can show."""
POLICY: Final = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
"""The page runs its own scripts and may load nothing."""


class ReportNotes(msgspec.Struct, frozen=True):
    """What a report says of how it was made."""

    command: str
    """Command that makes it again."""
    version: str
    """Version of Lamina."""
    notes: tuple[str, ...] = ()
    """Limits of the runs: what profiles do not support, what was not proven."""


def report_page(
    runs: Sequence[RunRecord], compared: ProfileComparison, metrics: Sequence[str], about: ReportNotes
) -> bytes:
    """
    Return the whole page about one run or several.

    *metrics* are the names of the figures to show. The timeline and the map show the runs that have pods.
    """
    drawn = _drawn(runs)
    detailed = [run for run in runs if run.pods or run.changes]
    title = f"{compared.scenario}: {', '.join(compared.profiles)}"
    sections = [
        _intro(compared, about),
        section("headline", "What came out", _headline(compared, metrics)),
        section("starts", "How long pods take to start", _starts(runs)),
        section("bytes", "Bytes downloaded over time", _bytes(drawn)),
        section("load", "Load of the fullest node, and evenness", _load(drawn)),
        section("timeline", "Pods on their nodes", _timeline(detailed)),
        section("map", "Which node holds which layer", _map(detailed)),
        section("weak", "Where it does not help", _weak(runs, compared, metrics)),
        section("reading", "How to read this page", _reading()),
    ]
    return document(title, "".join(sections), _data(runs, drawn, detailed, compared, metrics)).encode()


def _drawn(runs: Sequence[RunRecord]) -> list[RunRecord]:
    """Return the runs whose series are drawn."""
    seeds = sorted({run.seed for run in runs})[:LINES]
    return [run for run in runs if run.seed in seeds]


# -- sections ------------------------------------------------------------------------------------------------------------


def _intro(compared: ProfileComparison, about: ReportNotes) -> str:
    seeds = compared.seeds
    listed = ", ".join(map(str, seeds)) if len(seeds) <= LINES else f"{seeds[0]} to {seeds[-1]}"
    intervals = (
        f"Intervals are {compared.confidence:.0%} confidence intervals over the seeds."
        if len(seeds) > 1
        else "One seed has no confidence interval."
    )
    notes = [*compared.unsupported.values(), *about.notes]
    return (
        f"<header><h1>{html.escape(compared.scenario)}</h1>\n"
        f"<p>Scheduling in a simulated cluster under {html.escape(', '.join(compared.profiles))}; "
        f"{'seed' if len(seeds) == 1 else 'seeds'} {listed}. {intervals} Lamina {html.escape(about.version)}.</p>\n"
        f"<p>Made by <code>{html.escape(about.command)}</code></p>\n"
        + "".join(f'<p class="note">{html.escape(note)}</p>\n' for note in notes)
        + "</header>\n"
    )


def section(name: str, title: str, content: str) -> str:
    """Return a section with its heading."""
    return f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{html.escape(title)}</h2>\n{content}</section>\n'


def figure(chart: str, caption: str, data: str, controls: str = "") -> str:
    """Return a figure: its controls, the place of the chart, the caption, and the data under it."""
    return (
        f'<figure>{controls}<div class="chart" data-chart="{chart}" aria-label="{html.escape(caption)}"></div>\n'
        f"<figcaption>{html.escape(caption)}</figcaption>\n"
        f"<details><summary>Data of this figure</summary>\n{data}</details></figure>\n"
    )


def _headline(compared: ProfileComparison, metrics: Sequence[str]) -> str:
    shown = html_tables.headline(compared, metrics)
    if len(compared.profiles) == 1:
        return shown
    rows = [
        [profile, metric_of(name).title, html_tables.against(compared.row(profile, name))]
        for profile in compared.profiles
        if profile != compared.baseline
        for name in metrics
    ]
    return shown + figure(
        "ratios",
        f"Ratio to {compared.baseline} with its interval: left of 1 is less. Figures without a ratio are left out.",
        html_tables.table(["profile", "figure", f"against {compared.baseline}"], rows, "Ratios"),
    )


def _starts(runs: Sequence[RunRecord]) -> str:
    pods = sum(run.started for run in runs)
    return figure(
        "starts",
        f"Share of pods that ran within a time since their arrival; {plural(pods, 'started pod')} in {plural(len(runs), 'run')}. "
        "The time axis is a square root.",
        html_tables.start_times(runs),
    )


def _bytes(drawn: Sequence[RunRecord]) -> str:
    return figure(
        "bytes", "Bytes that all nodes had downloaded, one line for each run.", html_tables.bytes_over_time(drawn)
    )


def _load(drawn: Sequence[RunRecord]) -> str:
    return figure(
        "peak",
        "Requested cpu of the fullest node over the mean of all nodes (1: all are equally full), between the first and the "
        "last arrival; sampled, one line for each run.",
        html_tables.load_over_time(drawn),
    ) + figure(
        "imbalance",
        "Coefficient of variation of the nodes' requested cpu (0: all are equally full), at the same times.",
        html_tables.load_over_time(drawn),
    )


def _timeline(detailed: Sequence[RunRecord]) -> str:
    if not detailed:
        return "<p>No pods were recorded.</p>\n"
    shown = detailed[0]
    extent = f"{plural(len(shown.pods), 'pod')} on {len(shown.nodes):,} of {plural(shown.all_nodes, 'node')}; " + (
        "all of the run."
        if len(shown.pods) == shown.all_pods
        else f"the run has {plural(shown.all_pods, 'pod')}, and the page has the first nodes only."
    )
    zooms = "".join(f'<option value="{times}">{times}×</option>' for times in ZOOMS)
    controls = (
        '<p class="controls">'
        + _chooser("timeline-run", detailed)
        + '<label>nodes <select id="timeline-nodes"></select></label>'
        f'<label>zoom <select id="timeline-zoom">{zooms}</select></label>'
        '<label>from <input type="range" id="timeline-from" min="0" max="1000" value="0" step="1" disabled></label></p>\n'
        '<p class="legend" id="timeline-legend"></p>\n'
    )
    panel = (
        '<div id="why" class="panel" role="status" aria-live="polite">'
        "<p>Choose a pod to see why it is there: click it, or go to the chart with Tab, to other pods with the arrow keys, "
        "and press Enter.</p></div>\n"
    )
    caption = f"Pods as bars, from arrival to end. {extent}"
    return figure("timeline", caption, "".join(map(html_tables.pods, detailed)), controls).replace(
        "<figcaption>", f"{panel}<figcaption>", 1
    )


def _map(detailed: Sequence[RunRecord]) -> str:
    mapped = [run for run in detailed if run.layers]
    if not mapped:
        return "<p>No layers were recorded.</p>\n"
    shown = mapped[0]
    cut = (
        ""
        if shown.changes_until is None
        else f" The map ends at {shown.changes_until:,.1f} s: later changes are left out."
    )
    controls = (
        '<p class="controls">'
        + _chooser("map-run", mapped)
        + '<button type="button" id="map-back" aria-label="previous change">◀</button>'
        '<label>time <input type="range" id="map-time" min="0" value="0" step="1"></label>'
        '<button type="button" id="map-forward" aria-label="next change">▶</button>'
        '<output id="map-at" for="map-time" aria-live="polite"></output></p>\n'
    )
    caption = (
        f"Nodes (rows) and layers (columns), the {len(shown.layers):,} of {plural(shown.all_layers, 'layer')} with most "
        f"bytes on these nodes.{cut}"
    )
    data = "".join(html_tables.held_at_end(run) + html_tables.layer_sizes(run) for run in mapped)
    return figure("map", caption, data, controls)


def _chooser(name: str, runs: Sequence[RunRecord]) -> str:
    options = "".join(
        f'<option value="{index}">{html.escape(run.profile)}, seed {run.seed}</option>'
        for index, run in enumerate(runs)
    )
    return f'<label>run <select id="{name}">{options}</select></label>'


def _weak(runs: Sequence[RunRecord], compared: ProfileComparison, metrics: Sequence[str]) -> str:
    found = weak_points(runs, compared, metrics)
    if not found:
        return "<p>This run alone does not show it.</p>\n"
    return "<ul>" + "".join(f"<li>{html.escape(one)}</li>\n" for one in found) + "</ul>\n"


def _reading() -> str:
    return (
        "<dl>"
        "<dt>start</dt><dd>Seconds from a pod's arrival until all its containers run. It covers the pods that started.</dd>"
        "<dt>queue, wait, pull, unpack, start, run</dt><dd>Parts of a pod's time: until its binding; until the node's pull "
        "queue gets to its images; downloading; unpacking; starting containers; running. With several images, a part is "
        "the sum over them.</dd>"
        "<dt>± and [ ]</dt><dd>Student's 95 % interval over the seeds, of the mean or of the ratio seed by seed. It does "
        "not cover what the simulation leaves out.</dd>"
        "<dt>better, worse</dt><dd>The whole interval lies on one side of equality. No word: these seeds show no "
        "difference, which does not mean that there is none.</dd>"
        "</dl>\n"
    )


# -- data and document ---------------------------------------------------------------------------------------------------


def _data(
    runs: Sequence[RunRecord],
    drawn: Sequence[RunRecord],
    detailed: Sequence[RunRecord],
    compared: ProfileComparison,
    metrics: Sequence[str],
) -> dict[str, Any]:
    ratios = [
        {
            "profile": row.profile,
            "figure": metric_of(name).title,
            "ratio": ratio.ratio,
            "low": ratio.low,
            "high": ratio.high,
        }
        for name in metrics
        for row in (compared.row(profile, name) for profile in compared.profiles if profile != compared.baseline)
        if (ratio := row.against) is not None and ratio.ratio is not None and row.basis == "ratio"
    ]
    return {
        "profiles": compared.profiles,
        "baseline": compared.baseline,
        "ratios": ratios,
        "starts": {profile: quantiles(values) for profile, values in html_tables.pooled_starts(runs).items()},
        "lines": [{"profile": run.profile, "seed": run.seed, "series": run.series} for run in drawn],
        "runs": [
            {"nodes": run.nodes, "pods": run.pods, "seconds": run.seconds, "layers": run.layers, "changes": run.changes}
            for run in detailed
        ],
    }


@functools.cache
def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def document(title: str, body: str, data: dict[str, Any]) -> str:
    """Return the whole page around *body*; *data* is what the script draws."""
    # "<" never ends the script element early when it is written as an escape.
    text = msgspec.json.encode(data).decode().replace("<", "\\u003c")
    licences = _asset("LICENSES.txt").replace("--", "- -")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{html.escape(title)}</title>\n<style>\n{_asset('report.css')}</style>\n</head>\n"
        f'<body>\n<a class="skip" href="#headline">Skip to the figures</a>\n<main>\n{body}'
        '<noscript><p class="note">The charts need JavaScript; all data is in the tables.</p></noscript>\n</main>\n'
        f"<!-- Licences of the libraries below:\n{licences}-->\n"
        f'<script type="application/json" id="data">{text}</script>\n'
        f"<script>{_asset('d3.min.js')}</script>\n<script>{_asset('plot.umd.min.js')}</script>\n"
        f"<script>\n{_asset('report.js')}</script>\n</body>\n</html>\n"
    )
