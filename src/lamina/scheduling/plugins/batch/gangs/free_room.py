"""
What is left on each node while a batch is planned, and where the pods of a gang go.

Pods with equal evaluations are planned as one class: how many of them fit on each node is one division for all nodes.

A gang starts when its slowest member starts. The plan therefore looks for the smallest number of seconds within which the
images of all members can be ready, and then takes the nodes with the highest scores among those that meet it.
"""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import numpy as np

from lamina.model.pod import Pod, PodUid
from lamina.model.resources import Amounts
from lamina.scheduling.contract.placement import PlaceCandidate
from lamina.scheduling.state.columns import Bools, Floats, Ints
from lamina.scheduling.state.view import NodeView

PODS: Final = "pods"
HOSTNAME: Final = "kubernetes.io/hostname"
SecondsOf = Callable[[Pod], Floats | None]


class EqualPods(msgspec.Struct, frozen=True, eq=False):
    """Candidates with one evaluation."""

    pods: list[PlaceCandidate]
    requests: Amounts
    seconds: Floats | None
    """Seconds until the images are ready on each node; None where nothing is known."""

    def conflicts(self, other: "EqualPods") -> bool:
        """Return whether a pod of this class and one of *other* cannot be on one node: ports, or required anti-affinity."""
        one, two = self.pods[0].pod, other.pods[0].pod
        ports = {(port.port, port.protocol) for port in one.host_ports}
        shared = any((port.port, port.protocol) in ports for port in two.host_ports)
        return shared or _repels(one, two) or _repels(two, one)

    @property
    def alone(self) -> bool:
        """Whether at most one of them can be on a node."""
        return self.conflicts(self)


def _repels(one: Pod, two: Pod) -> bool:
    return any(
        term.topology_key == HOSTNAME
        and term.selector is not None
        and (two.namespace in term.namespaces or not term.namespaces)
        and term.selector.matches(two.labels)
        for term in one.repels
    )


class FreeRoom:
    """Free amounts of all nodes, reduced as pods are planned."""

    def __init__(self, nodes: NodeView, candidates: Sequence[PlaceCandidate]) -> None:
        """Read the amounts of the resources that *candidates* request."""
        names = dict.fromkeys(name for one in candidates for name, _ in one.pod.requests)
        self._line = {name: line for line, name in enumerate([*(name for name in names if name != PODS), PODS])}
        self._free: Ints = np.stack([nodes.free(name) for name in self._line])
        self._closed: Bools = np.zeros(len(nodes), dtype=np.bool_)

    def close(self, rows: Sequence[int]) -> None:
        """Leave out some nodes, which are kept for another gang."""
        self._closed[:] = False
        self._closed[list(rows)] = True

    def places(self, one: EqualPods, free: Ints | None = None) -> Ints:
        """Return how many pods of a class fit on each node."""
        left = self._free if free is None else free
        pods: Ints = left[self._line[PODS]].copy()
        for name, amount in one.requests:
            if amount > 0:
                np.minimum(pods, left[self._line[name]] // amount, out=pods)
        if one.alone:
            np.minimum(pods, 1, out=pods)
        np.maximum(pods, 0, out=pods)
        pods[~one.pods[0].feasible | self._closed] = 0
        return pods

    def plan(self, classes: Sequence[EqualPods], least: int) -> dict[PodUid, int]:
        """
        Choose nodes for all pods, or for as many as fit if these are at least *least*, and take the room.

        Empty if fewer fit.
        """
        whole = sum(len(one.pods) for one in classes)
        found, left = self._fill(classes, np.inf)
        if len(found) < max(1, least):
            return {}
        limits = self._limits(classes) if len(found) == whole else np.zeros(0)
        low, high = 0, len(limits) - 1
        while low < high:
            middle = (low + high) // 2
            tried, remains = self._fill(classes, limits[middle])
            if len(tried) == whole:
                found, left, high = tried, remains, middle
            else:
                low = middle + 1
        self._free = left
        return found

    def _limits(self, classes: Sequence[EqualPods]) -> Floats:
        """Return the numbers of seconds within which a gang can be ready, in order."""
        known = [one.seconds[one.pods[0].feasible] for one in classes if one.seconds is not None]
        return np.unique(np.concatenate(known)) if known else np.zeros(0)

    def _fill(self, classes: Sequence[EqualPods], limit: float) -> tuple[dict[PodUid, int], Ints]:
        """Fill the nodes whose images are ready within *limit* seconds; return the nodes and what is left."""
        free = self._free.copy()
        found: dict[PodUid, int] = {}
        taken: list[tuple[EqualPods, Ints]] = []
        for one in classes:
            places = self.places(one, free)
            for other, rows in taken:
                if one.conflicts(other):
                    places[rows] = 0
            if one.seconds is not None:
                places[one.seconds > limit] = 0
            rows = np.flatnonzero(places)
            rows = rows[np.argsort(-one.pods[0].scores[rows], kind="stable")]
            counts = places[rows]
            before = np.cumsum(counts) - counts
            counts = np.clip(len(one.pods) - before, 0, counts)
            rows, counts = rows[counts > 0], counts[counts > 0]
            self._take(free, one.requests, rows, counts)
            taken.append((one, rows))
            chosen = np.repeat(rows, counts).tolist()
            found.update({pod.pod.uid: row for pod, row in zip(one.pods, chosen, strict=False)})
        return found, free

    def _take(self, free: Ints, requests: Amounts, rows: Ints, counts: Ints) -> None:
        for name, amount in requests:
            if name != PODS:
                free[self._line[name], rows] -= amount * counts
        free[self._line[PODS], rows] -= counts


def classes_of(candidates: Sequence[PlaceCandidate], seconds: SecondsOf) -> list[EqualPods]:
    """Group candidates by evaluation, those that request most first: they have the fewest places."""
    by_key: dict[object, list[PlaceCandidate]] = {}
    for one in candidates:
        by_key.setdefault((one.key, one.pod.images, one.pod.requests), []).append(one)
    classes = [EqualPods(pods, pods[0].pod.requests, seconds(pods[0].pod)) for pods in by_key.values()]
    return sorted(classes, key=lambda one: [-amount for _, amount in one.requests]) if len(classes) > 1 else classes
