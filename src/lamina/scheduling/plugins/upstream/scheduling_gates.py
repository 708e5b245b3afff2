"""
SchedulingGates: a pod whose spec names gates is left alone until they are gone.

That the pod is gated stands in its status before any scheduler sees it (``PodScheduled``, reason ``SchedulingGated``): the
API server writes it. As upstream does, nothing is added to that.
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
        """Need nothing."""

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Keep a pod out that has a gate, and name them all."""
        if not pod.gates:
            return None
        return unresolvable(f"waiting for scheduling gates: [{' '.join(pod.gates)}]")
