"""The distinct layers of a pod's images, and the bytes that each row does not hold: computed once, then patched."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lamina.model.digest import Digest
from lamina.model.image import Image

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Lines = npt.NDArray[np.intp]


class LayerLines:
    """
    Blobs or chains of images as lines of the index.

    A row holds a part if the bit of either of its two lines is set.
    """

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
        """Take lines, alternative lines for the same parts (0: none), compressed bytes and unpacked bytes."""
        self.numbers = tuple(lines)
        self.lines: Lines = np.array(lines, dtype=np.intp)
        self.others: Lines | None = np.array(others, dtype=np.intp) if any(others) else None
        self.bytes: Floats = np.array(sizes, dtype=np.float64)
        self.unpacked: Floats = np.array(unpacked, dtype=np.float64)
        self.total = float(sum(sizes))
        self.total_unpacked = float(sum(unpacked))
        self.download_after = _after(sizes)
        """Bytes left to download when the lowest N parts are there; the last entry is for the whole image."""
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
    The images that a pod needs on its node, with the not-held bytes of each row.

    One object lives as long as the same images are queried, so that a repeated query only visits rows that changed.
    Read the arrays right after `not_held.update_rows`, and do not modify them.
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
        """Start without rows for these distinct images and their lines of the index."""
        self.images = images
        self.blobs = blobs
        self.chains = chains
        self.wholes = wholes
        self.position = -1
        """Position in the index's journal up to which the rows are current."""
        self.download: Floats = NOTHING
        """Bytes each row would have to download: layers neither held nor arriving."""
        self.unpack: Floats = NOTHING
        """Unpacked bytes each row would have to write."""
        self.complete: Bools = NO_ROWS
        """Rows on which every image is held or arriving as a whole."""
        self._weights: Floats | None = None
        self._stack: Lines | None = None

    @property
    def stack(self) -> Lines:
        """Lines of the chains, then of the images. For a single image, a row's bits here can be counted."""
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
        """
        Weights of the lines for four sums: chain bytes, unpacked bytes, images, blob bytes.

        The lines are those of chains, then images, then blobs.
        """
        if self._weights is None:
            layers, count = len(self.chains.lines), len(self.wholes)
            self._weights = np.zeros((4, layers + count + len(self.blobs.lines)))
            self._weights[0, :layers] = self.chains.bytes
            self._weights[1, :layers] = self.chains.unpacked
            self._weights[2, layers : layers + count] = 1
            self._weights[3, layers + count :] = self.blobs.bytes
        return self._weights


NOTHING: Floats = np.zeros(0)
NO_ROWS: Bools = np.zeros(0, dtype=np.bool_)
