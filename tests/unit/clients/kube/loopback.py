"""
A server on the loopback that does what a script tells it, byte by byte, and remembers who asked for what.

    async with Loopback(answer) as server:   answer is called for every request with what was asked and how to answer

It speaks as much HTTP as the tests need. A handler may send half an answer, a wrong one or none at all; when it returns
the connection is kept for the next request if the answer was whole, and closed if it was not.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import parse_qsl, urlsplit


@dataclass
class Asked:
    """A request."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    connection: int

    @property
    def watches(self) -> bool:
        return self.query.get("watch") == "true"

    @property
    def streams_list(self) -> bool:
        return self.query.get("sendInitialEvents") == "true"


@dataclass
class Answer:
    """How to answer it."""

    writer: asyncio.StreamWriter
    whole: bool = field(default=False)
    """Whether the client can tell that the answer has ended."""

    async def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.writer.write(data)
        await self.writer.drain()

    async def reply(self, body: bytes, status: str = "200 OK", headers: Mapping[str, str] | None = None) -> None:
        """Send a whole answer."""
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Content-Type: application/json"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        self.whole = True
        await self.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    async def begin(self, status: str = "200 OK") -> None:
        """Begin an answer that goes on."""
        head = f"HTTP/1.1 {status}\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n"
        await self.send(head.encode())

    async def chunk(self, data: bytes) -> None:
        """Send a piece of it."""
        if data:
            await self.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async def finish(self) -> None:
        """End it properly."""
        self.whole = True
        await self.send(b"0\r\n\r\n")

    def reset(self) -> None:
        """Cut the connection, as a crash would."""
        self.writer.transport.abort()


Handler = Callable[[Asked, Answer], Awaitable[None]]


class Loopback:
    """The server."""

    def __init__(self, handler: Handler, context: ssl.SSLContext | None = None) -> None:
        self.handler = handler
        self.asked: list[Asked] = []
        self.connections = 0
        self._context = context
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()[:2]
        scheme = "https" if self._context else "http"
        return f"{scheme}://{host}:{port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=self._context)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            await self._serve(reader, writer, self.connections)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client is gone, as clients do
        except asyncio.CancelledError:
            writer.transport.abort()  # the test is over
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: int) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            request, *lines = head.decode("latin-1").split("\r\n")[:-2]
            method, target, _ = request.split(" ")
            headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            parts = urlsplit(target)
            asked = Asked(method, parts.path, dict(parse_qsl(parts.query)), headers, body, connection)
            self.asked.append(asked)
            answer = Answer(writer)
            await self.handler(asked, answer)
            if not answer.whole:
                return


class Stub:
    """An Access that knows the address and a token."""

    def __init__(self, server: str, tls: ssl.SSLContext | bool | None = None) -> None:
        self.server = server
        self.token = "first"
        self.next_token = "second"
        self.context = tls
        self.refusals: list[str] = []

    async def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def tls(self) -> ssl.SSLContext | bool | None:
        return self.context

    def refused(self, used: Mapping[str, str] | None = None) -> None:
        self.refusals.append((used or {}).get("Authorization", ""))
        self.token = self.next_token
