"""Behaviour of a pod once it runs: duration, actual usage, failures and restarts."""

import math
from typing import Literal

import msgspec

from lamina.model.resources import Amounts

Restart = Literal["Always", "OnFailure", "Never"]


class LifecycleStage(msgspec.Struct, frozen=True, gc=False):
    """Part of a pod's run: it uses *usage* for *seconds*."""

    seconds: float
    usage: Amounts = ()


class PodLifecycle(msgspec.Struct, frozen=True, kw_only=True):
    """Behaviour of a pod; `RUNS_FOREVER` is an ordinary service."""

    seconds: float | None = None
    """Seconds until it ends by itself; None: it runs until it is removed. With stages: their sum."""
    stages: tuple[LifecycleStage, ...] = ()
    """Consecutive stages of its usage; without stages it uses its requests."""
    failures: int = 0
    """Number of runs that fail, each after *seconds*, before one succeeds; -1: all runs fail."""
    restart: Restart = "Never"
    """Restart policy of its containers. With ``Always``, only a removal ends the pod."""
    deadline: float | None = None
    """``activeDeadlineSeconds``: seconds from admission, including pulls, until the pod fails."""
    grace: float = 30.0
    """Grace period in seconds."""
    stopping: float = 0.0
    """Seconds it takes to stop; it is killed after *grace*."""
    unreachable: float | None = None
    """
    ``tolerationSeconds``: seconds it stays on an unreachable node.

    None: the cluster's default, or for ever if its tolerations cover the taint.
    """

    @property
    def length(self) -> float | None:
        """Seconds of one run; None: it does not end by itself."""
        if not self.stages:
            return self.seconds
        total = 0.0
        for stage in self.stages:
            total += stage.seconds
        return total if total < math.inf else None


RUNS_FOREVER = PodLifecycle()
