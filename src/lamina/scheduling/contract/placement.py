"""
The extension point `place`: a plugin chooses nodes for many pods at once.

Batch schedulers implement it: gangs, backfill, min-cost flow. It runs before the ordinary cycle, and pods that it leaves
out go through that cycle.
"""

from collections.abc import Collection, Hashable, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from lamina.model.pod import Pod, PodUid
from lamina.scheduling.contract.points import Plugin, PostFilterResult, QueuedPod
from lamina.scheduling.contract.status import Status
from lamina.scheduling.state.columns import Bools, Ints
from lamina.scheduling.state.view import NodeView


class PlaceCandidate(QueuedPod, Protocol):
    """
    A queued pod as `place` sees it. The evaluation is computed when an attribute is read first, once per *key*.

    It shows the nodes as they are when `place` is called, and is valid only during the call.
    """

    key: Hashable
    """Pods with equal keys have the same `feasible` and `scores`."""

    @property
    def feasible(self) -> Bools:
        """
        Which nodes of the view pass all filters; read-only. All False if the pod is refused as a whole.

        Nodes that are kept for other pods do not pass, unless this plugin keeps them.
        """
        ...

    @property
    def possible(self) -> Bools:
        """Which nodes could run the pod once others have left: no filter refuses them for good. Read-only."""
        ...

    @property
    def scores(self) -> Ints:
        """The weighted totals of the nodes, as in the ordinary cycle; 0 where the node is not feasible. Read-only."""
        ...


class Placement(msgspec.Struct, frozen=True):
    """
    `place` decided for several pods at once.

    Nodes are positions in the view. The next place plugin gets the pods that are in neither *nodes* nor *refused*;
    those that the last one leaves out go through the ordinary cycle.
    """

    nodes: dict[PodUid, int]
    refused: dict[PodUid, Status] = {}
    """The pods wait for a change that the plugin names in `retry_on`, or for the time of its `retry_at`."""
    kept: dict[PodUid, tuple[int, ...]] = {}
    """
    Nodes that are kept free for waiting pods: only pods that this plugin places can go there, and the waiting pod itself.

    Holds until the plugin's next placement, or until the pod is placed or leaves.
    """
    room: dict[PodUid, PostFilterResult] = {}
    """For refused pods: a node, which the pod is nominated for, and the victims to evict there."""


@runtime_checkable
class PlacePlugin(Plugin, Protocol):
    """
    Places several pods at once. Runs before the ordinary cycle; its choices must still pass the filters.

    A batch has pods of one profile. Each pod is bound or refused at its turn in queue order, so that pods of other
    profiles keep their turns. A profile can have several place plugins: the decisions of one are carried out before the
    next one is called, so that it sees the nodes that are left.
    """

    batch: int
    """Maximum number of pods per call. The smallest of a profile's place plugins counts."""

    def place(self, candidates: Sequence[PlaceCandidate], nodes: NodeView, now: float) -> Placement:
        """Choose nodes for any subset of *candidates*, which are in queue order; *now* is in seconds."""
        ...


@runtime_checkable
class GroupingPlugin(PlacePlugin, Protocol):
    """
    Decides some pods only together, such as the pods of a gang.

    When one of them is popped, the queue hands out all of them in one batch, also beyond the batch size. Refused ones
    wait together: a change that helps wakes them once.
    """

    def group(self, pod: Pod) -> str:
        """Return a name for the pods that are decided with *pod*; empty if it is decided alone."""
        ...

    def members(self, group: str) -> Collection[PodUid]:
        """Return the pods of a group. Those that do not wait are ignored, and so are those that a gate still holds."""
        ...
