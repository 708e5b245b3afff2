"""Transport of a client's connection: pauses reading, detects a closed client, and can reset the connection."""

import asyncio
import select
import socket
import struct
from typing import Final, cast

AT_ONCE: Final = struct.pack("ii", 1, 0)
"""SO_LINGER value: discard unsent data when the socket closes."""


class CallerTransport:
    """A transport whose reading can be paused."""

    def __init__(self, transport: asyncio.BaseTransport) -> None:
        """Wrap a connected transport that is being read."""
        self.transport = cast("asyncio.Transport", transport)  # uvloop's transport does not declare this base class
        self._socket = transport.get_extra_info("socket")
        self._held = False
        self._poll = select.poll()
        self._poll.register(self._socket.fileno(), select.POLLRDHUP)

    @property
    def closing(self) -> bool:
        """Whether the transport is being closed."""
        return self.transport.is_closing()

    def peer(self) -> str:
        """Return the client's IP address, or "" if the transport has none."""
        name = self.transport.get_extra_info("peername")
        return name[0] if isinstance(name, tuple) else ""

    def hung_up(self) -> bool:
        """Return whether the client has closed its direction, without reading the data before that."""
        return bool(self._poll.poll(0))

    def hold(self) -> None:
        """Pause reading."""
        if not self._held and not self.closing:
            self._held = True
            self.transport.pause_reading()

    def release(self) -> None:
        """Resume reading."""
        if self._held and not self.closing:
            self._held = False
            self.transport.resume_reading()

    def end_sending(self) -> None:
        """Send end-of-file to the client, if the transport supports it."""
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def abort(self) -> None:
        """Close now, and discard unsent data for a client that does not read."""
        if self._socket.fileno() >= 0:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
        self.transport.abort()
