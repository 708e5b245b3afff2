"""
A cluster on a bench: columns, inventory and context that a test fills by hand, to ask single plugins about it.

Keeps the columns' notes of what changed as the loop does, so that whatever is kept over these columns stays right.
"""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from lamina.layers.inventory import Inventory
from lamina.model.decision import Refusal
from lamina.model.image import Image
from lamina.model.layer_report import LayerReport
from lamina.model.node import Node
from lamina.model.pod import Pod
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import PluginArgs
from lamina.scheduling.contract.status import Code
from lamina.scheduling.plugins.in_tree import registry
from lamina.scheduling.state.columns import NodeColumns
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeRow, NodeView, everything


class Bench:
    """Nodes, pods on them, images and reports."""

    def __init__(self, *nodes: Node) -> None:
        self.columns = NodeColumns()
        self.inventory = Inventory()
        self.context = PluginContext(self.columns, self.inventory)
        self.placed: dict[str, list[Pod]] = {}
        # Tests make plugins late; what they count has to be counted from the start.
        self.make("NodePorts")
        self.put(*nodes)

    def put(self, *nodes: Node) -> None:
        """Add nodes, or say how they are now."""
        for node in nodes:
            known = node.name in self.columns.rows
            row = self.columns.put(node)
            if not known:
                self.inventory.join(node.name, node.uid, row, node.platform)

    def remove(self, *names: str) -> None:
        """Take nodes out."""
        for name in names:
            self.inventory.leave(name)
            for pod in self.placed.pop(name, ()):
                self.columns.vacate(self.columns.rows[name], pod)
            self.columns.remove(name)

    def place(self, node: str, *pods: Pod) -> None:
        """Count pods on a node."""
        for pod in pods:
            self.placed.setdefault(node, []).append(pod)
            self.columns.use(self.columns.rows[node], pod)

    def learn(self, *images: Image) -> None:
        """Tell what images consist of."""
        news, rows = self.inventory.learn(images)
        if news:
            self.columns.touch(Facet.CATALOG, 0)
        self._touch_layers(rows)

    def report(self, *reports: LayerReport) -> None:
        """Tell what nodes hold."""
        for report in reports:
            self._touch_layers(self.inventory.report(report))

    def expect(self, node: str, *pods: Pod) -> None:
        """Bind pods to a node, which has to pull their images now."""
        for pod in pods:
            self.columns.logs[Facet.PULLS].touch(self.columns.rows[node])
            self.inventory.expect(pod.uid, node, pod.images)

    def at(self, now: float) -> None:
        """Let time pass."""
        _, rows = self.inventory.pass_time(now)
        for row in rows:
            self.columns.touch(Facet.PULLS, row)

    def _touch_layers(self, rows: list[int]) -> None:
        for row in rows:
            self.columns.touch(Facet.LAYERS, row)

    def make(self, name: str, args: PluginArgs | None = None) -> Any:
        """Make a plugin that looks at this cluster."""
        return registry(entry_points=False).make(name, self.context, args)

    @property
    def view(self) -> NodeView:
        """All rows."""
        return everything(self.columns)

    def by_name(self, answers: Sequence[Any]) -> dict[str, Any]:
        """Call answers given for all rows by the names of the nodes."""
        return {name: answers[row] for name, row in self.columns.rows.items()}


def refused(bench: Bench, plugin: Any, pod: Pod) -> dict[str, Refusal]:
    """Return the nodes a plugin refuses, with its words; where it also answers for single nodes, both must agree."""
    state = CycleState()
    if hasattr(plugin, "pre_filter"):
        assert plugin.pre_filter(state, pod, bench.view) is None
    verdicts = plugin.filter(state, pod, bench.view)
    codes = bench.by_name([0] * len(bench.view) if verdicts is None else verdicts.codes.tolist())
    if hasattr(plugin, "filter_node"):
        single = {
            name: plugin.filter_node(state, pod, NodeRow(bench.columns, row))
            for name, row in bench.columns.rows.items()
        }
        assert codes == single
    return {name: verdicts.tell(code) for name, code in codes.items() if code}


def final(bench: Bench, plugin: Any, pod: Pod, feasible: Collection[str] | None = None) -> dict[str, int] | None:
    """Return what a plugin gives the feasible nodes (None: all of them) in the end; None when it has nothing to say."""
    state = CycleState()
    if plugin.pre_score(state, pod, bench.view) is not None:
        return None
    inside = np.array(
        [node is not None and (feasible is None or node.name in feasible) for node in bench.columns.nodes]
    )
    scores = plugin.normalize(state, pod, plugin.score(state, pod, bench.view), inside).tolist()
    return {name: scores[row] for name, row in bench.columns.rows.items() if inside[row]}


def scored(bench: Bench, plugin: Any, pod: Pod) -> dict[str, int] | None:
    """Return what a plugin gives every node, before it normalises; None when it has nothing to say."""
    state = CycleState()
    if hasattr(plugin, "pre_score"):
        answer = plugin.pre_score(state, pod, bench.view)
        if answer is not None:
            assert answer.code is Code.SKIP
            return None
    scores = bench.by_name(plugin.score(state, pod, bench.view).tolist())
    if hasattr(plugin, "score_node"):
        single = {
            name: plugin.score_node(state, pod, NodeRow(bench.columns, row)) for name, row in bench.columns.rows.items()
        }
        assert scores == single
    return scores
