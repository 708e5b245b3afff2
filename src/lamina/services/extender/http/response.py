"""What goes back to a caller, and how it looks on the wire."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from http import HTTPStatus
from typing import Final

import msgspec

TEXT: Final = "text/plain; charset=utf-8"
PORTION: Final = 256 * 1024
"""Bytes handed to the transport at once; it may have to copy what the socket does not take."""
FEW: Final = 64 * 1024
"""Bytes that are cheaper joined than sent in two pieces."""
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"

PHRASES: Final = {int(status): status.phrase for status in HTTPStatus}

Body = bytes | bytearray | memoryview


class HttpResponse(msgspec.Struct, frozen=True):
    """An answer; its body in pieces, so that nobody has to join 56 MB."""

    status: int = 200
    pieces: tuple[bytes | memoryview, ...] = ()
    content_type: str = "application/json"
    unread: Callable[[], None] | None = None
    """Called once if whoever asked is gone before this was written."""


PostHandler = Callable[[Body], HttpResponse]
"""Answers a body; is quick, as everybody waits for it, and has words for bad input instead of exceptions."""
GetHandler = Callable[[], HttpResponse]


class Routes(msgspec.Struct):
    """Who answers what, by path."""

    posts: dict[str, PostHandler]
    gets: dict[str, GetHandler]

    def allowed(self, path: str) -> list[str]:
        """List the methods that *path* answers to."""
        return ["GET", "HEAD"] * (path in self.gets) + ["POST"] * (path in self.posts)

    def names(self) -> str:
        """List all routes in one line."""
        return ", ".join(
            [f"GET {path}" for path in sorted(self.gets)] + [f"POST {path}" for path in sorted(self.posts)]
        )


def text_response(status: int, words: str) -> HttpResponse:
    """Answer with one line for a person."""
    return HttpResponse(status=status, pieces=(words.encode() + b"\n",), content_type=TEXT)


@lru_cache(maxsize=64)
def _head(status: int, content_type: str, more: str) -> bytes:
    # No Date: nothing here may be kept by a cache, and the caller has a clock of its own.
    name = PHRASES.get(status, "")
    return f"HTTP/1.1 {status} {name}\r\nContent-Type: {content_type}\r\n{more}Content-Length: ".encode("latin-1")


def portions(reply: HttpResponse, size: int, more: str = "", *, bodiless: bool = False) -> Iterator[bytes | memoryview]:
    """
    Cut an answer of *size* bytes into what is to be written at a time; *more* are lines for its head.

    Small pieces are joined, large ones are cut without being copied. Without a body only the head is written, which
    still tells the size: the answer to HEAD.
    """
    head = b"%b%d\r\n\r\n" % (_head(reply.status, reply.content_type, more), size)
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
