"""
What a person sees while a simulation runs.

Without ``--live``: nothing for two seconds, then a bar; nothing at all in a pipe. With it: a small page of figures, drawn
at most five times a second. Whoever watches costs little: nothing is looked at between two drawings but what is counted.
"""

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from lamina.simulator.cluster import VirtualCluster
from lamina.simulator.workloads import Scenario
from lamina.trace.trace_records import PodArrived, PodStarted, TraceRecord

QUIET_SECONDS: Final = 2.0
BETWEEN: Final = 0.2
"""Seconds of a real clock between two drawings."""

ProgressCallback = Callable[[float, TraceRecord, VirtualCluster], object]


def is_interactive() -> bool:
    """Whether what is drawn while a run goes on can be seen."""
    return sys.stderr is not None and sys.stderr.isatty()


class RunProgress:
    """A progress bar over the pods that have started."""

    def __init__(self, scenario: Scenario) -> None:
        """Expect as many pods as the scenario has; those that controllers make come on top."""
        self._pods = len(scenario.arrivals)
        self._started = 0
        self._arrived = 0
        self._began = self._drawn = time.monotonic()
        self._visible = is_interactive()
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    @property
    def observe(self) -> ProgressCallback | None:
        """What to call with every record; None when nobody looks."""
        return self._observe if self._visible else None

    def __enter__(self) -> Self:
        """Start counting; nothing is drawn yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the bar away."""
        if self._progress is not None:
            self._progress.stop()

    def _observe(self, now: float, record: TraceRecord, cluster: VirtualCluster) -> None:
        """Count, and draw now and then."""
        if isinstance(record, PodStarted):
            self._started += 1
        elif isinstance(record, PodArrived):
            self._arrived += 1
        else:
            return
        wall = time.monotonic()
        if wall - self._drawn < BETWEEN or wall - self._began < QUIET_SECONDS:
            return
        self._drawn = wall
        self._draw(now)

    def _draw(self, now: float) -> None:
        if self._progress is None:
            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.completed:,.0f}/{task.total:,.0f} pods started"),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._progress.add_task("", total=self._pods)
            self._progress.start()
        assert self._task is not None, "made with the bar"
        total = max(self._pods, self._arrived)
        self._progress.update(self._task, completed=self._started, total=total, description=f"virtual {now:,.0f} s")
