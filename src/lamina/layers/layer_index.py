"""
Nodes × layers as packed bits: which rows hold what, what is on its way to them, and what a pod would lack there.

One line of bits per key (see `keys`; eight nodes a byte), so that a pod's few layers are a few contiguous lines, whatever
the number of nodes. Two sheets of the same lines (`sheets`): what agents reported, and what bound pods will bring. A line
lives as long as an image that has it is held, expected or wanted, and is used again afterwards. For images that are asked
for, the bytes each row lacks are kept (`LayerSet`) and patched as rows change.
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

# How many changed rows are remembered; whoever looks again after more of them counts anew.
REMEMBERED: Final = 512
HELD: Final = 0
COMING: Final = 1
# Line 0 is never set: what has no key stands there.
NOWHERE: Final = 0
NOTHING: Final[dict[Digest, "IndexedImage"]] = {}

Swapped = tuple[list[Digest], list[Digest], bool]
"""Images that went, images that came, and whether the row had not said anything before, or reused layers differently."""


class IndexedImage:
    """An image the index knows: its lines, and how many rows and pods need them."""

    __slots__ = ("blobs", "chains", "image", "keys", "lines", "uses", "whole")

    def __init__(self, image: Image, keys: tuple[LayerKeys, ...], lines: dict[str, int]) -> None:
        """Know an image by these lines; nobody needs it yet."""
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
            # What one image does not know of a layer another may; whichever comes first must not decide.
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
            # A blob that an image lists twice is downloaded once, also by who goes by chains.
            [0 if one.repeats else one.size for one in chains.values()],
            [one.unpacked for one in chains.values()],
        ),
    )


class HeldRow(msgspec.Struct, frozen=True):
    """What one row that has reported holds."""

    row: int
    by_prefix: bool
    images: tuple[Digest, ...]


class LayerIndex:
    """Which rows hold which layers. Rows are those of the node columns; the caller keeps them in step."""

    def __init__(self) -> None:
        """Start with no layer anywhere."""
        self._lines: dict[str, int] = {}
        self._line_uses: list[int] = [1]
        self._stacks: list[int] = [0]
        """For the line of a blob: on how many different stacks of layers it lies in the images there are."""
        self._spare: list[int] = []
        self._entries: dict[Digest, IndexedImage] = {}
        self._sheets = (BitMatrix(), SparseBitMatrix())
        self._there: tuple[dict[int, dict[Digest, IndexedImage]], dict[int, dict[Digest, IndexedImage]]] = ({}, {})
        self.reported: Bools = np.zeros(FIRST_ROWS, dtype=np.bool_)
        """Which rows have said what they hold."""
        self.by_prefix: Bools = np.ones(FIRST_ROWS, dtype=np.bool_)
        """Which rows reuse a layer only on top of the layers it was unpacked on."""
        self._journal = RowJournal(REMEMBERED)

    def __len__(self) -> int:
        """Count the lines in use."""
        return len(self._lines)

    @property
    def position(self) -> int:
        """Where a reader that has seen all changes of rows stands."""
        return self._journal.position

    @property
    def capacity(self) -> int:
        """How many rows the arrays have room for."""
        return len(self.reported)

    @property
    def nbytes(self) -> int:
        """Bytes of the bits, used or not."""
        return sum(sheet.nbytes for sheet in self._sheets)

    # -- what is where -----------------------------------------------------------------------------------------------

    def hold(self, row: int, images: Iterable[Image], *, by_prefix: bool = True) -> bool:
        """Take over what the node in *row* holds now, and how it reuses it; say whether that changed anything."""
        gone, fresh, anew = self.swap(row, images, by_prefix=by_prefix)
        return bool(gone or fresh or anew)

    def swap(self, row: int, images: Iterable[Image], *, by_prefix: bool) -> Swapped:
        """Do so, and say which images are no longer there, which were not there before, and whether it counts anew."""
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
        """Rows that said what they hold hold these images as well. Each image costs one look at its lines for all rows."""
        found: dict[Digest, list[int]] = {}
        for row, images in rows.items():
            there = self._there[HELD].setdefault(row, {})
            for image in images:
                if image.digest not in there:
                    there[image.digest] = self.take(image)
                    found.setdefault(image.digest, []).append(row)
            self.touch(row)
        for digest, some in found.items():
            self._sheets[HELD].set_rows(self._entries[digest].lines, some)

    def expect(self, row: int, images: Iterable[Image]) -> bool:
        """Take over which images are on their way to a row; say whether that changed anything."""
        self._reach(row)
        gone, fresh = self._replace(COMING, row, images)
        if self._differs(row, HELD, gone, fresh):
            self.touch(row)
        return bool(gone or fresh)

    def forget(self, row: int) -> None:
        """Drop what a row said; it counts as not reported. What is on its way there is another matter."""
        self._reach(row)
        self._replace(HELD, row, ())
        self.reported[row] = False
        self.by_prefix[row] = True
        self.touch(row)

    def touch(self, row: int) -> None:
        """Note that a row changed."""
        self._journal.touch(row)

    def changed_since(self, position: int) -> list[int] | None:
        """Return the rows that changed since *position*, repeats included; None: too long ago."""
        return self._journal.since(position)

    def holds(self, row: int, image: Digest) -> bool:
        """Say whether a row was reported to hold a whole image."""
        return image in self._there[HELD].get(row, ())

    def held(self, row: int) -> frozenset[Digest]:
        """Return the images on a row."""
        return frozenset(self._there[HELD].get(row, ()))

    def expected(self, row: int) -> frozenset[Digest]:
        """Return the images on their way to a row."""
        return frozenset(self._there[COMING].get(row, ()))

    def snapshot(self) -> tuple[HeldRow, ...]:
        """Return what every row that has reported holds, as data; what is on its way is known to the arrivals."""
        rows = np.flatnonzero(self.reported).tolist()
        return tuple(HeldRow(row, self.by_prefix.item(row), tuple(self._there[HELD].get(row, NOTHING))) for row in rows)

    def images(self) -> Iterable[Image]:
        """Go through the images that any row holds or expects, or that any pod wants."""
        return (entry.image for entry in self._entries.values())

    def is_held(self, image: Digest) -> bool:
        """Say whether any row was reported to hold an image."""
        entry = self._entries.get(image)
        return entry is not None and bool(self._sheets[HELD].of(entry.whole).any())

    def _replace(self, side: int, row: int, images: Iterable[Image]) -> tuple[list[Digest], list[Digest]]:
        """Put other images on one side of a row; return those that went and those that came."""
        now = {image.digest: image for image in images}
        there = self._there[side].get(row, NOTHING)
        if there.keys() == now.keys():
            return [], []
        if there is NOTHING:
            there = self._there[side][row] = {}
        # Sorted: line numbers must not depend on the order in which a set happens to be walked.
        gone = sorted(there.keys() - now.keys())
        fresh = [digest for digest in now if digest not in there]
        if gone:
            self._clear(side, row, [there.pop(digest) for digest in gone])
        if fresh:
            added = [self.take(now[digest]) for digest in fresh]
            there |= zip(fresh, added, strict=True)
            self._sheets[side].set(_lines(added), row)
        for digest in gone:
            self.let_go(digest)
        if not there:
            del self._there[side][row]
        return gone, fresh

    def _differs(self, row: int, other: int, gone: list[Digest], fresh: list[Digest]) -> bool:
        """Say whether a row will have more or less: what was on its way and has come is neither."""
        elsewhere = self._there[other].get(row, NOTHING)
        return any(digest not in elsewhere for digest in gone + fresh)

    def _clear(self, side: int, row: int, dropped: list[IndexedImage]) -> None:
        """Clear the lines of images that went, but for those that an image has which stays."""
        lines = _lines(dropped)
        self._sheets[side].clear(lines, row)
        staying = self._there[side][row]
        uses = self._line_uses
        if not staying or all(uses[line] == 1 for line in lines.tolist()):
            return
        kept = _lines(list(staying.values()))
        flags = np.zeros(len(uses), dtype=np.bool_)
        flags[lines] = True
        kept = kept[flags[kept]]
        if len(kept):
            self._sheets[side].set(kept, row)

    # -- images and lines --------------------------------------------------------------------------------------------

    def take(self, image: Image) -> IndexedImage:
        """Know an image, for one more row or pod."""
        entry = self._entries.get(image.digest)
        if entry is None:
            entry = self._entries[image.digest] = self._enter(image)
        entry.uses += 1
        return entry

    def let_go(self, digest: Digest) -> None:
        """Know an image for one row or pod less; when nobody needs it any more, forget it and its lines."""
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
            if line == self._sheets[HELD].lines:
                for sheet in self._sheets:
                    sheet.reach(more_lines(line), self.capacity)
        self._lines[key] = line
        return line

    def _reach(self, row: int) -> None:
        if row < self.capacity:
            return
        rows = more_rows(self.capacity, row + 1)
        lines = self._sheets[HELD].lines
        for sheet in self._sheets:
            sheet.reach(lines, rows)
        self.reported = widened(self.reported, rows)
        self.by_prefix = widened(self.by_prefix, rows, fill=True)

    def reach(self, rows: int) -> None:
        """Make room for so many rows."""
        self._reach(rows - 1)

    # -- what pods want ----------------------------------------------------------------------------------------------

    def want(self, images: Sequence[Image]) -> LayerSet:
        """Keep rows for these images until `unwant`; each distinct layer counts once."""
        distinct = tuple({image.digest: image for image in images}.values())
        entries = [self.take(image) for image in distinct]
        if len(entries) == 1:
            return LayerSet(distinct, entries[0].blobs, entries[0].chains, entries[0].whole)
        blobs, chains = parts_of([entry.keys for entry in entries], self._lines)
        wholes = np.array([entry.whole[0] for entry in entries], dtype=np.intp)
        return LayerSet(distinct, blobs, chains, wholes)

    def plan(self, image: Image) -> LayerSet:
        """Look at one image without keeping rows for it; it must be known (held, expected or wanted)."""
        entry = self._entries[image.digest]
        return LayerSet((image,), entry.blobs, entry.chains, entry.whole)

    def unwant(self, wanted: LayerSet) -> None:
        """Stop keeping rows for it."""
        for image in wanted.images:
            self.let_go(image.digest)

    def bits_of(self, parts: LayerLines, where: slice | Lines = EVERYWHERE, *, coming: bool = True) -> Bits:
        """Return bytes of bits, a line for each of *parts*: who has it (or will, if *coming* counts)."""
        found = self._lines_of(parts.lines, where, coming=coming)
        if parts.others is not None:
            found |= self._lines_of(parts.others, where, coming=coming)
        return found

    def on(self, parts: LayerLines, row: int) -> Bits:
        """Return of each of *parts* whether a row has it or will (not 0)."""
        found = self._on(parts.lines, row)
        if parts.others is not None:
            found |= self._on(parts.others, row)
        return found

    def parts(self, image: Image) -> tuple[LayerLines, LayerLines]:
        """Return the blobs and chains of an image; it must be known (held, expected or wanted)."""
        entry = self._entries[image.digest]
        return entry.blobs, entry.chains

    def heights_of(self, wanted: LayerSet, rows: Lines) -> Bits:
        """Count for some rows how much of the stack of one image is there or will be: its chains, then the image."""
        bits = self._lines_of(wanted.stack, rows >> 3, coming=True)
        bits >>= (7 - (rows & 7)).astype(np.uint8)
        bits &= 1
        counts: Bits = np.add.reduce(bits, axis=0, dtype=np.uint8)
        return counts

    def always_together(self, wanted: LayerSet) -> bool:
        """Say whether each blob of an image lies on one stack of layers only: then it is exactly where its chain is."""
        if wanted.blobs.others is not None or wanted.chains.others is not None:
            return False
        stacks = self._stacks
        for line in wanted.blobs.numbers:  # noqa: SIM110 - a generator costs more than the look-ups
            if stacks[line] != 1:
                return False
        return True

    def wholes_of(self, wanted: LayerSet, where: slice | Lines = EVERYWHERE, *, coming: bool = True) -> Bits:
        """Return bytes of bits, a line for each image: who has all of it (or will)."""
        return self._lines_of(wanted.wholes, where, coming=coming)

    def states(self, image: Image, row: int, *, by_prefix: bool) -> list[int | None]:
        """Tell of each layer of a known image whether a row has it (HELD), will have it (COMING) or neither (None)."""
        entry, byte, bit = self._entries[image.digest], np.array([row >> 3]), 128 >> (row & 7)
        told: list[int | None] = []
        for one in entry.keys:
            keys = [one.chain, one.unpacked_chain] if by_prefix else [one.blob, one.diff, one.chain, one.unpacked_chain]
            lines = np.array([self._lines[key] for key in keys if key])
            sides = [side for side in (HELD, COMING) if (self._sheets[side].of(lines, byte) & bit).any()]
            told.append(sides[0] if sides else None)
        return told

    def _on(self, lines: Lines, row: int) -> Bits:
        found = self._sheets[HELD].on(lines, row)
        found |= self._sheets[COMING].on(lines, row)
        return found

    def _lines_of(self, lines: Lines, where: slice | Lines, *, coming: bool) -> Bits:
        found = self._sheets[HELD].of(lines, where)
        # Of most images nothing is on its way anywhere.
        if coming and self._sheets[COMING].has(lines):
            found |= self._sheets[COMING].of(lines, where)
        return found


def _lines(entries: list[IndexedImage]) -> Lines:
    """Return the lines of some images, those they share as often as they do."""
    return entries[0].lines if len(entries) == 1 else np.concatenate([entry.lines for entry in entries])


def _all_keys(keys: Iterable[LayerKeys], digest: Digest) -> list[str]:
    found = {whole(digest): None}
    for one in keys:
        found |= dict.fromkeys(filter(None, (one.blob, one.diff, one.chain, one.unpacked_chain)))
    return list(found)
