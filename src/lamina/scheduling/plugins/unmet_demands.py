"""
UnmetDemands: refuses pods that require features which Lamina does not implement yet.

Placing such a pod without the feature would be worse than not placing it: two replicas on one node, or a database away
from its disk. The plugin therefore runs first in every profile and cannot be disabled. Unsupported preferences do not
block a pod; the notes of its decision list them.

The reader of the pod supplies the texts (`Pod.unmet`, `Pod.ignored`).
"""

from collections.abc import Hashable
from typing import ClassVar, Final

from lamina.model.pod import Pod
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import PluginArgs
from lamina.scheduling.contract.points import Reads
from lamina.scheduling.contract.status import Status, unresolvable
from lamina.scheduling.state.cluster_changes import ChangeKind
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView

NAME: Final = "UnmetDemands"
REASON: Final = "pod requires features that this scheduler does not implement yet"
IGNORED: Final = "not implemented yet and ignored"
# Maximum number of listed features; the note of an event is short.
SHOWN: Final = 6


class UnmetDemandsArgs(PluginArgs, frozen=True, kw_only=True):
    """What the other plugins of the profile support."""

    pod_groups: bool = False
    """Whether pods of Kubernetes' own pod groups can be placed: a plugin of the profile knows gangs."""


class UnmetDemands:
    """Refuses pods that require unsupported features."""

    name: ClassVar = NAME
    Args: ClassVar = UnmetDemandsArgs
    reads: ClassVar = Reads()
    retry_on: ClassVar = frozenset({ChangeKind.POD_UPDATED})

    def __init__(self, context: PluginContext, args: UnmetDemandsArgs) -> None:
        """Need no context."""
        self._groups = args.pod_groups

    def sign(self, pod: Pod) -> Hashable:
        """Return the unsupported features."""
        return self._unmet(pod)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | None:
        """Refuse a pod that requires unsupported features."""
        unmet = self._unmet(pod)
        return unresolvable(f"{REASON}: {_listed(unmet)}") if unmet else None

    def _unmet(self, pod: Pod) -> tuple[str, ...]:
        if self._groups or not pod.group:
            return pod.unmet
        kind, name = ("workload", pod.group.partition("/")[0]) if "/" in pod.group else ("pod group", pod.group)
        return (*pod.unmet, f'{kind} "{name:.253}"')

    def notes(self, pod: Pod) -> str:
        """List the unsupported preferences of a pod."""
        return f"{IGNORED}: {_listed(pod.ignored)}" if pod.ignored else ""


def _listed(words: tuple[str, ...]) -> str:
    more = f" and {len(words) - SHOWN} more" if len(words) > SHOWN else ""
    return ", ".join(words[:SHOWN]) + more
