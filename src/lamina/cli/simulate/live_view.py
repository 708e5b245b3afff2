"""
``lamina simulate --live``: figures of the run, updated while it runs.

    virtual time        2 h 13 min   1,480 times as fast as real
    pods                120 waiting   14 pulling   903 running   8,411 done
    pulled              1.2 TB in 4,211 pulls   62 % of the needed bytes were on the node
    hottest node        n17: 96 % of its cpu requested, 1.4 times the mean
    removed by GC       311 images, 92 GB

Counts records as they arrive and reads the nodes only when it draws. Draws on standard error, so that the command's
output can still be piped.
"""

import time
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

from lamina.cli.output.run_progress import BETWEEN
from lamina.cli.output.screen import literal
from lamina.model.plain import plural
from lamina.model.pod import PodUid
from lamina.model.quantity import human_bytes
from lamina.model.resources import CPU
from lamina.simulator.cluster import VirtualCluster
from lamina.trace.trace_records import (
    ImagesRemoved,
    PodArrived,
    PodBound,
    PodEvicted,
    PodFailed,
    PodFinished,
    PodRejected,
    PodRemoved,
    PodStarted,
    PullDone,
    TraceRecord,
)

if TYPE_CHECKING:
    from lamina.simulator.run import RunObserver

DONE: Final = (PodFinished, PodFailed, PodEvicted, PodRejected, PodRemoved)


class LiveView:
    """Draws the figures of one run."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        """Draw on *console*; *clock* returns real seconds."""
        self._clock = clock
        self._began = clock()
        self._drawn = self._began - BETWEEN
        self.draws = 0
        """Number of drawings so far."""
        self._counts: Counter[type[TraceRecord]] = Counter()
        self._places: dict[str, tuple[type[TraceRecord], PodUid]] = {}
        self._pulled = self._images = self._freed = self._wanted = self._missed = 0
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._concerns: dict[type[TraceRecord], Callable[[Any, VirtualCluster], None]] = {
            PodArrived: self._arrived,
            PullDone: self._pulled_more,
            ImagesRemoved: self._cleared,
        }
        for kind in (PodBound, PodStarted, *DONE):
            self._concerns[kind] = self._moved

    @property
    def observe(self) -> "RunObserver":
        """The callback for every record."""
        return self._observe

    def __enter__(self) -> Self:
        """Start drawing."""
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop drawing and clear the lines."""
        self._live.stop()

    # -- counting ------------------------------------------------------------------------------------------------------

    def _observe(self, now: float, record: TraceRecord, cluster: VirtualCluster) -> None:
        concern = self._concerns.get(type(record))
        if concern is not None:
            concern(record, cluster)
        wall = self._clock()
        if wall - self._drawn >= BETWEEN:
            self._drawn = wall
            self.draws += 1
            self._live.update(self.page(now, wall - self._began, cluster), refresh=True)

    def _arrived(self, record: PodArrived, _: VirtualCluster) -> None:
        self._places[record.pod] = PodArrived, PodUid(record.uid)
        self._counts[PodArrived] += 1

    def _moved(self, record: Any, cluster: VirtualCluster) -> None:
        """Move a pod to its new state: bound, running or done."""
        before, uid = self._places.pop(record.pod)
        self._counts[before] -= 1
        kind = type(record)
        if kind in DONE:
            self._counts[PodFinished] += 1
            return
        self._places[record.pod] = kind, uid
        self._counts[kind] += 1
        if kind is PodStarted:
            pod = cluster.pods[uid]
            self._wanted += pod.wanted_bytes
            self._missed += min(pod.pulled_bytes, pod.wanted_bytes)

    def _pulled_more(self, record: PullDone, _: VirtualCluster) -> None:
        self._counts[PullDone] += 1
        self._pulled += record.bytes

    def _cleared(self, record: ImagesRemoved, _: VirtualCluster) -> None:
        self._images += len(record.images)
        self._freed += record.bytes

    # -- drawing -------------------------------------------------------------------------------------------------------

    def page(self, now: float, elapsed: float, cluster: VirtualCluster) -> Table:
        """Return the table of figures for one moment."""
        table = Table.grid(padding=(0, 3))
        table.add_column(style="bold", no_wrap=True)
        table.add_column(no_wrap=True)
        speed = f"   {now / elapsed:,.0f} times as fast as real" if elapsed > 0.0 else ""
        counts = self._counts
        table.add_row("virtual time", f"{now:,.1f} s{speed}")
        table.add_row(
            "pods",
            f"{counts[PodArrived]:,} waiting   {counts[PodBound]:,} pulling   {counts[PodStarted]:,} running   "
            f"{counts[PodFinished]:,} done",
        )
        hits = f"   {1 - self._missed / self._wanted:.0%} of the needed bytes were on the node" if self._wanted else ""
        table.add_row("pulled", f"{human_bytes(self._pulled)} in {plural(counts[PullDone], 'pull')}{hits}")
        table.add_row("hottest node", _hottest(cluster))
        table.add_row("removed by GC", f"{plural(self._images, 'image')}, {human_bytes(self._freed)}")
        return table


def _hottest(cluster: VirtualCluster) -> str:
    shares = {
        name: node.used.get(CPU, 0) / node.allocatable[CPU]
        for name, node in cluster.nodes.items()
        if node.allocatable.get(CPU, 0) > 0
    }
    total = sum(shares.values())
    if not total:
        return "none: no cpu is requested"
    name, share = max(shares.items(), key=lambda one: one[1])
    return f"{literal(name)}: {share:.0%} of its cpu requested, {share * len(shares) / total:.2f} times the mean"
