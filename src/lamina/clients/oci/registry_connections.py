"""
Connections to where we may go and nowhere else.

A name is looked up once, every address it has is judged, and what aiohttp connects to is one of those addresses: the
answer to a second look-up, which may be another, is never asked for. One refused address is enough to refuse a name, for
no public registry has one. Addresses written as such are judged where the socket is made, as is everything else again.

There are two sets of connections: for places that may be private, and for all others. They never share one.
"""

import asyncio
import ipaddress
import socket
import ssl
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Final, TypeAlias

import aiohttp
import msgspec
from aiohttp.abc import AbstractResolver, ResolveResult

from lamina.clients.oci.addresses import IpNetwork, judge_text
from lamina.clients.oci.lookup_results import UNREACHABLE, RegistryError

CONNECTIONS: Final = 16
KEEP_ALIVE: Final = 30.0
"""Seconds an unused connection is kept."""
CONNECT_TIMEOUT: Final = 5.0
HEADER_SIZE: Final = 8_190
HEADERS: Final = 64
"""Of an answer, and the bytes each may have."""
LOOKUPS: Final = 32
"""Names that are looked up at a time. The C library cannot be told to stop, so others must not wait for it."""
MOST_ADDRESSES: Final = 32

AddressInfos: TypeAlias = Sequence[tuple[int, int, int, str, tuple[str | int | bytes, ...]]]
"""What the system says about a name."""

ASKED: Final = {"Accept-Encoding": "identity", "User-Agent": "lamina"}


class RefusedAddressError(OSError):
    """An address that must not be connected to."""

    def __init__(self, host: str, word: str) -> None:
        super().__init__(host, word)
        self.host, self.word = host, word

    def __str__(self) -> str:
        return f"{self.host} lies on an address that is {self.word}"


class ConnectionInfo(msgspec.Struct):
    """What is told about the connection that a question went over."""

    used_before: bool = False


async def _reused(_: aiohttp.ClientSession, context: SimpleNamespace, __: object) -> None:
    context.trace_request_ctx.used_before = True


class FilteringResolver(AbstractResolver):
    """
    Looks names up, and hands on only addresses that may be connected to.

    Whoever asks for a name that is being looked up waits for the same answer. So a name whose servers say nothing costs
    one thread, however many ask for it, and keeps no other name from being looked up. Threads end with the process.
    """

    def __init__(self, *, private: bool, refused: Sequence[IpNetwork]) -> None:
        """Start no thread yet."""
        self._private, self._refused = private, tuple(refused)
        self._free = asyncio.Semaphore(LOOKUPS)
        self._under_way: dict[tuple[str, int, int], asyncio.Task[AddressInfos]] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Look a name up. Raises OSError, RefusedAddressError among them."""
        key = (host, port, int(family))
        if (task := self._under_way.get(key)) is None:
            task = self._under_way[key] = asyncio.create_task(self._look_up(*key), name="registry name")
            task.add_done_callback(lambda done: self._over(key, done))
        found = await asyncio.shield(task)
        for _, _, _, _, address in found:
            if word := judge_text(str(address[0]), private=self._private, refused=self._refused):
                raise RefusedAddressError(host, word)
        return [
            ResolveResult(
                hostname=host,
                host=str(address[0]),
                port=port,
                family=kind,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for kind, _, protocol, _, address in found[:MOST_ADDRESSES]
        ]

    async def close(self) -> None:
        """Wait for nobody."""
        for task in list(self._under_way.values()):
            task.cancel()

    async def _look_up(self, host: str, port: int, family: int) -> AddressInfos:
        async with self._free:
            return await _in_a_thread(host, port, family)

    def _over(self, key: tuple[str, int, int], task: asyncio.Task[AddressInfos]) -> None:
        del self._under_way[key]
        if not task.cancelled():
            task.exception()  # whoever asked has been told, or does not wait any more


def _in_a_thread(host: str, port: int, family: int) -> asyncio.Future[AddressInfos]:
    """Ask the system in a thread that nobody waits for when the process ends, which those of an executor are."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[AddressInfos] = loop.create_future()

    def tell(found: AddressInfos | None, error: Exception | None) -> None:
        if answer.done():
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(found or ())

    def run() -> None:
        found, problem = None, None
        try:
            found = look_up(host, port, family)
        except Exception as error:  # noqa: BLE001 - it is raised where the answer is awaited
            problem = error
        with suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(tell, found, problem)

    threading.Thread(target=run, name="registry-names", daemon=True).start()
    return answer


def look_up(host: str, port: int, family: int) -> AddressInfos:
    """Ask the system what addresses a name has."""
    return socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)


class RegistryConnections:
    """The two sets of connections."""

    def __init__(self, refused: Sequence[str] = ()) -> None:
        """Open nothing yet; *refused* are networks that count as private."""
        self._refused = tuple(ipaddress.ip_network(text) for text in refused)
        self._sessions: dict[bool, aiohttp.ClientSession] = {}
        self._resolvers: list[FilteringResolver] = []
        self._contexts: dict[str, tuple[tuple[int, int], ssl.SSLContext]] = {}

    def session(self, *, private: bool) -> aiohttp.ClientSession:
        """Return the set for places that may be private, or the one for others."""
        if private not in self._sessions:
            self._sessions[private] = self._open(private=private)
        return self._sessions[private]

    def context(self, ca_file: str) -> ssl.SSLContext:
        """Return whom to believe: the system's authorities and those of a file, read again when it changes."""
        try:
            stamp = Path(ca_file).stat() if ca_file else None
            edition = (stamp.st_mtime_ns, stamp.st_size) if stamp is not None else (0, 0)
            known = self._contexts.get(ca_file)
            if known is None or known[0] != edition:
                context = ssl.create_default_context()
                if ca_file:
                    context.load_verify_locations(ca_file)
                known = self._contexts[ca_file] = (edition, context)
        except (OSError, ValueError):
            raise RegistryError(UNREACHABLE, f"the authorities in {ca_file} cannot be read") from None
        return known[1]

    async def close(self) -> None:
        """End every connection."""
        sessions = list(self._sessions.values())
        self._sessions.clear()
        for session in sessions:
            await session.close()
        for resolver in self._resolvers:
            await resolver.close()
        self._resolvers.clear()

    def _open(self, *, private: bool) -> aiohttp.ClientSession:
        def judged_socket(info: tuple[int, int, int, str, tuple[str | int, ...]]) -> socket.socket:
            kind, style, protocol, _, address = info
            if word := judge_text(str(address[0]), private=private, refused=self._refused):
                raise RefusedAddressError(str(address[0]), word)
            made = socket.socket(kind, style, protocol)
            made.setblocking(False)
            return made

        resolver = FilteringResolver(private=private, refused=self._refused)
        self._resolvers.append(resolver)
        connector = aiohttp.TCPConnector(
            limit=CONNECTIONS,
            keepalive_timeout=KEEP_ALIVE,
            resolver=resolver,
            use_dns_cache=False,
            socket_factory=judged_socket,
        )
        noticing = aiohttp.TraceConfig()
        noticing.on_connection_reuseconn.append(_reused)
        session = aiohttp.ClientSession(
            connector=connector,
            connector_owner=True,
            headers=ASKED,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            trace_configs=[noticing],
            max_line_size=HEADER_SIZE,
            max_field_size=HEADER_SIZE,
            max_headers=HEADERS,
        )
        # It would ask a second time by itself whenever a connection breaks, and a server in trouble twice as often.
        session._retry_connection = False  # noqa: SLF001 - there is no public switch; a test sees it work
        return session
