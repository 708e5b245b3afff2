"""Foo: every node passes, and every node gets the same points. A template; docs/plugins.md tells the rest."""

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
# Points go from 0 to 100. The extender answers with levels from 0 to 10; ten points are one level.
POINTS: Final = 10


class Foo:
    """Does what a plugin has to do, and nothing else."""

    name: ClassVar = NAME
    # What of the nodes the answers depend on: nothing. With `Facet.LABELS` among its rows, say, a plugin would be asked again
    # about a node whose labels have changed.
    reads: ClassVar = Reads()

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        """Take no arguments. *context* is the cluster, for plugins that look at layers, load or usage."""

    def sign(self, pod: Pod) -> Hashable:
        """Return what the answers depend on of the pod: nothing, so all pods share them."""
        return None

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
        """Let every node pass. Otherwise: a code for each node (0 passes), and how to tell a code in words."""
        return None

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Return points for each node, for all of them at once."""
        return np.full(len(nodes), POINTS, dtype=np.int64)
