"""PrioritySort: higher priority first, then whoever was queued earlier."""

from typing import ClassVar, Final

from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.points import QueuedPod
from lamina.scheduling.state.plugin_context import PluginContext

NAME: Final = "PrioritySort"


class PrioritySort:
    """Orders the queue by priority."""

    name: ClassVar = NAME
    changes_with_time: ClassVar = False

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        """Need nothing."""

    def sort_key(self, queued: QueuedPod, now: float) -> tuple[float, ...]:
        """Put higher priorities first, and among equals the one that was queued first."""
        return (-queued.pod.priority, queued.queued_at)
