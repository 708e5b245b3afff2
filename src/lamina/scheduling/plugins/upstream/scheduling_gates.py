"""
SchedulingGates: keeps a pod with scheduling gates out of the queue.

The API server has already set the pod's status (``PodScheduled``, reason ``SchedulingGated``). As upstream, the plugin
reports nothing in addition.
"""

from typing import ClassVar, Final

from lamina.model.pod import Pod
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.status import Status, unresolvable
from lamina.scheduling.state.cluster_changes import ChangeKind
from lamina.scheduling.state.plugin_context import PluginContext

NAME: Final = "SchedulingGates"


class SchedulingGates:
    """Keeps gated pods out of the queue."""

    name: ClassVar = NAME
    retry_on: ClassVar = frozenset({ChangeKind.POD_UPDATED})

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        """Need no context or arguments."""

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Refuse a pod with gates; the reason lists all of them."""
        if not pod.gates:
            return None
        return unresolvable(f"waiting for scheduling gates: [{' '.join(pod.gates)}]")
