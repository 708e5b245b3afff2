"""
The Azure Functions trace of 2019: calls of functions, counted per minute, become pods.

    invocations   HashOwner, HashApp, HashFunction and a column for each minute (``1`` or ``minute_1`` …)
    durations     milliseconds at seven percentiles; a call draws from them, interpolated linearly
    memory        megabytes of an application; a worker requests the 99th percentile

The moment of a call within its minute is drawn from the seed. Each function has its own generator, so adding functions
does not change the others. Without `keepAlive`, every call is a pod that runs as long as the call. With `keepAlive`, a
pod is a worker: it serves the next call of its function when it is free, and ends when no call has come for that long.
The calculation assumes that workers start at once, because the real start depends on the scheduler.
"""

import bisect
import heapq
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

import msgspec

from lamina.model import duration, resources
from lamina.model.errors import InputError
from lamina.model.pod import Owner
from lamina.model.resources import CPU, MEMORY, Amounts
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.workloads.imports import import_files, pod_drafts
from lamina.simulator.workloads.imports.import_files import TableRow
from lamina.simulator.workloads.imports.import_schema import (
    MOST_PODS,
    FunctionFiles,
    ImportContext,
    Imported,
    ImportEntry,
)
from lamina.simulator.workloads.imports.pod_drafts import DECIMALS, ImageChooser, PodDraft

KEYS: Final = ("HashOwner", "HashApp", "HashFunction")
PERCENTILES: Final = (0, 1, 25, 50, 75, 99, 100)
MINUTES: Final = 1440
SHORT: Final = 12
"""Characters of a function's hash in the names of its pods."""
USUAL_CPU: Final = "100m"
USUAL_MEMORY: Final = "256Mi"
MEGABYTE: Final = 1_000_000
SHORTEST: Final = 0.001
"""Shortest duration of a call in seconds: the trace has whole milliseconds, and some calls took less than one."""


class AzureFunction(msgspec.Struct, frozen=True):
    """One function, with the number of its calls in each minute."""

    key: str
    application: str
    calls: tuple[int, ...]
    line: int


def read(entry: ImportEntry, folder: Path, context: ImportContext) -> Imported:
    """Read the tables that an entry names."""
    files = entry.azure_functions
    assert files is not None, "the entry is of this kind"
    reader = _Tables(entry, folder, context, files)
    drafts = pod_drafts.select_drafts(reader.drafts(), entry)
    nodes = pod_drafts.equal_nodes(entry, context)
    pod_drafts.check_room(reader.source, drafts, nodes, context, "function")
    images = ImageChooser(entry, folder, context).choose(pod_drafts.applications(drafts))
    return Imported(nodes=nodes, arrivals=pod_drafts.arrivals(drafts, images, entry), notes=tuple(reader.notes))


