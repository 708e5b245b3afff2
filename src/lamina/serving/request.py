"""HTTP requests as handlers receive them."""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

Body = bytes | bytearray | memoryview

NO_HEADERS: Final[Mapping[str, str]] = {}


class RequestHeaders(Mapping[str, str]):
    """
    The headers of a request, by name in lower case; values of repeated headers are joined with ", ".

    They are decoded at the first access: most handlers read none of them.
    """

    __slots__ = ("_source",)

    def __init__(self, head: bytes) -> None:
        """Hold a valid request head as it was received."""
        self._source: bytes | dict[str, str] = head

    def __getitem__(self, name: str) -> str:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> dict[str, str]:
        if isinstance(self._source, bytes):
            decoded: dict[str, str] = {}
            # The first line is the request line; two empty ones end the head.
            for line in self._source.decode("latin-1").split("\r\n")[1:-2]:
                name, _, value = line.partition(":")
                name, value = name.lower(), value.strip(" \t")
                decoded[name] = f"{decoded[name]}, {value}" if name in decoded else value
            self._source = decoded
        return self._source


class HttpRequest(msgspec.Struct):
    """One complete request."""

    method: str
    path: str
    """As it was sent: percent-encoded, without the query string."""
    query: str = ""
    """As it was sent: the part behind the question mark."""
    headers: Mapping[str, str] = NO_HEADERS
    """By name in lower case."""
    body: Body = b""
    peer: str = ""
    """IP address of the client."""
