"""
Which nodes list which image names in their status: what ImageLocality ranks by.

As upstream's cache does, a name keeps the size it was first seen with until no node lists it any longer.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from lamina.model.node import NodeImage


class ImageName:
    """One name: its size, and the rows of the nodes that list it."""

    __slots__ = ("_mask", "rows", "size")

    def __init__(self, size: int) -> None:
        """Start with no node."""
        self.size = size
        self.rows: set[int] = set()
        self._mask: npt.NDArray[np.bool_] | None = None

    def add(self, row: int) -> None:
        """Note that the node in *row* lists this name."""
        self.rows.add(row)
        if self._mask is not None and row < len(self._mask):
            self._mask[row] = True
        else:
            self._mask = None

    def discard(self, row: int) -> None:
        """Note that the node in *row* no longer lists this name."""
        self.rows.discard(row)
        if self._mask is not None:
            self._mask[row] = False

    def mask(self, size: int) -> npt.NDArray[np.bool_]:
        """
        Return one flag per row.

        Built on first use and patched afterwards: only names that pods ask for ever have one.
        """
        if self._mask is None or len(self._mask) < size:
            self._mask = np.zeros(size, dtype=np.bool_)
            self._mask[list(self.rows)] = True
        return self._mask[:size]


class ImageNames:
    """All names on all nodes."""

    __slots__ = ("_by_name", "_by_row")

    def __init__(self) -> None:
        """Start with no node."""
        self._by_name: dict[str, ImageName] = {}
        self._by_row: dict[int, frozenset[str]] = {}

    def get(self, name: str) -> ImageName | None:
        """Return what is known of *name*; None when no node lists it."""
        return self._by_name.get(name)

    def sizes(self) -> dict[str, int]:
        """Return the size of each name."""
        return {name: entry.size for name, entry in self._by_name.items()}

    def restore(self, sizes: Mapping[str, int]) -> None:
        """Let names that nodes list have the sizes they were first seen with."""
        for name, entry in self._by_name.items():
            entry.size = sizes.get(name, entry.size)

    def _resize(self, row: int, sizes: dict[str, int]) -> bool:
        """Let a node that is the only one to list a name correct its size."""
        changed = False
        for name, size in sizes.items():
            entry = self._by_name.get(name)
            if entry is not None and entry.size != size and entry.rows == {row}:
                entry.size = size
                changed = True
        return changed

    def replace(self, row: int, images: Iterable[NodeImage]) -> bool:
        """Take over what the node in *row* lists now; say whether that changed anything."""
        # Backwards, so that of two entries with one name the first counts, as it does upstream.
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
        for name in sizes.keys() - before:
            entry = self._by_name.get(name)
            if entry is None:
                entry = self._by_name[name] = ImageName(sizes[name])
            entry.add(row)
        if sizes:
            self._by_row[row] = frozenset(sizes)
        else:
            self._by_row.pop(row, None)
        return True
