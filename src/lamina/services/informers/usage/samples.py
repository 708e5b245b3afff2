"""
Samples of one node's usage, with their mean and deviation.

`UsageSamples` keeps the samples of the window, for sources without history. Times are those of the source's clock.
Pure.
"""

import math
from collections import deque
from collections.abc import Sequence
from typing import Final

import msgspec

from lamina.model.node_usage import NodeUsage, ResourceUsage
from lamina.services.informers.usage.usage_source import LEAST_SAMPLES

MOST: Final = 1000
"""Most samples of one node, however long the window."""


class UsageSample(msgspec.Struct, frozen=True, gc=False):
    """Average usage of a node over the last *over* seconds."""

    at: float
    over: float
    cpu: int
    memory: int


class UsageSamples:
    """The newest samples of one node, in order of time."""

    def __init__(self, window: float) -> None:
        """Keep the samples of the last *window* seconds."""
        self._window = window
        self._kept: deque[UsageSample] = deque(maxlen=MOST)

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self._kept)

    def add(self, sample: UsageSample) -> bool:
        """Add a sample; return whether it is new. A sample that is not newer than the newest one is dropped."""
        newest = self._kept[-1].at if self._kept else -math.inf
        if newest - self._window < sample.at <= newest:
            return False
        if sample.at <= newest:
            # Older than the whole window: the clock was set back, so the kept times cannot be compared with it.
            self._kept.clear()
        self._kept.append(sample)
        while self._kept[0].at <= sample.at - self._window:
            self._kept.popleft()
        return True

    def usage(self, node: str) -> NodeUsage | None:
        """Return the usage over the window; None with fewer than `LEAST_SAMPLES` samples."""
        if len(self._kept) < LEAST_SAMPLES:
            return None
        first = self._kept[0]
        return NodeUsage(
            node,
            load([one.cpu for one in self._kept]),
            load([one.memory for one in self._kept]),
            first.at - first.over,
            self._kept[-1].at,
        )


def load(values: Sequence[float]) -> ResourceUsage:
    """Return mean and population standard deviation."""
    mean = math.fsum(values) / len(values)
    return ResourceUsage(mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values)))


def line(points: Sequence[tuple[float, float]], at: float) -> float:
    """Return the value at time *at* of the least-squares line; the mean if all points have the same time."""
    middle = math.fsum(time for time, _ in points) / len(points)
    mean = math.fsum(value for _, value in points) / len(points)
    spread = math.fsum((time - middle) ** 2 for time, _ in points)
    slope = math.fsum((time - middle) * (value - mean) for time, value in points) / spread if spread else 0.0
    return mean + slope * (at - middle)
