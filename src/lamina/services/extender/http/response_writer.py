"""
Answers on their way out, as fast as the caller reads them and no faster.

The transport is told to say so whenever the socket did not take everything. So no more than one portion is ever copied,
and an answer is known to be out when it is.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

BURST: Final = 1024**2
"""Bytes that are written before others have their turn."""


class ResponseWriter:
    """Writes one answer at a time."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, done: Callable[[], None]) -> None:
        """Call *done* after each answer."""
        self._transport, self._loop, self._done = transport, loop, done
        self._portions: Iterator[bytes | memoryview] | None = None
        self._full = False
        transport.set_write_buffer_limits(high=1, low=0)

    def begin(self, portions: Iterator[bytes | memoryview]) -> None:
        """Write an answer; *done* may be called before this returns."""
        self._portions = portions
        self._write_on()

    def drop(self) -> None:
        """Write no more of this answer."""
        self._portions = None

    def pause(self) -> None:
        """The socket is full."""
        self._full = True

    def resume(self) -> None:
        """Everything that was written has gone out."""
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
        # A transport may say from within a write that there is room again; then all this has been done already.
        if self._portions is portions:
            self._portions = None
            self._done()
