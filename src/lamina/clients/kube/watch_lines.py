"""
The lines of a watch, cut out of whatever pieces the network delivers.

A line longer than `LINE_LIMIT` is passed over to its end and counted; it is never held. Pieces of a line are kept as
they came and joined once, so that a long line in many pieces costs no more than its length.
"""

from typing import Final

LINE_LIMIT: Final = 4 * 1024**2
"""Bytes of one watch event. etcd takes objects of up to 1.5 MiB; as JSON some grow, none to this."""


class LineCutter:
    """Takes chunks and gives whole lines."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._size = 0
        self._skipping = False
        self.skipped = 0
        """Lines that were too long."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that *chunk* completes, without their ends and without empty ones."""
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
        """Hand over what came after the last end of a line; it is no longer held."""
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
