"""
Measured usage of nodes: each node's last measurement, corrected for pods that came or left since.

A measurement is a mean over a window. A pod that started within the window is part of the mean for some of the window
only. A pod that has not started is not part of it. The missing part is added from the pod's requests. A pod that left
is part of the mean for the time it ran, but its usage is not known. The correction subtracts at most its requests, and
at most its share, by requests, of the measured usage. A node that idle pods leave thus stays as busy as measured.

    mean now = measured - gone · min(1, measured / (gone + stayed)) + coming

    coming   = Σ requests · part of the window without the pod     over pods on the node
    stayed   = Σ requests · part of the window with the pod        over pods on the node
    gone     = Σ requests · part of the window with the pod        over pods that left

A measurement that is overdue for renewal loses trust over time (`layers.report_freshness`); a node without one has
trust 0. Annotations with a time stamp lose trust in the same way. Only pods on measured nodes are tracked, so that an
unmeasured cluster pays nothing.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec
import numpy as np

from lamina.layers.report_freshness import GRACE, HALVINGS, ReportFreshness, ReportFreshnessSnapshot
from lamina.model import resources
from lamina.model.node_usage import NodeUsage
from lamina.model.pod import Pod, PodUid
from lamina.model.resources import CPU, MEMORY
from lamina.rows.growable import grown
from lamina.scheduling.state.columns import Floats, NodeColumns
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.view import NodeView

LINES: Final = {CPU: 0, MEMORY: 1}
NOT_YET: Final = math.inf
STILL: Final = math.inf
# Maximum number of departed pods remembered per node. The next measurement usually clears them; if none comes, the last
# one expires.
MOST_GONE: Final = 512
# Maximum number of measurements of unknown nodes; such a node may have been removed while it was measured.
MOST_EARLY: Final = 1024
ANNOTATED_WITHIN: Final = 600.0
"""Seconds in which annotations with a time stamp are expected to be renewed: the default of `lamina annotate`."""


class MeasuredUsage(msgspec.Struct, frozen=True):
    """Usage of one resource on the nodes of a view."""

    mean: Floats
    """Current usage: measured, and corrected for pods that came or left. 0 where nothing was measured."""
    deviation: Floats
    forecast: Floats
    """Expected usage, corrected alike; NaN without a forecast."""
    trust: Floats
    """From 1 (fresh) down to 0 (not measured or expired)."""


class DeclaredCpu(msgspec.Struct, frozen=True, gc=False):
    """Cpu requests and limits of a pod's containers, in millicores; init containers only where stated."""

    limits: int
    """Sum of limits, over containers with a limit."""
    unlimited: int
    """Sum of requests, over containers without a limit."""
    silent: int
    """Number of containers with neither."""
    requests: int
    """Sum of requests of all containers including init containers; at most the pod's request."""


class UnmeasuredPods(msgspec.Struct, frozen=True):
    """Sums of `DeclaredCpu` over pods not measured yet, for each node of a view."""

    limits: Floats
    unlimited: Floats
    silent: Floats
    requests: Floats


class PodMove(msgspec.Struct, frozen=True, gc=False):
    """A pod that came to a node or left it. Times are in seconds."""

    uid: PodUid
    cpu: int
    memory: int
    words: DeclaredCpu
    began: float
    """When it started; `NOT_YET` if it does not run yet."""
    ended: float = STILL
    """When it left; `STILL` if it is on the node."""


class NodeUseSnapshot(msgspec.Struct, frozen=True):
    """Measurement of one node and its pod moves, as data."""

    usage: NodeUsage
    moves: tuple[PodMove, ...]
    row: int = -1
    settled: tuple[float, ...] = ()
    """
    Figures at the last update of the node; empty if the node is unknown.

    Mean, deviation, forecast and whether they are known, each for cpu and memory; then the four `DeclaredCpu` sums.
    """


