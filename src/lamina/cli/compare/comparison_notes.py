"""The notes below a comparison's tables: signs, pods covered, missing seeds, and what profiles do not support."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from lamina.cli.output.screen import Screen, literal
from lamina.evaluation.comparison import ComparisonRow, Population, ProfileComparison
from lamina.evaluation.intervals import Ratio
from lamina.evaluation.run_metrics import Metric, metric_of
from lamina.model.plain import plural
from lamina.scheduling.config.named_profiles import unsupported


def notes(
    screen: Screen, compared: ProfileComparison, metrics: Sequence[Metric], others: Sequence[str]
) -> Iterator[str]:
    """Return the lines, with markup: on intervals and signs, on pods, on seeds, on what profiles do not support."""
    rows = [compared.row(profile, metric.name) for profile in compared.profiles for metric in metrics]
    yield from _about_intervals(screen, compared, rows, others)
    yield from _about_pods(compared, rows)
    for row in rows:
        if row.basis == "ratio" and row.against is not None and row.against.left_out:
            yield f"{literal(row.profile)}, {metric_of(row.metric).title}: {_left_out(row.against)}"
    yield from map(literal, compared.unsupported.values())


def with_unsupported(compared: ProfileComparison) -> ProfileComparison:
    """Add what profiles of the comparison do not support of the scheduler they model."""
    said = {profile: unsupported(profile) for profile in compared.profiles if unsupported(profile)}
    return msgspec.structs.replace(compared, unsupported=said)


def with_unproven(compared: ProfileComparison, summaries: Sequence[dict[str, Any]]) -> ProfileComparison:
    """Add which foreign schedulers Lamina only waited for, or waited for in vain."""
    said = dict(compared.unsupported)
    for one in summaries:
        settle = one.get("settle")
        if settle is not None and (not settle["proven"] or settle["limits_hit"]):
            said[one["profile"]] = (
                f"{one['profile']}: settled by {settle['method']}, not proven: it may have decided later than its figures say"
            )
    return msgspec.structs.replace(compared, unsupported=said)


def _about_intervals(
    screen: Screen, compared: ProfileComparison, rows: Sequence[ComparisonRow], others: Sequence[str]
) -> Iterator[str]:
    percent = f"{compared.confidence:.0%}"
    by_difference = any(row.basis == "difference" for row in rows)
    if len(compared.seeds) == 1:
        yield "one seed gives no intervals; use --seeds 2 or more"
    else:
        neither = any(metric_of(row.metric).better == "neither" for row in rows)
        less = "less is better (started: neither)" if neither else "less is better everywhere"
        yield f"{more_or_less(screen)} and ranges are {percent} confidence intervals over the seeds; {less}"
        if others:
            equality = "1 (of a difference: 0)" if by_difference else "1"
            yield f"< and >: the whole interval lies below or above {equality}; no sign: no difference shown by these seeds"
        if all(row.estimate is None or not row.estimate.half_width for row in compared.rows):
            yield "all seeds gave the same figures, so the intervals are empty and carry no information"
    if by_difference:
        yield "difference: this profile minus the baseline, because a figure of 0 has no ratio"


def _about_pods(compared: ProfileComparison, rows: Sequence[ComparisonRow]) -> Iterator[str]:
    """Yield the profiles under which pods did not start, and the rows that therefore have no verdict."""
    if any(not row.comparable for row in rows):
        counts = ", ".join(f"{literal(one.profile)} {_started(one)}" for one in compared.populations)
        yield f"[yellow]?[/yellow]: no verdict, because the two figures do not cover the same pods. Pods started per run: {counts}"
    elif any(one.not_started for one in compared.populations):
        counts = ", ".join(f"{literal(one.profile)} {_started(one)}" for one in compared.populations)
        yield f"[yellow]not all pods started[/yellow]; start times cover the started pods only: {counts}"
        if len(compared.populations) > 1 and len({one.started for one in compared.populations}) == 1:
            yield "the number of pods is the same under every profile, but the pods may differ"


def _started(population: Population) -> str:
    if population.started is None or population.total is None:
        return "unknown"
    return f"{population.started:,.1f} of {population.total:,.1f}"


def _left_out(against: Ratio) -> str:
    pairs = against.runs + against.left_out
    return f"{against.left_out} of {plural(pairs, 'seed')} left out of the ratio, because one of the two figures is 0 or missing"


def more_or_less(screen: Screen) -> str:
    """Return the sign before half an interval."""
    return "±" if signs(screen) else "+-"


def signs(screen: Screen) -> bool:
    """Return whether the screen can show characters beyond ASCII."""
    return screen.is_terminal and screen.console.encoding.startswith("utf")
