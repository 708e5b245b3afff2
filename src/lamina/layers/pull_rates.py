"""
How fast each row downloads and unpacks, and how full its disk is: as its agent observed it, or as others did.

A row that has not been seen to download counts as the middle of those that have; only while none has, what was configured
holds. Otherwise a new node would look faster than any that is known to be slow, and draw pods away from their layers.

    pull = max(d, u) + 0.15 · min(d, u) + 0.04 s      d = bytes / download rate, u = unpacked bytes / unpack rate

Runtimes unpack one layer while the next ones download, so the longer of the two decides and a part of the other is added
at the ends; the constants are those of `docs/decisions/0006`.
"""

import math
from typing import Final

import numpy as np

from lamina.layers.layer_keys import RATIO
from lamina.layers.layer_set import Bools, Floats, Lines
from lamina.model.errors import WiringError
from lamina.rows.growable import grown

# Bytes per second where nobody said: a gigabit link, and one thread that unpacks.
DOWNLOAD: Final = 125e6
UNPACK: Final = 100e6
# What an agent can have observed; anything beyond is cut off here.
SLOWEST: Final = 1e4
FASTEST: Final = 1e11
OVERLAP: Final = 0.15
RESOLVE: Final = 0.04
# What rows are taken for that did not say moves in steps of 5 %: it is looked up by all of them, and whenever it moves,
# all of them have changed.
STEP: Final = math.log(1.05)
STEPS: Final = round(math.log(FASTEST) / STEP) + 1
# Where a kubelet begins to remove images.
FULL: Final = 0.85

UNTOLD: Final = (0.0, 0.0, 0, 0)

Rows = Lines | slice
RowRates = tuple[int, float, float, int, int]
"""A row, and what it said last: download, unpack, disk, free."""


def _step(rate: float) -> int:
    return round(math.log(rate) / STEP)


class PullRates:
    """Rates and disks, by row."""

    def __init__(self, rows: int) -> None:
        """Assume the usual everywhere."""
        self._assumed: tuple[float, float] | None = None
        self._usual = [DOWNLOAD, UNPACK]
        """What rows count as that did not say."""
        self._tally = np.zeros((2, STEPS), dtype=np.intp)
        """How many rows were seen at each step. So the middle is found without sorting, and is the same in any order."""
        self.download: Floats = np.full(rows, DOWNLOAD)
        self.unpack: Floats = np.full(rows, UNPACK)
        self.disk: Floats = np.zeros(rows)
        """Bytes of the disk images are on; 0 where nobody said."""
        self._disks = 0
        """How many rows said."""
        self.used: Floats = np.zeros(rows)
        self._observed: Bools = np.zeros((2, rows), dtype=np.bool_)
        self._told: dict[int, tuple[float, float, int, int]] = {}
        """What was observed last: most reports say the same as the one before."""

    def assume(self, download: float, unpack: float) -> None:
        """Set what holds for rows that did not say; everybody who asks has to assume the same."""
        if self._assumed not in (None, (download, unpack)):
            raise WiringError("all profiles share one inventory and must assume the same bandwidth and unpack rate")
        self._assumed = (download, unpack)
        self.follow()

    def observe(self, row: int, download: float, unpack: float, disk: int, free: int) -> bool:
        """Take over what an agent observed (0: nothing); say whether that changed anything."""
        told = (download, unpack, disk, free)
        if self._told.get(row, UNTOLD) == told:
            return False
        self._told[row] = told
        self._reach(row)
        before = self._at(row)
        for which, (rates, rate) in enumerate(((self.download, download), (self.unpack, unpack))):
            if self._observed[which, row]:
                self._tally[which, _step(rates[row])] -= 1
            rates[row] = min(max(rate, SLOWEST), FASTEST) if rate > 0 else self._usual[which]
            self._observed[which, row] = rate > 0
            if rate > 0:
                self._tally[which, _step(rates[row])] += 1
        self._disks += (disk > 0) - (self.disk.item(row) > 0)
        self.disk[row] = max(disk, 0)
        self.used[row] = max(disk - free, 0) if disk > 0 else 0.0
        return before != self._at(row)

    def follow(self) -> Bools | None:
        """Let rows that did not say follow those that did; return which rows are of another rate now, None: none."""
        moved: Bools | None = None
        for which, rates in enumerate((self.download, self.unpack)):
            usual = self._middle(which)
            if usual != self._usual[which]:
                self._usual[which] = usual
                others = ~self._observed[which]
                rates[others] = usual
                moved = others if moved is None else moved | others
        return moved

    def _middle(self, which: int) -> float:
        seen = self._tally[which].cumsum()
        if not seen[-1]:
            return (self._assumed or (DOWNLOAD, UNPACK))[which]
        return math.exp(STEP * int(seen.searchsorted((seen[-1] + 1) // 2)))

    def pull_seconds(self, rows: Rows, download: Floats, unpack: Floats) -> tuple[Floats, Floats]:
        """Return how long a pull takes once its turn has come, and how long the download would alone."""
        loading, unpacking = download / self.download[rows], unpack / self.unpack[rows]
        seconds: Floats = np.minimum(loading, unpacking)
        seconds *= OVERLAP
        seconds += np.maximum(loading, unpacking, out=unpacking)
        seconds += RESOLVE
        return seconds, loading

    def pull_takes(self, row: int, download: float, unpack: float) -> float:
        """Return how long a pull takes on one row."""
        loading, unpacking = download / self.download.item(row), unpack / self.unpack.item(row)
        return min(loading, unpacking) * OVERLAP + max(loading, unpacking) + RESOLVE

    def disk_seconds(self, rows: Rows, download: Floats, unpack: Floats, by_prefix: Bools) -> Floats | None:
        """Price what would be removed to make room, in seconds of download; None when nobody told of a disk."""
        if not self._disks:
            return None
        # Who reuses by prefix only keeps no blobs.
        kept = np.where(by_prefix, 0.0, download)
        over = np.maximum(self.used[rows] + kept + unpack - FULL * self.disk[rows], 0.0)
        price: Floats = over / ((RATIO + ~by_prefix) * self.download[rows])
        return np.where(self.disk[rows] > 0, price, 0.0)

    def snapshot(self) -> tuple[RowRates, ...]:
        """Return what rows said last, as data; the rest follows from it."""
        return tuple((row, *told) for row, told in self._told.items() if told != UNTOLD)

    def restore(self, snapshot: tuple[RowRates, ...]) -> None:
        """Take over what rows said last."""
        for row, download, unpack, disk, free in snapshot:
            self.observe(row, download, unpack, disk, free)
        self.follow()

    def _at(self, row: int) -> tuple[float, ...]:
        return tuple(float(one[row]) for one in (self.download, self.unpack, self.disk, self.used))

    def _reach(self, row: int) -> None:
        if row < len(self.download):
            return
        self.download = grown(self.download, row + 1, self._usual[0])
        self.unpack = grown(self.unpack, row + 1, self._usual[1])
        self.disk = grown(self.disk, row + 1)
        self.used = grown(self.used, row + 1)
        self._observed = grown(self._observed, row + 1)

    def reach(self, rows: int) -> None:
        """Make room for so many rows."""
        self._reach(rows - 1)
