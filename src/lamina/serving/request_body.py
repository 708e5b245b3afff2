"""
Buffers for request bodies.

A body of known length is read directly into its final buffer. A large body has anonymous memory of its own: the kernel
provides pages as they are filled, so a client that announces 96 MiB and sends none costs nothing. The pages are
returned when the request is done. A chunked body grows until it is large, and is then copied once.

    size line --> data --> its end --+--> size line ...
        |                            ^
        +-- 0 --> its end --> done   |
"""

import mmap
from typing import Final

from lamina.serving.rejections import bad, too_large
from lamina.serving.server_limits import ServerLimits

AT_ONCE: Final = 256 * 1024
"""Most bytes read at once, so that a fast client does not delay the others."""
SIZE_LINE: Final = 16
"""Most bytes of a line between chunks: a size or nothing. Chunk extensions are rejected; clients do not use them."""
SIZE_DIGITS: Final = 8
HEX: Final = frozenset(b"0123456789abcdefABCDEF")


def allocate_body(size: int, limits: ServerLimits) -> memoryview:
    """Allocate the buffer of a body."""
    if size <= limits.small_body:
        return memoryview(bytearray(size))
    return memoryview(mmap.mmap(-1, size))


class FixedLengthBody:
    """A body of known length."""

    def __init__(self, length: int, limits: ServerLimits) -> None:
        self._room = allocate_body(length, limits)
        self._length, self._filled = length, 0

    @property
    def rest(self) -> memoryview:
        """Buffer for the next bytes; never longer than what is missing."""
        return self._room[self._filled : self._filled + AT_ONCE]

    def put(self, data: memoryview) -> None:
        """Copy bytes that arrived together with the head."""
        self._room[self._filled : self._filled + len(data)] = data
        self._filled += len(data)

    def grow(self, count: int) -> bool:
        """Record *count* bytes that were read into `rest`; return whether the body is complete."""
        self._filled += count
        return self._filled == self._length

    def whole(self) -> memoryview:
        """Return the body."""
        return self._room


class ChunkedBody:
    """A chunked body, decoded strictly: every ambiguous form is rejected."""

    def __init__(self, limits: ServerLimits) -> None:
        """Decode a body within *limits*."""
        self._limits = limits
        self._small = bytearray()
        self._large: memoryview | None = None
        self._length = 0
        self._left = 0
        self._ends = False
        self._last = False
        self.done = False
        self.wants_place = False
        """The body has become large: no more data is accepted before `enlarge`."""

    def whole(self) -> bytearray | memoryview:
        """Return the body."""
        return self._small if self._large is None else self._large[: self._length]

    def enlarge(self) -> None:
        """Continue with a buffer for a large body."""
        self.wants_place = False
        self._large = memoryview(mmap.mmap(-1, self._limits.large_body))
        self._large[: len(self._small)] = self._small
        self._small = bytearray()

    def feed(self, data: memoryview) -> int:
        """Process as much as possible; return the number of bytes used. Raises `RequestRejectedError`."""
        taken = 0
        while not self.done and not self.wants_place:
            count = self._step(data[taken:])
            if not count:
                break
            taken += count
        return taken

    def _step(self, data: memoryview) -> int:
        if self._left:
            return self._data(data[: self._left])
        line = _line(data)
        if line is None:
            return 0
        if self._last:
            if line:
                raise bad("trailers after the body are not supported; remove them")
            self.done = True
        elif self._ends:
            if line:
                raise bad("a chunk is longer than its size")
            self._ends = False
        elif not self._begin(line):
            return 0
        return len(line) + 2

    def _begin(self, line: bytes) -> bool:
        """Begin a chunk; return False if a large request slot is needed first."""
        if not line or len(line) > SIZE_DIGITS or not HEX.issuperset(line):
            raise bad("a chunk must begin with a line that has only its size")
        size = int(line, 16)
        if self._length + size > self._limits.large_body:
            raise too_large(self._limits.large_body)
        if self._length + size > self._limits.small_body and self._large is None:
            self.wants_place = True
            return False
        self._left, self._ends, self._last = size, size > 0, size == 0
        return True

    def _data(self, data: memoryview) -> int:
        if self._large is None:
            self._small += data
        else:
            self._large[self._length : self._length + len(data)] = data
        self._length += len(data)
        self._left -= len(data)
        return len(data)


def _line(data: memoryview) -> bytes | None:
    """Return the next line; None while it is incomplete."""
    line, found, _ = bytes(data[: SIZE_LINE + 2]).partition(b"\r\n")
    if not found:
        line = line.removesuffix(b"\r")
    if b"\n" in line or b"\r" in line:
        raise bad("a line between chunks does not end with CR LF")
    if len(line) > SIZE_LINE:
        raise bad("a line between chunks is too long")
    return line if found else None
