"""
MinCostFlow: places all pending pods together, at the least total cost.

The ordinary cycle places one pod after the other: the first takes the node that it likes best, even if another pod
needs that node much more. This plugin weighs all pending pods against each other, as Quincy and Firmament do. Equal
pods are one class, so that 10,000 replicas cost no more than one.

Every choice must still pass the filters at the pod's turn. Pods that the flow leaves out go through the ordinary cycle:
those without room (which then evict others, or wait with the usual reasons), and all pods beyond the configured bounds.
Running pods are never moved.
"""

from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np

from lamina.model.pod import Pod, PodUid
from lamina.scheduling.contract.placement import PlaceCandidate, Placement
from lamina.scheduling.contract.status import Status, unschedulable
from lamina.scheduling.plugins.batch.min_cost_flow.args import MinCostFlowArgs
from lamina.scheduling.plugins.batch.min_cost_flow.cost_models import cost_model
from lamina.scheduling.plugins.batch.min_cost_flow.highs import load_solver
from lamina.scheduling.plugins.batch.min_cost_flow.placement_rounds import place_classes
from lamina.scheduling.plugins.batch.min_cost_flow.pod_classes import classes_of, room_for
from lamina.scheduling.state.cluster_changes import ChangeKind
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView

NAME: Final = "MinCostFlow"
HELD: Final = "waiting costs less than starting now on any node with room"
RETRY_AFTER: Final = 1.0
"""Seconds until a held pod is part of a batch again."""


class MinCostFlow:
    """Chooses nodes for a batch of pods."""

    name: ClassVar = NAME
    Args: ClassVar = MinCostFlowArgs
    # Its only refusals are held pods, which are due again after a second in any case.
    retry_on: ClassVar = frozenset[ChangeKind]()
    batch: int = 1

    def __init__(self, context: PluginContext, args: MinCostFlowArgs) -> None:
        """Load the solver. Raise WiringError if it is not installed."""
        self._args = args
        self.batch = args.batch
        self._solver = load_solver()
        self._costs = cost_model(context, args)

    def place(self, candidates: Sequence[PlaceCandidate], nodes: NodeView, now: float) -> Placement:
        """Choose nodes at the least cost for as many pods as fit."""
        args = self._args
        classes = [one for one in classes_of(candidates, args.most_cells // max(1, len(nodes))) if np.any(one.feasible)]
        if not classes:
            return Placement({})
        room = room_for(classes, nodes, args.replica_share)
        outcome = place_classes(classes, room, self._costs(classes, nodes), now, self._solver, args)
        chosen: dict[PodUid, int] = {}
        refused: dict[PodUid, Status] = {}
        for one, places, held in zip(classes, outcome.nodes, outcome.held, strict=True):
            for member, node in zip(one.members, places, strict=False):
                chosen[member.pod.uid] = node
            if args.hold and held and not outcome.gave_up:
                for member in one.members[max(len(places), len(one.members) - held) :]:
                    refused[member.pod.uid] = unschedulable(HELD)
        return Placement(chosen, refused)

    def retry_at(self, pod: Pod, now: float) -> float:
        """Return when a held pod is worth another attempt."""
        return now + RETRY_AFTER
