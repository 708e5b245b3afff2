"""
Results of a study: one comparison for each point, the means over all points, as CSV, JSON and Markdown.

Ratios are to the first profile, as in a comparison. Over several points, the mean is the geometric mean of the points'
ratios, and the worst is the highest of them: every figure is better when it is lower.
"""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from lamina.evaluation.comparison import ProfileComparison, Run, compare
from lamina.evaluation.run_metrics import metric_of
from lamina.model.plain import plural

RATIO_DIGITS: Final = 3


class PointResult(msgspec.Struct, frozen=True):
    """One point of the design, and the comparison at it."""

    number: int
    levels: dict[str, str]
    compared: ProfileComparison


class OverallRatio(msgspec.Struct, frozen=True):
    """A figure of one profile over all points, as ratios to the baseline."""

    profile: str
    metric: str
    mean: float | None
    """Geometric mean of the points' ratios; None if a point has none."""
    worst: float | None
    worst_point: int | None
    points: int
    """Number of points with a ratio."""
    better: int
    worse: int
    """Points whose verdict is that."""


class StudyResults(msgspec.Struct, frozen=True, kw_only=True):
    """All results of a study."""

    study: str
    baseline: str
    version: str
    """Version of Lamina."""
    fingerprint: str
    """Digest of the study, its scenario and its profiles."""
    seeds: tuple[int, ...]
    metrics: tuple[str, ...]
    overall: tuple[OverallRatio, ...]
    points: tuple[PointResult, ...]


def study_results(
    runs: Mapping[int, Sequence[Run]],
    levels: Sequence[dict[str, str]],
    metrics: Sequence[str],
    names: Mapping[str, str],
) -> StudyResults:
    """
    Return the results of all runs: point → its runs, the baseline's first.

    *names* has ``study``, ``version`` and ``fingerprint``.
    """
    chosen = [metric_of(name) for name in metrics]
    baseline = next(iter(runs.values()))[0].profile
    made = [PointResult(number, levels[number], compare(here, baseline, chosen)) for number, here in runs.items()]
    return StudyResults(
        **names,
        baseline=baseline,
        seeds=made[0].compared.seeds,
        metrics=tuple(metrics),
        overall=tuple(
            _overall(made, profile, name)
            for profile in made[0].compared.profiles
            if profile != baseline
            for name in metrics
        ),
        points=tuple(made),
    )


def _overall(made: Sequence[PointResult], profile: str, metric: str) -> OverallRatio:
    rows = [(point.number, point.compared.row(profile, metric)) for point in made]
    ratios = [
        (row.against.ratio, number) for number, row in rows if row.against is not None and row.against.ratio is not None
    ]
    worst = max(ratios, default=None, key=lambda pair: pair[0])
    logs = [math.log(ratio) for ratio, _ in ratios]
    return OverallRatio(
        profile=profile,
        metric=metric,
        mean=math.exp(math.fsum(logs) / len(logs)) if logs and len(logs) == len(made) else None,
        worst=None if worst is None else worst[0],
        worst_point=None if worst is None else worst[1],
        points=len(ratios),
        better=sum(row.verdict == "better" for _, row in rows),
        worse=sum(row.verdict == "worse" for _, row in rows),
    )


def results_csv(runs: Mapping[int, Sequence[Run]], levels: Sequence[dict[str, str]], results: StudyResults) -> str:
    """Return one line for each run: levels, profile, seed, every figure in full precision, version and fingerprint."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    factors = list(levels[0])
    lines.writerow(["point", *factors, "profile", "seed", *results.metrics, "version", "fingerprint"])
    for number, here in runs.items():
        for run in here:
            figures: list[Any] = [metric_of(name).read(run.summary) for name in results.metrics]
            shown = ["" if figure is None else figure for figure in figures]
            point = [number, *(levels[number][name] for name in factors)]
            lines.writerow([*point, run.profile, run.seed, *shown, results.version, results.fingerprint])
    return text.getvalue()


def digest(results: StudyResults) -> str:
    """Return the results as Markdown: the overall ratios, then a line for each point."""
    lines = [
        f"# {results.study}",
        "",
        f"{plural(len(results.points), 'point')}, {plural(len(results.seeds), 'seed')}, Lamina {results.version}.",
        f"Ratios to `{results.baseline}`: geometric mean over the points, in brackets the highest point; less is better.",
        "",
        "| profile | figure | ratio | better | worse |",
        "|---|---|---|---|---|",
    ]
    for one in results.overall:
        spread = f"{_ratio(one.mean)} ({_ratio(one.worst)})"
        counts = f"{one.better} of {len(results.points)} | {one.worse} of {len(results.points)}"
        lines.append(f"| `{one.profile}` | {metric_of(one.metric).title} | {spread} | {counts} |")
    pairs = [(one.profile, one.metric) for one in results.overall]
    lines += ["", "| point | " + " | ".join(f"{profile}: {metric_of(name).title}" for profile, name in pairs) + " |"]
    lines.append("|---|" + "---|" * len(pairs))
    for point in results.points:
        cells = []
        for profile, name in pairs:
            row = point.compared.row(profile, name)
            mark = "" if row.verdict is None else f" {row.verdict}"
            cells.append(f"{_ratio(None if row.against is None else row.against.ratio)}{mark}")
        lines.append(f"| {point_label(point)} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def point_label(point: PointResult) -> str:
    """Return the levels of a point in words."""
    return ", ".join(f"{name} {value}" for name, value in point.levels.items()) or "as it is"


def _ratio(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.{RATIO_DIGITS}f}"
