"""How a pod behaves once it runs: how long, what it really uses, how it ends and what happens then."""

import math
from typing import Literal

import msgspec

from lamina.model.resources import Amounts

Restart = Literal["Always", "OnFailure", "Never"]


class LifecycleStage(msgspec.Struct, frozen=True, gc=False):
    """A stretch of a pod's run: *seconds* long, using *usage* of what its node has."""

    seconds: float
    usage: Amounts = ()


class PodLifecycle(msgspec.Struct, frozen=True, kw_only=True):
    """What a pod does when it is let; `RUNS_FOREVER` is the usual service."""

    seconds: float | None = None
    """How long it runs before it ends by itself; None: until it is removed. With stages: their sum."""
    stages: tuple[LifecycleStage, ...] = ()
    """What it uses while it runs, one after the other; without any it uses what it asks for."""
    failures: int = 0
    """How often it ends with a failure, each time after *seconds*, before it ends well; -1: always."""
    restart: Restart = "Never"
    """When its containers are started again: ``Always`` also after they ended well, so that only a removal ends it."""
    deadline: float | None = None
    """``activeDeadlineSeconds``: from its start on a node, pulling included, until it is failed."""
    grace: float = 30.0
    """Seconds it may take to stop when it is told to."""
    stopping: float = 0.0
    """Seconds it really takes to stop; longer than *grace* it is killed."""
    unreachable: float | None = None
    """
    ``tolerationSeconds``: for how long it is left on a node that failed.

    None: as long as the cluster leaves any pod there, or for ever if its tolerations cover the taint.
    """

    @property
    def length(self) -> float | None:
        """How long one run takes; None: it does not end by itself."""
        if not self.stages:
            return self.seconds
        total = 0.0
        for stage in self.stages:
            total += stage.seconds
        return total if total < math.inf else None


RUNS_FOREVER = PodLifecycle()
