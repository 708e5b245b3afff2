"""
What nodes are really used for: the last measurement of each, and who came or left since.

A measurement is a mean over a window. A pod that began to run within that window is in the mean for a part of it only, and
one that has not begun is not in it at all; what is missing is made up with the pod's requests. A pod that left is in the
mean for as long as it ran, and nobody knows with how much. It takes no more along than it asked for, and no more than its
share, by requests, of what was measured: a node from which idle pods leave stays as busy as it was.

    mean now = measured - gone · min(1, measured / (gone + stayed)) + coming

    coming   = Σ requests · part of the window without it     of those who are there
    stayed   = Σ requests · part of the window with it        of those who are there
    gone     = Σ requests · part of the window with it        of those who left

A measurement that should have been renewed is believed less and less (`layers.trust`), and of a node without one nothing
is known. Annotations that carry a stamp are believed less in the same way. Who comes and goes is followed on nodes that
are measured; where nobody measures, that costs nothing.
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
# Pods that left a node since it was measured and are remembered. As a rule the next measurement makes them forgotten; where
# none comes, nobody believes the last one any more.
MOST_GONE: Final = 512
# Measurements that are kept of nodes that are not there; they may have left while they were measured.
MOST_EARLY: Final = 1024
ANNOTATED_WITHIN: Final = 600.0
"""Seconds within which annotations that carry a stamp are written anew: what `lamina annotate` does unless told otherwise."""


class MeasuredUsage(msgspec.Struct, frozen=True):
    """What is known of one resource on the nodes of a view."""

    mean: Floats
    """In use now: measured, and corrected by who came and left since. 0 where nothing was measured."""
    deviation: Floats
    forecast: Floats
    """Expected use, corrected alike; NaN where nobody forecasts."""
    trust: Floats
    """From 1 (fresh) down to 0 (nothing is known)."""


class DeclaredCpu(msgspec.Struct, frozen=True, gc=False):
    """What the containers of a pod say about cpu, those that run as long as it does."""

    limits: int
    """Of those that have limits, how much these are."""
    unlimited: int
    """Of the others, what they request."""
    silent: int
    """How many say neither."""
    requests: int
    """What all of them request, init containers included; no more than the pod does."""


class UnmeasuredPods(msgspec.Struct, frozen=True):
    """`DeclaredCpu` of the pods that the mean has with their requests, for each node of a view: those not measured yet."""

    limits: Floats
    unlimited: Floats
    silent: Floats
    requests: Floats


class PodMove(msgspec.Struct, frozen=True, gc=False):
    """A pod that came, or one that left."""

    uid: PodUid
    cpu: int
    memory: int
    words: DeclaredCpu
    began: float
    """When it began to run; `NOT_YET`: it does not run yet."""
    ended: float = STILL
    """When it left; `STILL`: it is there."""


class NodeUseSnapshot(msgspec.Struct, frozen=True):
    """What is known of the use of one node, as data."""

    usage: NodeUsage
    moves: tuple[PodMove, ...]
    row: int = -1
    settled: tuple[float, ...] = ()
    """
    What was worked out when something last happened to the node, if it is there.

    Mean, deviation, forecast and whether they are known, each of cpu and memory; then the four `DeclaredCpu`.
    """


class UsageSnapshot(msgspec.Struct, frozen=True):
    """Everything a `ClusterUsage` knows, as data."""

    now: float
    trust: ReportFreshnessSnapshot
    stamps: tuple[str, ...]
    nodes: tuple[NodeUseSnapshot, ...]


class ClusterUsage:
    """The use of all nodes."""

    def __init__(self, columns: NodeColumns) -> None:
        """Keep books beside these columns."""
        self._columns = columns
        self._now = 0.0
        self._trust = ReportFreshness()
        self._trusted: tuple[tuple[float, int], Floats | None] | None = None
        """How far every row is believed, and as of when: while nobody measures, that takes a millisecond to work out."""
        self._stamps: set[str] = set()
        """Annotations somebody goes by that say when others were written."""
        self._on: Callable[[str], Iterable[Pod]] = _nobody
        self._reports: dict[str, NodeUsage] = {}
        self._moves: dict[str, dict[PodUid, PodMove]] = {}
        """Of every node that was measured, who came or left in or after its window."""
        self._mean: Floats = np.zeros((2, 0))
        self._deviation: Floats = np.zeros((2, 0))
        self._forecast: Floats = np.zeros((2, 0))
        self._known: Floats = np.zeros((2, 0))
        self._coming: Floats = np.zeros((4, 0))

    @property
    def measured(self) -> int:
        """Of how many nodes anything was measured."""
        return len(self._reports)

    # -- what happened -----------------------------------------------------------------------------------------------

    def ask(self, on: Callable[[str], Iterable[Pod]]) -> None:
        """Let *on* say who is on a node that is measured for the first time."""
        self._on = on

    def report(self, usages: tuple[NodeUsage, ...]) -> bool:
        """Take measurements in; say whether any of them is news about a node that is there."""
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
        """A node has this row from now on, with the pods on it."""
        usage = self._reports.get(node)
        if usage is not None:
            self._renew(row, usage)
            self._settle(node, row)

    def leave(self, node: str) -> None:
        """A node is gone; its row still is its own."""
        row = self._columns.rows[node]
        if self._reports.pop(node, None) is not None:
            del self._moves[node]
            self._trust.forget(row)
            self._trusted = None
            for column in (self._mean, self._deviation, self._known, self._coming):
                column[:, row] = 0
            self._forecast[:, row] = math.nan

    def came(self, node: str, pod: Pod) -> None:
        """A pod is on a node, which counts it: it has just come, begins to run, or asks for something else than before."""
        usage = self._reports.get(node)
        if usage is None:
            return
        _come(self._moves[node], pod, usage, self._now)
        self._resettle(node)

    def left(self, node: str, pod: Pod) -> None:
        """A pod is not on a node any more, nor counted there; one that never ran leaves no trace."""
        if node not in self._reports:
            return
        # Of a node that is not there nobody knows what is left on it.
        _go(self._moves[node], pod, self._now, traced=node in self._columns.rows)
        self._resettle(node)

    def pass_time(self, now: float) -> bool:
        """Move on; say whether anything is believed otherwise than before: as a rule less, because it was not renewed."""
        self._now = now
        clock, before = self._trust.clock, self._everywhere()
        self._trust.pass_time(now)
        if self._trust.clock == clock:
            return False
        news = self._touch(Facet.USAGE, before, self._everywhere())
        for stamp in self._stamps:
            times = self._columns.annotations.times(stamp, self._columns.size)
            news |= self._touch(Facet.ANNOTATIONS, _faded(times, clock), _faded(times, self._trust.clock))
        return news

    # -- what if -----------------------------------------------------------------------------------------------------

    def moves(self, node: str) -> tuple[PodMove, ...]:
        """Return who came and left, for whoever takes pods off a node to see what would be without them."""
        return tuple(self._moves.get(node, {}).values())

    # -- what is known -----------------------------------------------------------------------------------------------

    def of(self, nodes: NodeView, resource: str) -> MeasuredUsage:
        """Return what is known of cpu or memory; amounts are never below zero."""
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
        """Return what pods say about cpu that the mean has with their requests, for the part of the window without them."""
        self._make_room()
        lines = self._coming[:, : nodes.height][:, nodes.rows]
        if nodes.changed:
            lines = lines.copy()
            for place, figures in self._supposed(nodes):
                lines[:, place] = figures.words
        return UnmeasuredPods(*lines)

    def dated(self, nodes: NodeView, stamp: str) -> Floats:
        """
        Say how far what nodes say of themselves is believed, by an annotation that tells when that was so.

        In full where they do not say when.
        """
        self._stamps.add(stamp)
        times = self._columns.annotations.times(stamp, nodes.height)
        return _faded(times[nodes.rows], self._trust.clock)

    def _everywhere(self) -> Floats | None:
        """Say how far the measurement of every row is believed; None: all in full."""
        size = self._columns.size
        when = (self._trust.clock, size)
        if self._trusted is None or self._trusted[0] != when:
            self._trusted = (when, self._trust.of(slice(0, size), size))
        return self._trusted[1]

    # -- as data -----------------------------------------------------------------------------------------------------

    def snapshot(self) -> UsageSnapshot:
        """Return everything that is known, as data."""
        self._make_room()
        return UsageSnapshot(
            self._now,
            self._trust.snapshot(),
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
        """Know what the snapshot was taken of; the columns have been restored, and nothing was measured before."""
        self._now = snapshot.now
        self._trust.restore(snapshot.trust)
        self._trusted = None
        self._stamps = set(snapshot.stamps)
        self._make_room()
        for one in snapshot.nodes:
            self._reports[one.usage.node] = one.usage
            self._moves[one.usage.node] = {move.uid: move for move in one.moves}
            if one.row >= 0:
                for line, value in zip((line for lines in self._lines() for line in lines), one.settled, strict=True):
                    line[one.row] = value

    # -- books -------------------------------------------------------------------------------------------------------

    def _renew(self, row: int, usage: NodeUsage) -> None:
        self._trust.renew(row, usage.until, usage.renews_within, self._now)
        self._trusted = None

    def _touch(self, facet: Facet, before: Floats | None, after: Floats | None) -> bool:
        """Note which rows are believed otherwise than before; say whether any is. None: all in full."""
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
        """Work out anew what is known of a node."""
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
        """Work out what would be known of the nodes on which a view supposes pods to be gone or there."""
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
    """What is known of a node: two lines each, cpu and memory, and the words of pods that are coming."""

    mean: list[float]
    deviation: list[float]
    forecast: list[float]
    known: list[float]
    words: list[float]


def _work_out(usage: NodeUsage, moves: Iterable[PodMove], requested: Sequence[int]) -> NodeUseFigures:
    """Correct a measurement by who came and left; *requested* is what all pods on the node ask for."""
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
        # What is no number stays none.
        figures.forecast[line] = _corrected(_finite(load.forecast), *amounts)
        figures.known[line] = 1.0
    return figures


def _come(moves: dict[PodUid, PodMove], pod: Pod, usage: NodeUsage, now: float) -> None:
    """Follow a pod that is on a measured node."""
    move, known = _there(pod), moves.pop(pod.uid, None)
    if known is not None and pod.started:
        # Seen to begin, or back where it was.
        move = msgspec.structs.replace(move, began=now if known.began == NOT_YET else known.began)
    if _matters(move, usage):
        moves[pod.uid] = move


def _go(moves: dict[PodUid, PodMove], pod: Pod, now: float, *, traced: bool) -> None:
    """Follow a pod that left a measured node; one that never ran leaves no trace."""
    move = moves.pop(pod.uid, None) or _there(pod)
    if move.began != NOT_YET and traced:
        moves[pod.uid] = msgspec.structs.replace(move, ended=now)
        _forget_some(moves)


def declared_cpu(pod: Pod) -> DeclaredCpu:
    """Return what a pod's containers say about cpu."""
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