class UsageSnapshot(msgspec.Struct, frozen=True):
    """Complete content of a `ClusterUsage`."""

    now: float
    trust: ReportFreshnessSnapshot
    stamps: tuple[str, ...]
    nodes: tuple[NodeUseSnapshot, ...]


class ClusterUsage:
    """Measured usage of all nodes."""

    def __init__(self, columns: NodeColumns) -> None:
        """Index by the rows of these columns."""
        self._columns = columns
        self._now = 0.0
        self._freshness = ReportFreshness()
        self._trusted: tuple[tuple[float, int], Floats | None] | None = None
        """Trust of every row, with the time it was computed for; computing it takes a millisecond."""
        self._stamps: set[str] = set()
        """Annotation keys of time stamps that plugins have used."""
        self._on: Callable[[str], Iterable[Pod]] = _no_pods
        self._reports: dict[str, NodeUsage] = {}
        self._moves: dict[str, dict[PodUid, PodMove]] = {}
        """For each measured node: pods that came or left during or after its window."""
        self._mean: Floats = np.zeros((2, 0))
        self._deviation: Floats = np.zeros((2, 0))
        self._forecast: Floats = np.zeros((2, 0))
        self._known: Floats = np.zeros((2, 0))
        self._coming: Floats = np.zeros((4, 0))

    @property
    def measured(self) -> int:
        """Number of measured nodes."""
        return len(self._reports)

    # -- events ------------------------------------------------------------------------------------------------------

    def ask(self, on: Callable[[str], Iterable[Pod]]) -> None:
        """Set the function that lists the pods of a node; called at a node's first measurement."""
        self._on = on

    def report(self, usages: tuple[NodeUsage, ...]) -> bool:
        """Store measurements; return whether any of them is new for a known node."""
        news = False
        for usage in usages:
            node, before = usage.node, self._reports.get(usage.node)
            if before is not None and usage.until < before.until:
                continue
            if before is None and self._too_early(node):
                continue
            self._reports[node] = usage
            moves = map(_there, self._on(node)) if before is None else self._moves[node].values()
            self._moves[node] = {move.uid: move for move in moves if _matters(move, usage)}
            row = self._columns.rows.get(node)
            if row is not None:
                self._renew(row, usage)
                self._settle(node, row)
                news = True
        return news

    def join(self, node: str, row: int) -> None:
        """Assign a row to a node; its pods are counted already."""
        usage = self._reports.get(node)
        if usage is not None:
            self._renew(row, usage)
            self._settle(node, row)

    def leave(self, node: str) -> None:
        """Remove a node. Call it while the node still has its row."""
        row = self._columns.rows[node]
        if self._reports.pop(node, None) is not None:
            del self._moves[node]
            self._freshness.forget(row)
            self._trusted = None
            for column in (self._mean, self._deviation, self._known, self._coming):
                column[:, row] = 0
            self._forecast[:, row] = math.nan

    def came(self, node: str, pod: Pod) -> None:
        """Update a pod on a node after the columns counted it: it arrived, started, or its requests changed."""
        usage = self._reports.get(node)
        if usage is None:
            return
        _come(self._moves[node], pod, usage, self._now)
        self._resettle(node)

    def left(self, node: str, pod: Pod) -> None:
        """Record that a pod left a node. A pod that never started has no effect on the measurement."""
        if node not in self._reports:
            return
        # Usage that remains on an unknown node cannot be computed.
        _go(self._moves[node], pod, self._now, traced=node in self._columns.rows)
        self._resettle(node)

    def pass_time(self, now: float) -> bool:
        """Advance the clock; return whether the trust of any row changed."""
        self._now = now
        clock, before = self._freshness.clock, self._everywhere()
        self._freshness.pass_time(now)
        if self._freshness.clock == clock:
            return False
        news = self._touch(Facet.USAGE, before, self._everywhere())
        for stamp in self._stamps:
            times = self._columns.annotations.times(stamp, self._columns.size)
            news |= self._touch(Facet.ANNOTATIONS, _faded(times, clock), _faded(times, self._freshness.clock))
        return news

    # -- hypotheses --------------------------------------------------------------------------------------------------

    def moves(self, node: str) -> tuple[PodMove, ...]:
        """Return the tracked pods of a node, to compute its usage without some of them."""
        return tuple(self._moves.get(node, {}).values())

    # -- figures -----------------------------------------------------------------------------------------------------

    def of(self, nodes: NodeView, resource: str) -> MeasuredUsage:
        """Return the usage of cpu (millicores) or memory (bytes); never negative."""
        self._make_room()
        line, rows = LINES[resource], nodes.rows
        every = self._everywhere()
        known = self._known[line, : nodes.height][rows]
        mean, forecast = self._mean[line, : nodes.height][rows], self._forecast[line, : nodes.height][rows]
        if nodes.changed:
            mean, forecast = mean.copy(), forecast.copy()
            for place, figures in self._supposed(nodes):
                mean[place], forecast[place] = figures.mean[line], figures.forecast[line]
        return MeasuredUsage(
            np.maximum(mean, 0.0),
            self._deviation[line, : nodes.height][rows],
            np.maximum(forecast, 0.0),
            known.copy() if every is None else known * every[rows],
        )

    def coming(self, nodes: NodeView) -> UnmeasuredPods:
        """Return `DeclaredCpu` sums of unmeasured pods, each weighted by the part of the window without the pod."""
        self._make_room()
        lines = self._coming[:, : nodes.height][:, nodes.rows]
        if nodes.changed:
            lines = lines.copy()
            for place, figures in self._supposed(nodes):
                lines[:, place] = figures.words
        return UnmeasuredPods(*lines)

    def dated(self, nodes: NodeView, stamp: str) -> Floats:
        """
        Return the trust in each node's annotations, by the age of the time in annotation *stamp*.

        1 where the node has no such annotation.
        """
        self._stamps.add(stamp)
        times = self._columns.annotations.times(stamp, nodes.height)
        return _faded(times[nodes.rows], self._freshness.clock)

    def _everywhere(self) -> Floats | None:
        """Return the trust in each row's measurement; None if all are 1."""
        size = self._columns.size
        when = (self._freshness.clock, size)
        if self._trusted is None or self._trusted[0] != when:
            self._trusted = (when, self._freshness.of(slice(0, size), size))
        return self._trusted[1]

    # -- snapshots ---------------------------------------------------------------------------------------------------

    def snapshot(self) -> UsageSnapshot:
        """Return the complete content as data."""
        self._make_room()
        return UsageSnapshot(
            self._now,
            self._freshness.snapshot(),
            tuple(sorted(self._stamps)),
            tuple(
                NodeUseSnapshot(usage, tuple(self._moves[node].values()), *self._settled(node))
                for node, usage in self._reports.items()
            ),
        )

    def _settled(self, node: str) -> tuple[int, tuple[float, ...]]:
        row = self._columns.rows.get(node)
        if row is None:
            return -1, ()
        return row, tuple(float(line[row]) for lines in self._lines() for line in lines)

    def _lines(self) -> tuple[Floats, ...]:
        return (self._mean, self._deviation, self._forecast, self._known, self._coming)

    def restore(self, snapshot: UsageSnapshot) -> None:
        """Restore a snapshot into an empty object; the columns must be restored before."""
        self._now = snapshot.now
        self._freshness.restore(snapshot.trust)
        self._trusted = None
        self._stamps = set(snapshot.stamps)
        self._make_room()
        for one in snapshot.nodes:
            self._reports[one.usage.node] = one.usage
            self._moves[one.usage.node] = {move.uid: move for move in one.moves}
            if one.row >= 0:
                for line, value in zip((line for lines in self._lines() for line in lines), one.settled, strict=True):
                    line[one.row] = value

    # -- bookkeeping -------------------------------------------------------------------------------------------------

    def _renew(self, row: int, usage: NodeUsage) -> None:
        self._freshness.renew(row, usage.until, usage.renews_within, self._now)
        self._trusted = None

    def _touch(self, facet: Facet, before: Floats | None, after: Floats | None) -> bool:
        """Journal the rows whose trust changed; return whether there are any. None stands for trust 1 everywhere."""
        if before is None and after is None:
            return False
        rows = np.flatnonzero((1.0 if before is None else before) != (1.0 if after is None else after)).tolist()
        for row in rows:
            self._columns.touch(facet, row)
        return bool(rows)

    def _too_early(self, node: str) -> bool:
        return node not in self._columns.rows and len(self._reports) >= self._columns.count + MOST_EARLY

    def _resettle(self, node: str) -> None:
        row = self._columns.rows.get(node)
        if row is not None:
            self._settle(node, row)

    def _settle(self, node: str, row: int) -> None:
        """Recompute the figures of a node."""
        self._make_room()
        allocatable, free = self._columns.allocatable, self._columns.free
        requested = [allocatable.item(line, row) - free.item(line, row) for line in (0, 1)]
        figures = _work_out(self._reports[node], self._moves[node].values(), requested)
        self._mean[:, row] = figures.mean
        self._deviation[:, row] = figures.deviation
        self._forecast[:, row] = figures.forecast
        self._known[:, row] = figures.known
        self._coming[:, row] = figures.words
        self._columns.touch(Facet.USAGE, row)

    def _supposed(self, nodes: NodeView) -> Iterator[tuple[int, "NodeUseFigures"]]:
        """Compute figures for the nodes of a view on which a hypothesis changes pods."""
        for place, row in nodes.changed:
            node = self._columns.nodes[row]
            usage = None if node is None else self._reports.get(node.name)
            if node is None or usage is None:
                continue
            moves = dict(self._moves[node.name])
            for where, pod in nodes.gone:
                if where == row:
                    _go(moves, pod, self._now, traced=True)
            for where, pod in nodes.there:
                if where == row:
                    _come(moves, pod, usage, self._now)
            requested = [nodes.requested(name).item(place) for name in LINES]
            yield place, _work_out(usage, moves.values(), requested)

    def _make_room(self) -> None:
        rows = self._columns.size
        if rows > self._mean.shape[1]:
            self._mean, self._deviation = grown(self._mean, rows), grown(self._deviation, rows)
            self._forecast, self._known = grown(self._forecast, rows, np.nan), grown(self._known, rows)
            self._coming = grown(self._coming, rows)


