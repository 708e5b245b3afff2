"""Clusters whose use is annotated or measured, for tests of this agent."""

from collections.abc import Collection
from typing import Any

import numpy as np

from lamina.model.node import Node
from lamina.model.node_usage import NodeUsage, ResourceUsage
from lamina.model.pod import Pod
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.status import Code
from lamina.scheduling.state.view import NodeView
from lamina.testing import a_node, a_pod
from tests.unit.scheduling.bench import Bench

# With a core and a thousand bytes, thousandths of a core and bytes are thousandths of the capacity.
WHOLE = 1000
NOTHING = a_pod()
"""A pod that asks for nothing."""

Use = tuple[float, float] | None
"""Mean and deviation of the use of a resource, as shares; None where nobody knows."""


def annotated(name: str = "n1", cpu: Use = None, memory: Use = None, **more: str) -> Node:
    """A node with a core and a thousand bytes that says how it is used; *more*: other annotations."""
    said = {key.replace("_", "-"): value for key, value in more.items()}
    for resource, use in (("cpu", cpu), ("memory", memory)):
        if use is not None:
            said[f"mean-free-{resource}"] = f"{WHOLE - WHOLE * use[0]:.9g}"
            said[f"std-free-{resource}"] = f"{WHOLE * use[1]:.9g}"
    return a_node(name, cpu=1, memory=str(WHOLE), annotations=said)


def plain(name: str = "n1", **more: Any) -> Node:
    """The same node, saying nothing."""
    return a_node(name, cpu=1, memory=str(WHOLE), **more)


def load(use: Use) -> ResourceUsage | None:
    """The use of one resource of such a node."""
    return None if use is None else ResourceUsage(WHOLE * use[0], WHOLE * use[1])


def measured(node: str, cpu: Use = None, memory: Use = None, *, until: float = 0.0, renews: float = 0.0) -> NodeUsage:
    """A measurement of such a node."""
    return NodeUsage(node, load(cpu), load(memory), since=until, until=until, renews_within=renews)


def points(plugin: Any, bench: Bench, pod: Pod = NOTHING, feasible: Collection[str] | None = None) -> dict[str, int]:
    """Return what a plugin gives the feasible nodes (None: all of them)."""
    inside = np.array([feasible is None or node.name in feasible for node in bench.columns.nodes])
    scores = ask(plugin, bench.view, pod, inside)
    return {name: scores[row] for name, row in bench.columns.rows.items() if inside[row]}


def ask(plugin: Any, nodes: NodeView, pod: Pod, feasible: Any = None) -> list[int]:
    """Return what a plugin gives the nodes of a view; 0 for all where it abstains."""
    state = CycleState()
    if hasattr(plugin, "pre_score"):
        answer = plugin.pre_score(state, pod, nodes)
        if answer is not None:
            assert answer.code is Code.SKIP
            return [0] * len(nodes)
    inside = np.ones(len(nodes), dtype=np.bool_) if feasible is None else feasible
    scores: list[int] = plugin.normalize(state, pod, plugin.score(state, pod, nodes), inside).tolist()
    return scores
