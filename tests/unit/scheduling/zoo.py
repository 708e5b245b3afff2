"""Small plugins, one for each thing a plugin can do to an evaluation. They go by labels of pods and nodes."""

from collections.abc import Hashable
from typing import Any, ClassVar

import numpy as np

from lamina.model.decision import Refusal
from lamina.model.pod import Pod
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.normalize import normalized
from lamina.scheduling.contract.points import PreFilterResult, Reads, Verdicts
from lamina.scheduling.contract.status import SKIP, Status, failed, unresolvable, unschedulable
from lamina.scheduling.state.columns import Bools, Ints
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.view import NodeRow, NodeView

LABELS = Reads(rows=frozenset({Facet.LABELS}))


class Animal:
    """What they have in common."""

    def __init__(self, *_: Any) -> None: ...

    def sign(self, pod: Pod) -> Hashable:
        """Tell pods apart by their labels."""
        return tuple(sorted(pod.labels.items()))


class Narrowing(Animal):
    """Only the nodes that the pod lists (``nodes: a-b``) are right; looks at no node itself."""

    name: ClassVar = "Narrowing"
    reads: ClassVar = Reads()

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> PreFilterResult | None:
        """Narrow the search down."""
        listed = pod.labels.get("nodes")
        return None if listed is None else PreFilterResult(frozenset(listed.split("-")))


class AlsoNarrowing(Narrowing):
    """Another one (``also: a-b``)."""

    name: ClassVar = "AlsoNarrowing"

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> PreFilterResult | None:
        """Narrow the search down."""
        listed = pod.labels.get("also")
        return None if listed is None else PreFilterResult(frozenset(listed.split("-")))


class Doorman(Animal):
    """Refuses pods before any node is looked at (``door: shut|walled|broken``), or leaves its filter out (``open``)."""

    name: ClassVar = "Doorman"
    reads: ClassVar = Reads()

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | None:
        """Do as the pod says."""
        answers = {
            "shut": unschedulable("the door is shut", "and locked"),
            "walled": unresolvable("there is no door"),
            "broken": failed("the door fell on somebody"),
            "open": SKIP,
        }
        return answers.get(pod.labels.get("door", ""))

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts:
        """Refuse everything, unless left out."""
        refused = 1 if pod.labels.get("door") == "ajar" or "door" in pod.labels else 0
        return Verdicts(np.full(len(nodes), refused, dtype=np.int64), lambda code: Refusal(self.name, ("draughty",)))


class Zone(Animal):
    """Refuses nodes of another zone than the pod's; says which zone they are in."""

    name: ClassVar = "Zone"
    reads: ClassVar = LABELS

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
        """Compare zones."""
        if "zone" not in pod.labels:
            return None
        zones = [int(_label(nodes.node(position), "zone")) for position in range(len(nodes))]
        codes = [0 if str(zone) == pod.labels["zone"] else zone + 1 for zone in zones]
        return Verdicts(np.array(codes, dtype=np.int64), lambda code: Refusal(self.name, (f"in zone {code - 1}",)))


class Points(Animal):
    """Gives nodes the points on their label; 0 to those without and to rows without a node."""

    name: ClassVar = "Points"
    reads: ClassVar = LABELS

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Read the labels."""
        points = [int(_label(nodes.node(position), "points")) for position in range(len(nodes))]
        return np.array(points, dtype=np.int64)

    def score_node(self, state: CycleState, pod: Pod, node: NodeRow) -> int:
        """Read one label."""
        return int(_label(node.node, "points"))


class Relative(Animal):
    """Gives nodes their points relative to the best feasible one; has nothing to say to pods that are not ambitious."""

    name: ClassVar = "Relative"
    reads: ClassVar = LABELS

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | None:
        """Skip most pods."""
        return None if "ambitious" in pod.labels else SKIP

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Read the labels."""
        return Points().score(state, pod, nodes)

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, feasible: Bools) -> Ints:
        """Stretch."""
        return normalized(scores, feasible)

    def facts(self, state: CycleState, pod: Pod, nodes: NodeView) -> list[dict[str, int]]:
        """Tell the points."""
        return [{"points": int(one)} for one in self.score(state, pod, nodes)]


class Haunted(Animal):
    """Gives every node 50, and rows without a node a score no plugin may give."""

    name: ClassVar = "Haunted"
    reads: ClassVar = LABELS

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """See ghosts."""
        return np.where(nodes.alive, 50, 1000)


def _label(node: Any, name: str) -> str:
    return "0" if node is None else str(node.labels.get(name, "0"))
