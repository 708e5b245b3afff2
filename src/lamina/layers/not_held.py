"""
Compute the bytes of a pod's images that each row does not hold.

`update_rows` brings a `LayerSet` up to date: all rows at once when it is new, the changed rows when it is not.

    download = bytes of the layers that are neither held nor arriving, as the row's runtime reuses layers:
               any blob it has, or only the chain prefix
    unpack   = unpacked bytes of the layers above the chain prefix
    complete = every image is held or arriving as a whole

Most pods have one image, which needs no multiplication. A row that holds a chain holds all chains below it, and a row
that holds the image holds all its chains. A row's bits are therefore a count, and the results are looked up by that
count.
"""

from typing import Final

import numpy as np

from lamina.layers.bit_matrix import Bits
from lamina.layers.layer_index import LayerIndex
from lamina.layers.layer_set import Bools, Floats, LayerSet, Lines
from lamina.model.image import Image

# Counts are stored in bytes.
MOST_COUNTED: Final = 250
NONE: Final[Lines] = np.zeros(0, dtype=np.intp)


def update_rows(index: LayerIndex, wanted: LayerSet, height: int) -> Lines | None:
    """Update the first *height* rows of *wanted*, at least; return the updated rows (None: all)."""
    if wanted.position == index.position and len(wanted.download) >= height:
        return NONE
    rows = index.changed_since(wanted.position) if wanted.position >= 0 else None
    wanted.position = index.position
    if rows is None or len(wanted.download) < height:
        # Never fewer rows than before: another caller may have asked for more.
        height = max(height, len(wanted.download))
        index.reach(height)
        _count_all(index, wanted, (height + 7) // 8 * 8)
        return None
    some = distinct(rows, len(wanted.download))
    _count_some(index, wanted, some)
    return some


def distinct(rows: list[int], height: int) -> Lines:
    """Return each of *rows* below *height* once. For a few rows, a set is faster than sorting an array."""
    return np.array([row for row in set(rows) if row < height], dtype=np.intp)


def not_held_on(index: LayerIndex, image: Image, row: int) -> tuple[float, float]:
    """Return the bytes to download and to unpack for one image of the index on one row."""
    blobs, chains = index.parts(image)
    count = int(np.count_nonzero(index.on(chains, row)))
    unpack = chains.unpack_after.item(count)
    if index.by_prefix.item(row):
        return chains.download_after.item(count), unpack
    return blobs.total - float(np.dot(blobs.bytes, index.on(blobs, row) != 0)), unpack


def held_bytes(index: LayerIndex, wanted: LayerSet, height: int) -> Floats:
    """Return the bytes of *wanted* that each row's report has as blobs. Arriving layers are not counted."""
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
    """Return whether a row's parts can be counted: a single image that lists no blob twice."""
    layers = len(wanted.chains.numbers)
    return len(wanted.images) == 1 and layers == len(wanted.blobs.numbers) and layers <= MOST_COUNTED


def _count_loose(wanted: LayerSet, loose: Bits, by_prefix: Bools) -> None:
    """Subtract blobs that a row holds without the layers below them, on rows whose runtime can reuse them."""
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
    """Return download, unpack and complete for some rows, without storing them."""
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
    """Return download, unpack and complete from the flags of the parts that rows hold."""
    by_chain, unpacked, images, by_blob = np.dot(wanted.weights, flags.astype(np.float64))
    download = np.where(by_prefix, wanted.chains.total - by_chain, wanted.blobs.total - by_blob)
    return download, wanted.chains.total_unpacked - unpacked, images == len(wanted.wholes)
