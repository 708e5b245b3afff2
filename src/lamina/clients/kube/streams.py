"""
Streamed responses, chunk by chunk, for watches.

Separate from `transport`, because streams need aiohttp and single requests do not. Iteration ends when the server ends
the response properly; any other end raises.
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
"""Bytes of a response that is not 2xx; longer bodies are cut."""
CONNECT_TIMEOUT: Final = 10.0
"""Seconds to open a connection, TLS included."""
KEEP_ALIVE: Final = 60.0
"""Seconds an idle connection is kept; API servers close idle connections after 90 seconds or more."""
OPEN_TIMEOUT: Final = 30.0
"""Seconds until a response begins; an API server begins a watch at once."""
CHUNK: Final = 256 * 1024
"""Bytes read ahead of the consumer; as many as the event loop reads from a socket at once."""


class ResponseStreams:
    """Streams from one API server, each over its own connection."""

    def __init__(self, access: RequestCredentials, base: str, headers: Mapping[str, str]) -> None:
        """Store the parameters; connect on the first `open`."""
        self._access = access
        self._base = base
        self._headers = headers
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def open(
        self, path: str, query: Mapping[str, str] | None, read_timeout: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a stream; the context manager gives its chunks."""
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
        """Close all streams."""
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
        # Each request names its TLS context, and aiohttp pools connections by it. So a new context never reuses an old
        # connection, and old connections are closed when idle.
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE)
        session = aiohttp.ClientSession(
            connector=connector,
            headers=self._headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            read_bufsize=CHUNK,
            trust_env=False,
        )
        # aiohttp would retry a broken connection by itself, which doubles the load on a server in trouble.
        session._retry_connection = False  # noqa: SLF001 - there is no public switch; a test sees it work
        return session


@contextmanager
def in_words(what: str, seconds: float) -> Iterator[None]:
    """Convert aiohttp's exceptions too, in addition to those of `network_failures.in_words`."""
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
    """Return aiohttp's `ssl` parameter; True means default verification and has no effect for http."""
    return True if context is None else context


def _leave(response: aiohttp.ClientResponse) -> None:
    """
    Close a response; a connection with unread data cannot be reused.

    Abort instead of closing: with TLS, a close would keep the connection until the server confirms, which it need not.
    """
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()


async def _check(what: str, response: aiohttp.ClientResponse) -> None:
    """Raise unless the response is 2xx and uncompressed."""
    if not 200 <= response.status < 300:
        raise from_response(
            what, response.status, response.reason or "", response.headers, await _beginning(response.content)
        )
    encoding = response.headers.get("Content-Encoding", "identity")
    if encoding != "identity":
        raise ApiError(what, response.status, "Compressed", f"unexpected compression: {encoding:.40}")


async def _beginning(content: aiohttp.StreamReader) -> bytes:
    """Read the body of an error response, up to `ERROR_LIMIT`."""
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
                raise SilenceError(what, f"no data for {read_timeout:g} seconds") from None
        if not chunk:
            return
        yield chunk


WORDS: Final[Words] = (
    (
        aiohttp.ClientConnectorDNSError,
        lambda error: f"host name {error.host:.253} not found; check the server's address",
    ),
    (
        aiohttp.ClientConnectorCertificateError,
        lambda error: f"TLS certificate rejected ({certificate_words(error.certificate_error)}); check the CA",
    ),
    (aiohttp.ClientSSLError, lambda error: f"TLS handshake failed ({tls_words(error)}); is this an https server?"),
    (
        aiohttp.ClientConnectorError,
        lambda error: f"connection failed ({error.os_error.strerror or 'refused'}); is the server running?",
    ),
    (aiohttp.ServerDisconnectedError, lambda error: "the server closed the connection without a response"),
    (aiohttp.ClientPayloadError, lambda error: "the connection broke in the middle of the response"),
    (
        aiohttp.ClientResponseError,
        lambda error: f"the response is not HTTP ({one_line(error.message)})",
    ),
    (aiohttp.InvalidURL, lambda error: "the server's address is not a URL; write https://host:port"),
)
"""Messages by exception type; the first matching row is used."""
