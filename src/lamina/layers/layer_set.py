"""The distinct layers of a pod's images, and how much of them each row lacks: computed once, then patched."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lamina.model.digest import Digest
from lamina.model.image import Image

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Lines = npt.NDArray[np.intp]


class LayerLines:
    """Things a node can have of images, as lines of the index: one is had if either of its two lines is set."""

    __slots__ = (
        "bytes",
        "download_after",
        "lines",
        "numbers",
        "others",
        "total",
        "total_unpacked",
        "unpack_after",
        "unpacked",
    )

    def __init__(
        self, lines: Sequence[int], others: Sequence[int], sizes: Sequence[int], unpacked: Sequence[int]
    ) -> None:
        """Take lines, other lines for the same things (0: none), compressed and unpacked bytes."""
        self.numbers = tuple(lines)
        self.lines: Lines = np.array(lines, dtype=np.intp)
        self.others: Lines | None = np.array(others, dtype=np.intp) if any(others) else None
        self.bytes: Floats = np.array(sizes, dtype=np.float64)
        self.unpacked: Floats = np.array(unpacked, dtype=np.float64)
        self.total = float(sum(sizes))
        self.total_unpacked = float(sum(unpacked))
        self.download_after = _after(sizes)
        """Bytes left after so many of them from the bottom; the last is for the whole image."""
        self.unpack_after = _after(unpacked)


def _after(amounts: Sequence[int]) -> Floats:
    left = sum(amounts)
    steps = [left]
    for one in amounts:
        left -= one
        steps.append(left)
    return np.array([*steps, left], dtype=np.float64)


class LayerSet:
    """
    What a pod (or anything else with images) needs on its node.

    One of these lives as long as the same images are asked for; the index keeps its rows in it, so that asking again costs
    only the rows that changed since. Read the rows after `lacking.look`, at once, and do not change them.
    """

    __slots__ = (
        "_stack",
        "_weights",
        "blobs",
        "chains",
        "complete",
        "download",
        "images",
        "position",
        "unpack",
        "wholes",
    )

    def __init__(self, images: tuple[Image, ...], blobs: LayerLines, chains: LayerLines, wholes: Lines) -> None:
        """Want these distinct images, which the index knows by these lines."""
        self.images = images
        self.blobs = blobs
        self.chains = chains
        self.wholes = wholes
        self.position = -1
        """How much of the index's history the rows take into account."""
        self.download: Floats = NOTHING
        """Bytes each row would have to download, beyond what is there or on its way."""
        self.unpack: Floats = NOTHING
        """Unpacked bytes each row would have to write."""
        self.complete: Bools = NOBODY
        """Which rows have every image as a whole, or have it on its way."""
        self._weights: Floats | None = None
        self._stack: Lines | None = None

    @property
    def stack(self) -> Lines:
        """The chains and, on top of them, the images themselves: of one image a row's bits here are a count."""
        if self._stack is None:
            self._stack = np.concatenate([self.chains.lines, self.wholes])
        return self._stack

    @property
    def total(self) -> int:
        """Compressed bytes, each distinct layer counted once."""
        return int(self.blobs.total)

    @property
    def sizes(self) -> dict[Digest, int]:
        """Compressed bytes of each distinct layer."""
        found: dict[Digest, int] = {}
        for image in self.images:
            for layer in image.layers:
                found.setdefault(layer.digest, layer.size)
        return found

    @property
    def weights(self) -> Floats:
        """What a line (of chains, then images, then blobs) counts for: bytes by chain, unpacked, images, bytes by blob."""
        if self._weights is None:
            layers, count = len(self.chains.lines), len(self.wholes)
            self._weights = np.zeros((4, layers + count + len(self.blobs.lines)))
            self._weights[0, :layers] = self.chains.bytes
            self._weights[1, :layers] = self.chains.unpacked
            self._weights[2, layers : layers + count] = 1
            self._weights[3, layers + count :] = self.blobs.bytes
        return self._weights


NOTHING: Floats = np.zeros(0)
NOBODY: Bools = np.zeros(0, dtype=np.bool_)
