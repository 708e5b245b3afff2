"""Arguments of GangScheduling."""

from typing import Annotated, Literal

import msgspec

from lamina.scheduling.contract.plugin_registry import PluginArgs

Seconds = Annotated[float, msgspec.Meta(ge=1, le=900)]


class GangSchedulingArgs(PluginArgs, frozen=True, kw_only=True, rename="camel"):
    """Arguments of GangScheduling."""

    order: Literal["queue", "drf", "proportion"] = "queue"
    """
    Order in which a batch is placed.

    queue: as the pods are queued. drf: the job with the smallest dominant share first. proportion: the queue that has
    least of its share first, and within a queue as drf.
    """
    schedule_timeout: Seconds = 60.0
    """Seconds that pods of an incomplete gang hold their nodes, where the PodGroup names no time."""
    reserve_after: Annotated[float, msgspec.Meta(ge=0, le=86_400)] | None = 30.0
    """Seconds after which nodes are kept free for the first gang that waits; None: never."""
    preempt: bool = True
    """Whether a gang can evict pods of lower priority; gangs keep their minimum size."""
    reclaim: bool = False
    """Whether a queue below its share can evict pods of queues above theirs (order: proportion)."""
