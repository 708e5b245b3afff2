"""
Which nodes list which image names in their status; ImageLocality scores by it.

As in upstream's cache, a name keeps the size of its first report until no node lists the name any longer.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from lamina.model.node import NodeImage


class ImageName:
    """An image name, its size in bytes, and the rows of the nodes that list it."""

    __slots__ = ("_mask", "rows", "size")

    def __init__(self, size: int) -> None:
        """Start without nodes."""
        self.size = size
        self.rows: set[int] = set()
        self._mask: npt.NDArray[np.bool_] | None = None

    def add(self, row: int) -> None:
        """Record that the node in *row* lists this name."""
        self.rows.add(row)
        if self._mask is not None and row < len(self._mask):
            self._mask[row] = True
        else:
            self._mask = None

    def discard(self, row: int) -> None:
        """Record that the node in *row* no longer lists this name."""
        self.rows.discard(row)
        if self._mask is not None:
            self._mask[row] = False

    def mask(self, size: int) -> npt.NDArray[np.bool_]:
        """
        Return one flag per row.

        Built on first use and updated afterwards: only names that pods request have a mask.
        """
        if self._mask is None or len(self._mask) < size:
            self._mask = np.zeros(size, dtype=np.bool_)
            self._mask[list(self.rows)] = True
        return self._mask[:size]


class ImageNames:
    """Image names of all nodes."""

    __slots__ = ("_by_name", "_by_row", "edition")

    def __init__(self) -> None:
        """Start without nodes."""
        self._by_name: dict[str, ImageName] = {}
        self._by_row: dict[int, frozenset[str]] = {}
        self.edition = 0
        """Increases whenever a name is listed first, or no longer."""

    def __contains__(self, name: str) -> bool:
        """Return whether some node lists *name*."""
        return name in self._by_name

    def get(self, name: str) -> ImageName | None:
        """Return the entry of *name*, or None if no node lists it."""
        return self._by_name.get(name)

    def sizes(self) -> dict[str, int]:
        """Return the size of each name in bytes."""
        return {name: entry.size for name, entry in self._by_name.items()}

    def restore(self, sizes: Mapping[str, int]) -> None:
        """Restore the sizes that listed names were first reported with."""
        for name, entry in self._by_name.items():
            entry.size = sizes.get(name, entry.size)

    def _resize(self, row: int, sizes: dict[str, int]) -> bool:
        """Correct a name's size if only this node lists it; return whether a size changed."""
        changed = False
        for name, size in sizes.items():
            entry = self._by_name.get(name)
            if entry is not None and entry.size != size and entry.rows == {row}:
                entry.size = size
                changed = True
        return changed

    def replace(self, row: int, images: Iterable[NodeImage]) -> bool:
        """Replace the images that the node in *row* lists; return whether anything changed."""
        # Reversed, so that the first of two entries with the same name wins, as upstream.
        sizes = {name: image.size for image in reversed(tuple(images)) for name in image.names}
        before = self._by_row.get(row, frozenset())
        resized = self._resize(row, sizes)
        if before == sizes.keys():
            return resized
        for name in before - sizes.keys():
            known = self._by_name[name]
            known.discard(row)
            if not known.rows:
                del self._by_name[name]
                self.edition += 1
        for name in sizes.keys() - before:
            entry = self._by_name.get(name)
            if entry is None:
                entry = self._by_name[name] = ImageName(sizes[name])
                self.edition += 1
            entry.add(row)
        if sizes:
            self._by_row[row] = frozenset(sizes)
        else:
            self._by_row.pop(row, None)
        return True
