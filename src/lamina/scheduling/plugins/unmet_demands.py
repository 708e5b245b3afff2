"""
UnmetDemands: a pod that asks for what Lamina cannot do yet is held back, and told what that is.

Placing it as if it had not asked would be worse than not placing it: two replicas on one node, a database beside the
wrong disk. So this stands in every profile, first, and no configuration can take it out. What a pod merely prefers does
not hold it back; that nothing is made of it stands in the notes of its decision.

The words come with the pod (`Pod.unmet`, `Pod.ignored`), from where it was read.
"""

from collections.abc import Hashable
from typing import ClassVar, Final

from lamina.model.pod import Pod
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.points import Reads
from lamina.scheduling.contract.status import Status, unresolvable
from lamina.scheduling.state.cluster_changes import ChangeKind
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView

NAME: Final = "UnmetDemands"
REASON: Final = "pod asks for what this scheduler cannot do yet"
IGNORED: Final = "no attention is paid yet to"
# An event's note is short; whoever asks for more than this has seen the point.
SHOWN: Final = 6


class UnmetDemands:
    """Refuses pods as a whole."""

    name: ClassVar = NAME
    reads: ClassVar = Reads()
    retry_on: ClassVar = frozenset({ChangeKind.POD_UPDATED})

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        """Need nothing."""

    def sign(self, pod: Pod) -> Hashable:
        """Tell pods apart by what they are refused for."""
        return pod.unmet

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | None:
        """Refuse a pod that asks for too much, for as long as it does."""
        return unresolvable(f"{REASON}: {_listed(pod.unmet)}") if pod.unmet else None

    def notes(self, pod: Pod) -> str:
        """Name the preferences that count for nothing."""
        return f"{IGNORED}: {_listed(pod.ignored)}" if pod.ignored else ""


def _listed(words: tuple[str, ...]) -> str:
    more = f" and {len(words) - SHOWN} more" if len(words) > SHOWN else ""
    return ", ".join(words[:SHOWN]) + more
