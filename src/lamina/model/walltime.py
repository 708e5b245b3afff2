"""
Walltimes: how long a pod runs at most, as its owner says. Backfill plans with them.

The annotation `lamina.dev/walltime` (a duration such as 90s or 1h30m) and ``activeDeadlineSeconds`` both limit it; the
shorter one counts. Batsim's walltimes are deadlines. Without either, the pod may run for ever.
"""

import math
from typing import Final

from lamina.model import duration
from lamina.model.pod import Pod

WALLTIME: Final = "lamina.dev/walltime"
"""Annotation of pods: how long they run at most."""


def walltime_of(pod: Pod) -> float:
    """Return a pod's walltime in seconds; infinity if it has none, or none that can be read."""
    limit = math.inf if pod.deadline is None else pod.deadline
    text = pod.annotations.get(WALLTIME)
    if text is None:
        return limit
    try:
        return min(limit, duration.seconds(text))
    except ValueError:
        return limit


def walltime_problem(pod: Pod) -> str:
    """Return what is wrong with a pod's annotation, in one line; empty if nothing is."""
    text = pod.annotations.get(WALLTIME)
    if text is None:
        return ""
    try:
        duration.seconds(text)
    except ValueError as error:
        return f"annotation {WALLTIME} is ignored: {error}"
    return ""
