"""A connection without a network: bytes are handed to it as a transport would, in the pieces a test chooses."""

import asyncio
import socket
from collections.abc import Iterable

from lamina.serving.connection import HttpConnection
from lamina.serving.connection_table import ConnectionTable
from lamina.serving.request_dispatch import Handler
from lamina.serving.server_limits import ServerLimits
from tests.unit.serving.visiting import Notebook, routes

TURNS = 10_000
"""Of the event loop, within which whatever can be done has been done."""
WORKING_TURNS = 500
"""Within which a handler that waits, as the laws have them, has answered."""


class Line:
    """Stands in for a transport: takes down what is written, and who holds what."""

    def __init__(self, under: socket.socket) -> None:
        self._under = under
        self.written = bytearray()
        self.reading, self.open = True, True

    def get_extra_info(self, name: str) -> socket.socket | None:
        return self._under if name == "socket" else None

    def set_write_buffer_limits(self, high: int, low: int) -> None:
        assert (high, low) == (1, 0)

    def write(self, data: bytes | memoryview) -> None:
        assert self.open
        self.written += data

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        assert self.open

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return not self.open

    def pause_reading(self) -> None:
        assert self.reading, "asyncio does not mind, uvloop might"
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True

    def close(self) -> None:
        self.open = False

    abort = close


async def _talk(pieces: Iterable[bytes], limits: ServerLimits, handler: Handler | None) -> tuple[bytes, Notebook]:
    notes = Notebook()
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        line = Line(ours)
        there = routes()
        connection = HttpConnection(ConnectionTable(handler or there, limits, notes, label=there.label), loop)
        connection.connection_made(line)
        for piece in pieces:
            await _hand_over(connection, line, piece)
        if handler is not None:
            for _ in range(WORKING_TURNS):
                await asyncio.sleep(0)
        # Time passes: whatever is not whole is given up, and what lingers ends.
        for _ in range(3):
            if line.open:
                connection.look(loop.time() + 1_000)
        assert not line.open
        connection.connection_lost(None)
    return bytes(line.written), notes


async def _hand_over(connection: HttpConnection, line: Line, piece: bytes) -> None:
    while piece:
        for _ in range(TURNS):
            if line.reading or not line.open:
                break
            await asyncio.sleep(0)
        if not line.open:
            return
        room = connection.get_buffer(-1)
        count = min(len(room), len(piece))
        assert count > 0
        room[:count] = piece[:count]
        connection.buffer_updated(count)
        piece = piece[count:]
    for _ in range(TURNS):
        if line.reading or not line.open:
            return
        await asyncio.sleep(0)
    raise AssertionError("it reads no more, and nothing is to be waited for")


def talk(
    pieces: Iterable[bytes], limits: ServerLimits | None = None, handler: Handler | None = None
) -> tuple[bytes, Notebook]:
    """Say *pieces* one after the other; return everything that was answered, and what was told."""
    return asyncio.run(_talk(pieces, limits or ServerLimits(), handler))


async def _leave(data: bytes, turns: int, handler: Handler) -> Notebook:
    notes = Notebook()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        line = Line(ours)
        connection = HttpConnection(ConnectionTable(handler, ServerLimits(), notes), asyncio.get_running_loop())
        connection.connection_made(line)
        room = connection.get_buffer(-1)
        room[: len(data)] = data
        connection.buffer_updated(len(data))
        for _ in range(turns):
            await asyncio.sleep(0)
        line.close()
        connection.connection_lost(None)
        for _ in range(WORKING_TURNS):
            await asyncio.sleep(0)
    return notes


def leave(data: bytes, turns: int, handler: Handler) -> Notebook:
    """Say everything at once, and leave after so many turns of the event loop; return what was told."""
    return asyncio.run(_leave(data, turns, handler))