class NodeUseFigures(msgspec.Struct, frozen=True, gc=False):
    """Figures of a node: cpu and memory each, and the `DeclaredCpu` sums of unmeasured pods."""

    mean: list[float]
    deviation: list[float]
    forecast: list[float]
    known: list[float]
    words: list[float]


def _work_out(usage: NodeUsage, moves: Iterable[PodMove], requested: Sequence[int]) -> NodeUseFigures:
    """Correct a measurement for pods that came or left; *requested* is the sum of requests on the node."""
    coming, gone, words = [0.0, 0.0], [0.0, 0.0], [0.0, 0.0, 0.0, 0.0]
    for move in moves:
        missed = _part(usage, move.began)
        if move.ended == STILL:
            coming[0] += missed * move.cpu
            coming[1] += missed * move.memory
            for place, said in enumerate(msgspec.structs.astuple(move.words)):
                words[place] += missed * said
        else:
            ran = max(_part(usage, move.ended) - missed, 0.0)
            gone[0] += ran * move.cpu
            gone[1] += ran * move.memory
    figures = NodeUseFigures([0.0, 0.0], [0.0, 0.0], [math.nan, math.nan], [0.0, 0.0], words)
    for line, load in enumerate((usage.cpu, usage.memory)):
        if load is None or not math.isfinite(load.mean) or not math.isfinite(load.deviation):
            continue
        amounts = (coming[line], gone[line], max(requested[line] - coming[line], 0.0))
        figures.mean[line] = _corrected(load.mean, *amounts)
        figures.deviation[line] = max(load.deviation, 0.0)
        # NaN stays NaN.
        figures.forecast[line] = _corrected(_finite(load.forecast), *amounts)
        figures.known[line] = 1.0
    return figures


