"""
Download rate, unpack rate and disk use of each row: as its node agent measured them, or assumed.

A row without a measured rate is assigned the median of the measured rows; while there are none, the configured rate is
used. Otherwise a new node would look faster than every node that is known to be slow, and attract pods away from their
layers.

    pull = max(d, u) + 0.15 · min(d, u) + 0.04 s      d = bytes / download rate, u = unpacked bytes / unpack rate

Runtimes unpack one layer while they download the next ones. The longer of the two phases dominates, and a part of the
other is added at the ends. `docs/decisions/0006` derives the constants.
"""

import math
from typing import Final

import numpy as np

from lamina.layers.layer_keys import RATIO
from lamina.layers.layer_set import Bools, Floats, Lines
from lamina.model.errors import WiringError
from lamina.rows.growable import grown

# Default bytes per second: a 1 Gbit/s link, and one thread that unpacks.
DOWNLOAD: Final = 125e6
UNPACK: Final = 100e6
# Range of plausible rates in bytes per second; measured rates are clamped to it.
SLOWEST: Final = 1e4
FASTEST: Final = 1e11
OVERLAP: Final = 0.15
RESOLVE: Final = 0.04
# The assumed rate moves in steps of 5 %, because each move changes all rows without a measured rate.
STEP: Final = math.log(1.05)
STEPS: Final = round(math.log(FASTEST) / STEP) + 1
# Disk usage at which the kubelet begins image garbage collection.
FULL: Final = 0.85

UNMEASURED: Final = (0.0, 0.0, 0, 0)

Rows = Lines | slice
RowRates = tuple[int, float, float, int, int]
"""Row, download rate, unpack rate, disk bytes and free bytes, as last reported."""


def _step(rate: float) -> int:
    return round(math.log(rate) / STEP)


class PullRates:
    """Rates and disk use by row."""

    def __init__(self, rows: int) -> None:
        """Start with the default rates on all rows."""
        self._assumed: tuple[float, float] | None = None
        self._usual = [DOWNLOAD, UNPACK]
        """Rates of rows without a measured rate."""
        self._tally = np.zeros((2, STEPS), dtype=np.intp)
        """
        Rows measured at each step.

        The histogram gives the median without sorting, independent of the order of reports.
        """
        self.download: Floats = np.full(rows, DOWNLOAD)
        self.unpack: Floats = np.full(rows, UNPACK)
        self.disk: Floats = np.zeros(rows)
        """Bytes of the disk that stores images; 0 where it is unknown."""
        self._disks = 0
        """Number of rows with a known disk size."""
        self.used: Floats = np.zeros(rows)
        self._observed: Bools = np.zeros((2, rows), dtype=np.bool_)
        self._observations: dict[int, tuple[float, float, int, int]] = {}
        """Last observation of each row; most reports repeat it."""

    def assume(self, download: float, unpack: float) -> None:
        """
        Set the rates of rows without a measured rate, used while no row has one.

        Raises WiringError if another profile has set other rates.
        """
        if self._assumed not in (None, (download, unpack)):
            raise WiringError("all profiles share one inventory and must assume the same bandwidth and unpack rate")
        self._assumed = (download, unpack)
        self.update_assumed()

    def observe(self, row: int, download: float, unpack: float, disk: int, free: int) -> bool:
        """Store what a node agent measured (0: not measured); return whether that changed anything."""
        observation = (download, unpack, disk, free)
        if self._observations.get(row, UNMEASURED) == observation:
            return False
        self._observations[row] = observation
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

    def update_assumed(self) -> Bools | None:
        """Give unmeasured rows the median rate; return the rows that changed, or None."""
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
        """Return the seconds of a pull that has the link to itself, and the seconds of its download alone."""
        loading, unpacking = download / self.download[rows], unpack / self.unpack[rows]
        seconds: Floats = np.minimum(loading, unpacking)
        seconds *= OVERLAP
        seconds += np.maximum(loading, unpacking, out=unpacking)
        seconds += RESOLVE
        return seconds, loading

    def pull_takes(self, row: int, download: float, unpack: float) -> float:
        """Return the seconds of a pull on one row."""
        loading, unpacking = download / self.download.item(row), unpack / self.unpack.item(row)
        return min(loading, unpacking) * OVERLAP + max(loading, unpacking) + RESOLVE

    def disk_seconds(self, rows: Rows, download: Floats, unpack: Floats, by_prefix: Bools) -> Floats | None:
        """Return the cost of images that must be removed to make room, in seconds of download, or None."""
        if not self._disks:
            return None
        # Runtimes that reuse by prefix delete blobs after unpacking.
        kept = np.where(by_prefix, 0.0, download)
        over = np.maximum(self.used[rows] + kept + unpack - FULL * self.disk[rows], 0.0)
        price: Floats = over / ((RATIO + ~by_prefix) * self.download[rows])
        return np.where(self.disk[rows] > 0, price, 0.0)

    def snapshot(self) -> tuple[RowRates, ...]:
        """Return the last observations as data; the other state follows from them."""
        return tuple((row, *last) for row, last in self._observations.items() if last != UNMEASURED)

    def restore(self, snapshot: tuple[RowRates, ...]) -> None:
        """Restore the last observations."""
        for row, download, unpack, disk, free in snapshot:
            self.observe(row, download, unpack, disk, free)
        self.update_assumed()

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
        """Make room for *rows* rows."""
        self._reach(rows - 1)
