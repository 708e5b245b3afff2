"""
What nodes are used for, as node-exporter counts it and a Prometheus server remembers it.

One look is three questions: what time it is to the server, and what was used of each resource at every step of the window
that ends then, or rather at the whole step before: servers that keep answers move the ends of a question there by
themselves, and then nothing would be known of the last moment asked for. Asking for the steps costs the server a third of asking it for mean, deviation and number of them, each of
which works all of them out again. A node counts if its series has a number at the last step; who has fallen silent since is
not told of, however good its mean may be. Each resource has series of its own, which may say by other labels whose they are.
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
"""What was used at each step, of series that have a number at the last."""


class QueryClient(Protocol):
    """What is needed of `lamina.clients.prometheus.client.PrometheusClient`."""

    async def query(self, expression: str, *, at: float | None = None) -> InstantResult:
        """Ask what an expression is. Raises PrometheusError."""
        ...

    async def query_range(self, expression: str, start: float, end: float, step: float) -> RangeResult:
        """Ask what an expression was. Raises PrometheusError."""
        ...

    async def close(self) -> None:
        """End every connection."""
        ...


class PrometheusUsage:
    """Asks a Prometheus server."""

    def __init__(self, client: QueryClient, queries: Queries | None = None) -> None:
        """Ask *queries* through *client*."""
        self._client = client
        self._queries = queries or Queries()
        self.remark = ""
        """What was lacking at the last look."""

    async def look(self, nodes: Mapping[str, Node], /) -> Sequence[NodeUsage]:
        """Look once. Raises PrometheusError."""
        queries = self._queries
        at = whole_step(moment(await self._client.query(NOW)) or 0.0, queries.step)
        warnings: list[str] = []
        cpu = await self._courses(queries.cpu_used, at, warnings)
        memory = await self._courses(queries.memory_used, at, warnings)
        matches = await find_nodes(self._client, queries, nodes, (cpu, memory), at)
        cpu_before = await self._a_season_ago(queries.cpu_used, at)
        memory_before = await self._a_season_ago(queries.memory_used, at)
        both = series_match.merge_matches(matches)
        of_cpu, of_memory = (one.series for one in matches)
        usages = []
        breath = TimeSlice()
        for name in sorted(both.series):
            if breath.due():
                await breath.pause()
            cores, used = cpu.get(of_cpu.get(name, ()), []), memory.get(of_memory.get(name, ()), [])
            first = self._load(cores, cpu_before.get(of_cpu.get(name, ())), MILLI)
            second = self._load(used, memory_before.get(of_memory.get(name, ())), 1.0)
            if first is not None or second is not None:
                earliest = min(points[0][0] for points in (cores, used) if points)
                usages.append(NodeUsage(name, first, second, earliest - queries.step, at, queries.step))
        lacking = remark(both, nodes, {one.node for one in usages}, warnings)
        self.remark = "; ".join(part for part in (*_halves(usages, matches), lacking) if part)
        return usages

    async def close(self) -> None:
        """End every connection."""
        await self._client.close()

    async def _courses(self, expression: str, at: float, warnings: list[str]) -> SeriesPoints:
        step = self._queries.step
        # A window of n steps has n numbers, and the last of them is of its end.
        steps = max(round(self._queries.window / step), 1) - 1
        answer = await self._client.query_range(expression, at - steps * step, at, step)
        warnings += answer.warnings
        found: SeriesPoints = {}
        breath = TimeSlice()
        for curve in answer.curves:
            points = [point for point in curve.points if math.isfinite(point[1])]
            if breath.due():
                await breath.pause()
            if points and points[-1][0] > at - step / 2:
                found[series_match.series_owner(curve.labels)] = points
        return found

    async def _a_season_ago(self, expression: str, at: float) -> Numbers:
        query = self._queries.a_season_ago(expression)
        return numbers(await self._client.query(query, at=at)) if query else {}

    def _load(self, points: Points, expected: float | None, scale: float) -> ResourceUsage | None:
        """Put what is known of a series in the units of the model; None when that is too little."""
        if len(points) < LEAST_SAMPLES:
            return None
        load = samples.load([value * scale for _, value in points])
        wanted = self._queries.forecast
        if wanted is not None and wanted.method == "linear":
            expected = samples.line(points, points[-1][0] + wanted.horizon)
        # A straight line may lead below nothing.
        return ResourceUsage(load.mean, load.deviation, None if expected is None else max(expected, 0.0) * scale)


async def find_nodes(
    client: QueryClient,
    queries: Queries,
    nodes: Mapping[str, Node],
    answers: Iterable[Iterable[SeriesOwner]],
    at: float | None,
) -> list[SeriesMatch]:
    """Match the series of each answer with nodes; what machines call themselves is asked only if something does not fit."""
    directory = NodeDirectory(nodes)
    calls_itself: dict[str, str] | None = None
    found: list[SeriesMatch] = []
    for answer in answers:
        seen = list(answer)
        # Thousands of nodes take some ten milliseconds each time.
        await asyncio.sleep(0)
        matched = directory.match(seen)
        if matched.lacking and matched.strangers:
            if calls_itself is None:
                calls_itself = await _own_names(client, queries, at)
            matched = directory.match(seen, calls_itself)
        found.append(matched)
    return found


async def _own_names(client: QueryClient, queries: Queries, at: float | None) -> dict[str, str]:
    """Ask what machines call themselves, by `instance`; one with two names has none."""
    names: dict[str, set[str]] = {}
    for series in (await client.query(queries.own_names, at=at)).series:
        names.setdefault(series.labels.get("instance", ""), set()).add(series.labels.get("nodename", ""))
    return {instance: min(own) for instance, own in names.items() if len(own) == 1}


def whole_step(at: float, step: float) -> float:
    """Go back to the last moment that is a whole number of steps from 1970."""
    return round(math.floor(at / step) * step, 3)


def moment(answer: InstantResult) -> float | None:
    """Say when the server worked an answer out; None when there is nothing in it."""
    return answer.series[0].at if answer.series else None


def numbers(answer: InstantResult) -> Numbers:
    """Take the numbers of an answer by whose they are; what is no number is left out."""
    return {series_match.series_owner(one.labels): one.value for one in answer.series if math.isfinite(one.value)}


def _halves(usages: Sequence[NodeUsage], matches: Sequence[SeriesMatch]) -> Iterator[str]:
    """Name nodes of which one resource is known and the other is not."""
    for resource, matched in zip((CPU, MEMORY), matches, strict=True):
        if lacking := [one.node for one in usages if getattr(one, resource) is None]:
            yield f"{resource} is not known of {some(lacking)}{series_match.of_no_node(matched)}"


def remark(matched: SeriesMatch, nodes: Mapping[str, Node], told: set[str], warnings: Sequence[str]) -> str:
    """Say in one line what is lacking."""
    parts = [series_match.describe_unmatched(matched, nodes)] if nodes else []
    new = [name for name in matched.series if name not in told]
    if new:
        parts.append(f"too few samples yet of {some(new)}")
    if warnings:
        parts.append(f"the server warns: {one_line(warnings[0])}")
    return "; ".join(part for part in parts if part)