def _come(moves: dict[PodUid, PodMove], pod: Pod, usage: NodeUsage, now: float) -> None:
    """Track a pod on a measured node."""
    move, known = _there(pod), moves.pop(pod.uid, None)
    if known is not None and pod.started:
        # The pod was seen to start, or is back on the node.
        move = msgspec.structs.replace(move, began=now if known.began == NOT_YET else known.began)
    if _matters(move, usage):
        moves[pod.uid] = move


def _go(moves: dict[PodUid, PodMove], pod: Pod, now: float, *, traced: bool) -> None:
    """Track a pod that left a measured node; a pod that never started is dropped."""
    move = moves.pop(pod.uid, None) or _there(pod)
    if move.began != NOT_YET and traced:
        moves[pod.uid] = msgspec.structs.replace(move, ended=now)
        _forget_some(moves)


def declared_cpu(pod: Pod) -> DeclaredCpu:
    """Return the cpu requests and limits of a pod's containers."""
    limits = unlimited = silent = 0
    for container in pod.containers:
        limit, request = dict(container.limits).get(CPU, 0), dict(container.requests).get(CPU, 0)
        if limit:
            limits += limit
        elif request:
            unlimited += request
        else:
            silent += 1
    containers = resources.pod_total(
        (container.requests for container in pod.containers),
        ((container.requests, container.sidecar) for container in pod.init_containers),
    )
    return DeclaredCpu(limits, unlimited, silent, min(dict(containers).get(CPU, 0), dict(pod.requests).get(CPU, 0)))


