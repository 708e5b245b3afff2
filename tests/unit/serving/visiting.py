"""
A server on the loopback, callers that speak byte by byte, and a notebook of what the server told.

    async with serving() as server, server.call() as caller:
        await caller.send(b"GET /page HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
        answer = await caller.answer()
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from lamina.serving.event_loop import new_loop
from lamina.serving.http_server import HttpServer
from lamina.serving.request import Body
from lamina.serving.request_dispatch import Handler
from lamina.serving.response import HttpResponse
from lamina.serving.routes import Routes
from lamina.serving.server_limits import ServerLimits
from lamina.serving.tls import ServerTlsSettings

PATIENCE = 20.0
"""Seconds after which a test gives up on an answer; far more than any takes."""

EITHER_LOOP = pytest.mark.parametrize(
    "loop",
    [
        pytest.param(asyncio.new_event_loop, id="asyncio"),
        pytest.param(new_loop, id="uvloop", marks=pytest.mark.needs("uvloop", ci=False)),
    ],
)
"""For what the two do differently."""

PAGE = b'{"page":1}\n'
PIECE = bytes(range(256)) * 4096  # 1 MiB


class Notebook:
    """Takes down what the server tells."""

    def __init__(self) -> None:
        self.answers: list[tuple[str, int, int, int]] = []
        self.seconds: list[float] = []
        self.gone: list[str] = []
        self.refusals: list[str] = []
        self.counts: list[int] = []
        self.reloads: list[bool] = []

    def served(self, path: str, status: int, seconds: float, bytes_in: int, bytes_out: int) -> None:
        self.answers.append((path, status, bytes_in, bytes_out))
        self.seconds.append(seconds)

    def abandoned(self, path: str) -> None:
        self.gone.append(path)

    def refused(self, why: str) -> None:
        self.refusals.append(why)

    def connections(self, count: int) -> None:
        self.counts.append(count)

    def reload(self, ok: bool) -> None:
        self.reloads.append(ok)


def echo(body: Body) -> HttpResponse:
    return HttpResponse(pieces=(bytes(body),))


def fail(body: Body) -> HttpResponse:
    raise ZeroDivisionError("on purpose")


def routes(**posts) -> Routes:
    """Every server here can echo, fail, be long-winded and show a page."""
    return Routes(
        posts={
            "/echo": echo,
            "/fail": fail,
            "/long": lambda body: HttpResponse(pieces=(PIECE,) * int(bytes(body))),
            **{f"/{name}": handler for name, handler in posts.items()},
        },
        gets={"/page": lambda: HttpResponse(pieces=(PAGE[:4], PAGE[4:]))},
    )


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes


def post(path: str, body: bytes, *more: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", *more]
    return "\r\n".join([*lines, "", ""]).encode() + body


def get(path: str = "/page", *more: str, method: str = "GET") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: x", *more, "", ""]).encode()


def chunks(*pieces: bytes, path: str = "/echo", trailer: bytes = b"") -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    return head + b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n" + trailer + b"\r\n"


@dataclass
class Caller:
    """One connection to the server."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        async with asyncio.timeout(PATIENCE):
            await self.writer.drain()

    async def answer(self, *, bodiless: bool = False) -> Answer:
        async with asyncio.timeout(PATIENCE):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.split("\r\n")[:-2]
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
            length = 0 if bodiless else int(headers.get("content-length", "0"))
            return Answer(int(first.split()[1]), headers, await self.reader.readexactly(length))

    async def ask(self, data: bytes) -> Answer:
        await self.send(data)
        return await self.answer()

    async def rest(self) -> bytes:
        """Read until the server hangs up."""
        async with asyncio.timeout(PATIENCE):
            return await self.reader.read()

    async def cut_off(self) -> bool:
        """Read until the end; tell whether that was a rough one."""
        try:
            await self.rest()
        except ConnectionError:
            return True
        return False

    async def close(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except (ConnectionError, ssl.SSLError):
            return  # the server was rough first; that is the test's affair


@dataclass
class Server:
    """A listener and its notebook."""

    listener: HttpServer
    notes: Notebook
    callers: list[Caller] = field(default_factory=list)

    async def connect(self, context: ssl.SSLContext | None = None, **more) -> Caller:
        named = {"server_hostname": "127.0.0.1"} if context else {}
        async with asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", self.listener.port, ssl=context, **named, **more
            )
        caller = Caller(reader, writer)
        self.callers.append(caller)
        return caller

    @asynccontextmanager
    async def call(self, context: ssl.SSLContext | None = None, **more) -> AsyncIterator[Caller]:
        caller = await self.connect(context, **more)
        try:
            yield caller
        finally:
            await caller.close()


@asynccontextmanager
async def serving(
    limits: ServerLimits | None = None,
    tls: ServerTlsSettings | None = None,
    handler: Handler | None = None,
    **posts,
) -> AsyncIterator[Server]:
    """Run a server for as long as the block lasts, with a handler of its own or with the routes and *posts*."""
    notes, there = Notebook(), routes(**posts)
    server = Server(HttpServer(handler or there, limits or ServerLimits(), notes, there.label), notes)
    await server.listener.start("127.0.0.1", 0, tls)
    try:
        yield server
    finally:
        for caller in server.callers:
            await caller.close()
        await server.listener.stop(0)


async def until(condition) -> None:
    """Wait for what is bound to happen."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.005)
