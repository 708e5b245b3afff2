"""
The head of a request: what is wanted, and how much body comes with it.

httptools, the parser of Node.js, says whether the bytes are HTTP; this module says whether they can mean only one thing.
Whatever leaves room for a second reading of where a request ends is refused (request smuggling): two lengths, a length
beside an encoding, an encoding that is not exactly "chunked". The parser is handed one head at a time and never a body,
so that it cannot disagree with us about where the next request begins.
"""

from typing import Final

import httptools
import msgspec

from lamina.services.extender.http.rejections import bad

END: Final = b"\r\n\r\n"
DIGITS: Final = 15
"""Of a length; more than anybody means."""
TLS_HELLO: Final = 0x16


class RequestHead(msgspec.Struct):
    """What the head of a request says."""

    method: str
    path: str
    """Without what follows a question mark."""
    length: int
    """Bytes of the body; -1: chunks that say it themselves."""
    keep: bool
    """Whether another request may follow."""
    old: bool
    """HTTP/1.0, where keeping a connection has to be said."""
    waits: bool
    """The caller wants to be told before it sends the body."""


class RequestHeadParser:
    """Takes what the parser finds; one for each head."""

    def __init__(self) -> None:
        self.target = b""
        self.complete = False
        self.hosts = 0
        self.lengths: list[bytes] = []
        self.encodings: list[bytes] = []
        self.content_encoding = b""
        self.expectation = b""
        self.connection = b""

    def on_url(self, url: bytes) -> None:
        """What is asked for."""
        self.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        name = name.lower()
        if name == b"content-length":
            self.lengths.append(value)
        elif name == b"host":
            self.hosts += 1
        elif name == b"transfer-encoding":
            self.encodings.append(value)
        elif name == b"content-encoding":
            self.content_encoding = value.strip().lower()
        elif name == b"expect":
            self.expectation = value.strip().lower()
        elif name == b"connection":
            self.connection += b"," + value.lower()

    def on_headers_complete(self) -> None:
        """The head is whole."""
        self.complete = True


def read_head(data: bytes) -> RequestHead:
    """Read a head, its empty line included. Raises `RefusedError` with what is wrong."""
    found = RequestHeadParser()
    parser = httptools.HttpRequestParser(found)
    try:
        parser.feed_data(data)
    except httptools.HttpParserUpgrade:
        pass  # an offer to speak something else, which a server is free to ignore
    except httptools.HttpParserError as error:
        raise bad(_no_http(data, error)) from None
    if not found.complete:
        raise bad("the request's head ends in the middle; end lines with CR LF")
    version = parser.get_http_version()
    if version not in {"1.1", "1.0"}:
        raise bad(f"HTTP/{version} is not spoken here; use HTTP/1.1", 505)
    old = version == "1.0"
    if found.hosts > 1 or (found.hosts == 0 and not old):
        raise bad("the request has to have exactly one Host header")
    method = parser.get_method().decode("latin-1")
    length = _length(found, method, old=old)
    if found.content_encoding not in {b"", b"identity"}:
        raise bad("compressed bodies are not read; send the body without Content-Encoding", 415)
    if found.expectation not in {b"", b"100-continue"}:
        raise bad("the only expectation that is met is 100-continue", 417)
    return RequestHead(method, _path(found.target), length, _keep(found, old=old), old, found.expectation != b"")


def _length(found: RequestHeadParser, method: str, *, old: bool) -> int:
    """Tell how much body there is, if that can be read in one way only."""
    lengths, encodings = found.lengths, found.encodings
    if encodings:
        if lengths or old or len(encodings) > 1:
            raise bad("say the body's length once: either Content-Length or, in HTTP/1.1, Transfer-Encoding: chunked")
        if encodings[0].lower() != b"chunked":
            raise bad("the only transfer encoding that is read is chunked", 501)
        length = -1
    elif len(lengths) > 1:
        raise bad("the request has more than one Content-Length")
    elif lengths:
        if not lengths[0].isdigit() or len(lengths[0]) > DIGITS:
            raise bad("Content-Length is no number of bytes")
        length = int(lengths[0])
    elif method == "POST":
        raise bad("say how long the body is: Content-Length, or Transfer-Encoding: chunked", 411)
    else:
        length = 0
    if length and method in {"GET", "HEAD"}:
        raise bad(f"a {method} with a body means nothing here; use POST, or leave the body out")
    return length


def _keep(found: RequestHeadParser, *, old: bool) -> bool:
    """Tell whether the caller wants to go on with this connection."""
    if not found.connection:
        return not old
    wishes = {wish.strip() for wish in found.connection.split(b",")}
    return b"close" not in wishes and (not old or b"keep-alive" in wishes)


def _path(target: bytes) -> str:
    text = target.decode("latin-1")
    if text[:1] != "/":
        # A whole address, as it is sent to proxies.
        _, _, text = text.partition("://")
        text = text[text.find("/") :] if "/" in text else "/"
    return text.partition("?")[0].partition("#")[0]


def _no_http(data: bytes, error: httptools.HttpParserError) -> str:
    if data[0] == TLS_HELLO:
        return "this port speaks plain HTTP and the caller speaks TLS; use http://, or give the server a certificate"
    return f"this is not HTTP/1.1 as it is read here: {str(error).lower() or 'unknown method'}"
