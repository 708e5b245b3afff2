"""
Which volumes the claims of a pod get on each node, and why a node cannot serve them.

All nodes are evaluated at once. For each claim that waits for its first consumer, the smallest free volume within reach
of a node is chosen, small claims first, as upstream does node by node. Claims without one are provisioned if their
class allows it there.
"""

from collections.abc import Iterable
from typing import Final

import msgspec
import numpy as np

from lamina.model.selectors import NodeSelector
from lamina.model.volumes import (
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from lamina.scheduling.plugins.upstream.volume_binding.node_reach import NodeReach
from lamina.scheduling.plugins.upstream.volume_binding.volume_index import VolumeIndex
from lamina.scheduling.state.cluster_objects import ClusterObjects
from lamina.scheduling.state.columns import Bools, Ints

OUT_OF_REACH, NOT_FOUND, NO_SPACE, NO_VOLUME = 1, 2, 4, 8
"""Bits of a node's code."""
NONE: Final = -1


class SortedClaims(msgspec.Struct, frozen=True):
    """The claims of a pod by how they are bound."""

    bound: tuple[PersistentVolumeClaim, ...] = ()
    waiting: tuple[PersistentVolumeClaim, ...] = ()
    """Claims that wait for their first consumer."""


class ClaimMatches(msgspec.Struct, frozen=True):
    """The result for all rows."""

    codes: Ints
    claims: tuple[PersistentVolumeClaim, ...] = ()
    """Claims that look for a volume."""
    chosen: tuple[Ints, ...] = ()
    """For each of these claims and each row, the chosen volume's index, or NONE."""
    volumes: tuple[PersistentVolume, ...] = ()


class ClaimMatcher:
    """Matches claims with volumes and nodes."""

    def __init__(self, objects: ClusterObjects) -> None:
        """Read the volumes, classes and capacities of *objects*."""
        self._objects = objects
        self.index = VolumeIndex(objects)

    def match(self, claims: SortedClaims, reach: NodeReach, selected_row: int | None) -> ClaimMatches:
        """
        Evaluate all rows.

        *selected_row* is the row of the node for which a claim is being provisioned already, -1 if that node is gone or
        there are several, and None if there is none.
        """
        height = len(reach.rows(None))
        codes = np.zeros(height, dtype=np.int64)
        self._check_bound(claims.bound, reach, codes)
        # Upstream reports the first failed check of each of two groups: bound claims, and waiting claims.
        open_rows: Bools = np.ones(height, dtype=np.bool_)
        if selected_row is not None:
            open_rows[:] = False
            if selected_row >= 0:
                open_rows[selected_row] = True
            codes[~open_rows] |= NOT_FOUND
        by_size = sorted((one for one in claims.waiting if one.selected_node is None), key=lambda one: one.size or 0)
        matching = _Matching(reach)
        for claim in by_size:
            matching.add(self.index.reserved(claim), self.index.candidates(claim), open_rows)
        needs = [(claim, open_rows) for claim in claims.waiting if claim.selected_node is not None]
        needs += [(claim, open_rows & (one == NONE)) for claim, one in zip(by_size, matching.chosen, strict=True)]
        self._check_provisioning(needs, reach, codes)
        return ClaimMatches(codes, tuple(by_size), tuple(matching.chosen), tuple(matching.volumes))

    def _check_bound(self, claims: Iterable[PersistentVolumeClaim], reach: NodeReach, codes: Ints) -> None:
        for claim in claims:
            volume = self._objects.get(PersistentVolume, "", claim.volume_name)
            if volume is None:
                codes[codes == 0] = NO_VOLUME
            elif volume.affinity is not None:
                outside = codes == 0
                outside[reach.rows(volume.affinity)] = False
                codes[outside] = OUT_OF_REACH

    def _check_provisioning(
        self, needs: Iterable[tuple[PersistentVolumeClaim, Bools]], reach: NodeReach, codes: Ints
    ) -> None:
        """Refuse rows where a claim can neither get a volume nor have one made; the first such claim decides."""
        failed: Bools = np.zeros(len(codes), dtype=np.bool_)
        for claim, rows in needs:
            asking = rows & ~failed
            if not asking.any():
                continue
            known = self._objects.get(StorageClass, "", claim.class_name)
            allowed: Bools = np.zeros(len(codes), dtype=np.bool_)
            if known is not None and known.provisions:
                allowed[reach.rows(known.topologies)] = True
            codes[asking & ~allowed] |= NOT_FOUND
            failed |= asking & ~allowed
            asking &= allowed
            if known is not None and asking.any():
                short = asking & ~self._has_space(claim, known, reach, len(codes))
                codes[short] |= NO_SPACE
                failed |= short

    def _has_space(self, claim: PersistentVolumeClaim, known: StorageClass, reach: NodeReach, height: int) -> Bools:
        driver = self._objects.get(CSIDriver, "", known.provisioner)
        if claim.size is None or driver is None or not driver.storage_capacity:
            return np.ones(height, dtype=np.bool_)
        enough: Bools = np.zeros(height, dtype=np.bool_)
        for one in self._objects.all_of(CSIStorageCapacity):
            limit = one.limit
            if one.class_name == known.name and one.topology is not None and limit is not None and limit >= claim.size:
                enough[reach.rows(one.topology)] = True
        return enough


class _Matching:
    """Volumes chosen so far, for the claims of a pod in turn."""

    def __init__(self, reach: NodeReach) -> None:
        self._reach = reach
        self.volumes: list[PersistentVolume] = []
        self._numbers: dict[str, int] = {}
        self.chosen: list[Ints] = []

    def add(self, reserved: PersistentVolume | None, candidates: Iterable[PersistentVolume], open_rows: Bools) -> None:
        """Choose a volume for the next claim on each open row: the reserved one, or the smallest candidate."""
        chosen: Ints = np.full(len(open_rows), NONE, dtype=np.int64)
        done: set[NodeSelector | None] = set()
        left = int(np.count_nonzero(open_rows))
        for volume in (reserved,) if reserved is not None else candidates:
            if not left:
                break
            if volume.affinity in done:
                continue
            within = self._reach.rows(volume.affinity)
            number = self._number(volume)
            free = within[(chosen[within] == NONE) & open_rows[within]]
            taken = free[np.zeros(len(free), dtype=np.bool_)]
            for earlier in self.chosen:
                taken = np.union1d(taken, free[earlier[free] == number])
            mine = free if not len(taken) else np.setdiff1d(free, taken)
            chosen[mine] = number
            left -= len(mine)
            if not len(taken):
                done.add(volume.affinity)
        self.chosen.append(chosen)

    def _number(self, volume: PersistentVolume) -> int:
        number = self._numbers.setdefault(volume.name, len(self.volumes))
        if number == len(self.volumes):
            self.volumes.append(volume)
        return number
