"""
Pool of persistent HTTP/1.1 connections to an API server, for single requests.

Every placement needs two requests, a binding and an event. A general HTTP client would spend most of the scheduler's
time on features that these requests never use: cookies, redirects, compression, tracing. The parser is httptools (the
one of Node.js). Streams use another client, `streams`.

A connection carries one exchange at a time. Any failure during an exchange closes the connection; the caller then does
not know whether the server processed the request.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import Mapping
from typing import Final, cast
from urllib.parse import urlsplit

import httptools
import msgspec

HEADER_LIMIT: Final = 64 * 1024
"""Bytes of a response's headers."""
REFUSAL_LIMIT: Final = 64 * 1024
"""Bytes of a response that is not 2xx; longer bodies are cut."""
CONNECT_TIMEOUT: Final = 10.0
"""Seconds to open a connection, TLS included."""
TURNS: Final = 100
"""Event loop iterations to wait for aborted connections to close; three or four suffice."""
KEPT: Final = 60.0
"""Seconds an idle connection is kept; API servers close idle connections after 90 seconds or more."""


class ExchangeAbortedError(Exception):
    """An exchange ended without a complete response; the message gives the reason."""


class ResponseTooLongError(Exception):
    """A response exceeds a size limit; the message names the limit."""


class NotConnectedError(Exception):
    """Connecting timed out."""


class ApiResponse(msgspec.Struct):
    """A complete response."""

    status: int
    reason: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes


class ApiConnection(asyncio.Protocol):
    """One connection and its current exchange."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.context: ssl.SSLContext | bool | None = None
        """The TLS context it was opened with."""
        self.idle_since = 0.0
        self._response: asyncio.Future[ApiResponse] | None = None
        self._limit = 0
        self._begin()

    def _begin(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._reason = ""
        self._headers: dict[str, str] = {}
        self._pieces: list[bytes] = []
        self._size = 0
        self._header_size = 0
        self._reusable = True
        self._begun = False

    # -- callbacks of asyncio ----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self.transport = cast("asyncio.Transport", transport)  # uvloop's TLS transport is not a declared subclass

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the current exchange, if there is one."""
        self.transport = None
        words = "the connection broke in the middle of the response"
        self._fail(
            ExchangeAbortedError(words if self._begun else "the server closed the connection without a response")
        )

    def data_received(self, data: bytes) -> None:
        """Parse the next bytes of the response."""
        if self._response is None:
            # Data without a request: the next response on this connection could not be trusted.
            self.close()
            return
        self._begun = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(ExchangeAbortedError(f"the response is not HTTP ({error})"))

    # -- callbacks of the parser -------------------------------------------------------------------------------------

    def on_status(self, status: bytes) -> None:
        """Store the reason phrase."""
        self._reason = status.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a header; fail beyond `HEADER_LIMIT`."""
        self._header_size += len(name) + len(value)
        if self._header_size > HEADER_LIMIT:
            self._fail(ResponseTooLongError(f"returned more than {HEADER_LIMIT} bytes of headers"))
            return
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Fail early if the declared body is too long."""
        declared = self._headers.get("content-length", "")
        if not self._refused and declared.isdigit() and int(declared) > self._limit:
            self._fail(ResponseTooLongError(f"returned {declared} bytes, more than the limit of {self._limit}"))

    def on_body(self, body: bytes) -> None:
        """Store a piece of the body; cut an error response at `REFUSAL_LIMIT`."""
        self._pieces.append(body)
        self._size += len(body)
        if self._refused and self._size >= REFUSAL_LIMIT:
            # The rest of the body is not read, so the connection cannot be reused.
            self._reusable = False
            self._complete(b"".join(self._pieces)[:REFUSAL_LIMIT])
            self.close()
        elif not self._refused and self._size > self._limit:
            self._fail(ResponseTooLongError(f"returned more than {self._limit} bytes, the limit"))

    def on_message_complete(self) -> None:
        """Complete the exchange."""
        if self._parser.get_status_code() < 200:
            # 1xx responses come before the real one.
            return
        self._reusable = self._parser.should_keep_alive()
        self._complete(b"".join(self._pieces))

    @property
    def _refused(self) -> bool:
        return not 200 <= self._parser.get_status_code() < 300

    def _complete(self, body: bytes) -> None:
        future, self._response = self._response, None
        if future is not None and not future.done():
            future.set_result(ApiResponse(self._parser.get_status_code(), self._reason, self._headers, body))

    # -- called by the pool ------------------------------------------------------------------------------------------

    async def exchange(self, request: bytes, limit: int) -> ApiResponse:
        """Send a request and return the response. Raises ResponseTooLongError if the body exceeds *limit* bytes."""
        assert self.transport is not None, "an open connection was chosen"
        self._begin()
        self._limit = limit
        self._response = asyncio.get_running_loop().create_future()
        try:
            self.transport.write(request)
            return await self._response
        finally:
            if self._response is not None:
                # Cancelled: the rest of this response would be taken for the next one.
                self._response = None
                self.close()

    @property
    def open(self) -> bool:
        """Whether another exchange can start."""
        return self._reusable and self.transport is not None and not self.transport.is_closing()

    def close(self) -> None:
        """Abort the connection."""
        if self.transport is not None:
            self.transport.abort()

    def _fail(self, error: ExchangeAbortedError | ResponseTooLongError) -> None:
        future, self._response = self._response, None
        if future is not None and not future.done():
            future.set_exception(error)
        self.close()


