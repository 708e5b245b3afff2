"""The distinct layers of a set of images, and how much of them each row holds: computed once, then patched."""

import numpy as np
import numpy.typing as npt

from lamina.model.digest import Digest


class WantedLayers:
    """
    What a pod (or anything else with images) needs on its node.

    One of these lives as long as the same images are asked for; the index keeps its materialised row in it, so that
    asking again costs only the rows that changed since.
    """

    __slots__ = ("position", "row", "sizes", "total")

    def __init__(self, sizes: dict[Digest, int]) -> None:
        """Want these layers (digest → compressed bytes)."""
        self.sizes = sizes
        self.total = sum(sizes.values())
        self.row: npt.NDArray[np.int64] | None = None
        """Bytes present per row as of *position* of the index; -1 where nothing was reported."""
        self.position = 0
