"""DefaultBinder: bind through the API server."""

from typing import ClassVar, Final

from lamina.model.pod import Pod
from lamina.scheduling.framework.commands import Bind
from lamina.scheduling.framework.context import Context
from lamina.scheduling.framework.cycle_state import CycleState
from lamina.scheduling.framework.registry import NoArgs

NAME: Final = "DefaultBinder"


class DefaultBinder:
    """Asks for an ordinary binding."""

    name: ClassVar = NAME

    def __init__(self, context: Context, args: NoArgs) -> None:
        """Need nothing."""

    def bind(self, state: CycleState, pod: Pod, node: str) -> Bind:
        """Bind the pod to the chosen node."""
        return Bind(pod, node)
