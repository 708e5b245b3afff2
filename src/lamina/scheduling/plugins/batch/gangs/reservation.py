"""
Nodes that are kept free for the gang that has waited longest, so that small pods cannot starve it.

Nodes are chosen once, those with most room first, until they would hold the gang if they were empty. Pods that run there
end, none is placed, and the gang starts. One gang has a reservation at a time: two could block each other.
"""

from collections.abc import Callable, Sequence

import numpy as np

from lamina.model.pod import Pod
from lamina.model.taints import NO_EXECUTE, NO_SCHEDULE, untolerated
from lamina.scheduling.contract.placement import PlaceCandidate
from lamina.scheduling.plugins.batch.gangs.free_room import PODS, EqualPods, classes_of
from lamina.scheduling.state.columns import Bools, Ints
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView

HARD = (NO_SCHEDULE, NO_EXECUTE)


class GangReservation:
    """The gang for which nodes are kept, and these nodes."""

    def __init__(self, context: PluginContext, after: float | None) -> None:
        """Keep nodes for a gang that has waited for *after* seconds; None: never."""
        self._context = context
        self._after = after
        self.gang = ""
        """Key of the gang; empty without a reservation."""
        self._nodes: tuple[str, ...] = ()
        self._due: dict[str, float] = {}
        """By gang: when nodes may be kept for it."""

    def rows(self) -> tuple[int, ...]:
        """Return the rows of the kept nodes."""
        return tuple(row for node in self._nodes if (row := self._context.row(node)) >= 0)

    def due(self, gang: str, now: float) -> float | None:
        """Return when nodes may be kept for a gang; None if that time has passed or is unknown."""
        at = self._due.get(gang)
        return at if at is not None and at > now else None

    def forget(self, now: float, waits: Callable[[str], bool]) -> None:
        """Forget when nodes may be kept for gangs whose time has come, and for those that wait no longer."""
        self._due = {gang: at for gang, at in self._due.items() if at > now and waits(gang)}

    def end(self, gang: str) -> None:
        """Forget a gang that was placed or left."""
        self._due.pop(gang, None)
        if gang == self.gang:
            self.gang, self._nodes = "", ()

    def want(self, gang: str, pods: Sequence[PlaceCandidate], lacks: int, nodes: NodeView, now: float) -> None:
        """Keep nodes for a refused gang if it is its turn."""
        if self._after is None or self.gang not in ("", gang):
            return
        due = min(one.arrived_at for one in pods) + self._after
        self._due[gang] = due
        if due > now or (self.gang == gang and len(self.rows()) == len(self._nodes)):
            return
        self.gang, self._nodes = "", ()
        chosen = _enough(pods[: max(1, lacks)], nodes)
        if chosen:
            found = [node.name for row in chosen if (node := nodes.node(row)) is not None]
            self.gang, self._nodes = gang, tuple(found)


def suitable(pod: Pod, nodes: NodeView) -> Bools:
    """Return which nodes a pod could use if they were empty, as far as taints, cordons and its node affinity say."""
    found = nodes.alive & ~nodes.unschedulable
    if nodes.any_taints:
        found &= nodes.judged(lambda taints: untolerated(taints, pod.tolerations, HARD) is not None) == 0
    if pod.node_selector or pod.required_nodes is not None:
        found &= nodes.selected((pod.node_selector, pod.required_nodes))
    return found


def _enough(pods: Sequence[PlaceCandidate], nodes: NodeView) -> list[int]:
    """Return the emptiest nodes that would hold the pods if they were empty; none if the cluster is too small."""
    left = {name: nodes.allocatable(name).copy() for name in _resources(pods)}
    taken: dict[int, list[EqualPods]] = {}
    for one in classes_of(pods, lambda _: None):
        pod = one.pods[0].pod
        needs = {PODS: 1, **{name: amount for name, amount in one.requests if amount > 0}}
        places = np.min([left[name] // amount for name, amount in needs.items()], axis=0)
        if one.alone:
            np.minimum(places, 1, out=places)
        places[[row for row, others in taken.items() if any(map(one.conflicts, others))]] = 0
        places[~suitable(pod, nodes)] = 0
        now = np.min([nodes.free(name) // amount for name, amount in needs.items()], axis=0)
        rows = np.lexsort((-places, -np.minimum(now, places)))
        wanted = len(one.pods)
        for row in rows[places[rows] > 0].tolist():
            if wanted <= 0:
                break
            count = min(wanted, int(places[row]))
            _take(left, needs, row, count)
            taken.setdefault(row, []).append(one)
            wanted -= count
        if wanted > 0:
            return []
    return list(taken)


def _resources(pods: Sequence[PlaceCandidate]) -> list[str]:
    return list(dict.fromkeys([PODS, *(name for one in pods for name, amount in one.pod.requests if amount > 0)]))


def _take(left: dict[str, Ints], needs: dict[str, int], row: int, count: int) -> None:
    for name, amount in needs.items():
        left[name][row] -= amount * count
