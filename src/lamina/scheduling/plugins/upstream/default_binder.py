"""DefaultBinder: binds pods through the API server."""

from typing import ClassVar, Final

from lamina.model.pod import Pod
from lamina.scheduling.contract.commands import Bind
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.state.plugin_context import PluginContext

NAME: Final = "DefaultBinder"


class DefaultBinder:
    """Returns an ordinary binding."""

    name: ClassVar = NAME

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        """Need no context or arguments."""

    def bind(self, state: CycleState, pod: Pod, node: str) -> Bind:
        """Bind the pod to the chosen node."""
        return Bind(pod, node)
