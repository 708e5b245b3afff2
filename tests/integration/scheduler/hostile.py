"""Image names that somebody writes who wants us to go where we must not, and servers that notice who comes."""

import random
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Final

from aiohttp import web

WORDS: Final = ("app", "a/b", "library/nginx", "x" * 200, "team/app", "latest", "v2", "meta-data")
METADATA: Final = ("169.254.169.254", "169.254.170.2", "100.100.100.200", "[fd00:ec2::254]", "metadata.google.internal")
LOOPBACK: Final = (
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f000001",
    "0x7f.0x0.0x0.0x1",
    "0177.0.0.1",
    "017700000001",
    "0",
    "0.0.0.0",
    "localhost",
    "LOCALHOST",
    "localhost.localdomain",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:0:0:1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "[::127.0.0.1]",
    "[fe80::1%25lo]",
    "[fe80::1]",
)
PRIVATE: Final = ("10.0.0.1", "10.96.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "[fd00::1]", "[fc00::1]")
ODD: Final = (
    "127.0.0.1.",
    "127。0。0。1",  # dots of another script
    "①②⑦.0.0.1",
    "ｌocalhost",  # a wide letter
    "localhost%00.example",
    "localhost\x00",
    "localhost\n",
    "user:password@127.0.0.1",
    "registry.example@127.0.0.1",
    "127.0.0.1#",
    "127.0.0.1?",
    "127.0.0.1\\",
    "http://127.0.0.1",
    "https:127.0.0.1",
    "file:",
    "..",
    "-",
    "",
)


def hosts() -> tuple[str, ...]:
    """All of them."""
    return (*METADATA, *LOOPBACK, *PRIVATE, *ODD)


def names(count: int, ports: tuple[int, ...], allowed: str, dice: random.Random) -> Iterator[str]:
    """Yield so many names; *ports* are those on which somebody listens, *allowed* is a registry that may be asked."""
    sights = len(trap_paths())
    for number in range(count):
        word, tag = dice.choice(WORDS), dice.choice(["", ":1", f":{number}", "@sha256:" + "0" * 64, ":" + "t" * 128])
        match number % 4:
            case 0:
                yield f"{allowed}/{trap_paths()[dice.randrange(sights)]}{number % 50}:1"
            case 1:
                yield "".join(dice.choice("a0:/@.%[]\\#?é\u202e -_") for _ in range(dice.choice([3, 40, 4096, 5000])))
            case _:
                port = dice.choice(["", *(f":{port}" for port in ports), ":80", ":443", ":0", ":99999", ":-1"])
                yield f"{dice.choice(hosts())}{port}/{word}{tag}"


def trap_paths() -> list[str]:
    """Repositories of the allowed registry that lead elsewhere."""
    return ["redirect/", "realm/", "loop/", "plain/", "huge/", "liar/"]


class Notes:
    """What servers were asked, and with which credentials."""

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        self.credentials: list[str] = []


@asynccontextmanager
async def server(answer: Any) -> AsyncIterator[int]:
    """Listen on loopback, on both families where there are two; the answer is the port."""
    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", answer)
    runner = web.AppRunner(app, access_log=None, handle_signals=False)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = int(runner.addresses[0][1])
        # Where there is no IPv6, nobody can go there either.
        with suppress(OSError):
            await web.TCPSite(runner, "::1", port).start()
        yield port
    finally:
        await runner.cleanup()


def canary(notes: Notes) -> Any:
    """Answer politely, and note that somebody came."""

    async def answer(request: web.Request) -> web.Response:
        notes.requests["canary"] += 1
        notes.credentials.append(request.headers.get("Authorization", ""))
        return web.json_response({"token": "canary", "access_token": "canary"})

    return answer


def trap(notes: Notes, forbidden: list[str]) -> Any:
    """Be a registry that sends everybody where it should not."""

    async def answer(request: web.Request) -> web.StreamResponse:
        notes.requests["trap"] += 1
        kind, _, number = request.path.removeprefix("/v2/").partition("/")
        target = forbidden[sum(map(ord, number)) % len(forbidden)]
        match kind:
            case "redirect":
                return web.Response(status=307, headers={"Location": target})
            case "realm":
                realm = f'Bearer realm="{target}",service="registry",scope="repository:x:pull"'
                return web.Response(status=401, headers={"WWW-Authenticate": realm})
            case "loop":
                return web.Response(status=302, headers={"Location": request.path_qs})
            case "huge":
                return web.Response(body=b"{" * 5_000_000)
            case "liar":
                return web.json_response({"schemaVersion": 2, "layers": [], "manifests": []})
        return web.Response(status=404)

    return answer


class Ear:
    """Hears every connection that this process opens and every name that it looks up, while it listens."""

    def __init__(self) -> None:
        self.connected: list[Any] = []
        self.looked_up: list[str] = []
        self._listening = False
        # A hook cannot be taken out again, so it has to be told when to listen.
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._listening:
            return
        if event == "socket.connect":
            self.connected.append(arguments[1])
        elif event == "socket.getaddrinfo" and isinstance(arguments[0], str):
            self.looked_up.append(arguments[0])

    @contextmanager
    def listening(self) -> Iterator["Ear"]:
        """Listen for a while."""
        self._listening = True
        try:
            yield self
        finally:
            self._listening = False
