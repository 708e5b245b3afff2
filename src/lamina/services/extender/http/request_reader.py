"""
From bytes to requests, whatever pieces they come in.

One buffer takes heads and whatever comes with them; a longer body is read past it, straight to where it belongs. Nothing
here knows a socket: whoever reads asks `room` where to, says how much came, and is told what that makes.
"""

from enum import Enum, auto
from typing import Final

from lamina.services.extender.http import rejections
from lamina.services.extender.http.request_body import ChunkedBody, FixedLengthBody
from lamina.services.extender.http.request_head import END, TLS_HELLO, RequestHead, read_head
from lamina.services.extender.http.response import Body
from lamina.services.extender.http.server_limits import ServerLimits

SCRATCH: Final = 64 * 1024
"""Bytes of the buffer; most requests fit whole. More than a head and a line of a chunked body may have."""


class ReadProgress(Enum):
    """What has come so far."""

    PART = auto()
    """The request is not whole."""
    LARGE = auto()
    """Its body is large: nothing more may be read before a place is found for it."""
    WHOLE = auto()


class RequestReader:
    """The requests of one caller, one at a time."""

    def __init__(self, limits: ServerLimits) -> None:
        """Take no more than *limits* allow."""
        self._limits = limits
        self._scratch = bytearray(max(SCRATCH, 2 * limits.header))
        self._view = memoryview(self._scratch)
        self._start = self._end = 0
        self._known: FixedLengthBody | None = None
        self._chunked: ChunkedBody | None = None
        self._seated = False
        self.head: RequestHead | None = None
        """Of the request under way, once it is whole."""
        self.invite = False
        """The caller waits to be asked for the body; for whoever asks to put out."""

    @property
    def ahead(self) -> bool:
        """Whether something has come that belongs to no request yet."""
        return self._start < self._end

    def room(self) -> memoryview:
        """Say where the next bytes go."""
        if self._known is not None:
            return self._known.rest
        return self._view[self._end :]

    def grow(self, count: int) -> ReadProgress:
        """Take note of *count* bytes in `room`. Raises `RefusedError`."""
        if self._known is not None:
            return ReadProgress.WHOLE if self._known.grow(count) else ReadProgress.PART
        self._end += count
        return self.advance()

    def seat(self) -> ReadProgress:
        """Go on with a place for a large body."""
        self._seated = True
        return self.advance()

    def advance(self) -> ReadProgress:
        """Do what can be done with what has come. Raises `RefusedError`."""
        head = self.head or self._read_head()
        if head is None:
            return ReadProgress.PART
        if self._chunked is not None:
            return self._read_chunks(self._chunked)
        if head.length > self._limits.small_body and not self._seated:
            return ReadProgress.LARGE
        if head.length <= self._end - self._start:
            return ReadProgress.WHOLE
        self._known = FixedLengthBody(head.length, self._limits)
        self._known.put(self._view[self._start : self._end])
        self._start = self._end = 0
        return ReadProgress.PART

    def take(self) -> Body:
        """Hand over the body of a whole request, and be ready for the next one."""
        head = self.head
        assert head is not None, "there is a whole request"
        whole: Body
        if self._known is not None:
            whole = self._known.whole()
        elif self._chunked is not None:
            whole = self._chunked.whole()
        else:
            # A copy: the buffer is used again while pieces of the question may still be part of the answer.
            whole = bytes(self._view[self._start : self._start + head.length])
            self._start += head.length
        if self._start == self._end:
            self._start = self._end = 0
        self.drop()
        return whole

    def drop(self) -> None:
        """Let go of the request under way."""
        self.head = self._known = self._chunked = None
        self._seated = self.invite = False

    def _read_head(self) -> RequestHead | None:
        start, end, scratch = self._start, self._end, self._scratch
        while start < end and scratch[start] in END:  # empty lines before a request mean nothing
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
            if not self._seated:
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
        """Make room behind what is not understood yet."""
        rest = self._end - start
        if start:
            self._scratch[:rest] = self._scratch[start : self._end]
        self._start, self._end = 0, rest
