"""
How much of what a pod wants each row lacks.

`update_rows` brings a `LayerSet` up to date: all rows at once when it is new, the rows that changed when it is not.

    download = bytes of the layers that are neither there nor on their way, as the row's runtime reuses them:
               any blob it knows, or only the chain prefix
    unpack   = unpacked bytes of the layers above the chain prefix
    complete = every image is there as a whole, or on its way

One image, as most pods have, needs no multiplication: who holds a chain holds all below it and who holds the image holds
all chains, so a row's bits are a count, and everything else is looked up by it.
"""

from typing import Final

import numpy as np

from lamina.layers.bit_matrix import Bits
from lamina.layers.layer_index import LayerIndex
from lamina.layers.layer_set import Bools, Floats, LayerSet, Lines
from lamina.model.image import Image

# Counts are kept in bytes.
MOST_COUNTED: Final = 250
NONE: Final[Lines] = np.zeros(0, dtype=np.intp)


def update_rows(index: LayerIndex, wanted: LayerSet, height: int) -> Lines | None:
    """Bring the rows of *wanted* up to date, at least the first *height* of them; return which were (None: all)."""
    if wanted.position == index.position and len(wanted.download) >= height:
        return NONE
    rows = index.changed_since(wanted.position) if wanted.position >= 0 else None
    wanted.position = index.position
    if rows is None or len(wanted.download) < height:
        # Never fewer than before: somebody else may have asked about more.
        height = max(height, len(wanted.download))
        index.reach(height)
        _count_all(index, wanted, (height + 7) // 8 * 8)
        return None
    some = distinct(rows, len(wanted.download))
    _count_some(index, wanted, some)
    return some


def distinct(rows: list[int], height: int) -> Lines:
    """Return each of some rows once, as far as there are so many; a set of so few is quicker than sorting an array."""
    return np.array([row for row in set(rows) if row < height], dtype=np.intp)


def not_held_on(index: LayerIndex, image: Image, row: int) -> tuple[float, float]:
    """Work out download and unpack of one known image for one row."""
    blobs, chains = index.parts(image)
    count = int(np.count_nonzero(index.on(chains, row)))
    unpack = chains.unpack_after.item(count)
    if index.by_prefix.item(row):
        return chains.download_after.item(count), unpack
    return blobs.total - float(np.dot(blobs.bytes, index.on(blobs, row) != 0)), unpack


def held_bytes(index: LayerIndex, wanted: LayerSet, height: int) -> Floats:
    """Return how many bytes of *wanted* each row was reported to hold, as blobs, whatever is on its way."""
    bits = index.bits_of(wanted.blobs, slice(0, (height + 7) // 8), coming=False)
    flags = np.unpackbits(bits, axis=1, count=height)
    held: Floats = np.dot(wanted.blobs.bytes, flags.astype(np.float64))
    return held


def _count_all(index: LayerIndex, wanted: LayerSet, height: int) -> None:
    by_prefix, where = index.by_prefix[:height], slice(0, height // 8)
    chains, wholes = index.bits_of(wanted.chains, where), index.wholes_of(wanted, where)
    if not _counts(wanted):
        flags = np.unpackbits(np.concatenate([chains, wholes, index.bits_of(wanted.blobs, where)]), axis=1)
        wanted.download, wanted.unpack, wanted.complete = _not_held(wanted, flags, by_prefix)
        return
    flags = np.unpackbits(np.concatenate([chains, wholes]), axis=1)
    count: Bits = np.add.reduce(flags, axis=0, dtype=np.uint8)
    wanted.download = wanted.chains.download_after.take(count)
    wanted.unpack = wanted.chains.unpack_after.take(count)
    wanted.complete = count == len(chains) + 1
    if not index.always_together(wanted):
        _count_loose(wanted, index.bits_of(wanted.blobs, where) & ~chains, by_prefix)


def _counts(wanted: LayerSet) -> bool:
    """Say whether what a row has of it is a count: one image, and no blob in it twice."""
    layers = len(wanted.chains.numbers)
    return len(wanted.images) == 1 and layers == len(wanted.blobs.numbers) and layers <= MOST_COUNTED


def _count_loose(wanted: LayerSet, loose: Bits, by_prefix: Bools) -> None:
    """Count blobs that are there without what lies below them, on rows whose runtime can use them."""
    some = np.flatnonzero(loose.any(axis=1))
    saved = np.dot(wanted.blobs.bytes[some], np.unpackbits(loose[some], axis=1).astype(np.float64))
    saved[by_prefix] = 0
    wanted.download -= saved


def _count_some(index: LayerIndex, wanted: LayerSet, rows: Lines) -> None:
    if _counts(wanted) and index.always_together(wanted):
        count = index.heights_of(wanted, rows)
        wanted.download[rows] = wanted.chains.download_after[count]
        wanted.unpack[rows] = wanted.chains.unpack_after[count]
        wanted.complete[rows] = count == len(wanted.stack)
        return
    answers = not_held_at(index, wanted, rows)
    wanted.download[rows], wanted.unpack[rows], wanted.complete[rows] = answers


def not_held_at(
    index: LayerIndex, wanted: LayerSet, rows: Lines, *, coming: bool = True
) -> tuple[Floats, Floats, Bools]:
    """Work out download, unpack and complete for some rows only, and keep nothing."""
    where = rows >> 3
    lines = [
        index.bits_of(wanted.chains, where, coming=coming),
        index.wholes_of(wanted, where, coming=coming),
        index.bits_of(wanted.blobs, where, coming=coming),
    ]
    shift = (7 - (rows & 7)).astype(np.uint8)
    flags: Bits = (np.concatenate(lines) >> shift) & np.uint8(1)
    return _not_held(wanted, flags, index.by_prefix[rows])


def _not_held(wanted: LayerSet, flags: Bits, by_prefix: Bools) -> tuple[Floats, Floats, Bools]:
    """Turn what is there, line by line, into what is not."""
    by_chain, unpacked, images, by_blob = np.dot(wanted.weights, flags.astype(np.float64))
    download = np.where(by_prefix, wanted.chains.total - by_chain, wanted.blobs.total - by_blob)
    return download, wanted.chains.total_unpacked - unpacked, images == len(wanted.wholes)
