"""
Progress of a simulation.

Without ``--live``: nothing for two seconds, then a bar; nothing in a pipe. With it: a few lines of figures, drawn at
most five times a second. Between two drawings only counters are updated, so the cost is small.
"""

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from lamina.simulator.cluster import VirtualCluster
from lamina.simulator.workloads import Scenario
from lamina.trace.trace_records import PodArrived, PodStarted, TraceRecord

if TYPE_CHECKING:
    from lamina.simulator.run import RunObserver

QUIET_SECONDS: Final = 2.0
BETWEEN: Final = 0.2
"""Real seconds between two drawings."""


def is_interactive() -> bool:
    """Return whether standard error is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


class RunProgress:
    """A progress bar over the pods that have started."""

    def __init__(self, scenario: Scenario) -> None:
        """Expect as many pods as the scenario has; pods created by controllers raise the total."""
        self._pods = len(scenario.arrivals)
        self._started = 0
        self._arrived = 0
        self._began = self._drawn = time.monotonic()
        self._visible = is_interactive()
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    @property
    def observe(self) -> "RunObserver | None":
        """The callback for every record; None if standard error is not a terminal."""
        return self._observe if self._visible else None

    def __enter__(self) -> Self:
        """Start the timer; nothing is drawn yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the bar."""
        if self._progress is not None:
            self._progress.stop()

    def _observe(self, now: float, record: TraceRecord, cluster: VirtualCluster) -> None:
        """Count a record, and draw if `BETWEEN` has passed."""
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
