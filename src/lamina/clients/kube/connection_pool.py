"""
Short exchanges with an API server over connections that are kept: one question, one answer, HTTP/1.1.

Every placement costs two of them, a binding and an event, and a general client spends most of a scheduler's time on what
an exchange with an API server never needs: cookies, redirects, compression, tracing. This is the part that is needed;
the parser is httptools', the one of Node.js. Streams are the other client's (`transport`).

A connection carries one exchange at a time. Whatever goes wrong in the middle of one ends the connection; what became of
the question is then not known.
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
"""Bytes of an answer's headers."""
REFUSAL_LIMIT: Final = 64 * 1024
"""Bytes of an answer that is a refusal; what is longer is cut."""
CONNECT_TIMEOUT: Final = 10.0
"""Seconds until a connection stands, TLS included."""
TURNS: Final = 100
"""Of the event loop, within which a connection that is cut is gone; three or four do."""
KEPT: Final = 60.0
"""Seconds an unused connection is kept; an API server closes it after 90 or more."""


class ExchangeAbortedError(Exception):
    """An exchange came to no end; says why in words."""


class ResponseTooLongError(Exception):
    """There was more to read than was allowed; says how much in words."""


class NotConnectedError(Exception):
    """No connection in time."""


class ApiResponse(msgspec.Struct):
    """What came back."""

    status: int
    reason: str
    headers: dict[str, str]
    """Names in small letters."""
    body: bytes


class ApiConnection(asyncio.Protocol):
    """One connection, and the exchange it is in."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.context: ssl.SSLContext | bool | None = None
        """The trust it was opened with."""
        self.idle_since = 0.0
        self._answer: asyncio.Future[ApiResponse] | None = None
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

    # -- asyncio calls these -----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It stands."""
        self.transport = cast("asyncio.Transport", transport)  # uvloop's under TLS is one without saying so

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone, perhaps in the middle of an exchange."""
        self.transport = None
        words = "the connection broke in the middle of the answer"
        self._fail(
            ExchangeAbortedError(words if self._begun else "the server closed the connection before it answered")
        )

    def data_received(self, data: bytes) -> None:
        """Read on."""
        if self._answer is None:
            # Nobody asked: whatever it is, this connection is not to be trusted with the next question.
            self.close()
            return
        self._begun = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(ExchangeAbortedError(f"this is not HTTP as a server speaks it ({error})"))

    # -- the parser calls these --------------------------------------------------------------------------------------

    def on_status(self, status: bytes) -> None:
        """The words after the number."""
        self._reason = status.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        self._header_size += len(name) + len(value)
        if self._header_size > HEADER_LIMIT:
            self._fail(ResponseTooLongError(f"answers with more than {HEADER_LIMIT} bytes of headers"))
            return
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """All headers are there: perhaps it is clear already that the body is too long."""
        declared = self._headers.get("content-length", "")
        if not self._refused and declared.isdigit() and int(declared) > self._limit:
            self._fail(
                ResponseTooLongError(f"answers with {declared} bytes, more than the {self._limit} that are read")
            )

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self._pieces.append(body)
        self._size += len(body)
        if self._refused and self._size >= REFUSAL_LIMIT:
            # Nobody reads on; the connection is of no further use.
            self._reusable = False
            self._give(b"".join(self._pieces)[:REFUSAL_LIMIT])
            self.close()
        elif not self._refused and self._size > self._limit:
            self._fail(ResponseTooLongError(f"answers with more than the {self._limit} bytes that are read"))

    def on_message_complete(self) -> None:
        """The answer is whole."""
        if self._parser.get_status_code() < 200:
            # "Continue" and the like: the answer is yet to come.
            return
        self._reusable = self._parser.should_keep_alive()
        self._give(b"".join(self._pieces))

    @property
    def _refused(self) -> bool:
        return not 200 <= self._parser.get_status_code() < 300

    def _give(self, body: bytes) -> None:
        future, self._answer = self._answer, None
        if future is not None and not future.done():
            future.set_result(ApiResponse(self._parser.get_status_code(), self._reason, self._headers, body))

    # -- whoever asks calls these ------------------------------------------------------------------------------------

    async def exchange(self, question: bytes, limit: int) -> ApiResponse:
        """Ask, and return the answer if its body has no more than *limit* bytes."""
        assert self.transport is not None, "an open connection was chosen"
        self._begin()
        self._limit = limit
        self._answer = asyncio.get_running_loop().create_future()
        try:
            self.transport.write(question)
            return await self._answer
        finally:
            if self._answer is not None:
                # Given up in the middle: the rest of the answer would be taken for the next one.
                self._answer = None
                self.close()

    @property
    def open(self) -> bool:
        """Whether another exchange may begin."""
        return self._reusable and self.transport is not None and not self.transport.is_closing()

    def close(self) -> None:
        """End it."""
        if self.transport is not None:
            self.transport.abort()

    def _fail(self, error: ExchangeAbortedError | ResponseTooLongError) -> None:
        future, self._answer = self._answer, None
        if future is not None and not future.done():
            future.set_exception(error)
        self.close()


class ConnectionPool:
    """Kept connections to one server, at most so many."""

    def __init__(self, server: str, connections: int, headers: Mapping[str, str]) -> None:
        """Connect to *server* when there is something to ask; *headers* go with every question."""
        parts = urlsplit(server)
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._prefix = parts.path.rstrip("/")
        self._always = {"Host": parts.netloc.rpartition("@")[2], **headers}
        self._heads: dict[tuple[tuple[str, str], ...], str] = {}
        self._places = asyncio.Semaphore(connections)
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
        """Ask once. Raises the errors of this module, or whatever opening a connection raises."""
        question = self._question(method, target, headers, body)
        async with self._places:
            connection = self._kept(context) or await self._open(context)
            self._busy.add(connection)
            try:
                return await connection.exchange(question, limit)
            finally:
                self._busy.discard(connection)
                if connection.open:
                    connection.idle_since = asyncio.get_running_loop().time()
                    self._idle.append(connection)
                else:
                    # The server said that this was the last answer; it may leave the hanging up to us.
                    connection.close()

    async def close(self) -> None:
        """End every connection, and wait until the event loop has done so too."""
        ending = [*self._idle, *self._busy]
        self._idle.clear()
        for connection in ending:
            connection.close()
        for _ in range(TURNS):
            if all(connection.transport is None for connection in ending):
                return
            await asyncio.sleep(0)

    def _question(self, method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> bytes:
        # Credentials seldom change, so what is made of them is kept; a few, for those that just did.
        key = tuple(headers.items())
        head = self._heads.get(key)
        if head is None:
            if len(self._heads) >= 8:
                self._heads.clear()
            said = {**self._always, **headers}
            head = self._heads[key] = "".join(f"{name}: {_checked(value)}\r\n" for name, value in said.items())
        length = f"Content-Length: {len(body)}\r\n" if body is not None else ""
        text = f"{method} {self._prefix}{_checked(target)} HTTP/1.1\r\n{head}{length}\r\n"
        return text.encode("latin-1") + (body or b"")

    def _kept(self, context: ssl.SSLContext | bool | None) -> ApiConnection | None:
        """Take the connection that was used last, of those opened with the same trust; drop the others."""
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
    """Let nothing through that would begin another line."""
    if "\r" in text or "\n" in text or "\0" in text:
        raise ValueError("a header or path has a line break in it")
    return text
