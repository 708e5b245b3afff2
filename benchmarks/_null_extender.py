"""
An extender that reads no request and always answers `[]`: it shows the cost of calling an extender at all.

Runs as its own process, on the same event loop as Lamina's extender; prints its port when it listens.
"""

import asyncio
import contextlib
import re
from typing import Final, cast

from lamina.serving.event_loop import new_loop

ANSWER: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n[]"
LENGTH: Final = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")


class NullProtocol(asyncio.Protocol):
    """One connection: counts bytes until a request is complete, then answers."""

    def __init__(self) -> None:
        """Wait for the first request header."""
        self._head = b""
        self._left = -1
        """Bytes of the body that have not arrived; -1 while the header has not."""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport for answers."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's has the methods but not the base class

    def data_received(self, data: bytes) -> None:
        """Read more; the client waits for each answer, so requests never overlap."""
        if self._left < 0:
            self._head += data
            head, found, body = self._head.partition(b"\r\n\r\n")
            if not found:
                return
            length = LENGTH.search(head)
            self._left, data, self._head = int(length[1]) if length else 0, body, b""
        self._left -= len(data)
        if self._left <= 0 and self._transport is not None:
            self._left = -1
            self._transport.write(ANSWER)


async def serve() -> None:
    """Listen until the process is terminated."""
    server = await asyncio.get_running_loop().create_server(NullProtocol, "127.0.0.1", 0)
    print(f"listening port={server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


def main() -> None:
    """Run the server."""
    with contextlib.suppress(KeyboardInterrupt), asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(serve())


if __name__ == "__main__":
    main()
