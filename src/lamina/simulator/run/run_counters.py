"""What is counted while a run goes on, because nothing remembers it afterwards: images cleared away, pods ended by force."""

from collections.abc import Callable, Mapping
from typing import Any

from lamina.simulator.run.cpu_usage import RestartTimes
from lamina.simulator.run.result import ImageRemovals
from lamina.trace.trace_records import ImagesRemoved, PodEvicted, PodFailed, PodRestarted, PullFailed, TraceRecord

RecordHandlers = Mapping[type[TraceRecord], Callable[[Any], object]]
"""Who wants to see which kind of record. By kind, because most records are of no concern to most."""


class RunCounters:
    """Counts in one run."""

    def __init__(self) -> None:
        self.evictions = 0
        self.failures = 0
        self.pull_failures = 0
        self.restarts = RestartTimes()
        self._images = self._bytes = self._pressure = 0
        self.concerns: RecordHandlers = {
            ImagesRemoved: self._removed,
            PodEvicted: self._evicted,
            PodFailed: self._failed,
            PodRestarted: self.restarts.see,
            PullFailed: self._pull_failed,
        }

    @property
    def cleared(self) -> ImageRemovals:
        """What was removed from disks so far."""
        return ImageRemovals(images=self._images, bytes=self._bytes, pressure_images=self._pressure)

    def _removed(self, record: ImagesRemoved) -> None:
        self._images += len(record.images)
        self._bytes += record.bytes
        if record.reason == "pressure":
            self._pressure += len(record.images)

    def _evicted(self, _: PodEvicted) -> None:
        self.evictions += 1

    def _failed(self, _: PodFailed) -> None:
        self.failures += 1

    def _pull_failed(self, _: PullFailed) -> None:
        self.pull_failures += 1


def joined(*tables: RecordHandlers) -> RecordHandlers:
    """Make one table of several: at most one call for a record."""
    whole: dict[type[TraceRecord], Callable[[Any], object]] = {}
    for table in tables:
        for kind, concern in table.items():
            whole[kind] = concern if kind not in whole else _both(whole[kind], concern)
    return whole


def _both(one: Callable[[Any], object], other: Callable[[Any], object]) -> Callable[[Any], object]:
    def concern(record: TraceRecord) -> None:
        one(record)
        other(record)

    return concern
