"""
Nodes × layers as packed bits: which rows hold which layer, and how many of a pod's bytes are already there.

One line of bits per layer (eight nodes a byte), so that a pod's few layers are a few contiguous lines, whatever the
number of nodes. Layers that no node holds are dropped and their line is used again. For images that are asked for, the
bytes per row are kept (`WantedLayers`) and patched as reports come.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

from lamina.layers.wanted import WantedLayers
from lamina.model.digest import Digest
from lamina.model.image import Layer

FIRST_LINES: Final = 256
FIRST_ROWS: Final = 512
# How many changed rows are remembered; whoever looks again after more of them counts anew.
REMEMBERED: Final = 512
UNREPORTED: Final = -1


class LayerIndex:
    """Which rows hold which layers. Rows are those of the node columns; the caller keeps them in step."""

    def __init__(self) -> None:
        """Start with no layer anywhere."""
        self._lines: dict[Digest, int] = {}
        self._spare: list[int] = []
        self._used = 0
        self._bits = np.zeros((FIRST_LINES, FIRST_ROWS // 8), dtype=np.uint8)
        self._holders: list[int] = []
        self._held: dict[int, dict[Digest, int]] = {}
        self._reported = np.zeros(FIRST_ROWS, dtype=np.bool_)
        self._changed: list[int] = []
        self._first_changed = 0

    def __len__(self) -> int:
        """Count the layers that some node holds."""
        return len(self._lines)

    def replace(self, row: int, layers: Iterable[Layer]) -> bool:
        """Take over what the node in *row* holds now; say whether that changed anything."""
        self._reach(row)
        now = {layer.digest for layer in layers}
        held = self._held.setdefault(row, {})
        news = not self._reported[row]
        self._reported[row] = True
        byte, bit = row >> 3, 128 >> (row & 7)
        # Sorted: line numbers must not depend on the order in which a set happens to be walked.
        for digest in sorted(held.keys() - now):
            line = held.pop(digest)
            self._bits[line, byte] &= ~np.uint8(bit)
            self._holders[line] -= 1
            if self._holders[line] == 0:
                del self._lines[digest]
                self._spare.append(line)
            news = True
        for digest in sorted(now - held.keys()):
            line = self._line(digest)
            held[digest] = line
            self._bits[line, byte] |= np.uint8(bit)
            self._holders[line] += 1
            news = True
        if news:
            self._note(row)
        return news

    def forget(self, row: int) -> None:
        """Drop everything about a row; it counts as not reported."""
        if row in self._held:
            self.replace(row, ())
            del self._held[row]
            self._reported[row] = False
            self._note(row)

    def held(self, row: int) -> frozenset[Digest]:
        """Return the layers on a row."""
        return frozenset(self._held.get(row, ()))

    def present_bytes(self, wanted: WantedLayers, height: int) -> npt.NDArray[np.int64]:
        """
        Return how many bytes of *wanted* each of the first *height* rows holds; -1 where nothing was reported.

        The array is the index's own and changes with the next report: read it now, do not keep or change it.
        """
        row, behind = wanted.row, wanted.position - self._first_changed
        if row is None or behind < 0 or len(row) < height:
            self._reach(height - 1)
            row = wanted.row = self._count(wanted.sizes, len(self._reported))
        elif behind < len(self._changed):
            for changed in set(self._changed[behind:]):
                if changed < len(row):
                    row[changed] = self._count_row(wanted.sizes, changed)
        wanted.position = self._first_changed + len(self._changed)
        return row[:height]

    def _count(self, sizes: dict[Digest, int], height: int) -> npt.NDArray[np.int64]:
        found = [(self._lines[digest], size) for digest, size in sizes.items() if digest in self._lines]
        if found:
            flags = np.unpackbits(self._bits[[line for line, _ in found]], axis=1, count=height)
            # A float64 product is exact here: sums of layer sizes stay far below 2**53, and BLAS has no integers.
            weights = np.array([size for _, size in found], dtype=np.float64)
            present = (weights @ flags.astype(np.float64)).astype(np.int64)
        else:
            present = np.zeros(height, dtype=np.int64)
        present[~self._reported[:height]] = UNREPORTED
        return present

    def _count_row(self, sizes: dict[Digest, int], row: int) -> int:
        held = self._held.get(row)
        return UNREPORTED if held is None else sum(size for digest, size in sizes.items() if digest in held)

    def _note(self, row: int) -> None:
        self._changed.append(row)
        if len(self._changed) > 2 * REMEMBERED:
            del self._changed[:REMEMBERED]
            self._first_changed += REMEMBERED

    def _line(self, digest: Digest) -> int:
        line = self._lines.get(digest)
        if line is not None:
            return line
        if self._spare:
            line = self._spare.pop()
        else:
            line = self._used
            self._used += 1
            self._holders.append(0)
            if line == len(self._bits):
                self._bits = np.pad(self._bits, ((0, line), (0, 0)))
        self._lines[digest] = line
        return line

    def _reach(self, row: int) -> None:
        rows = len(self._reported)
        if row < rows:
            return
        while rows <= row:
            rows *= 2
        self._bits = np.pad(self._bits, ((0, 0), (0, rows // 8 - self._bits.shape[1])))
        self._reported = np.pad(self._reported, (0, rows - len(self._reported)))
