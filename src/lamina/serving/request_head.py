"""
Parser of request heads: method, target, headers, and the length of the body.

httptools, the parser of Node.js, checks that the bytes are HTTP. This module checks that they are unambiguous. It
rejects every head that leaves open where the request ends (request smuggling): two lengths, a length beside an
encoding, an encoding other than exactly "chunked". The parser gets one head at a time and never a body, so it cannot
disagree about where the next request begins.
"""

from typing import Final

import httptools
import msgspec

from lamina.serving.rejections import bad

END: Final = b"\r\n\r\n"
DIGITS: Final = 15
"""Most digits of a Content-Length; far beyond every body limit."""
TLS_HELLO: Final = 0x16
READ_HERE: Final = frozenset(
    {b"connection", b"content-encoding", b"content-length", b"expect", b"host", b"transfer-encoding"}
)
"""Headers that say where a request ends and what becomes of the connection."""


class RequestHead(msgspec.Struct):
    """The parsed head of a request."""

    method: str
    path: str
    """Without the query string."""
    query: str
    raw: bytes
    """The whole head as it was received; valid, so that its lines are the headers."""
    length: int
    """Bytes of the body; -1: chunked."""
    keep: bool
    """Whether another request may follow on the connection."""
    old: bool
    """HTTP/1.0, which keeps a connection open only on request."""
    waits: bool
    """The client waits for "100 Continue" before it sends the body."""


class RequestHeadParser:
    """Collects the callbacks of httptools; one instance per head."""

    __slots__ = (
        "complete",
        "connection",
        "content_encoding",
        "encodings",
        "expectation",
        "hosts",
        "lengths",
        "target",
    )

    def __init__(self) -> None:
        self.target = self.content_encoding = self.expectation = self.connection = b""
        self.complete = False
        self.hosts = 0
        self.lengths: tuple[bytes, ...] = ()
        self.encodings: tuple[bytes, ...] = ()

    def on_url(self, url: bytes) -> None:
        """Collect the request target."""
        self.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect one header."""
        name = name.lower()
        if name not in READ_HERE:
            return
        if name == b"content-length":
            self.lengths += (value,)
        elif name == b"host":
            self.hosts += 1
        elif name == b"transfer-encoding":
            self.encodings += (value,)
        elif name == b"content-encoding":
            self.content_encoding = value.strip().lower()
        elif name == b"expect":
            self.expectation = value.strip().lower()
        else:
            self.connection += b"," + value.lower()

    def on_headers_complete(self) -> None:
        """Record that the head is complete."""
        self.complete = True


def read_head(data: bytes) -> RequestHead:
    """Parse a head, including its empty line. Raises `RequestRejectedError`."""
    found = RequestHeadParser()
    parser = httptools.HttpRequestParser(found)
    try:
        parser.feed_data(data)
    except httptools.HttpParserUpgrade:
        pass  # an offer to switch protocols, which a server is free to ignore
    except httptools.HttpParserError as error:
        raise bad(_no_http(data, error)) from None
    if not found.complete:
        raise bad("the request head is incomplete; end lines with CR LF")
    version = parser.get_http_version()
    if version not in {"1.1", "1.0"}:
        raise bad(f"HTTP/{version} is not supported; use HTTP/1.1", 505)
    old = version == "1.0"
    if found.hosts > 1 or (found.hosts == 0 and not old):
        raise bad("the request must have exactly one Host header")
    method = parser.get_method().decode("latin-1")
    length = _length(found, method, old=old)
    if found.content_encoding not in {b"", b"identity"}:
        raise bad("compressed bodies are not supported; send the body without Content-Encoding", 415)
    if found.expectation not in {b"", b"100-continue"}:
        raise bad("the only supported expectation is 100-continue", 417)
    path, query = _split_target(found.target)
    keep = _keep(found.connection, old=old) if found.connection else not old
    return RequestHead(method, path, query, data, length, keep, old, found.expectation != b"")


def _length(found: RequestHeadParser, method: str, *, old: bool) -> int:
    """Return the length of the body, if it is unambiguous; -1 for chunked."""
    lengths, encodings = found.lengths, found.encodings
    if encodings:
        if lengths or old or len(encodings) > 1:
            raise bad("give the body's length once: either Content-Length or, in HTTP/1.1, Transfer-Encoding: chunked")
        if encodings[0].lower() != b"chunked":
            raise bad("the only supported transfer encoding is chunked", 501)
        length = -1
    elif len(lengths) > 1:
        raise bad("the request has more than one Content-Length")
    elif lengths:
        if not lengths[0].isdigit() or len(lengths[0]) > DIGITS:
            raise bad("Content-Length is not a number of bytes")
        length = int(lengths[0])
    elif method == "POST":
        raise bad("the length of the body is missing; send Content-Length, or Transfer-Encoding: chunked", 411)
    else:
        length = 0
    if length and method in {"GET", "HEAD"}:
        raise bad(f"a {method} with a body is not supported; use POST, or remove the body")
    return length


def _keep(connection: bytes, *, old: bool) -> bool:
    """Return whether the Connection headers ask to keep the connection open."""
    wishes = {wish.strip() for wish in connection.split(b",")}
    return b"close" not in wishes and (not old or b"keep-alive" in wishes)


def _split_target(target: bytes) -> tuple[str, str]:
    """Return the path and the query of a request target, both still percent-encoded."""
    text = target.decode("latin-1")
    if text[:1] != "/":
        # The absolute form, which clients send to proxies.
        _, _, text = text.partition("://")
        text = text[text.find("/") :] if "/" in text else "/"
    path, _, query = text.partition("#")[0].partition("?")
    return path, query


def _no_http(data: bytes, error: httptools.HttpParserError) -> str:
    if data[0] == TLS_HELLO:
        return "this port serves plain HTTP and the client sent TLS; use http://, or give the server a certificate"
    return f"not a valid HTTP/1.1 request: {str(error).lower() or 'unknown method'}"
