"""
Usage of nodes from node-exporter's metrics on a Prometheus server.

One measurement is three queries: the server's time, and one range query for CPU and for memory over the window. The
window ends at the last whole step: caching proxies round the ends of a range there, and a later end would have no data.

A range query costs the server a third of separate queries for mean, deviation and count. A node is reported only if its
series has a value at the last step. CPU and memory have series of their own, whose labels may differ.
"""

import asyncio
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from lamina.clients.kube.time_slice import TimeSlice
from lamina.clients.prometheus.errors import one_line
from lamina.clients.prometheus.query_results import InstantResult, RangeResult
from lamina.model.node import Node
from lamina.model.node_usage import NodeUsage, ResourceUsage
from lamina.model.resources import CPU, MEMORY
from lamina.services.informers.usage import samples, series_match
from lamina.services.informers.usage.queries import Queries
from lamina.services.informers.usage.series_match import NodeDirectory, SeriesMatch, SeriesOwner
from lamina.services.informers.usage.usage_source import LEAST_SAMPLES, some

MILLI: Final = 1000.0
NOW: Final = "time()"

Numbers = dict[SeriesOwner, float]
Points = list[tuple[float, float]]
SeriesPoints = dict[SeriesOwner, Points]
"""Points of each series that has a value at the last step."""


class QueryClient(Protocol):
    """The methods used of `lamina.clients.prometheus.client.PrometheusClient`."""

    async def query(self, expression: str, *, at: float | None = None) -> InstantResult:
        """Evaluate an expression at one time. Raises PrometheusError."""
        ...

    async def query_range(self, expression: str, start: float, end: float, step: float) -> RangeResult:
        """Evaluate an expression over a range. Raises PrometheusError."""
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...


class PrometheusUsage:
    """Measures usage with queries to a Prometheus server."""

    def __init__(self, client: QueryClient, queries: Queries | None = None) -> None:
        """Send *queries* through *client*."""
        self._client = client
        self._queries = queries or Queries()
        self.remark = ""
        """What was missing in the last measurement."""

    async def look(self, nodes: Mapping[str, Node], /) -> Sequence[NodeUsage]:
        """Measure once. Raises PrometheusError."""
        queries = self._queries
        at = whole_step(moment(await self._client.query(NOW)) or 0.0, queries.step)
        warnings: list[str] = []
        cpu = await self._series_points(queries.cpu_used, at, warnings)
        memory = await self._series_points(queries.memory_used, at, warnings)
        matches = await find_nodes(self._client, queries, nodes, (cpu, memory), at)
        cpu_before = await self._a_season_ago(queries.cpu_used, at)
        memory_before = await self._a_season_ago(queries.memory_used, at)
        both = series_match.merge_matches(matches)
        of_cpu, of_memory = (one.series for one in matches)
        usages = []
        time_slice = TimeSlice()
        for name in sorted(both.series):
            if time_slice.due():
                await time_slice.pause()
            cores, used = cpu.get(of_cpu.get(name, ()), []), memory.get(of_memory.get(name, ()), [])
            first = self._load(cores, cpu_before.get(of_cpu.get(name, ())), MILLI)
            second = self._load(used, memory_before.get(of_memory.get(name, ())), 1.0)
            if first is not None or second is not None:
                earliest = min(points[0][0] for points in (cores, used) if points)
                usages.append(NodeUsage(name, first, second, earliest - queries.step, at, queries.step))
        missing = remark(both, nodes, {one.node for one in usages}, warnings)
        self.remark = "; ".join(part for part in (*_halves(usages, matches), missing) if part)
        return usages

    async def close(self) -> None:
        """Close every connection."""
        await self._client.close()

    async def _series_points(self, expression: str, at: float, warnings: list[str]) -> SeriesPoints:
        step = self._queries.step
        # A window of n steps has n values; the last one is at its end.
        steps = max(round(self._queries.window / step), 1) - 1
        answer = await self._client.query_range(expression, at - steps * step, at, step)
        warnings += answer.warnings
        found: SeriesPoints = {}
        time_slice = TimeSlice()
        for curve in answer.curves:
            points = [point for point in curve.points if math.isfinite(point[1])]
            if time_slice.due():
                await time_slice.pause()
            if points and points[-1][0] > at - step / 2:
                found[series_match.series_owner(curve.labels)] = points
        return found

    async def _a_season_ago(self, expression: str, at: float) -> Numbers:
        query = self._queries.a_season_ago(expression)
        return numbers(await self._client.query(query, at=at)) if query else {}

    def _load(self, points: Points, expected: float | None, scale: float) -> ResourceUsage | None:
        """Convert a series to the units of the model; None if it has too few points."""
        if len(points) < LEAST_SAMPLES:
            return None
        load = samples.load([value * scale for _, value in points])
        wanted = self._queries.forecast
        if wanted is not None and wanted.method == "linear":
            expected = samples.line(points, points[-1][0] + wanted.horizon)
        # A line through falling values can end below zero.
        return ResourceUsage(load.mean, load.deviation, None if expected is None else max(expected, 0.0) * scale)


