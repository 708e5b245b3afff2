"""
Actual usage of one node over time, and the seconds during which the node was overloaded.

Usage changes when a pod starts, enters a stage or ends, and is constant in between. The meter keeps these changes, so
mean and deviation over a window are exact and not sampled. CPU demand beyond the node's capacity is not counted as
usage, as in a real cluster. The kubelet reports the changes.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from lamina.model.node_usage import NodeUsage, ResourceUsage
from lamina.model.resources import CPU, MEMORY

OVERLOADED: Final = 0.9
"""Share of allocatable cpu or memory above which a node is overloaded; `safe-overload` uses the same value."""

LoadChange = tuple[float, int, int]
"""Time, and the cpu and memory in use from then on."""


class NodeLoadMeter:
    """Usage curve of one node."""

    __slots__ = ("_changes", "_cpu", "_memory", "_name", "_on_change", "_overloaded", "_seconds", "_usage", "joined")

    def __init__(
        self,
        name: str,
        allocatable: Mapping[str, int],
        joined: float,
        usage: Callable[[float], Mapping[str, int]],
        on_change: Callable[[float], None],
    ) -> None:
        """Start with an empty node; *usage* returns the usage at a time; *on_change* is called after a change."""
        self._name = name
        self._cpu, self._memory = allocatable.get(CPU, 0), allocatable.get(MEMORY, 0)
        self._usage = usage
        self._on_change = on_change
        self._changes: list[LoadChange] = [(joined, 0, 0)]
        self._overloaded = False
        self._seconds = 0.0
        self.joined = joined

    def changed(self, now: float) -> None:
        """Update the curve; the kubelet calls it when a pod starts, enters a stage or ends."""
        usage = self._usage(now)
        cpu, memory = usage.get(CPU, 0), usage.get(MEMORY, 0)
        at, *before = self._changes[-1]
        if [cpu, memory] == before:
            return
        if self._overloaded:
            self._seconds += now - at
        if at == now:
            # A value that lasted no time has no effect.
            self._changes.pop()
        self._changes.append((now, cpu, memory))
        self._overloaded = cpu > OVERLOADED * self._cpu or memory > OVERLOADED * self._memory
        self._on_change(now)

    def overloaded_seconds(self, end: float) -> float:
        """Return the seconds during which the node was overloaded, until *end*."""
        return self._seconds + (max(0.0, end - self._changes[-1][0]) if self._overloaded else 0.0)

    def measure(self, since: float, until: float, renews_within: float) -> NodeUsage:
        """Return the usage between *since* and *until*; successive calls must not go back in time."""
        since = max(since, self.joined)
        changes = self._changes
        # The last change before the window still applies at its start.
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
        # Exact value: multiplying and dividing by the seconds could lose the last digit.
        return ResourceUsage(float(spans[0][1]))
    mean = math.fsum(length * amount for length, amount in spans) / seconds
    variance = math.fsum(length * (amount - mean) ** 2 for length, amount in spans) / seconds
    return ResourceUsage(mean, math.sqrt(variance))
