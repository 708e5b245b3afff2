"""
HTTP connections to registries, restricted to permitted IP addresses.

A name is resolved once, all its addresses are checked, and aiohttp connects to one of these addresses. A second query,
whose result could differ, is never made. One rejected address rejects the whole name, because no public registry has
one. The socket factory checks every address again, which also covers hosts written as IP addresses.

There are two connection pools: for endpoints that may be private, and for all others. They never share a connection.
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

from lamina.clients.oci.addresses import IpNetwork, rejection_reason_of
from lamina.clients.oci.lookup_results import UNREACHABLE, RegistryError

CONNECTIONS: Final = 16
KEEP_ALIVE: Final = 30.0
"""Seconds an idle connection is kept."""
CONNECT_TIMEOUT: Final = 5.0
HEADER_SIZE: Final = 8_190
HEADERS: Final = 64
"""Headers of a response; each has at most `HEADER_SIZE` bytes."""
LOOKUPS: Final = 32
"""Concurrent DNS queries. getaddrinfo cannot be cancelled, so a slow name must not block others."""
MOST_ADDRESSES: Final = 32

AddressInfos: TypeAlias = Sequence[tuple[int, int, int, str, tuple[str | int | bytes, ...]]]
"""The result of getaddrinfo."""

ASKED: Final = {"Accept-Encoding": "identity", "User-Agent": "lamina"}


class RefusedAddressError(OSError):
    """A host resolves to an address that is not permitted."""

    def __init__(self, host: str, word: str) -> None:
        super().__init__(host, word)
        self.host, self.word = host, word

    def __str__(self) -> str:
        return f"{self.host} has an address that is {self.word}"


class ConnectionInfo(msgspec.Struct):
    """Facts about the connection that carried a request."""

    used_before: bool = False


async def _reused(_: aiohttp.ClientSession, context: SimpleNamespace, __: object) -> None:
    context.trace_request_ctx.used_before = True


class FilteringResolver(AbstractResolver):
    """
    DNS resolver that returns only permitted addresses.

    Concurrent queries for the same name share one thread and one result. So a name whose servers do not respond uses
    one thread, and does not block other names. The threads are daemon threads and end with the process.
    """

    def __init__(self, *, private: bool, refused: Sequence[IpNetwork]) -> None:
        """Start no threads yet."""
        self._private, self._refused = private, tuple(refused)
        self._free = asyncio.Semaphore(LOOKUPS)
        self._in_progress: dict[tuple[str, int, int], asyncio.Task[AddressInfos]] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Resolve a name. Raises OSError, or its subclass RefusedAddressError."""
        key = (host, port, int(family))
        if (task := self._in_progress.get(key)) is None:
            task = self._in_progress[key] = asyncio.create_task(self._look_up(*key), name="registry name")
            task.add_done_callback(lambda done: self._ended(key, done))
        found = await asyncio.shield(task)
        for _, _, _, _, address in found:
            if word := rejection_reason_of(str(address[0]), private=self._private, refused=self._refused):
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
        """Cancel all waiting queries."""
        for task in list(self._in_progress.values()):
            task.cancel()

    async def _look_up(self, host: str, port: int, family: int) -> AddressInfos:
        async with self._free:
            return await _in_a_thread(host, port, family)

    def _ended(self, key: tuple[str, int, int], task: asyncio.Task[AddressInfos]) -> None:
        del self._in_progress[key]
        if not task.cancelled():
            task.exception()  # mark as retrieved: the callers have received it, or were cancelled


def _in_a_thread(host: str, port: int, family: int) -> asyncio.Future[AddressInfos]:
    """Call getaddrinfo in a daemon thread; executor threads would block the exit of the process."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[AddressInfos] = loop.create_future()

    def complete(found: AddressInfos | None, error: Exception | None) -> None:
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
        except Exception as error:  # noqa: BLE001 - raised again where the result is awaited
            problem = error
        with suppress(RuntimeError):  # the loop may be closed
            loop.call_soon_threadsafe(complete, found, problem)

    threading.Thread(target=run, name="registry-names", daemon=True).start()
    return answer


def look_up(host: str, port: int, family: int) -> AddressInfos:
    """Return the addresses of a name."""
    return socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)


class RegistryConnections:
    """The two connection pools."""

    def __init__(self, refused: Sequence[str] = ()) -> None:
        """Open nothing yet; *refused* are networks treated as private."""
        self._refused = tuple(ipaddress.ip_network(text) for text in refused)
        self._sessions: dict[bool, aiohttp.ClientSession] = {}
        self._resolvers: list[FilteringResolver] = []
        self._contexts: dict[str, tuple[tuple[int, int], ssl.SSLContext]] = {}

    def session(self, *, private: bool) -> aiohttp.ClientSession:
        """Return the pool for endpoints that may be private, or the one for all others."""
        if private not in self._sessions:
            self._sessions[private] = self._open(private=private)
        return self._sessions[private]

    def context(self, ca_file: str) -> ssl.SSLContext:
        """Return the TLS context for the system's CAs and *ca_file*; rebuilt when the file changes."""
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
            raise RegistryError(UNREACHABLE, f"caFile {ca_file} cannot be read") from None
        return known[1]

    async def close(self) -> None:
        """Close all connections."""
        sessions = list(self._sessions.values())
        self._sessions.clear()
        for session in sessions:
            await session.close()
        for resolver in self._resolvers:
            await resolver.close()
        self._resolvers.clear()

    def _open(self, *, private: bool) -> aiohttp.ClientSession:
        def checked_socket(info: tuple[int, int, int, str, tuple[str | int, ...]]) -> socket.socket:
            kind, style, protocol, _, address = info
            if word := rejection_reason_of(str(address[0]), private=private, refused=self._refused):
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
            socket_factory=checked_socket,
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
        # aiohttp would retry a broken connection by itself, which doubles the load on a server in trouble.
        session._retry_connection = False  # noqa: SLF001 - there is no public switch; a test sees it work
        return session
