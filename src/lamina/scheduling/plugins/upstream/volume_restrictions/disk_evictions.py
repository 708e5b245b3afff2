"""What evictions do to disks and claims that a pod cannot share, on all nodes at once."""

from typing import ClassVar

import numpy as np

from lamina.model.pod import Pod
from lamina.model.pod_volumes import exclusive_disks
from lamina.scheduling.plugins.upstream.volume_restrictions.volume_refusals import CLAIM_IN_USE, DISK
from lamina.scheduling.state.columns import Bools, Ints
from lamina.scheduling.state.volumes_in_use import VolumesInUse


class DiskEvictions:
    """Counts the disks in use that keep a pod away."""

    width: ClassVar = 1

    def __init__(self, pod: Pod, in_use: VolumesInUse, claimed: set[int], height: int) -> None:
        """Count for *pod*; on the rows *claimed*, pods use its claims for one pod."""
        self._disks = exclusive_disks(pod.volumes)
        self._claimed = claimed
        self._conflicts: Ints = np.zeros(height, dtype=np.int64)
        for disk in self._disks:
            for other in in_use.same_disks(disk):
                for row in in_use.rows(other) if disk.conflicts(other) else ():
                    self._conflicts[row] += in_use.on(row)[other]
        self.counting: Bools = self._conflicts > 0

    def counts(self, pod: Pod) -> list[int]:
        """Return the number of conflicts with a placed pod."""
        return [sum(mine.conflicts(theirs) for mine in self._disks for theirs in exclusive_disks(pod.volumes))]

    def codes(self, rows: Ints, gone: Ints) -> Ints:
        """
        Return the codes of the filter if the pods of *gone* conflicts had left each row.

        If the claims are used on one row only, the result for that row is not certain.
        """
        codes = np.zeros(len(rows), dtype=np.int64)
        if self._claimed:
            codes[:] = CLAIM_IN_USE
            if len(self._claimed) == 1:
                codes[rows == next(iter(self._claimed))] = 0
        codes[self._conflicts[rows] > gone[0]] = DISK
        return codes
