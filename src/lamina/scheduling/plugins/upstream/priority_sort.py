"""PrioritySort: higher priority first, then the time of queueing."""

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
        """Need no context or arguments."""

    def sort_key(self, queued: QueuedPod, now: float) -> tuple[float, ...]:
        """Return a key that sorts by descending priority, then by time of queueing."""
        return (-queued.pod.priority, queued.queued_at)
