"""
Samples of one node's use, and what they add up to.

`UsageSamples` keeps as many as the window holds, for sources that tell only what is used now: who asks often enough can say how
it varies. Times are those of whoever measured. Pure.
"""

import math
from collections import deque
from collections.abc import Sequence
from typing import Final

import msgspec

from lamina.model.node_usage import NodeUsage, ResourceUsage
from lamina.services.informers.usage.usage_source import LEAST_SAMPLES

MOST: Final = 1000
"""Samples that are kept of one node, however long the window."""


class UsageSample(msgspec.Struct, frozen=True, gc=False):
    """What was used of a node, on average over the seconds before."""

    at: float
    over: float
    cpu: int
    memory: int


class UsageSamples:
    """The newest samples of one node, in order of time."""

    def __init__(self, window: float) -> None:
        """Keep those of *window* seconds."""
        self._window = window
        self._kept: deque[UsageSample] = deque(maxlen=MOST)

    def __len__(self) -> int:
        """Count them."""
        return len(self._kept)

    def add(self, sample: UsageSample) -> bool:
        """Take a sample, and say whether it is new; one that is there already, or a little older than another, is not."""
        newest = self._kept[-1].at if self._kept else -math.inf
        if newest - self._window < sample.at <= newest:
            return False
        if sample.at <= newest:
            # Much older than all the others: the clock has been set back, and theirs is not to be compared with it.
            self._kept.clear()
        self._kept.append(sample)
        while self._kept[0].at <= sample.at - self._window:
            self._kept.popleft()
        return True

    def usage(self, node: str) -> NodeUsage | None:
        """Say what they add up to; None while they are too few."""
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
    """Take mean and deviation; all samples count alike, and they are all there is (not a sample of more)."""
    mean = math.fsum(values) / len(values)
    return ResourceUsage(mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values)))


def line(points: Sequence[tuple[float, float]], at: float) -> float:
    """Say where the straight line through points, by least squares, is at some time; points of one time have none."""
    middle = math.fsum(time for time, _ in points) / len(points)
    mean = math.fsum(value for _, value in points) / len(points)
    spread = math.fsum((time - middle) ** 2 for time, _ in points)
    slope = math.fsum((time - middle) * (value - mean) for time, value in points) / spread if spread else 0.0
    return mean + slope * (at - middle)
