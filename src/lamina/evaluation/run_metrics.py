"""
Metrics of a run: name, title, unit, and the key of each in a summary.

A summary is plain data, as `lamina simulate` and `lamina compare` write it. This is the only module that knows its
keys.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import msgspec

from lamina.model.conversion import suggest
from lamina.model.errors import InputError, Mistake

Unit = Literal["bytes", "seconds", "count", "times"]
Shown = Literal["always", "non-zero", "differs", "on request"]
"""When a table has its row by default: always, if one profile has a non-zero value, if profiles differ, or never."""
Better = Literal["lower", "neither"]

Path = tuple[str, ...]

STARTED: Final[Path] = ("pods", "started")
FINISHED: Final[Path] = ("pods", "finished")
NOT_STARTED: Final[Path] = ("pods", "not_started", "total")


class Metric(msgspec.Struct, frozen=True):
    """One figure of a summary."""

    name: str
    unit: Unit
    path: Path
    """Keys that lead to the figure; of a list, the length is the figure."""
    title: str
    """Name in a table."""
    label: str
    """Unit in a table's head."""
    shown: Shown = "on request"
    population: Path | None = None
    """
    The count of pods that must be equal for two runs to be comparable; None: always comparable.

    Start times cover started pods only. Downloads do not include what pods that never started would have pulled. The
    same holds for every other figure of nodes that those pods would have loaded.
    """
    grows: bool = False
    """
    Whether more started pods can only increase the figure.

    A profile with a lower figure is then better even if the counts differ, as long as it left no more pods without a
    start. Evictions and overload may be the reason why pods of the other profile never started.
    """
    better: Better = "lower"
    former: str = ""
    """Its name, and its key in a summary, before it was renamed; accepted for one release."""

    def read(self, summary: Mapping[str, Any]) -> float | None:
        """Return the figure of a summary; None if the run has no such figure, or is older than the metric."""
        found = figure(summary, self.path)
        return figure(summary, (self.former,)) if found is None and self.former else found


def figure(summary: Mapping[str, Any], path: Path) -> float | None:
    """Return the number at *path* of a summary, the length of a list, or None if there is nothing."""
    value: Any = summary
    for step in path:
        if step not in value:
            return None
        value = value[step]
    if isinstance(value, list | tuple):
        return float(len(value))
    return None if value is None else float(value)


def _never(phase: str) -> Path:
    return ("pods", "not_started", phase)


def _total(part: str, which: str) -> Path:
    return ("startup_seconds", part, which)


