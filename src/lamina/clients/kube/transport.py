"""
Requests to an API server: one client for everything that talks to it.

    request    one question, the whole answer, within a time and a size
    stream     an answer that goes on, chunk by chunk

Nothing is tried again here except once after a 401, with new credentials; who asks decides what a failure means. The
answer is never compressed (a few bytes could stand for very many), redirects are not followed (credentials would go
along) and proxies named in the environment are not used. Every read is bounded.

Called by the reflector, the writers, the recorder and the lease. Never interprets an object.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, Protocol
from urllib.parse import urlencode

import aiohttp
from yarl import URL

from lamina.clients.kube import failures
from lamina.clients.kube.calls import Answer, Calls
from lamina.clients.kube.errors import ApiError, SilenceError, from_response

RESPONSE_LIMIT: Final = 64 * 1024**2
"""Bytes of an answer. A page of 500 pods has about 2.5 MB; objects themselves end at etcd's 1.5 MiB."""
ERROR_LIMIT: Final = 64 * 1024
"""Bytes of an answer that is a refusal; what is longer is cut."""
CONNECT_TIMEOUT: Final = 10.0
"""Seconds until a connection stands, TLS included."""
KEEP_ALIVE: Final = 60.0
"""Seconds an unused connection is kept; an API server closes it after 90 or more."""
OPEN_TIMEOUT: Final = 30.0
"""Seconds until a stream begins; an API server begins at once, and has nothing to think about."""
CHUNK: Final = 256 * 1024
"""Bytes that are read ahead of a stream's reader; as much as the event loop takes from a socket at once."""

# A compressed answer is refused below, so nothing is asked to be compressed.
ASKED: Final = {"Accept": "application/json", "Accept-Encoding": "identity"}


class Credentials(Protocol):
    """What the client needs of `lamina.clients.kube.access.Access`."""

    @property
    def server(self) -> str:
        """Scheme, host, port and perhaps a path in front of all others."""
        ...

    async def headers(self) -> dict[str, str]:
        """Headers that say who we are."""
        ...

    def tls(self) -> ssl.SSLContext | bool | None:
        """The context for new connections: the same object until the files behind it change; None for http."""
        ...

    def refused(self, used: Mapping[str, str] | None = None) -> None:
        """The headers *used* were answered by 401; they must not be handed out again."""
        ...


