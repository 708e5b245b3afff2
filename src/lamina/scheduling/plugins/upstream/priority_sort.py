"""PrioritySort: higher priority first, then whoever was queued earlier."""

from typing import ClassVar, Final

from lamina.scheduling.framework.context import Context
from lamina.scheduling.framework.points import QueuedPod
from lamina.scheduling.framework.registry import NoArgs

NAME: Final = "PrioritySort"


class PrioritySort:
    """Orders the queue by priority."""

    name: ClassVar = NAME
    changes_with_time: ClassVar = False

    def __init__(self, context: Context, args: NoArgs) -> None:
        """Need nothing."""

    def sort_key(self, queued: QueuedPod, now: float) -> tuple[float, ...]:
        """Put higher priorities first, and among equals the one that was queued first."""
        return (-queued.pod.priority, queued.queued_at)