class _Tables:
    """Joins the three tables and draws pods from them."""

    def __init__(self, entry: ImportEntry, folder: Path, context: ImportContext, files: FunctionFiles) -> None:
        self._entry, self._context = entry, context
        self.notes: list[str] = []
        path = import_files.located(context, folder, files.invocations, "azureFunctions", "invocations")
        self.source = str(path)
        self._functions = self._sampled(path)
        self._durations = _durations(
            import_files.located(context, folder, files.durations, "azureFunctions", "durations")
        )
        self._memory: dict[str, float] = {}
        if files.memory is not None:
            self._memory = _memory(import_files.located(context, folder, files.memory, "azureFunctions", "memory"))

    def _sampled(self, path: Path) -> list[AzureFunction]:
        """Return all functions, or a drawn sample of the size that the entry sets, in the order of the table."""
        most, rng = self._entry.functions, Random(f"imported functions {self._context.seed}")
        kept: list[AzureFunction] = []
        seen: dict[str, int] = {}
        minutes: list[str] = []

        def take(row: TableRow) -> None:
            minutes.extend(self._minutes(row) if not minutes else ())
            key = row.text("HashFunction")
            full = f"{row.optional('HashOwner')} {row.optional('HashApp')} {key}"
            if (first := seen.setdefault(full, row.line)) != row.line:
                raise row.wrong("HashFunction", f"this function was there before, on line {first}")
            function = AzureFunction(key, row.text("HashApp"), _calls(row, minutes), row.line)
            # Reservoir sampling: every function has the same chance, and memory holds only the sample.
            if most is None or len(kept) < most:
                kept.append(function)
            elif (drawn := rng.randrange(len(seen))) < most:
                kept[drawn] = function

        import_files.each(import_files.rows(path, KEYS, open_ended=True), take)
        return sorted(kept, key=lambda function: function.line)

    def _minutes(self, row: TableRow) -> list[str]:
        """Return the columns of the minutes that are read."""
        forms = ("minute_{}", "{}")
        form = next((form for form in forms if form.format(1) in row.columns), None)
        wanted = range(1, (self._entry.minutes or MINUTES) + 1)
        if form is None:
            raise InputError.one(row.source, "has no column for a minute: 1 or minute_1 and so on", line=1)
        allowed = {*KEYS, "Trigger", *(form.format(number) for number in range(1, MINUTES + 1))}
        if strange := [name for name in row.columns if name not in allowed]:
            raise InputError.one(row.source, f"unknown column {strange[0]!r}; is this the right file?", line=1)
        columns = [form.format(number) for number in wanted if form.format(number) in row.columns]
        if self._entry.minutes is not None and len(columns) < self._entry.minutes:
            message = f"the table has {len(columns)} minutes; write at most that"
            raise InputError([self._context.entry.mistake(message, "minutes")])
        return columns

    def drafts(self) -> Iterator[PodDraft]:
        """Yield the drawn pods of all functions."""
        total = sum(sum(function.calls) for function in self._functions)
        if total > MOST_PODS:
            message = f"{total} calls are more than {MOST_PODS}; say functions or minutes to take fewer"
            raise InputError.one(self.source, message)
        names = pod_drafts.UniqueNames()
        prefix = f"{self._entry.name}-" if self._entry.name else ""
        missing = [one for one in self._functions if one.key not in self._durations and any(one.calls)]
        if missing:
            self.notes.append(f"{self.source}: {len(missing)} functions have no durations and are left out")
        unknown = [one for one in self._functions if self._memory and one.application not in self._memory]
        if unknown:
            self.notes.append(f"{self.source}: {len(unknown)} functions have no memory and ask for {USUAL_MEMORY}")
        at = self._entry.at
        for function in self._functions:
            if function.key not in self._durations:
                continue
            owner = names.fresh(f"{prefix}{function.key[:SHORT]}")
            asked, labels = self._asked(function), {"app": owner}
            for number, (begin, seconds) in enumerate(self._workers(function), 1):
                yield PodDraft(
                    at=round(at + begin, DECIMALS),
                    application=function.application,
                    name=names.fresh(f"{owner}-{number}"),
                    owner=Owner("ReplicaSet", owner, owner),
                    asked=asked,
                    life=PodLifecycle(seconds=round(seconds, DECIMALS)),
                    labels=labels,
                    line=function.line,
                )

    def _workers(self, function: AzureFunction) -> Iterator[tuple[float, float]]:
        """Yield arrival and duration, in seconds, of each pod of a function."""
        calls = self._drawn(function)
        if self._entry.keep_alive is None:
            yield from calls
            return
        keep_alive = self._entry.keep_alive
        workers: list[list[float]] = []  # begin and end of the last call, for each worker
        free: list[tuple[float, int]] = []
        for begin, seconds in calls:
            while free and free[0][0] + keep_alive < begin:
                heapq.heappop(free)
            ready = free[0][0] <= begin if free else False
            number = heapq.heappop(free)[1] if ready else len(workers)
            if not ready:
                workers.append([begin, begin])
            workers[number][1] = begin + seconds
            heapq.heappush(free, (begin + seconds, number))
        yield from ((begin, end - begin + keep_alive) for begin, end in workers)

    def _drawn(self, function: AzureFunction) -> list[tuple[float, float]]:
        rng = Random(f"imported calls {self._context.seed} {function.key}")
        points = self._durations[function.key]
        moments = sorted(60 * minute + 60 * rng.random() for minute, n in enumerate(function.calls) for _ in range(n))
        return [(moment, max(SHORTEST, quantile(points, rng.random()) / 1000)) for moment in moments]

    def _asked(self, function: AzureFunction) -> Amounts:
        memory: str | float | None = self._entry.memory
        if memory is None:
            megabytes = self._memory.get(function.application)
            memory = USUAL_MEMORY if megabytes is None else round(megabytes * MEGABYTE)
        return resources.amounts({CPU: USUAL_CPU if self._entry.cpu is None else self._entry.cpu, MEMORY: memory})


def quantile(points: tuple[float, ...], share: float) -> float:
    """Return the value below which a *share* lies, interpolated linearly between the percentiles of the table."""
    percent = share * 100
    above = min(max(bisect.bisect_right(PERCENTILES, percent), 1), len(PERCENTILES) - 1)
    low, high = PERCENTILES[above - 1], PERCENTILES[above]
    return points[above - 1] + (points[above] - points[above - 1]) * (percent - low) / (high - low)


def _calls(row: TableRow, minutes: list[str]) -> tuple[int, ...]:
    try:
        calls = tuple(map(int, row.fields(minutes)))
    except ValueError:
        calls = (-1,)
    if min(calls, default=0) < 0 or max(calls, default=0) > MOST_PODS:
        # Slower, but names the bad column.
        calls = tuple(row.count(minute) for minute in minutes)
        if max(calls) > MOST_PODS:
            message = f"{max(calls)} calls in a minute are more than {MOST_PODS}"
            raise row.wrong(minutes[calls.index(max(calls))], message)
    return calls


def _durations(path: Path) -> dict[str, tuple[float, ...]]:
    columns = tuple(f"percentile_Average_{percent}" for percent in PERCENTILES)

    def take(row: TableRow) -> tuple[str, tuple[float, ...]]:
        points = tuple(row.number(column) for column in columns)
        if list(points) != sorted(points):
            raise row.wrong(columns[0], "the percentiles do not rise from the 0th to the 100th")
        if points[-1] > duration.LONGEST * 1000:
            raise row.wrong(columns[-1], f"{points[-1]:g} ms are too long; at most ten years are simulated")
        return row.text("HashFunction"), points

    known = ("Average", "Count", "Minimum", "Maximum")
    return dict(import_files.each(import_files.rows(path, (*KEYS, *columns), known), take))


def _memory(path: Path) -> dict[str, float]:
    column = "AverageAllocatedMb_pct99"
    known = (
        "SampleCount",
        "AverageAllocatedMb",
        "HashFunction",
        *(f"AverageAllocatedMb_pct{n}" for n in (1, 5, 25, 50)),
    )
    known = (*known, *(f"AverageAllocatedMb_pct{n}" for n in (75, 95, 100)))

    def take(row: TableRow) -> tuple[str, float]:
        return row.text("HashApp"), row.number(column)

    return dict(import_files.each(import_files.rows(path, ("HashOwner", "HashApp", column), known), take))
