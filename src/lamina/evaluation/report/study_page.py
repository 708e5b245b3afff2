"""The page of a study: ratios over all points, how they depend on each factor, and every point."""

import html
import math
from typing import Any, Final

from lamina.evaluation.report import html_tables
from lamina.evaluation.report.report_page import document, figure, section
from lamina.evaluation.run_metrics import metric_of
from lamina.evaluation.study_results import OverallRatio, PointResult, StudyResults, point_label
from lamina.model.plain import plural

MOST_WEAK: Final = 50
"""Most findings to list."""


def study_page(results: StudyResults) -> bytes:
    """Return the whole page; the same results give the same bytes."""
    factors = list(results.points[0].levels)
    others = list(dict.fromkeys(one.profile for one in results.overall))
    sensitivity = {factor: _sensitivity(results, factor, others) for factor in factors}
    sections = [
        _intro(results),
        section("headline", "What came out", _headline(results)) if others else "",
        section("sensitivity", "How it depends on the factors", _factors(results, sensitivity)) if factors else "",
        section("points", "Every point", "".join(_points(results))),
        section("weak", "Where it does not help", _weak(results)) if others else "",
    ]
    data = {
        "profiles": [results.baseline, *others],
        "baseline": results.baseline,
        "ratios": [_ratio_data(one) for one in results.overall if one.mean is not None],
        "starts": {},
        "lines": [],
        "runs": [],
        "sensitivity": [
            [
                {"level": row[0], "profile": row[1], "figure": row[2], "ratio": row[3]}
                for row in rows
                if row[3] is not None
            ]
            for rows in sensitivity.values()
        ],
    }
    return document(results.study, "".join(sections), data).encode()


def _intro(results: StudyResults) -> str:
    seeds = (
        f"seeds {results.seeds[0]} to {results.seeds[-1]}" if len(results.seeds) > 1 else "one seed, so no intervals"
    )
    return (
        f"<header><h1>{html.escape(results.study)}</h1>\n"
        f"<p>A designed study: {plural(len(results.points), 'point')}, {seeds}. All ratios are to "
        f"{html.escape(results.baseline)}; less is better. Lamina {html.escape(results.version)}, study "
        f"{html.escape(results.fingerprint)}.</p></header>\n"
    )


def _headline(results: StudyResults) -> str:
    count = len(results.points)
    rows = [
        [
            f"{one.profile}: {metric_of(one.metric).title}",
            _written(one.mean),
            _written(one.worst),
            html_tables.NONE if one.worst_point is None else point_label(results.points[one.worst_point]),
            f"{one.better} of {count}",
            f"{one.worse} of {count}",
        ]
        for one in results.overall
    ]
    head = ["profile and figure", "mean ratio", "highest", "at", "points better", "points worse"]
    shown = html_tables.table(head, rows, "Ratios: geometric mean over the points, and the highest point")
    return figure("ratios", f"Geometric mean of the ratios to {results.baseline} over all points.", shown)


def _ratio_data(one: OverallRatio) -> dict[str, Any]:
    return {
        "profile": one.profile,
        "figure": metric_of(one.metric).title,
        "ratio": one.mean,
        "low": None,
        "high": None,
    }


SensitivityRow = tuple[str, str, str, float | None]
"""Level, profile, figure, and the geometric mean of the ratios at this level."""


def _sensitivity(results: StudyResults, factor: str, others: list[str]) -> list[SensitivityRow]:
    # Only points whose other factors have the same levels at every level of this one: all of a full design, one of each
    # level when one factor is changed at a time. Others would attribute the effect of another factor to this one.
    beside: dict[str, dict[tuple[str, ...], PointResult]] = {}
    for point in results.points:
        others_there = tuple(level for name, level in point.levels.items() if name != factor)
        beside.setdefault(point.levels[factor], {})[others_there] = point
    shared = set.intersection(*map(set, beside.values()))
    rows: list[SensitivityRow] = []
    for level, found in beside.items():
        here = [point for others_there, point in found.items() if others_there in shared]
        for profile in others:
            for name in results.metrics:
                against = [point.compared.row(profile, name).against for point in here]
                ratios = [one.ratio for one in against if one is not None and one.ratio is not None]
                logs = [math.log(ratio) for ratio in ratios]
                mean = math.exp(math.fsum(logs) / len(logs)) if len(logs) == len(here) else None
                rows.append((level, profile, metric_of(name).title, mean))
    return rows


def _factors(results: StudyResults, sensitivity: dict[str, list[SensitivityRow]]) -> str:
    shown = []
    for number, (factor, rows) in enumerate(sensitivity.items()):
        told = [[level, profile, name, _written(ratio)] for level, profile, name, ratio in rows]
        table = html_tables.table([factor, "profile", "figure", "mean ratio"], told, f"Ratios by {factor}")
        shown.append(
            figure(
                f"sensitivity-{number}",
                f"Mean ratio to {results.baseline} at each level of {factor}, the other factors being equal.",
                table,
            )
        )
    return "".join(shown)


def _points(results: StudyResults) -> list[str]:
    shown = []
    for point in results.points:
        label = html.escape(point_label(point))
        table = html_tables.headline(point.compared, results.metrics)
        shown.append(f"<details><summary>{label}</summary>\n{table}</details>\n")
    return shown


def _weak(results: StudyResults) -> str:
    found = []
    for point in results.points:
        for row in point.compared.rows:
            if row.verdict == "worse":
                title = metric_of(row.metric).title
                found.append(f"{point_label(point)}: {row.profile}, {title} {html_tables.against(row)}.")
    if not found:
        return "<p>No figure of any point shows a profile to be worse than the baseline.</p>\n"
    more = [f"{len(found) - MOST_WEAK} more in the tables above."] if len(found) > MOST_WEAK else []
    return "<ul>" + "".join(f"<li>{html.escape(one)}</li>\n" for one in [*found[:MOST_WEAK], *more]) + "</ul>\n"


def _written(ratio: float | None) -> str:
    return html_tables.NONE if ratio is None else f"×{ratio:.2f}"
