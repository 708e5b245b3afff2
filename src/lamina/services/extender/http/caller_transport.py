"""The transport of a connection, with what a caller's manners ask for: not reading, noticing that it left, being rough."""

import asyncio
import select
import socket
import struct
from typing import Final, cast

AT_ONCE: Final = struct.pack("ii", 1, 0)
"""Of lingering in the kernel: what is unsent is thrown away."""


class CallerTransport:
    """A transport that is read, or not."""

    def __init__(self, transport: asyncio.BaseTransport) -> None:
        """Wrap a transport that stands and is read."""
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is one without saying so
        self._socket = transport.get_extra_info("socket")
        self._held = False
        self._poll = select.poll()
        self._poll.register(self._socket.fileno(), select.POLLRDHUP)

    @property
    def closing(self) -> bool:
        """Whether it is being closed."""
        return self.transport.is_closing()

    def hung_up(self) -> bool:
        """Tell whether the caller has closed its direction, without reading what it said before."""
        return bool(self._poll.poll(0))

    def hold(self) -> None:
        """Read nothing for now."""
        if not self._held and not self.closing:
            self._held = True
            self.transport.pause_reading()

    def release(self) -> None:
        """Read again."""
        if self._held and not self.closing:
            self._held = False
            self.transport.resume_reading()

    def end_sending(self) -> None:
        """Tell the caller that nothing more will come, where that can be told."""
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def abort(self) -> None:
        """End now, and let the kernel keep nothing for a caller that does not read."""
        if self._socket.fileno() >= 0:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
        self.transport.abort()