METRICS: Final = (
    Metric("bytes_pulled", "bytes", ("bytes_pulled",), "downloaded", "bytes", "always", NOT_STARTED),
    Metric("startup_mean", "seconds", _total("total", "mean"), "start mean", "s", "always", STARTED),
    Metric("startup_p50", "seconds", _total("total", "p50"), "start p50", "s", "always", STARTED),
    Metric("startup_p95", "seconds", _total("total", "p95"), "start p95", "s", "always", STARTED),
    Metric("startup_p99", "seconds", _total("total", "p99"), "start p99", "s", "always", STARTED),
    Metric("peak_load", "times", ("peak_load",), "peak load", "max/mean", "always", NOT_STARTED, former="heating"),
    Metric("imbalance", "times", ("imbalance",), "imbalance", "sd/mean", "always", NOT_STARTED, former="balance"),
    Metric("started", "count", STARTED, "started", "pods", "differs", better="neither"),
    Metric("not_started", "count", NOT_STARTED, "not started", "pods", "non-zero"),
    Metric("pending", "count", ("pods", "pending"), "still pending", "pods", "non-zero"),
    Metric("pulling", "count", _never("pulling"), "still pulling", "pods", "non-zero"),
    Metric("starting", "count", _never("starting"), "still starting", "pods", "non-zero"),
    Metric("stopping", "count", _never("stopping"), "stopped before start", "pods", "non-zero"),
    Metric("failed_before_start", "count", _never("failed"), "failed before start", "pods", "non-zero"),
    Metric("removed_before_start", "count", _never("removed"), "removed before start", "pods", "non-zero"),
    Metric("rejected", "count", ("pods", "rejected"), "rejected", "pods", "non-zero"),
    Metric("failures", "count", ("failures",), "failed", "pods", "non-zero", NOT_STARTED, grows=True),
    Metric("evictions", "count", ("evictions",), "evicted", "pods", "non-zero", NOT_STARTED, grows=True),
    Metric(
        "overload_seconds", "seconds", ("overload_seconds",), "overload", "node-s", "non-zero", NOT_STARTED, grows=True
    ),
    Metric("slo_missed", "times", ("qos", "missed"), "SLO missed", "share", "non-zero"),
    Metric("slo_deficit", "seconds", ("qos", "deficit"), "SLO deficit", "s", "non-zero"),
    Metric("slo_violation", "seconds", ("qos", "violation_seconds"), "SLO violated", "s", "non-zero"),
    Metric("slo_spread", "times", ("qos", "spread"), "SLO spread", "share", "non-zero"),
    Metric("disruptions", "count", ("qos", "disruptions", "total"), "disrupted", "pods", "non-zero"),
    Metric("capacity_lost", "times", ("qos", "capacity_lost"), "capacity lost", "share", "non-zero"),
    Metric("pulls", "count", ("pulls",), "pulls", "images", "non-zero", NOT_STARTED),
    Metric("waiting_mean", "seconds", _total("waiting", "mean"), "waiting mean", "s", population=STARTED),
    Metric("download_mean", "seconds", _total("download", "mean"), "download mean", "s", population=STARTED),
    Metric("unpack_mean", "seconds", _total("unpack", "mean"), "unpack mean", "s", population=STARTED),
    Metric("slowdown_mean", "times", ("slowdown", "mean"), "slowdown mean", "ratio", population=FINISHED),
    Metric("cleared_bytes", "bytes", ("gc", "bytes"), "cleared", "bytes", population=NOT_STARTED, grows=True),
    Metric("restarts", "count", ("restarts",), "restarts", "times", population=NOT_STARTED, grows=True),
    Metric("pull_failures", "count", ("pull_failures",), "failed pulls", "pulls", population=NOT_STARTED, grows=True),
)

BY_NAME: Final = {metric.name: metric for metric in METRICS}
FORMER_NAMES: Final = {metric.former: metric.name for metric in METRICS if metric.former}


BY_CLASS: Final = "slo_missed:"
"""Prefix of the metrics of single classes: ``slo_missed:batch``."""


def metric_of(name: str) -> Metric:
    """Return the metric with a valid name: one of METRICS, or that of a class."""
    if not name.startswith(BY_CLASS):
        return BY_NAME[name]
    group = name.removeprefix(BY_CLASS)
    return Metric(name, "times", ("qos", "classes", group, "missed"), f"SLO missed, {group}", "share", "non-zero")


def class_metrics(summaries: Iterable[Mapping[str, Any]]) -> tuple[Metric, ...]:
    """Return the metrics of all classes of controllers that summaries have; none if there is only one class."""
    groups = {group for summary in summaries for group in summary.get("qos", {}).get("classes", ())}
    return tuple(metric_of(f"{BY_CLASS}{group}") for group in sorted(groups)) if len(groups) > 1 else ()


def chosen(names: Iterable[str], source: str) -> tuple[Metric, ...]:
    """
    Return the metrics with these names, in their order; *source* is the option or field that a mistake names.

    A former name selects the metric under its new name. A metric listed under both names is returned once.
    """
    wanted = tuple(names)
    mistakes = []
    for name in dict.fromkeys(wanted):
        if not name:
            mistakes.append(Mistake(source, "an empty name; write the metrics with one comma between them"))
        elif FORMER_NAMES.get(name, name) not in BY_NAME and not (name.startswith(BY_CLASS) and name != BY_CLASS):
            mistakes.append(Mistake(source, f"there is no metric {name!r}; {suggest(name, BY_NAME)}"))
        elif wanted.count(name) > 1:
            mistakes.append(Mistake(source, f"{name!r} is listed {wanted.count(name)} times; list it once"))
    if mistakes:
        raise InputError(mistakes)
    return tuple(metric_of(name) for name in dict.fromkeys(FORMER_NAMES.get(name, name) for name in wanted))
