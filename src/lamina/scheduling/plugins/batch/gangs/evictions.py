"""
Room for a gang or a queue by evictions: which pods leave, so that all pods of the gang find a place at once.

On each node the least important pods leave first, and no more than needed. A victim's gang keeps its minimum size.
"""

from collections.abc import Callable, Sequence

import numpy as np

from lamina.model.pod import Pod, PodUid
from lamina.scheduling.contract.placement import PlaceCandidate
from lamina.scheduling.contract.points import PostFilterResult
from lamina.scheduling.runtime.gang_directory import GangDirectory, SparedPods
from lamina.scheduling.state.columns import Bools
from lamina.scheduling.state.placed_pods import importance
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView

MayLeave = Callable[[Pod], bool]


def room_by_evictions(
    context: PluginContext,
    gangs: GangDirectory,
    nodes: NodeView,
    pods: Sequence[PlaceCandidate],
    suitable: Bools,
    may_leave: MayLeave,
) -> dict[PodUid, PostFilterResult]:
    """
    Return a node and its victims for each of *pods*; empty if evictions do not make room for all of them.

    *suitable* marks nodes that refuse the pods for lack of resources only.
    """
    spared = gangs.spared(())
    found: dict[PodUid, PostFilterResult] = {}
    waiting = list(pods)
    for row in np.flatnonzero(suitable).tolist():
        if not waiting:
            break
        node = nodes.node(row)
        if node is None:
            continue
        victims = [pod for pod in context.pods_on(node.name) if may_leave(pod)]
        # `importance` sorts the most important pod first.
        placed = _on_node(nodes, row, waiting, sorted(victims, key=importance, reverse=True), spared)
        for one, leaving in placed:
            found[one.pod.uid] = PostFilterResult(node.name, leaving)
        waiting = waiting[len(placed) :]
    return {} if waiting else found


def _on_node(
    nodes: NodeView, row: int, waiting: Sequence[PlaceCandidate], victims: list[Pod], spared: SparedPods
) -> list[tuple[PlaceCandidate, tuple[Pod, ...]]]:
    """Return the first of *waiting* that fit on a node, each with the pods that leave for it."""
    free: dict[str, int] = {}
    placed: list[tuple[PlaceCandidate, tuple[Pod, ...]]] = []
    left = list(victims)
    for one in waiting:
        needs = {"pods": 1, **{name: amount for name, amount in one.pod.requests if amount > 0}}
        for name in needs:
            free.setdefault(name, int(nodes.free(name)[row]))
        gains: dict[str, int] = {}
        leaving: list[Pod] = []
        for victim in left:
            if all(free[name] + gains.get(name, 0) >= amount for name, amount in needs.items()):
                break
            if spared.can_lose(victim):
                leaving.append(victim)
                for name, amount in (*victim.requests, ("pods", 1)):
                    gains[name] = gains.get(name, 0) + amount
        if any(free[name] + gains.get(name, 0) < amount for name, amount in needs.items()):
            break
        for victim in leaving:
            spared.lose(victim)
            left.remove(victim)
        for name in gains.keys() | needs.keys():
            free[name] = free.get(name, int(nodes.free(name)[row])) + gains.get(name, 0) - needs.get(name, 0)
        placed.append((one, tuple(leaving)))
    return placed
