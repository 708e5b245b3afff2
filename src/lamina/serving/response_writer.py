"""
Writer of responses, at the speed at which the client reads.

The transport's buffer limit is one byte, so it pauses the writer whenever the socket did not accept everything. At most
one portion is copied, and the end of a response is known exactly.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

BURST: Final = 1024**2
"""Bytes written before other connections get their turn."""


class ResponseWriter:
    """Writes one response at a time."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, done: Callable[[], None]) -> None:
        """Call *done* after each response."""
        self._transport, self._loop, self._done = transport, loop, done
        self._portions: Iterator[bytes | memoryview] | None = None
        self._full = False
        transport.set_write_buffer_limits(high=1, low=0)

    def begin(self, portions: Iterator[bytes | memoryview]) -> None:
        """Write a response; *done* may be called before this returns."""
        self._portions = portions
        self._write_on()

    def drop(self) -> None:
        """Stop writing the current response."""
        self._portions = None

    def pause(self) -> None:
        """Pause: the socket is full."""
        self._full = True

    def resume(self) -> None:
        """Resume: all data was sent."""
        self._full = False
        self._write_on()

    def _stuck(self) -> bool:
        return self._full or self._transport.is_closing()

    def _write_on(self) -> None:
        portions = self._portions
        if portions is None or self._stuck():
            return
        written = 0
        for portion in portions:
            self._transport.write(portion)
            if self._stuck():
                return
            written += len(portion)
            if written >= BURST:
                self._loop.call_soon(self._write_on)
                return
        # A transport may call `resume` from within a write; then the response is finished already.
        if self._portions is portions:
            self._portions = None
            self._done()
