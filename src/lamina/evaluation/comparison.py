"""
Comparison of profiles over many runs: every profile's figures with intervals, and the ratio to a baseline.

The input is summaries as written to files (plain data). A table can therefore be made from earlier runs or from runs on
other machines.

A row has a verdict: better or worse than the baseline. It needs an interval that excludes equality, and figures of both
profiles that cover the same number of pods. For figures that only grow with the number of pods, it is enough that the
better profile left no more pods without a start. Otherwise the row has the reason why there is no verdict.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from lamina.evaluation import intervals
from lamina.evaluation.intervals import CONFIDENCE, Estimate, Ratio
from lamina.evaluation.run_metrics import METRICS, NOT_STARTED, STARTED, Metric, Unit, figure
from lamina.model.conversion import suggest
from lamina.model.errors import InputError

Verdict = Literal["better", "worse"]
Basis = Literal["ratio", "difference"]
Summaries = Mapping[int, Mapping[str, Any]]
"""Seed → summary, for one profile."""
Figures = Mapping[int, float | None]
"""Seed → one figure, for one profile."""

NEITHER: Final = "neither a higher nor a lower value is better"
NO_PAIRS: Final = "no seed has this figure under both profiles"
NO_INTERVAL: Final = "fewer than two seeds: there is no interval"
EQUAL: Final = "the interval includes equality: these seeds show no difference"
OTHER_PODS: Final = "different numbers of pods: {} {:,.1f} a run here, {:,.1f} under the baseline"
UNKNOWN_PODS: Final = "unknown numbers of pods: some summaries do not have the count of pods {}"


class Run(msgspec.Struct, frozen=True):
    """One run and its summary."""

    profile: str
    seed: int
    summary: Mapping[str, Any]


class Population(msgspec.Struct, frozen=True):
    """Numbers of pods of one profile, as means over its runs; None where its summaries do not have them."""

    profile: str
    total: float | None
    started: float | None
    not_started: float | None


class ComparisonRow(msgspec.Struct, frozen=True):
    """One figure under one profile, over all seeds."""

    profile: str
    metric: str
    unit: Unit
    estimate: Estimate | None
    """None when no run has the figure."""
    against: Ratio | None
    """Ratio to the baseline; None for the baseline itself."""
    difference: Estimate | None = None
    """This profile's figure minus the baseline's, seed by seed; None for the baseline itself and without pairs."""
    basis: Basis = "ratio"
    """Basis of the verdict: the difference where a figure is 0 under some seed, because it then has no ratio."""
    verdict: Verdict | None = None
    no_verdict: str | None = None
    """Why there is no verdict; None where there is one, and for the baseline itself."""
    comparable: bool = True
    """Whether the numbers of pods that both figures cover are known and allow a verdict."""

    @property
    def sign(self) -> int:
        """-1 when the whole interval is below equality, 1 when it is above, 0 otherwise."""
        if self.basis == "ratio":
            return 0 if self.against is None else self.against.sign
        if self.difference is None or self.difference.half_width is None:
            return 0
        mean, half = self.difference.mean, self.difference.half_width
        return (mean - half > 0.0) - (mean + half < 0.0)


class ProfileComparison(msgspec.Struct, frozen=True, kw_only=True):
    """The whole table."""

    scenario: str
    baseline: str
    confidence: float = CONFIDENCE
    seeds: tuple[int, ...]
    populations: tuple[Population, ...] = ()
    """Pods under each profile."""
    rows: tuple[ComparisonRow, ...]
    """By profile in the order of their first run, then by metric."""
    unsupported: dict[str, str] = {}
    """Profile → what the scheduler it stands for does and the profile does not do yet; from the caller of `compare`."""

    @property
    def profiles(self) -> tuple[str, ...]:
        """The profiles, in order."""
        return tuple(dict.fromkeys(row.profile for row in self.rows))

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metric names, in order."""
        return tuple(dict.fromkeys(row.metric for row in self.rows))

    def row(self, profile: str, metric: str) -> ComparisonRow:
        """Return one row."""
        return next(row for row in self.rows if (row.profile, row.metric) == (profile, metric))


def compare(runs: Iterable[Run], baseline: str, metrics: Sequence[Metric] = METRICS) -> ProfileComparison:
    """Return the table of these metrics; two profiles are compared by the seeds that both have run."""
    tried: dict[str, dict[int, Mapping[str, Any]]] = {}
    for run in runs:
        tried.setdefault(run.profile, {})[run.seed] = run.summary
    if baseline not in tried:
        raise InputError.one("baseline", f"there is no run under {baseline!r}; {suggest(baseline, tried)}")
    by_metric = [_rows(metric, tried, baseline) for metric in metrics]
    return ProfileComparison(
        scenario=next(str(summary["scenario"]) for summary in tried[baseline].values()),
        baseline=baseline,
        seeds=tuple(sorted({seed for seeds in tried.values() for seed in seeds})),
        populations=tuple(_population(profile, summaries) for profile, summaries in tried.items()),
        rows=tuple(rows[profile] for profile in tried for rows in by_metric),
    )


