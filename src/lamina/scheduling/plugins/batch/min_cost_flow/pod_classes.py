"""Classes of equal pods: one node of the network each, however many pods it has."""

from collections.abc import Hashable, Sequence
from typing import Final

import msgspec
import numpy as np

from lamina.model.pod import Pod
from lamina.model.resources import PODS
from lamina.scheduling.contract.placement import PlaceCandidate
from lamina.scheduling.state.columns import LARGEST, Bools, Ints
from lamina.scheduling.state.pod_counts import owner_key
from lamina.scheduling.state.view import NodeView

UNLIMITED: Final = 2**31


class PodClass(msgspec.Struct, frozen=True):
    """Pods with the same requests, images, controller and evaluation."""

    members: list[PlaceCandidate]
    """In queue order."""

    @property
    def pod(self) -> Pod:
        """The first pod."""
        return self.members[0].pod

    @property
    def feasible(self) -> Bools:
        """Which nodes pass all filters."""
        return self.members[0].feasible

    @property
    def scores(self) -> Ints:
        """The profile's total scores."""
        return self.members[0].scores


def classes_of(candidates: Sequence[PlaceCandidate], most: int) -> list[PodClass]:
    """Group the candidates into at most *most* classes, in queue order; pods of further classes are left out."""
    found: dict[Hashable, PodClass] = {}
    for candidate in candidates:
        pod = candidate.pod
        key = (candidate.key, pod.images, pod.requests, pod.scoring_requests, owner_key(pod))
        group = found.get(key)
        if group is not None:
            group.members.append(candidate)
        elif len(found) < most:
            found[key] = PodClass([candidate])
    return list(found.values())


class Room(msgspec.Struct, frozen=True):
    """Amounts that are free on nodes, and that a pod of each class requests, for each resource that one requests."""

    free: Ints
    """Node × resource."""
    requests: Ints
    """Class × resource."""
    most: Ints
    """Class × node: how many pods of the class may go to the node for other reasons than amounts."""


def room_for(classes: Sequence[PodClass], nodes: NodeView, replica_share: float) -> Room:
    """Return the room of nodes for classes."""
    asked = [{PODS: 1} | {name: amount for name, amount in one.pod.requests if amount > 0} for one in classes]
    # A resource that no node offers either keeps the pod from all nodes, or is ignored by the profile.
    names = [name for name in sorted({name for one in asked for name in one}) if nodes.offered(name)]
    return Room(
        np.stack([nodes.free(name) for name in names], axis=1),
        np.array([[min(one.get(name, 0), LARGEST) for name in names] for one in asked], dtype=np.int64),
        np.stack([_most(one, nodes, replica_share) for one in classes]),
    )


def slots(room: Room, row: int) -> Ints:
    """Return how many pods of a class each node has room for."""
    found: Ints = room.most[row].copy()
    for line, amount in enumerate(room.requests[row].tolist()):
        if amount:
            np.minimum(found, np.maximum(room.free[:, line], 0) // amount, out=found)
    return found


def _most(one: PodClass, nodes: NodeView, replica_share: float) -> Ints:
    """Return how many pods of a class a node may take: none where a filter refuses it."""
    pod = one.pod
    alone = pod.host_ports or pod.repels or pod.spread or pod.volumes
    most = np.where(one.feasible, 1 if alone else UNLIMITED, 0).astype(np.int64)
    key = owner_key(pod) if replica_share < 1 else None
    if key is None:
        return most
    count = len(one.members)
    share = max(1, int(np.ceil(replica_share * (nodes.owned_in_all(key) + count))))
    spread = np.minimum(most, np.maximum(share - nodes.owned(key), 0))
    return spread if int(spread.sum()) >= count else most
