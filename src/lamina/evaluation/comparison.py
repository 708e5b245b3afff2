"""
Summaries of many runs in, one table out: every profile's figures with intervals, and how they compare to a baseline.

Takes summaries as they are written to files (plain data), not results: a table can be made from runs of yesterday or of
another machine. Which figures there are, and where they stand in a summary, is said here and nowhere else; all of them
are better when they are smaller.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from lamina.evaluation import intervals
from lamina.evaluation.intervals import CONFIDENCE, Estimate, Ratio
from lamina.model.errors import InputError
from lamina.model.schema import suggest

Unit = Literal["bytes", "seconds", "count", "times"]


class Metric(msgspec.Struct, frozen=True):
    """One figure of a summary."""

    name: str
    unit: Unit
    path: tuple[str, ...]
    """Where it stands in a summary; of a list the length counts."""

    def read(self, summary: Mapping[str, Any]) -> float | None:
        """Take it out of a summary; None when the run has no such figure, or was made before there was one."""
        value: Any = summary
        for step in self.path:
            if step not in value:
                return None
            value = value[step]
        if isinstance(value, list | tuple):
            return float(len(value))
        return None if value is None else float(value)


METRICS: Final = (
    Metric("bytes_pulled", "bytes", ("bytes_pulled",)),
    Metric("startup_mean", "seconds", ("startup_seconds", "total", "mean")),
    Metric("startup_p50", "seconds", ("startup_seconds", "total", "p50")),
    Metric("startup_p95", "seconds", ("startup_seconds", "total", "p95")),
    Metric("startup_p99", "seconds", ("startup_seconds", "total", "p99")),
    Metric("heating", "times", ("heating",)),
    Metric("balance", "times", ("balance",)),
    Metric("waiting_mean", "seconds", ("startup_seconds", "waiting", "mean")),
    Metric("download_mean", "seconds", ("startup_seconds", "download", "mean")),
    Metric("unpack_mean", "seconds", ("startup_seconds", "unpack", "mean")),
    Metric("slowdown_mean", "times", ("slowdown", "mean")),
    Metric("pulls", "count", ("pulls",)),
    Metric("cleared_bytes", "bytes", ("gc", "bytes")),
    Metric("evictions", "count", ("evictions",)),
    Metric("pending", "count", ("pods", "pending")),
)


class Run(msgspec.Struct, frozen=True):
    """One run, and what it came to."""

    profile: str
    seed: int
    summary: Mapping[str, Any]


class Row(msgspec.Struct, frozen=True):
    """One figure under one profile, over all seeds."""

    profile: str
    metric: str
    unit: Unit
    estimate: Estimate | None
    """None when no run has the figure."""
    against: Ratio | None
    """Against the baseline; None for the baseline itself."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A whole table."""

    scenario: str
    baseline: str
    confidence: float = CONFIDENCE
    seeds: tuple[int, ...]
    rows: tuple[Row, ...]
    """By profile in the order the profiles first came up, then by metric."""

    @property
    def profiles(self) -> tuple[str, ...]:
        """The profiles, in order."""
        return tuple(dict.fromkeys(row.profile for row in self.rows))

    def row(self, profile: str, metric: str) -> Row:
        """Find one row."""
        return next(row for row in self.rows if (row.profile, row.metric) == (profile, metric))


def compare(runs: Iterable[Run], baseline: str) -> Comparison:
    """Make the table; a seed that only one of two profiles has run tells nothing about the two."""
    tried: dict[str, dict[int, Mapping[str, Any]]] = {}
    for run in runs:
        tried.setdefault(run.profile, {})[run.seed] = run.summary
    if baseline not in tried:
        raise InputError.one("baseline", f"there is no run under {baseline!r}: {suggest(baseline, tried)}")
    figures = {profile: [_by_seed(metric, seeds) for metric in METRICS] for profile, seeds in tried.items()}
    rows = [
        _row(profile, metric, by_seed, None if profile == baseline else compared)
        for profile, read in figures.items()
        for metric, by_seed, compared in zip(METRICS, read, figures[baseline], strict=True)
    ]
    return Comparison(
        scenario=next(str(summary["scenario"]) for summary in tried[baseline].values()),
        baseline=baseline,
        seeds=tuple(sorted({seed for seeds in tried.values() for seed in seeds})),
        rows=tuple(rows),
    )


def _by_seed(metric: Metric, summaries: Mapping[int, Mapping[str, Any]]) -> dict[int, float | None]:
    return {seed: metric.read(summary) for seed, summary in summaries.items()}


def _row(
    profile: str, metric: Metric, by_seed: Mapping[int, float | None], baseline: Mapping[int, float | None] | None
) -> Row:
    values: Sequence[float] = [value for value in by_seed.values() if value is not None]
    against = None if baseline is None else intervals.paired(by_seed, baseline)
    return Row(profile, metric.name, metric.unit, intervals.estimate(values), against)