class KubeClient:
    """Talks to one API server."""

    def __init__(self, access: Credentials, *, connections: int = 32, user_agent: str = "lamina") -> None:
        """Hold at most *connections* open for requests; every stream has one of its own besides."""
        self._access = access
        self._base = access.server.rstrip("/")
        self._connections = connections
        self._headers = {**ASKED, "User-Agent": user_agent}
        self._calls: Calls | None = None
        self._streams: aiohttp.ClientSession | None = None

    async def request(  # noqa: PLR0913 - the parts of an HTTP request
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout: float = 30.0,
        limit: int = RESPONSE_LIMIT,
    ) -> bytes:
        """
        Ask and return the body of a 2xx answer.

        Raise `ApiError` for any other answer, `Unreachable` when none came within *timeout* seconds, and
        `AnswerTooLongError` when it has more than *limit* bytes.
        """
        what = f"{method} {path}"
        extra = {"Content-Type": content_type} if body is not None else {}
        target = f"{path}?{urlencode(query)}" if query else path
        calls = self._for_calls()
        with failures.in_words(what, timeout):
            async with asyncio.timeout(timeout):
                for first in (True, False):
                    headers = await self._access.headers()
                    answer = await calls.ask(method, target, headers | extra, body, self._access.tls(), limit)
                    if answer.status == 401 and first:
                        self._access.refused(headers)
                        continue
                    return _accepted(what, answer)
        raise AssertionError("the second answer was returned or raised")

    def stream(
        self, path: str, *, query: Mapping[str, str] | None = None, read_timeout: float
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """
        Open an answer that goes on; what the context gives yields its chunks as they come.

        Opening raises as `request` does. Reading ends when the server ends the answer properly, raises `SilenceError`
        after *read_timeout* seconds without a byte and `Unreachable` when the connection breaks.
        """
        return self._stream(path, query, read_timeout)

    @asynccontextmanager
    async def _stream(
        self, path: str, query: Mapping[str, str] | None, read_timeout: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        what = f"GET {path}"
        session = self._session_for_streams()
        patience = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT, sock_read=read_timeout)
        for first in (True, False):
            with failures.in_words(what, read_timeout):
                headers = await self._access.headers()
                async with asyncio.timeout(min(OPEN_TIMEOUT, read_timeout)):
                    response = await session.get(
                        self._url(path, query),
                        headers=headers,
                        ssl=_ssl(self._access.tls()),
                        timeout=patience,
                        allow_redirects=False,
                    )
            try:
                if response.status == 401 and first:
                    self._access.refused(headers)
                    continue
                with failures.in_words(what, read_timeout):
                    await _check(what, response)
                yield _chunks(what, response, read_timeout)
                return
            finally:
                # The rest is not wanted, and a connection with a rest in it is of no use to anybody else.
                response.close()

    async def close(self) -> None:
        """End everything that is open."""
        if self._calls is not None:
            await self._calls.close()
        if self._streams is not None:
            await self._streams.close()
        self._calls = self._streams = None

    def _url(self, path: str, query: Mapping[str, str] | None) -> URL:
        url = URL(self._base + path, encoded=True)
        return url.with_query(query) if query else url

    def _for_calls(self) -> Calls:
        if self._calls is None:
            self._calls = Calls(self._base, self._connections, self._headers)
        return self._calls

    def _session_for_streams(self) -> aiohttp.ClientSession:
        if self._streams is None:
            self._streams = self._session(0)
        return self._streams

    def _session(self, connections: int) -> aiohttp.ClientSession:
        # The TLS context is named by each request: connections are pooled by it, so that a new context never meets an
        # old connection, and old ones are closed when nobody has used them for a while.
        connector = aiohttp.TCPConnector(limit=connections, keepalive_timeout=KEEP_ALIVE)
        session = aiohttp.ClientSession(
            connector=connector,
            headers=self._headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            read_bufsize=CHUNK,
            trust_env=False,
        )
        # It would ask a second time by itself when the first connection breaks, and a server in trouble twice as often.
        session._retry_connection = False  # noqa: SLF001 - there is no public switch; a test sees it work
        return session


def _ssl(context: ssl.SSLContext | bool | None) -> ssl.SSLContext | bool:
    """Say it as aiohttp has it: True is "verify as usual", and no matter for plain http."""
    return True if context is None else context


async def _check(what: str, response: aiohttp.ClientResponse) -> None:
    """Raise unless this is a 2xx answer that can be read as it is."""
    if not 200 <= response.status < 300:
        raise from_response(
            what, response.status, response.reason or "", response.headers, await _beginning(response.content)
        )
    encoding = response.headers.get("Content-Encoding", "identity")
    if encoding != "identity":
        raise ApiError(what, response.status, "Compressed", f"the answer is in {encoding:.40}, which nobody asked for")


async def _beginning(content: aiohttp.StreamReader) -> bytes:
    """Read what a refusal says, up to its limit."""
    pieces: list[bytes] = []
    left = ERROR_LIMIT
    while left > 0 and (piece := await content.read(left)):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def _accepted(what: str, answer: Answer) -> bytes:
    """Return the body of a 2xx answer that can be read as it is; raise for any other."""
    if not 200 <= answer.status < 300:
        raise from_response(what, answer.status, answer.reason, answer.headers, answer.body)
    encoding = answer.headers.get("content-encoding", "identity")
    if encoding != "identity":
        raise ApiError(what, answer.status, "Compressed", f"the answer is in {encoding:.40}, which nobody asked for")
    return answer.body


async def _chunks(what: str, response: aiohttp.ClientResponse, read_timeout: float) -> AsyncIterator[bytes]:
    while True:
        with failures.in_words(what, read_timeout):
            try:
                chunk = await response.content.readany()
            except TimeoutError:
                raise SilenceError(what, f"nothing came for {read_timeout:g} seconds") from None
        if not chunk:
            return
        yield chunk
