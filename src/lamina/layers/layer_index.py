"""
Nodes × layers as packed bits: which layers each row holds, which are arriving, and which a pod would have to pull.

The index has one line of bits per key (see `layer_keys`; eight nodes to a byte). A pod's layers are therefore a few
contiguous lines, whatever the number of nodes. Two matrices share the line numbers (`bit_matrix`): layers that node
agents reported, and layers that bound pods will bring. A line is freed and reused when its images are no longer held,
expected or queried. For queried images, the index keeps the not-held bytes of each row (`LayerSet`) and patches them as
rows change.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from lamina.layers.bit_matrix import EVERYWHERE, FIRST_ROWS, BitMatrix, Bits, SparseBitMatrix, more_lines, more_rows
from lamina.layers.layer_keys import LayerKeys, keys_of, whole
from lamina.layers.layer_set import Bools, LayerLines, LayerSet, Lines
from lamina.model.digest import Digest
from lamina.model.image import Image
from lamina.rows.growable import widened
from lamina.rows.row_journal import RowJournal

# Changed rows that the journal remembers. A reader that is further behind computes all rows again.
REMEMBERED: Final = 512
HELD: Final = 0
COMING: Final = 1
# Bits of line 0 are never set: it stands for a missing key.
NOWHERE: Final = 0
NOTHING: Final[dict[Digest, "IndexedImage"]] = {}

Swapped = tuple[list[Digest], list[Digest], bool]
"""Images removed, images added, and whether the row is new in the index or its reuse mode changed."""


class IndexedImage:
    """An image in the index, with its lines and its number of users: rows and layer sets."""

    __slots__ = ("blobs", "chains", "image", "keys", "lines", "uses", "whole")

    def __init__(self, image: Image, keys: tuple[LayerKeys, ...], lines: dict[str, int]) -> None:
        """Start with no user."""
        self.image = image
        self.keys = keys
        self.lines: Lines = np.array(list(lines.values()), dtype=np.intp)
        self.whole: Lines = np.array([lines[whole(image.digest)]], dtype=np.intp)
        self.blobs, self.chains = parts_of([keys], lines)
        self.uses = 0


def parts_of(images: Sequence[Sequence[LayerKeys]], lines: Mapping[str, int]) -> tuple[LayerLines, LayerLines]:
    """Return the distinct blobs and the distinct chains of images, bottom first, image by image."""
    blobs: dict[str, LayerKeys] = {}
    chains: dict[str, LayerKeys] = {}
    for keys in images:
        for one in keys:
            # One image may have a diff id that is unknown for the same layer of another image. Their order must not
            # decide.
            if one.blob not in blobs or (one.diff and not blobs[one.blob].diff):
                blobs[one.blob] = one
            if one.chain not in chains or (one.unpacked_chain and not chains[one.chain].unpacked_chain):
                chains[one.chain] = one
    return (
        LayerLines(
            [lines[one.blob] for one in blobs.values()],
            [lines[one.diff] if one.diff else NOWHERE for one in blobs.values()],
            [one.size for one in blobs.values()],
            [one.unpacked for one in blobs.values()],
        ),
        LayerLines(
            [lines[one.chain] for one in chains.values()],
            [lines[one.unpacked_chain] if one.unpacked_chain else NOWHERE for one in chains.values()],
            # A runtime that reuses chains also downloads a blob only once when the image lists it twice.
            [0 if one.repeats else one.size for one in chains.values()],
            [one.unpacked for one in chains.values()],
        ),
    )


class HeldRow(msgspec.Struct, frozen=True):
    """Serializable form of one row that has a report."""

    row: int
    by_prefix: bool
    images: tuple[Digest, ...]


class LayerIndex:
    """Which rows hold which layers. Rows are those of the node columns; the caller keeps both aligned."""

    def __init__(self) -> None:
        """Start empty."""
        self._lines: dict[str, int] = {}
        self._line_uses: list[int] = [1]
        self._stacks: list[int] = [0]
        """Line of a blob → number of different stacks of layers on which the known images place it."""
        self._spare: list[int] = []
        self._entries: dict[Digest, IndexedImage] = {}
        self._matrices = (BitMatrix(), SparseBitMatrix())
        self._there: tuple[dict[int, dict[Digest, IndexedImage]], dict[int, dict[Digest, IndexedImage]]] = ({}, {})
        self.reported: Bools = np.zeros(FIRST_ROWS, dtype=np.bool_)
        """Rows that have a report."""
        self.by_prefix: Bools = np.ones(FIRST_ROWS, dtype=np.bool_)
        """Rows that reuse a layer only on top of the layers it was unpacked on."""
        self._journal = RowJournal(REMEMBERED)

    def __len__(self) -> int:
        """Return the number of lines in use."""
        return len(self._lines)

    @property
    def position(self) -> int:
        """Journal position of a reader that has seen all changes."""
        return self._journal.position

    @property
    def capacity(self) -> int:
        """Rows for which the arrays have room."""
        return len(self.reported)

    @property
    def nbytes(self) -> int:
        """Allocated bytes of both matrices."""
        return sum(matrix.nbytes for matrix in self._matrices)

    # -- what is where -----------------------------------------------------------------------------------------------

    def hold(self, row: int, images: Iterable[Image], *, by_prefix: bool = True) -> bool:
        """Set the images that *row* holds and how it reuses them; return whether that changed anything."""
        gone, fresh, anew = self.swap(row, images, by_prefix=by_prefix)
        return bool(gone or fresh or anew)

    def swap(self, row: int, images: Iterable[Image], *, by_prefix: bool) -> Swapped:
        """Set the images that *row* holds; return removed images, added images and whether the row starts anew."""
        self._reach(row)
        anew = not self.reported.item(row) or self.by_prefix.item(row) != by_prefix
        if anew:
            self.reported[row] = True
            self.by_prefix[row] = by_prefix
        gone, fresh = self._replace(HELD, row, images)
        if anew or self._differs(row, COMING, gone, fresh):
            self.touch(row)
        return gone, fresh, anew

    def gain(self, rows: Mapping[int, Sequence[Image]]) -> None:
        """
        Add images to rows that have a report.

        Grouped by image, so that each image's lines are written once for all rows.
        """
        found: dict[Digest, list[int]] = {}
        for row, images in rows.items():
            there = self._there[HELD].setdefault(row, {})
            for image in images:
                if image.digest not in there:
                    there[image.digest] = self.take(image)
                    found.setdefault(image.digest, []).append(row)
            self.touch(row)
        for digest, some in found.items():
            self._matrices[HELD].set_rows(self._entries[digest].lines, some)

    def expect(self, row: int, images: Iterable[Image]) -> bool:
        """Set the images that are arriving on a row; return whether that changed anything."""
        self._reach(row)
        gone, fresh = self._replace(COMING, row, images)
        if self._differs(row, HELD, gone, fresh):
            self.touch(row)
        return bool(gone or fresh)

    def forget(self, row: int) -> None:
        """Drop the report of a row. Arriving images are not affected."""
        self._reach(row)
        self._replace(HELD, row, ())
        self.reported[row] = False
        self.by_prefix[row] = True
        self.touch(row)

    def touch(self, row: int) -> None:
        """Record that a row changed."""
        self._journal.touch(row)

    def changed_since(self, position: int) -> list[int] | None:
        """Return the rows that changed since *position*, with repetitions; None if that is too long ago."""
        return self._journal.since(position)

    def holds(self, row: int, image: Digest) -> bool:
        """Return whether a row's report has the whole image."""
        return image in self._there[HELD].get(row, ())

    def held(self, row: int) -> frozenset[Digest]:
        """Return the images that a row holds."""
        return frozenset(self._there[HELD].get(row, ()))

    def expected(self, row: int) -> frozenset[Digest]:
        """Return the images that are arriving on a row."""
        return frozenset(self._there[COMING].get(row, ()))

    def snapshot(self) -> tuple[HeldRow, ...]:
        """Return the images held by every row with a report. `ArrivingImages` saves arriving images."""
        rows = np.flatnonzero(self.reported).tolist()
        return tuple(HeldRow(row, self.by_prefix.item(row), tuple(self._there[HELD].get(row, NOTHING))) for row in rows)

    def images(self) -> Iterable[Image]:
        """Iterate over the images that any row holds or expects, or that any layer set contains."""
        return (entry.image for entry in self._entries.values())

    def is_held(self, image: Digest) -> bool:
        """Return whether any row's report has the image."""
        entry = self._entries.get(image)
        return entry is not None and bool(self._matrices[HELD].of(entry.whole).any())

    def _replace(self, side: int, row: int, images: Iterable[Image]) -> tuple[list[Digest], list[Digest]]:
        """Replace the held or arriving images of a row; return removed and added images."""
        now = {image.digest: image for image in images}
        there = self._there[side].get(row, NOTHING)
        if there.keys() == now.keys():
            return [], []
        if there is NOTHING:
            there = self._there[side][row] = {}
        # Sorted, so that line numbers do not depend on set order.
        gone = sorted(there.keys() - now.keys())
        fresh = [digest for digest in now if digest not in there]
        if gone:
            self._clear(side, row, [there.pop(digest) for digest in gone])
        if fresh:
            added = [self.take(now[digest]) for digest in fresh]
            there |= zip(fresh, added, strict=True)
            self._matrices[side].set(_lines(added), row)
        for digest in gone:
            self.let_go(digest)
        if not there:
            del self._there[side][row]
        return gone, fresh

    def _differs(self, row: int, other: int, gone: list[Digest], fresh: list[Digest]) -> bool:
        """Return whether the row gains or loses images; an image that was arriving and is now held does neither."""
        elsewhere = self._there[other].get(row, NOTHING)
        return any(digest not in elsewhere for digest in gone + fresh)

    def _clear(self, side: int, row: int, dropped: list[IndexedImage]) -> None:
        """Clear the lines of removed images, except lines that a remaining image shares."""
        lines = _lines(dropped)
        self._matrices[side].clear(lines, row)
        staying = self._there[side][row]
        uses = self._line_uses
        if not staying or all(uses[line] == 1 for line in lines.tolist()):
            return
        kept = _lines(list(staying.values()))
        flags = np.zeros(len(uses), dtype=np.bool_)
        flags[lines] = True
        kept = kept[flags[kept]]
        if len(kept):
            self._matrices[side].set(kept, row)

    # -- images and lines --------------------------------------------------------------------------------------------

    def take(self, image: Image) -> IndexedImage:
        """Add a user to an image, and the image to the index if it is new."""
        entry = self._entries.get(image.digest)
        if entry is None:
            entry = self._entries[image.digest] = self._enter(image)
        entry.uses += 1
        return entry

    def let_go(self, digest: Digest) -> None:
        """Remove one user from an image; drop the image and its lines when no user is left."""
        entry = self._entries[digest]
        entry.uses -= 1
        if entry.uses:
            return
        del self._entries[digest]
        for one in entry.keys:
            if self._line_uses[self._lines[one.chain]] == 1:
                self._stacks[self._lines[one.blob]] -= 1
        for key in _all_keys(entry.keys, digest):
            line = self._lines[key]
            self._line_uses[line] -= 1
            if not self._line_uses[line]:
                del self._lines[key]
                self._spare.append(line)

    def _enter(self, image: Image) -> IndexedImage:
        keys = keys_of(image)
        lines = {key: self._line(key) for key in _all_keys(keys, image.digest)}
        for one in keys:
            if not self._line_uses[lines[one.chain]]:
                self._stacks[lines[one.blob]] += 1
        for line in lines.values():
            self._line_uses[line] += 1
        return IndexedImage(image, keys, lines)

    def _line(self, key: str) -> int:
        line = self._lines.get(key)
        if line is not None:
            return line
        if self._spare:
            line = self._spare.pop()
        else:
            line = len(self._line_uses)
            self._line_uses.append(0)
            self._stacks.append(0)
            if line == self._matrices[HELD].lines:
                for matrix in self._matrices:
                    matrix.reach(more_lines(line), self.capacity)
        self._lines[key] = line
        return line

    def _reach(self, row: int) -> None:
        if row < self.capacity:
            return
        rows = more_rows(self.capacity, row + 1)
        lines = self._matrices[HELD].lines
        for matrix in self._matrices:
            matrix.reach(lines, rows)
        self.reported = widened(self.reported, rows)
        self.by_prefix = widened(self.by_prefix, rows, fill=True)

    def reach(self, rows: int) -> None:
        """Make room for *rows* rows."""
        self._reach(rows - 1)

    # -- layer sets --------------------------------------------------------------------------------------------------

    def want(self, images: Sequence[Image]) -> LayerSet:
        """
        Return a layer set of these images; the caller releases it with `unwant`.

        Each distinct layer is counted once.
        """
        distinct = tuple({image.digest: image for image in images}.values())
        entries = [self.take(image) for image in distinct]
        if len(entries) == 1:
            return LayerSet(distinct, entries[0].blobs, entries[0].chains, entries[0].whole)
        blobs, chains = parts_of([entry.keys for entry in entries], self._lines)
        wholes = np.array([entry.whole[0] for entry in entries], dtype=np.intp)
        return LayerSet(distinct, blobs, chains, wholes)

    def plan(self, image: Image) -> LayerSet:
        """
        Return a layer set of one image without adding a user.

        The image must be in the index: held, expected or queried.
        """
        entry = self._entries[image.digest]
        return LayerSet((image,), entry.blobs, entry.chains, entry.whole)

    def unwant(self, wanted: LayerSet) -> None:
        """Release a layer set."""
        for image in wanted.images:
            self.let_go(image.digest)

    def bits_of(self, parts: LayerLines, where: slice | Lines = EVERYWHERE, *, coming: bool = True) -> Bits:
        """Return the bytes *where* of the lines of *parts*: rows that hold the part, or expect it if *coming*."""
        found = self._lines_of(parts.lines, where, coming=coming)
        if parts.others is not None:
            found |= self._lines_of(parts.others, where, coming=coming)
        return found

    def on(self, parts: LayerLines, row: int) -> Bits:
        """Return a nonzero byte for each of *parts* that the row holds or expects."""
        found = self._on(parts.lines, row)
        if parts.others is not None:
            found |= self._on(parts.others, row)
        return found

    def parts(self, image: Image) -> tuple[LayerLines, LayerLines]:
        """Return the blobs and chains of an image in the index."""
        entry = self._entries[image.digest]
        return entry.blobs, entry.chains

    def heights_of(self, wanted: LayerSet, rows: Lines) -> Bits:
        """Return for some rows how many parts of one image are held or arriving: its chains, then the image itself."""
        bits = self._lines_of(wanted.stack, rows >> 3, coming=True)
        bits >>= (7 - (rows & 7)).astype(np.uint8)
        bits &= 1
        counts: Bits = np.add.reduce(bits, axis=0, dtype=np.uint8)
        return counts

    def always_together(self, wanted: LayerSet) -> bool:
        """
        Return whether each blob lies on one stack of layers only.

        Then a row holds the blob exactly if it holds its chain.
        """
        if wanted.blobs.others is not None or wanted.chains.others is not None:
            return False
        stacks = self._stacks
        for line in wanted.blobs.numbers:  # noqa: SIM110 - a generator costs more than the look-ups
            if stacks[line] != 1:
                return False
        return True

    def wholes_of(self, wanted: LayerSet, where: slice | Lines = EVERYWHERE, *, coming: bool = True) -> Bits:
        """Return the bytes *where* of one line per image: rows that hold the whole image, or expect it if *coming*."""
        return self._lines_of(wanted.wholes, where, coming=coming)

    def states(self, image: Image, row: int, *, by_prefix: bool) -> list[int | None]:
        """Return for each layer of an indexed image: HELD, COMING (the row expects it), or None."""
        entry, byte, bit = self._entries[image.digest], np.array([row >> 3]), 128 >> (row & 7)
        found: list[int | None] = []
        for one in entry.keys:
            keys = [one.chain, one.unpacked_chain] if by_prefix else [one.blob, one.diff, one.chain, one.unpacked_chain]
            lines = np.array([self._lines[key] for key in keys if key])
            sides = [side for side in (HELD, COMING) if (self._matrices[side].of(lines, byte) & bit).any()]
            found.append(sides[0] if sides else None)
        return found

    def _on(self, lines: Lines, row: int) -> Bits:
        found = self._matrices[HELD].on(lines, row)
        found |= self._matrices[COMING].on(lines, row)
        return found

    def _lines_of(self, lines: Lines, where: slice | Lines, *, coming: bool) -> Bits:
        found = self._matrices[HELD].of(lines, where)
        # Most images are arriving nowhere.
        if coming and self._matrices[COMING].has(lines):
            found |= self._matrices[COMING].of(lines, where)
        return found


def _lines(entries: list[IndexedImage]) -> Lines:
    """Return the lines of some images; shared lines are repeated."""
    return entries[0].lines if len(entries) == 1 else np.concatenate([entry.lines for entry in entries])


def _all_keys(keys: Iterable[LayerKeys], digest: Digest) -> list[str]:
    found = {whole(digest): None}
    for one in keys:
        found |= dict.fromkeys(filter(None, (one.blob, one.diff, one.chain, one.unpacked_chain)))
    return list(found)