def _nobody(_: str) -> Iterable[Pod]:
    return ()


def _there(pod: Pod) -> PodMove:
    """Say of a pod on a node what is known without having seen it begin: one that runs is as old as it says it is."""
    asked = dict(pod.requests)
    began = pod.started_at if pod.started else NOT_YET
    return PodMove(pod.uid, asked.get(CPU, 0), asked.get(MEMORY, 0), declared_cpu(pod), began)


def _matters(move: PodMove, usage: NodeUsage) -> bool:
    """Say whether a measurement has a pod for a part of its window, or not at all, that is there; or has one that left."""
    return (move.began if move.ended == STILL else move.ended) > usage.since


def _part(usage: NodeUsage, at: float) -> float:
    """Return which part of the window had passed."""
    window = usage.until - usage.since
    if window > 0:
        return min(max((at - usage.since) / window, 0.0), 1.0)
    return 1.0 if at > usage.until else 0.0


def _finite(number: float | None) -> float:
    return number if number is not None and math.isfinite(number) else math.nan


def _corrected(measured: float, coming: float, gone: float, stayed: float) -> float:
    """Take off what left with those who left, and add those who are not measured yet."""
    if gone > 0:
        measured -= gone * min(max(measured, 0.0) / (gone + stayed), 1.0)
    return measured + coming


def _faded(times: Floats, clock: float) -> Floats:
    """Say how far something is believed that was so at *times*, as `layers.trust` does; in full where there is no time."""
    # A time that is yet to come is somebody's clock that is wrong, and as far off as one that has passed.
    halvings = np.abs(clock - times) / ANNOTATED_WITHIN - GRACE
    trust = np.ones(len(times))
    late = np.flatnonzero(halvings > 0)
    if len(late):
        trust[late] = np.where(halvings[late] < HALVINGS, 0.5 ** np.minimum(halvings[late], HALVINGS), 0.0)
    return trust


def _forget_some(moves: dict[PodUid, PodMove]) -> None:
    """Forget those who left first if too many have left: what they used counts as if they were there."""
    gone = [move.uid for move in moves.values() if move.ended != STILL]
    if len(gone) > MOST_GONE:
        for uid in gone[: MOST_GONE // 2]:
            del moves[uid]
