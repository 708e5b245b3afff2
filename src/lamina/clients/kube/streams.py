"""
Answers that go on, chunk by chunk: what watches are made of.

Apart from `transport`, because they need aiohttp and single questions do not. A stream ends when the server ends it
properly; every other end is an exception that says which.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Final

import aiohttp
from yarl import URL

from lamina.clients.kube import network_failures
from lamina.clients.kube.connection_pool import NotConnectedError
from lamina.clients.kube.errors import ApiError, SilenceError, from_response, one_line
from lamina.clients.kube.network_failures import NetworkFailureError, Words, certificate_words, tls_words
from lamina.clients.kube.request_credentials import RequestCredentials

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


class ResponseStreams:
    """Streams from one API server, each over a connection of its own."""

    def __init__(self, access: RequestCredentials, base: str, headers: Mapping[str, str]) -> None:
        """Nothing is connected yet."""
        self._access = access
        self._base = base
        self._headers = headers
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def open(
        self, path: str, query: Mapping[str, str] | None, read_timeout: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open one; the context gives its chunks."""
        what = f"GET {path}"
        session = self._for_all()
        patience = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT, sock_read=read_timeout)
        for first in (True, False):
            with in_words(what, read_timeout):
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
                with in_words(what, read_timeout):
                    await _check(what, response)
                yield _chunks(what, response, read_timeout)
                return
            finally:
                _leave(response)

    async def close(self) -> None:
        """End everything that is open."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _url(self, path: str, query: Mapping[str, str] | None) -> URL:
        url = URL(self._base + path, encoded=True)
        return url.with_query(query) if query else url

    def _for_all(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = self._opened()
        return self._session

    def _opened(self) -> aiohttp.ClientSession:
        # The TLS context is named by each request: connections are pooled by it, so that a new context never meets an
        # old connection, and old ones are closed when nobody has used them for a while.
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE)
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


@contextmanager
def in_words(what: str, seconds: float) -> Iterator[None]:
    """Do as `network_failures.in_words` does, and for what aiohttp raises."""
    with network_failures.in_words(what, seconds):
        try:
            yield
        except aiohttp.ConnectionTimeoutError:
            failure: Exception = NotConnectedError()
        except aiohttp.ClientError as error:
            failure = NetworkFailureError(network_failures.worded(error, WORDS))
        else:
            return
        raise failure


def _ssl(context: ssl.SSLContext | bool | None) -> ssl.SSLContext | bool:
    """Say it as aiohttp has it: True is "verify as usual", and no matter for plain http."""
    return True if context is None else context


def _leave(response: aiohttp.ClientResponse) -> None:
    """
    End an answer: its rest is not wanted, and a connection with a rest in it is of no use to anybody else.

    Not in order: with TLS that would keep the connection until the server has said goodbye too, which it need not do.
    """
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()


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


async def _chunks(what: str, response: aiohttp.ClientResponse, read_timeout: float) -> AsyncIterator[bytes]:
    while True:
        with in_words(what, read_timeout):
            try:
                chunk = await response.content.readany()
            except TimeoutError:
                raise SilenceError(what, f"nothing came for {read_timeout:g} seconds") from None
        if not chunk:
            return
        yield chunk


WORDS: Final[Words] = (
    (
        aiohttp.ClientConnectorDNSError,
        lambda error: f"the name {error.host:.253} is not known; check the server's address",
    ),
    (
        aiohttp.ClientConnectorCertificateError,
        lambda error: f"its certificate is not accepted ({certificate_words(error.certificate_error)}); check the CA",
    ),
    (aiohttp.ClientSSLError, lambda error: f"no TLS connection ({tls_words(error)}); is this an https server?"),
    (
        aiohttp.ClientConnectorError,
        lambda error: f"no connection ({error.os_error.strerror or 'refused'}); is the server running?",
    ),
    (aiohttp.ServerDisconnectedError, lambda error: "the server closed the connection before it answered"),
    (aiohttp.ClientPayloadError, lambda error: "the connection broke in the middle of the answer"),
    (
        aiohttp.ClientResponseError,
        lambda error: f"this is not HTTP as a server speaks it ({one_line(error.message)})",
    ),
    (aiohttp.InvalidURL, lambda error: "the server's address is no URL; write https://host:port"),
)
"""The first that fits counts."""
