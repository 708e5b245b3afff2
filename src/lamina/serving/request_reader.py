"""
Reader that turns bytes into requests, in whatever pieces they arrive.

One buffer receives heads and the data behind them; a longer body is read directly into its own buffer. The reader does
not know sockets: the connection reads into `room`, passes the number of bytes to `grow`, and gets the progress.
"""

from enum import Enum, auto
from typing import Final

from lamina.serving import rejections
from lamina.serving.request import Body
from lamina.serving.request_body import ChunkedBody, FixedLengthBody
from lamina.serving.request_head import END, TLS_HELLO, RequestHead, read_head
from lamina.serving.server_limits import ServerLimits

SCRATCH: Final = 64 * 1024
"""Bytes of the buffer; most requests fit completely. Larger than the limits of a head and of a chunk line."""


class ReadProgress(Enum):
    """How much of a request has arrived."""

    PART = auto()
    """The request is incomplete."""
    LARGE = auto()
    """The body is large: it needs a slot before more is read."""
    WHOLE = auto()


class RequestReader:
    """The requests of one connection, one at a time."""

    def __init__(self, limits: ServerLimits) -> None:
        """Read requests within *limits*."""
        self._limits = limits
        self._scratch = bytearray(max(SCRATCH, 2 * limits.header))
        self._view = memoryview(self._scratch)
        self._start = self._end = 0
        self._known: FixedLengthBody | None = None
        self._chunked: ChunkedBody | None = None
        self._has_slot = False
        self.head: RequestHead | None = None
        """Head of the current request, once it is complete."""
        self.invite = False
        """The client waits for "100 Continue"; the connection sends it and resets this flag."""

    @property
    def ahead(self) -> bool:
        """Whether data has arrived that belongs to no request yet."""
        return self._start < self._end

    def room(self) -> memoryview:
        """Return the buffer for the next bytes."""
        if self._known is not None:
            return self._known.rest
        return self._view[self._end :]

    def grow(self, count: int) -> ReadProgress:
        """Process *count* new bytes in `room`. Raises `RequestRejectedError`."""
        if self._known is not None:
            return ReadProgress.WHOLE if self._known.grow(count) else ReadProgress.PART
        self._end += count
        return self.advance()

    def make_room(self) -> bool:
        """Move data that was sent ahead to the front of the buffer; return whether there is room behind it."""
        self._to_front(self._start)
        return self._end < len(self._scratch)

    def store(self, count: int) -> bool:
        """Keep *count* new bytes in `room` for later; return whether there is room for more."""
        self._end += count
        return self._end < len(self._scratch)

    def slot_granted(self) -> ReadProgress:
        """Continue with a slot for a large body."""
        self._has_slot = True
        return self.advance()

    def advance(self) -> ReadProgress:
        """Process the data in the buffer. Raises `RequestRejectedError`."""
        head = self.head or self._read_head()
        if head is None:
            return ReadProgress.PART
        if self._chunked is not None:
            return self._read_chunks(self._chunked)
        if head.length > self._limits.small_body and not self._has_slot:
            return ReadProgress.LARGE
        if head.length <= self._end - self._start:
            return ReadProgress.WHOLE
        self._known = FixedLengthBody(head.length, self._limits)
        self._known.put(self._view[self._start : self._end])
        self._start = self._end = 0
        return ReadProgress.PART

    def take(self) -> Body:
        """Return the body of a complete request, and prepare for the next request."""
        head = self.head
        assert head is not None, "there is a whole request"
        whole: Body
        if self._known is not None:
            whole = self._known.whole()
        elif self._chunked is not None:
            whole = self._chunked.whole()
        else:
            # A copy: the buffer is reused while parts of the request may still be part of the response.
            whole = bytes(self._view[self._start : self._start + head.length])
            self._start += head.length
        if self._start == self._end:
            self._start = self._end = 0
        self.drop()
        return whole

    def drop(self) -> None:
        """Release the current request."""
        self.head = self._known = self._chunked = None
        self._has_slot = self.invite = False

    def _read_head(self) -> RequestHead | None:
        start, end, scratch = self._start, self._end, self._scratch
        while start < end and scratch[start] in END:  # HTTP permits empty lines before a request
            start += 1
        found = scratch.find(END, start, end)
        size = (end if found < 0 else found + len(END)) - start
        if size > self._limits.header:
            raise rejections.header_too_large(self._limits.header)
        if found < 0 and not (size and scratch[start] == TLS_HELLO):
            self._to_front(start)
            return None
        head = read_head(bytes(self._view[start : start + size]))
        if head.length > self._limits.large_body:
            raise rejections.too_large(self._limits.large_body)
        if head.length < 0:
            self._chunked = ChunkedBody(self._limits)
        self._start = start + size
        self.head = head
        self.invite = head.waits and not head.old and not self.ahead
        return head

    def _read_chunks(self, chunked: ChunkedBody) -> ReadProgress:
        if chunked.wants_place:
            if not self._has_slot:
                return ReadProgress.LARGE
            chunked.enlarge()
        self._start += chunked.feed(self._view[self._start : self._end])
        if chunked.done:
            return ReadProgress.WHOLE
        if chunked.wants_place:
            return self._read_chunks(chunked)
        self._to_front(self._start)
        return ReadProgress.PART

    def _to_front(self, start: int) -> None:
        """Move unprocessed data to the front of the buffer."""
        rest = self._end - start
        if start:
            self._scratch[:rest] = self._scratch[start : self._end]
        self._start, self._end = 0, rest
