"""
CPU usage of all pods, in cpu-seconds over a window.

It is computed after the run from the pods' start and end times and their lifecycles. Only the times of restarts are
recorded during the run.
"""

import math
from collections.abc import Iterable

from lamina.model.resources import CPU, Amounts
from lamina.simulator.cluster import VirtualPod
from lamina.trace.trace_records import PodRestarted


class RestartTimes:
    """Times of all restarts, by pod."""

    def __init__(self) -> None:
        self._times: dict[str, list[float]] = {}

    def add(self, record: PodRestarted) -> None:
        """Record one restart."""
        self._times.setdefault(record.pod, []).append(record.at)

    def runs(self, pod: VirtualPod, started: float) -> list[tuple[float, float]]:
        """Return the start and end times of all runs of a pod's containers."""
        end = math.inf if pod.ended is None else pod.ended
        length = pod.life.length
        if length is None:
            length = math.inf
        if not pod.restarts:
            return [(started, min(started + length, end))]
        # An earlier pod may have had the same name.
        again = [at for at in self._times.get(pod.key, ()) if started < at <= end]
        return [(begin, min(begin + length, end)) for begin in (started, *again)]


def used_seconds(pods: Iterable[VirtualPod], restarts: RestartTimes, first: float, last: float) -> float:
    """Return the cpu-seconds of all pods between *first* and *last*; if both are equal, the usage at that time."""
    total = 0.0
    for pod in pods:
        started, ended = pod.started, pod.ended
        # A shortcut: most pods of a long run are outside the window.
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
        # The last stage lasts until the pod ends.
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
