"""Foo: accepts every node and gives all the same score. A template; docs/plugins.md explains the rest."""

from collections.abc import Hashable
from typing import ClassVar, Final

import numpy as np

from lamina.model.pod import Pod
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.points import Reads, Verdicts
from lamina.scheduling.state.columns import Ints
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView

NAME: Final = "Foo"
# Scores range from 0 to 100. The extender returns levels from 0 to 10: a score of 10 is level 1.
POINTS: Final = 10


class Foo:
    """A minimal plugin."""

    name: ClassVar = NAME
    # Results depend on no facet of the nodes. With `Facet.LABELS` in its rows, for example, the plugin would be called
    # again for a node whose labels changed.
    reads: ClassVar = Reads()

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        """Take no arguments. *context* gives plugins access to layers, load and usage."""

    def sign(self, pod: Pod) -> Hashable:
        """Return the pod's properties that the results depend on: none, so all pods share them."""
        return None

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
        """
        Accept every node.

        Other filters return a code for each node (0 passes) and a function that explains a code.
        """
        return None

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Return the score of each node, for all nodes at once."""
        return np.full(len(nodes), POINTS, dtype=np.int64)
