"""
Splitter of a watch stream into lines.

A line longer than `LINE_LIMIT` is skipped to its end and counted; it is never held in memory. Pieces of a line are
joined once, so a long line in many pieces costs no more than its length.
"""

from typing import Final

LINE_LIMIT: Final = 4 * 1024**2
"""Bytes of one watch event. etcd accepts objects of up to 1.5 MiB; their JSON stays below this limit."""


class LineCutter:
    """Splits chunks into complete lines."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._size = 0
        self._skipping = False
        self.skipped = 0
        """Lines that exceeded the limit."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that *chunk* completes, without line ends and empty lines."""
        first, *others = chunk.split(b"\n")
        self._hold(first)
        if not others:
            return []
        lines = [self._take()]
        rest = others.pop()
        for line in others:
            if len(line) > self._limit:
                self.skipped += 1
            else:
                lines.append(line)
        self._hold(rest)
        return [line for line in lines if line]

    def rest(self) -> bytes:
        """Return and drop the bytes after the last line end."""
        return self._take()

    def _hold(self, piece: bytes) -> None:
        if self._skipping or not piece:
            return
        self._size += len(piece)
        if self._size > self._limit:
            self._pieces.clear()
            self._skipping = True
            self.skipped += 1
        else:
            self._pieces.append(piece)

    def _take(self) -> bytes:
        line = b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        self._skipping = False
        return line
