"""
What nodes are really used for: the last measurement of each, and who came or left since.

A measurement is a mean over a window. A pod that began to run within that window is in the mean for a part of it only, and
one that has not begun is not in it at all; what is missing is made up with the pod's requests. Pods that left count the
other way round:

    mean now = measured + Σ requests · part of the window without it (came) - Σ requests · part of the window with it (left)

A measurement that should have been renewed is believed less and less (`layers.trust`), and of a node without one nothing
is known. Who comes and goes is followed from the first measurement on; where nobody measures, that costs nothing.
"""

import math
from typing import Final

import msgspec
import numpy as np

from lamina.layers.trust import Trust
from lamina.model.pod import Pod, PodUid
from lamina.model.resources import CPU, MEMORY, Amounts
from lamina.model.usage import Load, NodeUsage
from lamina.scheduling.framework.columns import Floats, NodeColumns
from lamina.scheduling.framework.rowlog import Facet
from lamina.scheduling.framework.view import NodeView

LINES: Final = {CPU: 0, MEMORY: 1}
NOT_YET: Final = math.inf
# Pods that left a node since it was measured and are remembered. As a rule the next measurement makes them forgotten; where
# none comes, nobody believes the last one any more.
MOST_GONE: Final = 512
# Measurements that are kept of nodes that are not there; they may have left while they were measured.
MOST_EARLY: Final = 1024


class Measured(msgspec.Struct, frozen=True):
    """What is known of one resource on the nodes of a view."""

    mean: Floats
    """In use now: measured, and corrected by who came and left since. 0 where nothing was measured."""
    deviation: Floats
    forecast: Floats
    """Expected use, corrected alike; NaN where nobody forecasts."""
    trust: Floats
    """From 1 (fresh) down to 0 (nothing is known)."""


class Move(msgspec.Struct, gc=False):
    """A pod that came (amounts as they are) or left (amounts negative)."""

    uid: PodUid
    at: float
    """When it began to run, or left; `NOT_YET`: it does not run yet."""
    cpu: int
    memory: int
    gone: bool = False


