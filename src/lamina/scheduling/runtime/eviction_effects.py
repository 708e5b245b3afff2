"""
What evictions can change about the verdict of each filter, so that few nodes need a dry run of their own.

    fixed      reads nothing that evictions change: its codes stay
    amounts    compares free amounts (`freed_room`)
    counting   follows from numbers of pods (`counted_room`)
    relieved   passes where it passes now
    any other  every node needs a dry run of its own
"""

import numpy as np

from lamina.scheduling.runtime.counted_room import CountedRoom
from lamina.scheduling.runtime.dry_run import DryRun
from lamina.scheduling.runtime.profile import FilterPart
from lamina.scheduling.runtime.what_if import FIXED
from lamina.scheduling.state.columns import Bools
from lamina.scheduling.state.placed_pods import PlacedArrays, PodKinds


class EvictionEffects:
    """The filters of one dry run, by what evictions change."""

    def __init__(self, dry_run: DryRun, amounts: FilterPart | None, kinds: PodKinds, entries: PlacedArrays) -> None:
        """Examine all filters but *amounts*; *entries* are the pods that may leave."""
        height = len(dry_run.nodes)
        self.refused: list[Bools] = []
        """For each fixed filter that refuses nodes: which rows."""
        self.counted: list[CountedRoom] = []
        self.single: Bools = np.zeros(height, dtype=np.bool_)
        """Rows that need a dry run of their own."""
        if dry_run.silent is None:
            # The pod was refused before any filter ran.
            self.single[:] = True
            return
        # A filter that does not apply to the pod can apply because of the nominated pods that it must fit beside.
        self._peculiar = [
            row for row, pods in dry_run.ahead.items() if any(one.has_pod_terms or one.host_ports for one in pods)
        ]
        for part, silent, codes in zip(dry_run.profile.filters, dry_run.silent, dry_run.codes, strict=True):
            if part is amounts:
                continue
            if not _fixed(part):
                self._add(dry_run, part, kinds, entries, silent=silent, refused=None if codes is None else codes != 0)
            elif codes is not None:
                self.refused.append(codes != 0)

    def _add(
        self,
        dry_run: DryRun,
        part: FilterPart,
        kinds: PodKinds,
        entries: PlacedArrays,
        *,
        silent: bool,
        refused: Bools | None,
    ) -> None:
        ahead, peculiar = dry_run.ahead, self._peculiar
        if silent and not peculiar:
            return
        if part.counting is not None:
            there = [one for pods in ahead.values() for one in pods]
            evictions = part.counting.evictions(dry_run.pod, dry_run.nodes, there)
            self.counted.append(CountedRoom(evictions, kinds, entries, ahead))
            if part.relieved is not None and not silent:
                self.single[[*part.relieved.unsure(dry_run.pod, dry_run.nodes), *ahead]] = True
        elif part.relieved is not None:
            if silent:
                return
            if refused is not None:
                self.single |= refused
            self.single[[*part.relieved.unsure(dry_run.pod, dry_run.nodes), *ahead]] = True
        elif silent:
            self.single[peculiar] = True
        else:
            self.single[:] = True


def _fixed(part: FilterPart) -> bool:
    reads = part.reads
    return (reads.rows | reads.whole | reads.others) <= FIXED
