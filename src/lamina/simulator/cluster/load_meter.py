"""
What one node was really used for, second by second, and for how long that was too much.

Use changes when a pod begins to run, enters a stage or ends, and stays as it is in between. The changes are kept, so that
the mean and the deviation over a window are those of the whole curve and not of samples. Cpu that pods would use beyond
what the node has is wanted and not used: no meter shows it. Told of changes by the kubelet; knows no other node.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from lamina.model.node_usage import NodeUsage, ResourceUsage
from lamina.model.resources import CPU, MEMORY

CROWDED: Final = 0.9
"""Above this share of what it can give a node counts as overloaded: where `safe-overload` draws the line, too."""

LoadChange = tuple[float, int, int]
"""When, and how much cpu and memory are in use from then on."""


class NodeLoadMeter:
    """Keeps the curve of one node."""

    __slots__ = ("_changes", "_cpu", "_crowded", "_memory", "_name", "_seconds", "_stir", "_usage", "joined")

    def __init__(
        self,
        name: str,
        allocatable: Mapping[str, int],
        joined: float,
        usage: Callable[[float], Mapping[str, int]],
        stir: Callable[[float], None],
    ) -> None:
        """Begin with an empty node; *usage* says what is in use at a time, *stir* is told when that has changed."""
        self._name = name
        self._cpu, self._memory = allocatable.get(CPU, 0), allocatable.get(MEMORY, 0)
        self._usage = usage
        self._stir = stir
        self._changes: list[LoadChange] = [(joined, 0, 0)]
        self._crowded = False
        self._seconds = 0.0
        self.joined = joined

    def changed(self, now: float) -> None:
        """Look again, because a pod has begun, gone on or ended."""
        usage = self._usage(now)
        cpu, memory = usage.get(CPU, 0), usage.get(MEMORY, 0)
        at, *before = self._changes[-1]
        if [cpu, memory] == before:
            return
        if self._crowded:
            self._seconds += now - at
        if at == now:
            # What lasts no time was not used.
            self._changes.pop()
        self._changes.append((now, cpu, memory))
        self._crowded = cpu > CROWDED * self._cpu or memory > CROWDED * self._memory
        self._stir(now)

    def crowded_seconds(self, end: float) -> float:
        """Say for how long the node was overloaded, until the *end* of the run."""
        return self._seconds + (max(0.0, end - self._changes[-1][0]) if self._crowded else 0.0)

    def measure(self, since: float, until: float, renews_within: float) -> NodeUsage:
        """Say how much was used between *since* and *until*; windows that are asked for never move back."""
        since = max(since, self.joined)
        changes = self._changes
        # The last change before the window still holds when it opens.
        del changes[: max(0, bisect_right(changes, since, key=lambda change: change[0]) - 1)]
        spans = [
            (min(end, until) - max(at, since), cpu, memory)
            for (at, cpu, memory), end in zip(changes, [*(change[0] for change in changes[1:]), until], strict=True)
        ]
        return NodeUsage(
            node=self._name,
            cpu=_load([(seconds, min(cpu, self._cpu)) for seconds, cpu, _ in spans], until - since),
            memory=_load([(seconds, memory) for seconds, _, memory in spans], until - since),
            since=since,
            until=until,
            renews_within=renews_within,
        )


def _load(spans: Iterable[tuple[float, int]], seconds: float) -> ResourceUsage:
    spans = [span for span in spans if span[0] > 0.0]
    if len(spans) == 1:
        # As it is: dividing by the seconds what was multiplied by them may lose the last digit.
        return ResourceUsage(float(spans[0][1]))
    mean = math.fsum(length * amount for length, amount in spans) / seconds
    variance = math.fsum(length * (amount - mean) ** 2 for length, amount in spans) / seconds
    return ResourceUsage(mean, math.sqrt(variance))
