"""HTTP responses, and their bytes on the wire."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from http import HTTPStatus
from typing import Final

import msgspec

from lamina.serving.response_stream import ResponseStream

TEXT: Final = "text/plain; charset=utf-8"
PORTION: Final = 256 * 1024
"""Most bytes passed to the transport at once; it copies what the socket does not accept."""
FEW: Final = 64 * 1024
"""Bytes up to which joining pieces is cheaper than sending two."""
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"

PHRASES: Final = {int(status): status.phrase for status in HTTPStatus}

HeaderFields = tuple[tuple[str, str], ...]


class HttpResponse(msgspec.Struct, frozen=True):
    """A complete response; its body in pieces, because joining 56 MB would be slow."""

    status: int = 200
    pieces: tuple[bytes | memoryview, ...] = ()
    content_type: str = "application/json"
    headers: HeaderFields = ()
    """Additional headers."""
    unread: Callable[[], None] | None = None
    """Called once if the client disconnects before the response is written."""


class StreamingResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A response whose body the application writes piece by piece, for as long as it wants."""

    opened: Callable[[ResponseStream], None]
    """Called once, after the head was written."""
    closed: Callable[[], None]
    """
    Called exactly once, when the stream has been finished or the client is gone.

    The event loop calls it, never `ResponseStream.write` or `ResponseStream.finish`. It is called even if `opened` was
    not, as for HEAD.
    """
    status: int = 200
    content_type: str = "application/json"
    headers: HeaderFields = ()


def text_response(status: int, words: str, headers: HeaderFields = ()) -> HttpResponse:
    """Return a response with one line of text."""
    return HttpResponse(status=status, pieces=(words.encode() + b"\n",), content_type=TEXT, headers=headers)


def header_lines(headers: HeaderFields) -> str:
    """Return the lines of additional headers. Raises ValueError if one would not be a single line."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    if lines.count("\r") != len(headers) or lines.count("\n") != len(headers):
        raise ValueError(f"a response header contains a line break: {headers!r}")
    return lines


@lru_cache(maxsize=64)
def _head(status: int, content_type: str, more: str) -> bytes:
    # No Date header: responses must not be cached, and clients have their own clocks.
    name = PHRASES.get(status, "")
    return f"HTTP/1.1 {status} {name}\r\nContent-Type: {content_type}\r\n{more}".encode("latin-1")


def stream_head(reply: StreamingResponse, more: str) -> bytes:
    """Return the head of a streaming response; *more* are additional header lines."""
    return _head(reply.status, reply.content_type, more) + b"\r\n"


def portions(reply: HttpResponse, size: int, more: str = "", *, bodiless: bool = False) -> Iterator[bytes | memoryview]:
    """
    Yield the bytes of a response of *size* bytes, in portions to write; *more* are additional header lines.

    Small pieces are joined; large ones are cut without a copy. With *bodiless* only the head is written, with the size
    of the body: the response to HEAD.
    """
    head = b"%bContent-Length: %d\r\n\r\n" % (_head(reply.status, reply.content_type, more), size)
    if bodiless:
        yield head
    elif size <= FEW:
        yield b"".join((head, *reply.pieces))
    else:
        yield from _cut(head, reply.pieces)


def _cut(head: bytes, pieces: tuple[bytes | memoryview, ...]) -> Iterator[bytes | memoryview]:
    small: list[bytes | memoryview] = [head]
    length = len(head)
    for piece in pieces:
        if len(piece) < FEW:
            small.append(piece)
            length += len(piece)
            if length < FEW:
                continue
        if small:
            yield b"".join(small)
            small, length = [], 0
        if len(piece) >= FEW:
            view = memoryview(piece)
            yield from (view[start : start + PORTION] for start in range(0, len(piece), PORTION))
    if small:
        yield b"".join(small)
