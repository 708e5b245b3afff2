"""
Streams: response bodies that an application writes piece by piece, such as the events of a watch.

    open --+--> finished by the application -------------------+--> closed
           +--> cut off: too many bytes are unsent ------------+
           +--> lost: the client is gone ----------------------+

A stream never waits for its client. Bytes that the client does not read are held in memory up to a limit; beyond it the
connection is cut off. So one slow client delays neither the application nor the other clients.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol

LAST_CHUNK: Final = b"0\r\n\r\n"
LARGE_CHUNK: Final = 64 * 1024
"""Chunks of this size are passed to the transport as they are: streams with the same data share its memory."""

log = logging.getLogger(__name__)


class StreamOwner(Protocol):
    """The connection of a stream."""

    def stream_finished(self) -> None:
        """End the response, and go on with the next request."""

    def stream_overflowed(self) -> None:
        """Cut the client off: too many bytes are unsent."""


class ResponseStream:
    """The body of one streaming response."""

    def __init__(
        self,
        owner: StreamOwner,
        transport: asyncio.Transport,
        closed: Callable[[], None],
        *,
        most_unsent: int,
        chunked: bool,
    ) -> None:
        """Write to *transport*, one chunk for each piece; without *chunked*, the body ends with the connection."""
        self._owner, self._transport = owner, transport
        self._report_closed = closed
        self._most_unsent, self._chunked = most_unsent, chunked
        self._reported = False
        self.closed = False
        """Whether nothing more can be written."""

    @property
    def unsent(self) -> int:
        """Bytes that the client's socket has not accepted yet."""
        return 0 if self._transport.is_closing() else self._transport.get_write_buffer_size()

    @property
    def ending(self) -> bytes:
        """The bytes that end the body."""
        return LAST_CHUNK if self._chunked else b""

    def write(self, data: bytes) -> bool:
        """
        Send *data* as one chunk; return False if the stream is closed.

        Closes the stream and returns False if more bytes are unsent than the server's limit `stream_unsent`. Bytes
        that are written in one turn of the event loop count as unsent, because the socket may accept none before the
        next turn.
        """
        if self.closed or self._transport.is_closing():
            return False
        if not data:
            return True  # an empty chunk would end the body
        if not self._chunked:
            self._transport.write(data)
        elif len(data) < LARGE_CHUNK:
            self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))
        else:
            self._transport.writelines((b"%x\r\n" % len(data), data, b"\r\n"))
        if self._transport.get_write_buffer_size() <= self._most_unsent:
            return True
        self.cut_off()
        return False

    def cut_off(self) -> None:
        """Close the connection of a client that does not read. Does nothing if the stream is closed."""
        if self.closed or self._transport.is_closing():
            return
        self.closed = True
        self._owner.stream_overflowed()

    def finish(self) -> None:
        """End the body; the connection can then serve the next request. Does nothing if the stream is closed."""
        if self.closed or self._transport.is_closing():
            return
        self.closed = True
        asyncio.get_running_loop().call_soon(self._report)
        self._owner.stream_finished()

    def lost(self) -> None:
        """Close the stream because its connection is gone; the connection calls this."""
        self.closed = True
        self._report()

    def _report(self) -> None:
        if self._reported:
            return
        self._reported = True
        try:
            self._report_closed()
        except Exception:  # the application's mistake must not end the server
            log.exception("stream callback failed")
