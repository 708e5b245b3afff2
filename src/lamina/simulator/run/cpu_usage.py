"""
What pods really used, in cpu-seconds over a window.

Looked up when the run is over: when a pod ran is written down anyway, and what it uses then is part of its life. Only
the restarts of pods that have any are noted meanwhile.
"""

import math
from collections.abc import Iterable

from lamina.model.resources import CPU, Amounts
from lamina.simulator.cluster import VirtualPod
from lamina.trace.trace_records import PodRestarted


class RestartTimes:
    """When pods were started again."""

    def __init__(self) -> None:
        self._times: dict[str, list[float]] = {}

    def see(self, record: PodRestarted) -> None:
        """Take note of one."""
        self._times.setdefault(record.pod, []).append(record.at)

    def runs(self, pod: VirtualPod, started: float) -> list[tuple[float, float]]:
        """List from when to when the containers of a pod that has started ran."""
        end = math.inf if pod.ended is None else pod.ended
        length = pod.life.length
        if length is None:
            length = math.inf
        if not pod.restarts:
            return [(started, min(started + length, end))]
        # A name may have belonged to another pod before.
        again = [at for at in self._times.get(pod.key, ()) if started < at <= end]
        return [(begin, min(begin + length, end)) for begin in (started, *again)]


def used_seconds(pods: Iterable[VirtualPod], restarts: RestartTimes, first: float, last: float) -> float:
    """Add up what all pods used between *first* and *last*; of an instant, what they used then."""
    total = 0.0
    for pod in pods:
        started, ended = pod.started, pod.ended
        # Most pods of a long run are outside the window or simple, and this is done for every one.
        if started is None or started > last or (ended is not None and ended <= first):
            continue
        for begin, end in restarts.runs(pod, started):
            if begin <= last and end > first:
                total += _run_seconds(pod, begin, end, first, last)
    return total


def _run_seconds(pod: VirtualPod, begin: float, end: float, first: float, last: float) -> float:
    stages = pod.life.stages
    if not stages:
        return _cpu(pod.pod.requests) * _overlap(begin, end, first, last)
    total = 0.0
    for number, stage in enumerate(stages, 1):
        # The last stage of a pod that runs on goes on with it.
        stop = end if number == len(stages) else min(begin + stage.seconds, end)
        total += _cpu(stage.usage) * _overlap(begin, stop, first, last)
        begin = stop
    return total


def _cpu(amounts: Amounts) -> int:
    for name, amount in amounts:
        if name == CPU:
            return amount
    return 0


def _overlap(begin: float, end: float, first: float, last: float) -> float:
    if first == last:
        return 1.0 if begin <= first < end else 0.0
    return max(0.0, min(end, last) - max(begin, first))