class ClusterUsage:
    """The use of all nodes."""

    def __init__(self, columns: NodeColumns) -> None:
        """Keep books beside these columns."""
        self._columns = columns
        self._now = 0.0
        self._trust = Trust()
        self._trusted: tuple[tuple[float, int], Floats | None] | None = None
        """How far every row is believed, and as of when: while nobody measures, that takes a millisecond to work out."""
        self._reports: dict[str, NodeUsage] = {}
        self._moves: dict[str, list[Move]] = {}
        self._mean: Floats = np.zeros((2, 0))
        self._deviation: Floats = np.zeros((2, 0))
        self._forecast: Floats = np.zeros((2, 0))
        self._known: Floats = np.zeros((2, 0))

    @property
    def measured(self) -> int:
        """Of how many nodes anything was measured."""
        return len(self._reports)

    # -- what happened -----------------------------------------------------------------------------------------------

    def report(self, usages: tuple[NodeUsage, ...]) -> bool:
        """Take measurements in; say whether any of them is news about a node that is there."""
        news = False
        for usage in usages:
            before = self._reports.get(usage.node)
            if before is not None and usage.until < before.until:
                continue
            if before is None and self._too_early(usage.node):
                continue
            self._reports[usage.node] = usage
            moves = [move for move in self._moves.pop(usage.node, ()) if move.at > usage.since]
            if moves:
                self._moves[usage.node] = moves
            row = self._columns.rows.get(usage.node)
            if row is not None:
                self._renew(row, usage)
                self._settle(usage.node, row)
                news = True
        return news

    def join(self, node: str, row: int) -> None:
        """A node has this row from now on."""
        usage = self._reports.get(node)
        if usage is not None:
            self._renew(row, usage)
            self._settle(node, row)

    def leave(self, node: str) -> None:
        """A node is gone; its row still is its own."""
        self._moves.pop(node, None)
        row = self._columns.rows[node]
        if self._reports.pop(node, None) is not None:
            self._trust.forget(row)
            self._trusted = None
            for column in (self._mean, self._deviation, self._known):
                column[:, row] = 0
            self._forecast[:, row] = math.nan

    def came(self, node: str, pod: Pod) -> None:
        """A pod is on a node; one that runs when it is first seen is in the measurements already, and so is one that is back."""
        if not self._reports:
            return
        if not pod.started:
            self._move(node, Move(pod.uid, NOT_YET, *_asked(pod.requests)))
            return
        moves = self._moves.get(node, [])
        back = next((place for place, move in enumerate(moves) if move.uid == pod.uid and move.gone), None)
        if back is not None:
            del moves[back]
            self._resettle(node)

    def started(self, node: str, pod: Pod) -> None:
        """A pod begins to run, and to be measured."""
        for move in self._moves.get(node, ()):
            if move.uid == pod.uid and move.at == NOT_YET:
                move.at = self._now

    def left(self, node: str, pod: Pod) -> None:
        """A pod is not on a node any more; one that never ran leaves no trace."""
        if not self._reports:
            return
        moves = self._moves.get(node, [])
        waiting = next((place for place, move in enumerate(moves) if move.uid == pod.uid and move.at == NOT_YET), None)
        if waiting is not None:
            del moves[waiting]
            self._resettle(node)
        elif node not in self._columns.rows:
            # Measurements of a node that comes back begin anew.
            self._put(node, [move for move in moves if move.uid != pod.uid])
        elif pod.started:
            cpu, memory = _asked(pod.requests)
            self._move(node, Move(pod.uid, self._now, -cpu, -memory, gone=True))

    def pass_time(self, now: float) -> None:
        """Move on; measurements that were not renewed are believed less."""
        self._now = now
        for row in self._trust.pass_time(now):
            self._columns.touch(Facet.USAGE, row)

    # -- what if -----------------------------------------------------------------------------------------------------

    def moves(self, node: str) -> tuple[Move, ...]:
        """Return who came and left, for whoever takes pods off a node to see what would be without them."""
        return tuple(self._moves.get(node, ()))

    def go_back(self, node: str, moves: tuple[Move, ...]) -> None:
        """Let who came and left be as it was."""
        if self._reports:
            self._put(node, list(moves))
            self._resettle(node)

    # -- what is known -----------------------------------------------------------------------------------------------

    def of(self, nodes: NodeView, resource: str) -> Measured:
        """Return what is known of cpu or memory; amounts are never below zero."""
        self._make_room()
        line, rows = LINES[resource], nodes.rows
        trust = self._believed(nodes)
        known = self._known[line, : nodes.height][rows]
        return Measured(
            np.maximum(self._mean[line, : nodes.height][rows], 0.0),
            self._deviation[line, : nodes.height][rows],
            np.maximum(self._forecast[line, : nodes.height][rows], 0.0),
            known.copy() if trust is None else known * trust,
        )

    def _believed(self, nodes: NodeView) -> Floats | None:
        when = (self._trust.clock, nodes.height)
        if self._trusted is None or self._trusted[0] != when:
            self._trusted = (when, self._trust.of(slice(0, nodes.height), nodes.height))
        every = self._trusted[1]
        return None if every is None else every[nodes.rows]

    # -- books -------------------------------------------------------------------------------------------------------

    def _renew(self, row: int, usage: NodeUsage) -> None:
        self._trust.renew(row, usage.until, usage.renews_within, self._now)
        self._trusted = None

    def _move(self, node: str, move: Move) -> None:
        moves = self._moves.setdefault(node, [])
        moves.append(move)
        if move.gone:
            _forget_some(moves)
        self._resettle(node)

    def _put(self, node: str, moves: list[Move]) -> None:
        self._moves.pop(node, None)
        if moves:
            self._moves[node] = moves

    def _too_early(self, node: str) -> bool:
        return node not in self._columns.rows and len(self._reports) >= self._columns.count + MOST_EARLY

    def _resettle(self, node: str) -> None:
        row = self._columns.rows.get(node)
        if row is not None and node in self._reports:
            self._settle(node, row)

    def _settle(self, node: str, row: int) -> None:
        """Work out anew what is known of a node."""
        self._make_room()
        usage = self._reports[node]
        window = usage.until - usage.since
        extra = [0.0, 0.0]
        for move in self._moves.get(node, ()):
            if window > 0:
                part = min(max((move.at - usage.since) / window, 0.0), 1.0)
            else:
                part = 1.0 if move.at > usage.until else 0.0
            extra[0] += part * move.cpu
            extra[1] += part * move.memory
        for line, load in enumerate((usage.cpu, usage.memory)):
            self._write(line, row, load, extra[line])
        self._columns.touch(Facet.USAGE, row)

    def _write(self, line: int, row: int, load: Load | None, extra: float) -> None:
        if load is None or not math.isfinite(load.mean) or not math.isfinite(load.deviation):
            self._mean[line, row] = self._deviation[line, row] = self._known[line, row] = 0.0
            self._forecast[line, row] = math.nan
            return
        self._mean[line, row] = load.mean + extra
        self._deviation[line, row] = max(load.deviation, 0.0)
        expected = load.forecast
        self._forecast[line, row] = math.nan if expected is None or not math.isfinite(expected) else expected + extra
        self._known[line, row] = 1.0

    def _make_room(self) -> None:
        more = self._columns.size - self._mean.shape[1]
        if more > 0:
            more += self._columns.size // 2
            self._mean = np.pad(self._mean, ((0, 0), (0, more)))
            self._deviation = np.pad(self._deviation, ((0, 0), (0, more)))
            self._forecast = np.pad(self._forecast, ((0, 0), (0, more)), constant_values=np.nan)
            self._known = np.pad(self._known, ((0, 0), (0, more)))


def _asked(requests: Amounts) -> tuple[int, int]:
    asked = dict(requests)
    return asked.get(CPU, 0), asked.get(MEMORY, 0)


def _forget_some(moves: list[Move]) -> None:
    """Forget those who left first, and when they came, if too many have left."""
    gone = [move.uid for move in moves if move.gone]
    if len(gone) > MOST_GONE:
        forgotten = set(gone[: MOST_GONE // 2])
        moves[:] = [move for move in moves if move.uid not in forgotten]