def _population(profile: str, summaries: Summaries) -> Population:
    means = [intervals.estimate(_present(_read(summaries, path))) for path in (("pods", "total"), STARTED, NOT_STARTED)]
    return Population(profile, *(None if mean is None else mean.mean for mean in means))


def _rows(metric: Metric, tried: Mapping[str, Summaries], baseline: str) -> dict[str, ComparisonRow]:
    """Return the rows of one metric, for every profile; all of them have the same basis."""
    figures = {profile: _read(summaries, metric.path) for profile, summaries in tried.items()}
    against = {
        profile: (intervals.paired(one, figures[baseline]), intervals.differing(one, figures[baseline]))
        for profile, one in figures.items()
        if profile != baseline
    }
    basis: Basis = "difference" if any(_has_zeros(*both) for both in against.values()) else "ratio"
    rows = {}
    for profile, one in figures.items():
        estimate = intervals.estimate(_present(one))
        if profile == baseline:
            rows[profile] = ComparisonRow(profile, metric.name, metric.unit, estimate, None)
        else:
            ratio, difference = against[profile]
            row = ComparisonRow(profile, metric.name, metric.unit, estimate, ratio, difference, basis)
            rows[profile] = _judged(row, metric, tried[profile], tried[baseline])
    return rows


def _has_zeros(ratio: Ratio, difference: Estimate | None) -> bool:
    """Return whether every pair has both figures and some have no ratio."""
    return ratio.left_out > 0 and difference is not None and difference.runs == ratio.runs + ratio.left_out


def _judged(row: ComparisonRow, metric: Metric, summaries: Summaries, baseline: Summaries) -> ComparisonRow:
    """Add the verdict, or the reason why there is none."""
    other_pods = _other_pods(row, metric, summaries, baseline)
    undecided = "" if other_pods else _undecided(row, metric)
    if undecided:
        return msgspec.structs.replace(row, no_verdict=undecided)
    uncovered = other_pods or _unknown_pods(metric, summaries, baseline)
    if uncovered:
        return msgspec.structs.replace(row, no_verdict=uncovered, comparable=False)
    return msgspec.structs.replace(row, verdict="better" if row.sign < 0 else "worse")


def _undecided(row: ComparisonRow, metric: Metric) -> str:
    if metric.better == "neither":
        return NEITHER
    by_ratio = row.basis == "ratio"
    pairs = row.against.runs if by_ratio and row.against else row.difference.runs if row.difference else 0
    if not pairs:
        return NO_PAIRS
    if pairs == 1:
        return NO_INTERVAL
    return "" if row.sign else EQUAL


def _other_pods(row: ComparisonRow, metric: Metric, summaries: Summaries, baseline: Summaries) -> str:
    """Return how the numbers of pods of both figures differ; empty when they allow a verdict."""
    pairs = _counts(metric, summaries, baseline)
    known = [(one, other) for one, other in pairs if one is not None and other is not None]
    if all(one == other for one, other in known):
        return ""
    if metric.grows and row.sign and all((one - other) * row.sign >= 0 for one, other in known):
        return ""
    means = [sum(numbers) / len(known) for numbers in zip(*known, strict=True)]
    return OTHER_PODS.format(_counted(metric), *means)


def _unknown_pods(metric: Metric, summaries: Summaries, baseline: Summaries) -> str:
    """Return a message if a summary does not have the number of pods its figure covers; empty when all have it."""
    unknown = any(None in pair for pair in _counts(metric, summaries, baseline))
    return UNKNOWN_PODS.format(_counted(metric)) if unknown else ""


def _counts(metric: Metric, summaries: Summaries, baseline: Summaries) -> list[tuple[float | None, float | None]]:
    """Return the numbers of pods that both figures cover, seed by seed."""
    if metric.population is None:
        return []
    here, there = _read(summaries, metric.population), _read(baseline, metric.population)
    return [(one, there[seed]) for seed, one in here.items() if seed in there]


def _counted(metric: Metric) -> str:
    return "not started" if metric.population == NOT_STARTED else str((metric.population or ("",))[-1])


def _read(summaries: Summaries, path: tuple[str, ...]) -> dict[int, float | None]:
    return {seed: figure(summary, path) for seed, summary in summaries.items()}


def _present(figures: Figures) -> list[float]:
    return [value for value in figures.values() if value is not None]