class ConnectionPool:
    """Persistent connections to one server, at most *connections*."""

    def __init__(self, server: str, connections: int, headers: Mapping[str, str]) -> None:
        """Connect to *server* on the first request; *headers* are sent with every request."""
        parts = urlsplit(server)
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._prefix = parts.path.rstrip("/")
        self._always = {"Host": parts.netloc.rpartition("@")[2], **headers}
        self._heads: dict[tuple[tuple[str, str], ...], str] = {}
        self._slots = asyncio.Semaphore(connections)
        self._idle: deque[ApiConnection] = deque()
        self._busy: set[ApiConnection] = set()

    async def ask(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | None,
        context: ssl.SSLContext | bool | None,
        limit: int,
    ) -> ApiResponse:
        """Send one request. Raises the errors of this module, or those of opening a connection."""
        request = self._encode_request(method, target, headers, body)
        async with self._slots:
            connection = self._take_idle(context) or await self._open(context)
            self._busy.add(connection)
            try:
                return await connection.exchange(request, limit)
            finally:
                self._busy.discard(connection)
                if connection.open:
                    connection.idle_since = asyncio.get_running_loop().time()
                    self._idle.append(connection)
                else:
                    # The response said "Connection: close"; some servers expect the client to close.
                    connection.close()

    async def close(self) -> None:
        """Close all connections, and wait until the event loop has closed them."""
        ending = [*self._idle, *self._busy]
        self._idle.clear()
        for connection in ending:
            connection.close()
        for _ in range(TURNS):
            if all(connection.transport is None for connection in ending):
                return
            await asyncio.sleep(0)

    def _encode_request(self, method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> bytes:
        # Credentials seldom change, so their encoded headers are cached; eight allow for a rotation.
        key = tuple(headers.items())
        head = self._heads.get(key)
        if head is None:
            if len(self._heads) >= 8:
                self._heads.clear()
            all_headers = {**self._always, **headers}
            head = self._heads[key] = "".join(f"{name}: {_checked(value)}\r\n" for name, value in all_headers.items())
        length = f"Content-Length: {len(body)}\r\n" if body is not None else ""
        text = f"{method} {self._prefix}{_checked(target)} HTTP/1.1\r\n{head}{length}\r\n"
        return text.encode("latin-1") + (body or b"")

    def _take_idle(self, context: ssl.SSLContext | bool | None) -> ApiConnection | None:
        """Return the most recently used idle connection with the same TLS context; close the others."""
        now = asyncio.get_running_loop().time()
        while self._idle:
            connection = self._idle.pop()
            if connection.open and connection.context is context and now - connection.idle_since < KEPT:
                return connection
            connection.close()
        return None

    async def _open(self, context: ssl.SSLContext | bool | None) -> ApiConnection:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                _, connection = await loop.create_connection(
                    ApiConnection, self._host, self._port, ssl=None if context is None else context
                )
        except TimeoutError:
            raise NotConnectedError from None
        connection.context = context
        return connection


def _checked(text: str) -> str:
    """Return *text*; raise ValueError if it contains a line break, which would start another header."""
    if "\r" in text or "\n" in text or "\0" in text:
        raise ValueError("a header or path has a line break in it")
    return text