async def find_nodes(
    client: QueryClient,
    queries: Queries,
    nodes: Mapping[str, Node],
    answers: Iterable[Iterable[SeriesOwner]],
    at: float | None,
) -> list[SeriesMatch]:
    """Match the series of each answer with nodes; query the machines' own names only if some series do not match."""
    directory = NodeDirectory(nodes)
    calls_itself: dict[str, str] | None = None
    found: list[SeriesMatch] = []
    for answer in answers:
        seen = list(answer)
        # Thousands of nodes take about ten milliseconds for each answer.
        await asyncio.sleep(0)
        matched = directory.match(seen)
        if matched.unmatched_nodes and matched.unmatched_series:
            if calls_itself is None:
                calls_itself = await _own_names(client, queries, at)
            matched = directory.match(seen, calls_itself)
        found.append(matched)
    return found


async def _own_names(client: QueryClient, queries: Queries, at: float | None) -> dict[str, str]:
    """Return the names that machines report (node_uname_info), by `instance`; leave out instances with two names."""
    names: dict[str, set[str]] = {}
    for series in (await client.query(queries.own_names, at=at)).series:
        names.setdefault(series.labels.get("instance", ""), set()).add(series.labels.get("nodename", ""))
    return {instance: min(own) for instance, own in names.items() if len(own) == 1}


def whole_step(at: float, step: float) -> float:
    """Round down to a whole number of steps since 1970."""
    return round(math.floor(at / step) * step, 3)


def moment(answer: InstantResult) -> float | None:
    """Return the server's evaluation time; None if the answer is empty."""
    return answer.series[0].at if answer.series else None


def numbers(answer: InstantResult) -> Numbers:
    """Return the finite values of an answer, by series."""
    return {series_match.series_owner(one.labels): one.value for one in answer.series if math.isfinite(one.value)}


def _halves(usages: Sequence[NodeUsage], matches: Sequence[SeriesMatch]) -> Iterator[str]:
    """Name nodes for which only one of the two resources is known."""
    for resource, matched in zip((CPU, MEMORY), matches, strict=True):
        if missing := [one.node for one in usages if getattr(one, resource) is None]:
            yield f"{resource} is unknown for {some(missing)}{series_match.of_no_node(matched)}"


def remark(matched: SeriesMatch, nodes: Mapping[str, Node], told: set[str], warnings: Sequence[str]) -> str:
    """Describe in one line what is missing."""
    parts = [series_match.describe_unmatched(matched, nodes)] if nodes else []
    new = [name for name in matched.series if name not in told]
    if new:
        parts.append(f"too few samples yet for {some(new)}")
    if warnings:
        parts.append(f"the server warns: {one_line(warnings[0])}")
    return "; ".join(part for part in parts if part)
