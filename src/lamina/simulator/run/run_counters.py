"""Counters that must be kept during a run: removed images, evictions, failures, failed pulls and restarts."""

from collections.abc import Callable, Mapping
from typing import Any

from lamina.simulator.run.cpu_usage import RestartTimes
from lamina.simulator.run.result import ImageRemovals
from lamina.trace.trace_records import ImagesRemoved, PodEvicted, PodFailed, PodRestarted, PullFailed, TraceRecord

RecordHandlers = Mapping[type[TraceRecord], Callable[[Any], object]]
"""Handler for each type of record. Most handlers need few types, so this saves calls."""


class RunCounters:
    """Counters of one run."""

    def __init__(self) -> None:
        self.evictions = 0
        self.failures = 0
        self.pull_failures = 0
        self.restarts = RestartTimes()
        self._images = self._bytes = self._pressure = 0
        self.handlers: RecordHandlers = {
            ImagesRemoved: self._removed,
            PodEvicted: self._evicted,
            PodFailed: self._failed,
            PodRestarted: self.restarts.add,
            PullFailed: self._pull_failed,
        }

    @property
    def cleared(self) -> ImageRemovals:
        """Images removed so far."""
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


def join_handlers(*tables: RecordHandlers) -> RecordHandlers:
    """Merge several tables into one, so that a record needs one lookup."""
    whole: dict[type[TraceRecord], Callable[[Any], object]] = {}
    for table in tables:
        for kind, handler in table.items():
            whole[kind] = handler if kind not in whole else _both(whole[kind], handler)
    return whole


def _both(one: Callable[[Any], object], other: Callable[[Any], object]) -> Callable[[Any], object]:
    def handler(record: TraceRecord) -> None:
        one(record)
        other(record)

    return handler
