"""
An extender that reads no question and always answers that no node is better than another: what asking costs by itself.

Run as a process of its own, on the same event loop as ours; prints its port when it listens.
"""

import asyncio
import contextlib
import re
from typing import Final, cast

from lamina.services.extender.http.event_loop import new_loop

ANSWER: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n[]"
LENGTH: Final = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")


class NullProtocol(asyncio.Protocol):
    """One connection: counts bytes until a question is whole, then answers."""

    def __init__(self) -> None:
        """Wait for the first head."""
        self._head = b""
        self._left = -1
        """Bytes of the body that have not come; -1 while the head has not."""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep whom to answer."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one without saying so

    def data_received(self, data: bytes) -> None:
        """Read on; whoever asks waits for the answer before asking again, so that questions never overlap."""
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
    """Listen until the process is ended."""
    server = await asyncio.get_running_loop().create_server(NullProtocol, "127.0.0.1", 0)
    print(f"listening port={server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


def main() -> None:
    """Serve."""
    with contextlib.suppress(KeyboardInterrupt), asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(serve())


if __name__ == "__main__":
    main()
