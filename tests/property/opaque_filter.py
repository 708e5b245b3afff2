"""A filter that refuses nothing and says nothing about itself, so that every node needs a dry run of its own."""

from typing import ClassVar

from lamina.model.pod import Pod
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView


class OpaqueFilter:
    """Declares neither what it reads nor how evictions change its verdict."""

    name: ClassVar = "OpaqueFilter"

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> None:
        """Pass all nodes."""