def _no_pods(_: str) -> Iterable[Pod]:
    return ()


def _there(pod: Pod) -> PodMove:
    """Return the move of a pod whose arrival was not observed; a running pod started at its `started_at`."""
    asked = dict(pod.requests)
    began = pod.started_at if pod.started else NOT_YET
    return PodMove(pod.uid, asked.get(CPU, 0), asked.get(MEMORY, 0), declared_cpu(pod), began)


def _matters(move: PodMove, usage: NodeUsage) -> bool:
    """Return whether a pod is present but not fully measured, or departed but measured."""
    return (move.began if move.ended == STILL else move.ended) > usage.since


def _part(usage: NodeUsage, at: float) -> float:
    """Return the part of the window before *at*, from 0 to 1."""
    window = usage.until - usage.since
    if window > 0:
        return min(max((at - usage.since) / window, 0.0), 1.0)
    return 1.0 if at > usage.until else 0.0


def _finite(number: float | None) -> float:
    return number if number is not None and math.isfinite(number) else math.nan


def _corrected(measured: float, coming: float, gone: float, stayed: float) -> float:
    """Subtract the usage of departed pods and add the requests of unmeasured ones."""
    if gone > 0:
        measured -= gone * min(max(measured, 0.0) / (gone + stayed), 1.0)
    return measured + coming


def _faded(times: Floats, clock: float) -> Floats:
    """Return the trust by age, as `layers.report_freshness` computes it; 1 where there is no time."""
    # A time in the future comes from a wrong clock; it is treated like a time equally far in the past.
    halvings = np.abs(clock - times) / ANNOTATED_WITHIN - GRACE
    trust = np.ones(len(times))
    late = np.flatnonzero(halvings > 0)
    if len(late):
        trust[late] = np.where(halvings[late] < HALVINGS, 0.5 ** np.minimum(halvings[late], HALVINGS), 0.0)
    return trust


def _forget_some(moves: dict[PodUid, PodMove]) -> None:
    """Drop half of the departed pods, oldest first, if there are too many; their usage then remains in the mean."""
    gone = [move.uid for move in moves.values() if move.ended != STILL]
    if len(gone) > MOST_GONE:
        for uid in gone[: MOST_GONE // 2]:
            del moves[uid]
