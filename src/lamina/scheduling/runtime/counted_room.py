"""What a filter that counts pods says about evictions on all nodes at once (`contract.counted_evictions`)."""

from collections.abc import Mapping, Sequence

import numpy as np

from lamina.model.pod import Pod
from lamina.scheduling.contract.counted_evictions import CountedEvictions
from lamina.scheduling.state.columns import Bools, Ints
from lamina.scheduling.state.placed_pods import PlacedArrays, PodKinds


class CountedRoom:
    """One filter, with the pods that may leave and the nominated pods that a pod must fit beside."""

    def __init__(
        self,
        evictions: CountedEvictions,
        kinds: PodKinds,
        entries: PlacedArrays,
        ahead: Mapping[int, Sequence[Pod]],
    ) -> None:
        """Count *entries*, the pods that may leave, and the pods *ahead* by row."""
        self._evictions = evictions
        height, width = len(evictions.counting), evictions.width
        places = np.flatnonzero(evictions.counting[entries.row])
        numbers = np.flatnonzero(np.bincount(entries.kind[places])).tolist()
        of_kind: Ints = np.zeros((width, len(kinds.pods)), dtype=np.int64)
        for number in numbers:
            of_kind[:, number] = evictions.counts(kinds.pods[number])
        self._counts: Ints = np.zeros((width, len(entries.row)), dtype=np.int64)
        self._counts[:, places] = of_kind[:, entries.kind[places]]
        self.matters: Bools = np.any(self._counts != 0, axis=0)
        """For each entry: whether it has a count that is not 0."""
        self.gone: Ints = np.zeros((width, height), dtype=np.int64)
        """By row: the counts of all entries."""
        for line, counts in zip(self.gone, self._counts, strict=True):
            line[:] = np.bincount(entries.row, counts, height)
        self._ahead: Bools = np.zeros(height, dtype=np.bool_)
        self._counts_ahead: Ints = np.zeros((width, height), dtype=np.int64)
        for row, pods in ahead.items():
            self._ahead[row] = True
            for one in pods:
                self._counts_ahead[:, row] += np.array(evictions.counts(one), dtype=np.int64)

    def back(self, gone: Ints, entries: Ints) -> Ints:
        """Return *gone* with one of *entries* back for each of its columns."""
        less: Ints = gone - self._counts[:, entries]
        return less

    def refuses(self, rows: Ints, gone: Ints) -> Bools:
        """Return which of *rows* the filter refuses, as the node is or beside the pods ahead."""
        flags: Bools = self._evictions.codes(rows, gone) != 0
        ahead = self._ahead[rows]
        if ahead.any():
            rows = rows[ahead]
            flags[ahead] |= self._evictions.codes(rows, gone[:, ahead] - self._counts_ahead[:, rows]) != 0
        return flags

    def codes(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return the codes of *rows* without all entries: as the node is, and beside the pods ahead."""
        gone = self.gone[:, rows]
        alone = self._evictions.codes(rows, gone)
        return alone, self._evictions.codes(rows, gone - self._counts_ahead[:, rows])
