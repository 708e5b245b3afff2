"""
Roster of node names: finds the names of a request by their bytes, all at once.

    "node-7","node-2"  -->  one line of bytes per name  -->  64-bit hash of each line  -->  place in the roster

A string for each of 500 names, looked up in a dictionary, costs more than everything else about a request: each look-up
reads memory that is in no CPU cache. The roster compares every name completely, so a hash only says where to look.
Whatever is not a list of different names of the roster has no answer here, and is decoded in the ordinary way.

The same roster writes responses from fragments: one line of bytes per name, in which only the score is replaced. Spaces
fill the line, which JSON allows.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

LONGEST: Final = 256
"""Longest name in bytes; Kubernetes allows 253."""
MOST_NODES: Final = 20_000
HIGHEST: Final = 10
"""Highest score of a node."""
QUOTE: Final = ord('"')
AROUND: Final = b'"",'
"""What stands around a name in a list."""
BLANK: Final = ord(" ")
END: Final = ord("]")
ODD: Final = 0x9E3779B97F4A7C15
"""Multiplier of the hash; its powers are those of the other words of a name."""
WORD: Final = 8
ENDING: Final = b',"Score": 0},'
ONES: Final = np.frombuffer(b"01234567890", dtype=np.uint8)
TENS: Final = np.frombuffer(b"          1", dtype=np.uint8)

Places = npt.NDArray[np.intp]
Letters = npt.NDArray[np.uint8]
Levels = npt.NDArray[np.int64]


class NameRoster:
    """Known node names, and the place of each."""

    __slots__ = ("_factors", "_fragments", "_hashes", "_length", "_width", "_words", "numbers")

    def __init__(self, names: Sequence[str]) -> None:
        """Take distinct names; those that JSON would escape are left out, so that they are not found."""
        plain = [(number, name.encode()) for number, name in enumerate(names) if _is_plain(name)]
        longest = max((len(name) for _, name in plain), default=0)
        self._length = longest if all(len(name) == longest for _, name in plain) else 0
        """Length of every name; 0 if they differ."""
        self._width = -(-(longest + len(AROUND)) // WORD) * WORD
        words = _lines([b'"%b",' % name for _, name in plain], self._width).view(np.uint64)
        powers = [pow(ODD, power, 2**64) for power in range(1, words.shape[1] + 1)]
        self._factors = np.array(powers, dtype=np.uint64)
        hashes = words @ self._factors
        order = np.argsort(hashes, kind="stable")
        self._hashes, self._words = hashes[order], np.ascontiguousarray(words[order])
        self.numbers: Places = np.array([number for number, _ in plain], dtype=np.intp)[order]
        """The position of each place in the names as they were given."""
        begun = [b'{"Host":"%b"' % plain[place][1] for place in order.tolist()]
        size = longest + len(b'{"Host":""')
        self._fragments = _lines([one.ljust(size) + ENDING for one in begun], size + len(ENDING))

    def find(self, text: bytes) -> Places | None:
        """
        Return the place of each name in *text*: quoted names with commas between them, as in a JSON array.

        None if anything is different: no name, an unknown name, a name twice, a space, an escape.
        """
        lines = self._equally_long(text) if self._length else self._cut(text)
        if lines is None or len(lines) > min(MOST_NODES, len(self._hashes)):
            return None
        words = lines.view(np.uint64)
        places: Places = self._hashes.searchsorted(words @ self._factors)
        np.minimum(places, len(self._hashes) - 1, out=places)
        if not (self._words.take(places, axis=0) == words).all():
            return None
        seen = np.zeros(len(self._hashes), dtype=np.bool_)
        seen[places] = True
        return places if np.count_nonzero(seen) == len(lines) else None

    def _equally_long(self, text: bytes) -> Letters | None:
        """Return a line for each name with its quotes and comma, if *text* can be cut at equal distances."""
        each = self._length + len(AROUND)
        count = (len(text) + 1) // each
        if not count or count * each != len(text) + 1:
            return None
        lines = np.zeros((count, self._width), dtype=np.uint8)
        lines[:, :each] = np.frombuffer(text + b",", dtype=np.uint8).reshape(count, each)
        return lines

    def _cut(self, text: bytes) -> Letters | None:
        """Return a line for each name with its quotes and comma, cut at the quotes."""
        letters = np.frombuffer(text + b"," + bytes(self._width), dtype=np.uint8)
        quotes = np.flatnonzero(letters == QUOTE)
        if not len(quotes) or len(quotes) % 2 or letters[: len(text)].min() < BLANK:
            return None
        # Before the lines are made: a list of many short names is a small text, but a large array.
        if len(quotes) > 2 * min(MOST_NODES, len(self._hashes)):
            return None
        starts, ends = quotes[0::2], quotes[1::2]
        lengths = ends - starts + 2
        # Each name begins where the one before ends.
        if starts[0] or ends[-1] != len(text) - 1 or not (starts[1:] == ends[:-1] + 2).all():
            return None
        if lengths.max() > self._width:
            return None
        # A view of every run of that many letters, of which only those at the starts are copied.
        runs: Letters = np.ndarray((len(text), self._width), np.uint8, letters, 0, (1, 1))
        lines = runs[starts]
        lines *= np.arange(self._width) < lengths[:, np.newaxis]
        return lines

    def encode(self, places: Places, levels: Levels) -> bytes | None:
        """
        Return a HostPriorityList: the lowest level is subtracted from all, and nodes with 0 are left out.

        None if a level is not in the range of scores.
        """
        least, most = int(levels.min()), int(levels.max())
        if least < 0 or most > HIGHEST:
            return None
        if least == most:
            return b"[]"
        if least:
            levels = levels - least
        named = np.flatnonzero(levels)
        if len(named) < len(places):
            places, levels = places[named], levels[named]
        lines = self._fragments[places]
        lines[:, -3] = ONES[levels]
        if most - least == HIGHEST:
            lines[:, -4] = TENS[levels]
        lines[-1, -1] = END
        return b"[" + lines.tobytes()


def _is_plain(name: str) -> bool:
    """Return whether JSON writes a name as it is."""
    return 0 < len(name) <= LONGEST and name.isascii() and name.isprintable() and '"' not in name and "\\" not in name


def _lines(texts: Sequence[bytes], width: int) -> Letters:
    """Return texts as lines of *width* bytes, filled with zeros."""
    joined = b"".join([text.ljust(width, b"\0") for text in texts])
    return np.frombuffer(joined, dtype=np.uint8).reshape(len(texts), width)
