"""
Recorder of one run for a report: receives the records of its trace, and returns a `RunRecord`.

    add(record)…, hold(at, node, layers)…  ->  finish(summary, pods)

The caller passes what nodes hold (`hold`), because a trace names removed images and not their layers; without it there
is no map. It asks for the first nodes only (`follows`), so the cost does not grow with the cluster.
"""

import bisect
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from lamina.evaluation.report.decision_reasons import reasons
from lamina.evaluation.report.run_record import (
    CHANGES,
    LAYERS,
    NODES,
    PODS,
    POINTS,
    UNPLACED,
    HeldChange,
    LayerColumn,
    PodTimes,
    RunRecord,
    RunSeries,
    quantiles,
)
from lamina.model.resources import CPU
from lamina.trace.trace_records import (
    LayerPulled,
    NodeJoined,
    NodeLeft,
    PodArrived,
    PodBound,
    PodDecided,
    PodEvicted,
    PodFailed,
    PodFinished,
    PodRejected,
    PodRemoved,
    TraceRecord,
)

DIGITS: Final = 3
"""Decimals of seconds in a report."""


class RunRecorder:
    """Collects what a report shows of one run."""

    def __init__(self, *, detail: bool = True) -> None:
        """Without *detail* record the figures only: no pods and no map."""
        self._detail = detail
        self._nodes: dict[str, int] = {}
        """Every node that joined → its position; the first `NODES` are recorded."""
        self._capacity: list[int] = []
        self._requests: dict[str, int] = {}
        self._steps: list[tuple[float, int, int, int]] = []
        """Time, node, change of requested cpu, change of the number of times that the node is present."""
        self._pulled: list[tuple[float, int]] = []
        self._arrivals: list[float] = []
        self._why: dict[str, tuple[str, ...]] = {}
        self._held: dict[int, frozenset[str]] = {}
        self._changes: list[tuple[float, int, str, bool]] = []
        self._handlers: dict[type, Callable[[Any], None]] = {
            NodeJoined: self._joined,
            NodeLeft: self._left,
            PodArrived: self._arrived,
            PodDecided: self._decided,
            PodBound: self._bound,
            LayerPulled: self._layer_pulled,
            **dict.fromkeys((PodEvicted, PodFailed, PodFinished, PodRejected, PodRemoved), self._ended),
        }

    def add(self, record: TraceRecord) -> None:
        """Process a record; records come in order of time."""
        handler = self._handlers.get(type(record))
        if handler is not None:
            handler(record)

    def follows(self, node: str) -> bool:
        """Return whether the layers of this node are recorded."""
        return self._detail and self._nodes.get(node, NODES) < NODES

    def hold(self, at: float, node: str, layers: Iterable[str]) -> None:
        """Record the layers that a node holds from now on."""
        position = self._nodes[node]
        before, now = self._held.get(position, frozenset()), frozenset(layers)
        self._held[position] = now
        self._changes += [(at, position, layer, False) for layer in sorted(before - now)]
        self._changes += [(at, position, layer, True) for layer in sorted(now - before)]

    def finish(
        self,
        summary: Mapping[str, Any],
        pods: Iterable[Mapping[str, Any]],
        layers: Mapping[str, tuple[str, int]],
        share: int = 1,
    ) -> RunRecord:
        """
        Return the record of the whole run.

        *pods* are the rows of the result, *layers* the name and the size of each digest. *share* is the number of runs
        with detail in the report: together they have at most `PODS` pods.
        """
        rows = list(pods)
        end = summary["virtual_seconds"]
        starts = sorted(row["started"] - row["arrived"] for row in rows if row["started"] is not None)
        nodes = list(self._nodes)[:NODES]
        times = [self._times(row, end) for row in rows] if self._detail else []
        shown, kept = _chosen(times, nodes, PODS // share)
        columns, changes, until = self._map(kept, layers, CHANGES // share)
        return RunRecord(
            profile=summary["profile"],
            seed=summary["seed"],
            scenario=summary["scenario"],
            seconds=end,
            series=self._series(end),
            start_quantiles=tuple(map(_rounded, quantiles(starts))),
            started=len(starts),
            all_nodes=len(self._nodes),
            all_pods=len(rows),
            nodes=tuple(nodes[:kept]) if self._detail else (),
            pods=tuple(shown),
            layers=columns,
            changes=changes,
            all_layers=len({layer for _, node, layer, _ in self._changes if node < kept}),
            changes_until=until,
        )

    # -- records -----------------------------------------------------------------------------------------------------

    def _joined(self, record: NodeJoined) -> None:
        position = self._nodes.setdefault(record.node, len(self._nodes))
        capacity = record.allocatable.get(CPU, 0)
        if position == len(self._capacity):
            self._capacity.append(capacity)
        self._capacity[position] = capacity
        self._steps.append((record.at, position, 0, 1))

    def _left(self, record: NodeLeft) -> None:
        self._steps.append((record.at, self._nodes[record.node], 0, -1))

    def _arrived(self, record: PodArrived) -> None:
        self._arrivals.append(record.at)
        self._requests[record.pod] = record.requests.get(CPU, 0)

    def _decided(self, record: PodDecided) -> None:
        decision = record.decision
        if self._detail and decision.chosen is not None and self.follows(decision.chosen.node):
            self._why[decision.uid] = reasons(decision)

    def _bound(self, record: PodBound) -> None:
        self._steps.append((record.at, self._nodes[record.node], self._requests.get(record.pod, 0), 0))

    def _ended(self, record: PodEvicted | PodFailed | PodFinished | PodRejected | PodRemoved) -> None:
        requested = self._requests.pop(record.pod, 0)
        # A pod without a node was never bound.
        if record.node:
            self._steps.append((record.at, self._nodes[record.node], -requested, 0))

    def _layer_pulled(self, record: LayerPulled) -> None:
        self._pulled.append((record.at, record.bytes))

    # -- the result --------------------------------------------------------------------------------------------------

    def _times(self, row: Mapping[str, Any], end: float) -> PodTimes:
        """Return the parts of a pod's time from its row of the result."""
        last = end if row["ended"] is None else row["ended"]
        bound, started = row["bound"], row["started"]
        why = self._why.get(row["uid"], ())
        if row["message"] and not why:
            why = (row["message"],)
        return PodTimes(
            pod=row["pod"],
            node=row["node"],
            phase=row["phase"],
            arrived=_rounded(row["arrived"]),
            queue=_rounded((last if bound is None else bound) - row["arrived"]),
            wait=_rounded(row["pull_queue"]),
            pull=_rounded(row["download"]),
            unpack=_rounded(row["unpack"]),
            start=_rounded(row["start"]),
            run=0.0 if started is None else _rounded(last - started),
            unknown=_rounded(last - bound) if bound is not None and started is None else 0.0,
            bytes_wanted=row["bytes_wanted"],
            bytes_pulled=row["bytes_pulled"],
            why=(*why, *([f"Its end: {row['reason']}."] if row["reason"] else [])),
        )

    def _map(
        self, kept: int, layers: Mapping[str, tuple[str, int]], most: int
    ) -> tuple[tuple[LayerColumn, ...], tuple[HeldChange, ...], float | None]:
        """Return the layers that most bytes are in, their changes on the first *kept* nodes, and where these end."""
        here = [change for change in self._changes if change[1] < kept]
        arrived: dict[str, int] = {}
        for _, _, layer, held in here:
            arrived[layer] = arrived.get(layer, 0) + held
        size = {layer: layers.get(layer, ("", 0))[1] for layer in arrived}
        chosen = sorted(arrived, key=lambda layer: (-arrived[layer] * size[layer], layer))[:LAYERS]
        columns = tuple(LayerColumn(layers.get(layer, ("", 0))[0] or short(layer), size[layer]) for layer in chosen)
        position = {layer: index for index, layer in enumerate(chosen)}
        changes = [
            HeldChange(_rounded(at), node, position[layer], held) for at, node, layer, held in here if layer in position
        ]
        return columns, tuple(changes[:most]), changes[most].at if len(changes) > most else None

    def _series(self, end: float) -> RunSeries:
        """Sample bytes and load at equally spaced times, each after all events at that time."""
        times = [end * index / (POINTS - 1) for index in range(POINTS)] if end > 0 else [0.0]
        pulled, at_pull = [0], [at for at, _ in self._pulled]
        for _, size in self._pulled:
            pulled.append(pulled[-1] + size)
        load = self._load(times)
        return RunSeries(
            at=tuple(map(_rounded, times)),
            bytes_pulled=tuple(pulled[bisect.bisect_right(at_pull, time)] for time in times),
            peak_load=tuple(peak for peak, _ in load),
            imbalance=tuple(spread for _, spread in load),
            first_arrival=min(self._arrivals, default=0.0),
            last_arrival=max(self._arrivals, default=0.0),
        )

    def _load(self, times: Iterable[float]) -> list[tuple[float | None, float | None]]:
        """Return peak load and imbalance at each time."""
        asked, present = [0] * len(self._capacity), [0] * len(self._capacity)
        found: list[tuple[float | None, float | None]] = []
        next_step = 0
        for time in times:
            while next_step < len(self._steps) and self._steps[next_step][0] <= time:
                _, node, more, presence = self._steps[next_step]
                present[node] += presence
                asked[node] = asked[node] + more if present[node] else 0
                next_step += 1
            shares = [asked[node] / size for node, size in enumerate(self._capacity) if present[node] and size]
            mean = math.fsum(shares) / len(shares) if shares else 0.0
            if mean <= 0.0:
                found.append((None, None))
                continue
            spread = math.sqrt(math.fsum((share - mean) ** 2 for share in shares) / len(shares)) / mean
            found.append((round(max(shares) / mean, DIGITS), round(spread, DIGITS)))
        return found


def short(digest: str) -> str:
    """Return the first characters of a digest, enough to distinguish it."""
    return digest.partition(":")[2][:8] or digest[:8]


def _chosen(pods: list[PodTimes], nodes: list[str], most: int) -> tuple[list[PodTimes], int]:
    """Return the pods of the first nodes, as many as there is room for, some without a node, and the number of nodes."""
    unplaced = [pod for pod in pods if not pod.node][: min(UNPLACED, most // 2)]
    room = most - len(unplaced)
    count = dict.fromkeys(nodes, 0)
    for pod in pods:
        if pod.node in count:
            count[pod.node] += 1
    kept, total = 0, 0
    for node in nodes:
        if kept and total + count[node] > room:
            break
        kept, total = kept + 1, total + count[node]
    names = set(nodes[:kept])
    placed = [pod for pod in pods if pod.node in names][:room]
    return sorted([*placed, *unplaced], key=lambda pod: (pod.arrived, pod.pod)), kept


def _rounded(seconds: float | None) -> float:
    return 0.0 if seconds is None else round(seconds, DIGITS)
