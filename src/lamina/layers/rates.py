"""
How fast each row downloads and unpacks, and how full its disk is: as its agent observed it, or as was assumed.

    pull = max(d, u) + 0.15 · min(d, u) + 0.04 s      d = bytes / download rate, u = unpacked bytes / unpack rate

Runtimes unpack one layer while the next ones download, so the longer of the two decides and a part of the other is added
at the ends; the constants are those of `docs/decisions/0006`.
"""

from typing import Final

import numpy as np

from lamina.layers.keys import RATIO
from lamina.layers.wanted import Bools, Floats, Lines
from lamina.model.errors import WiringError

# Bytes per second where nobody said: a gigabit link, and one thread that unpacks.
DOWNLOAD: Final = 125e6
UNPACK: Final = 100e6
# What an agent can have observed; anything beyond is cut off here.
SLOWEST: Final = 1e4
FASTEST: Final = 1e11
OVERLAP: Final = 0.15
RESOLVE: Final = 0.04
# Where a kubelet begins to remove images.
FULL: Final = 0.85

Rows = Lines | slice


class Rates:
    """Rates and disks, by row."""

    def __init__(self, rows: int) -> None:
        """Assume the usual everywhere."""
        self._assumed: tuple[float, float] | None = None
        self.download: Floats = np.full(rows, DOWNLOAD)
        self.unpack: Floats = np.full(rows, UNPACK)
        self.disk: Floats = np.zeros(rows)
        """Bytes of the disk images are on; 0 where nobody said."""
        self.used: Floats = np.zeros(rows)
        self._observed: Bools = np.zeros((2, rows), dtype=np.bool_)

    def assume(self, download: float, unpack: float) -> None:
        """Set what holds for rows that did not say; everybody who asks has to assume the same."""
        if self._assumed not in (None, (download, unpack)):
            raise WiringError("all profiles share one inventory and must assume the same bandwidth and unpack rate")
        self._assumed = (download, unpack)
        self.download[~self._observed[0]] = download
        self.unpack[~self._observed[1]] = unpack

    def observe(self, row: int, download: float, unpack: float, disk: int, free: int) -> bool:
        """Take over what an agent observed (0: nothing); say whether that changed anything."""
        self._reach(row)
        before = self._at(row)
        usual = self._assumed or (DOWNLOAD, UNPACK)
        self.download[row] = min(max(download, SLOWEST), FASTEST) if download > 0 else usual[0]
        self.unpack[row] = min(max(unpack, SLOWEST), FASTEST) if unpack > 0 else usual[1]
        self._observed[:, row] = (download > 0, unpack > 0)
        self.disk[row] = max(disk, 0)
        self.used[row] = max(disk - free, 0) if disk > 0 else 0.0
        return before != self._at(row)

    def pull_seconds(self, rows: Rows, download: Floats, unpack: Floats) -> Floats:
        """Return how long a pull takes once its turn has come."""
        loading, unpacking = download / self.download[rows], unpack / self.unpack[rows]
        seconds: Floats = np.minimum(loading, unpacking)
        seconds *= OVERLAP
        seconds += np.maximum(loading, unpacking)
        seconds += RESOLVE
        return seconds

    def disk_seconds(self, rows: Rows, download: Floats, unpack: Floats, by_prefix: Bools) -> Floats | None:
        """Price what would be removed to make room, in seconds of download; None when nobody told of a disk."""
        if not self.disk.any():
            return None
        # Who reuses by prefix only keeps no blobs.
        kept = np.where(by_prefix, 0.0, download)
        over = np.maximum(self.used[rows] + kept + unpack - FULL * self.disk[rows], 0.0)
        price: Floats = over / ((RATIO + ~by_prefix) * self.download[rows])
        return np.where(self.disk[rows] > 0, price, 0.0)

    def _at(self, row: int) -> tuple[float, ...]:
        return tuple(float(one[row]) for one in (self.download, self.unpack, self.disk, self.used))

    def _reach(self, row: int) -> None:
        more = len(self.download)
        if row < more:
            return
        while len(self.download) + more <= row:
            more *= 2
        usual = self._assumed or (DOWNLOAD, UNPACK)
        self.download = np.pad(self.download, (0, more), constant_values=usual[0])
        self.unpack = np.pad(self.unpack, (0, more), constant_values=usual[1])
        self.disk = np.pad(self.disk, (0, more))
        self.used = np.pad(self.used, (0, more))
        self._observed = np.pad(self._observed, ((0, 0), (0, more)))

    def reach(self, rows: int) -> None:
        """Make room for so many rows."""
        self._reach(rows - 1)
