"""
One connection: requests in, answers out, one after the other.

    idle --> reading --> answering --> idle
              |   ^ |
              v   | +--> lingering (refused) --> gone
             waiting (for a large place)

A request is answered by a function that does not wait, so a connection is never in the middle of deciding. While an answer
is being written nothing is read: what a caller sends ahead stays in one buffer here and in the kernel's. Of requests sent
ahead one is answered in each turn of the event loop, so that others have theirs.

Time is not watched by timers of its own: the listener looks at every connection now and then. How long an answer took is
taken from another clock: that of uvloop counts whole milliseconds.
"""

import asyncio
from collections.abc import Callable
from enum import Enum, auto
from time import perf_counter
from typing import Final

from lamina.services.extender.http import rejections
from lamina.services.extender.http.caller_transport import CallerTransport
from lamina.services.extender.http.connection_table import ConnectionTable
from lamina.services.extender.http.rejections import RequestRejectedError, RequestRejection
from lamina.services.extender.http.request_dispatch import dispatch, route_label
from lamina.services.extender.http.request_head import RequestHead
from lamina.services.extender.http.request_reader import ReadProgress, RequestReader
from lamina.services.extender.http.response import CONTINUE, portions, text_response
from lamina.services.extender.http.response_writer import ResponseWriter

LINGER: Final = 2.0
"""Seconds for a caller to read why it was refused, while what it still sends is thrown away."""
CLOSE: Final = "Connection: close\r\n"
KEEP: Final = "Connection: keep-alive\r\n"


class ConnectionStage(Enum):
    """Where a connection is."""

    IDLE = auto()
    READING = auto()
    WAITING = auto()
    ANSWERING = auto()
    LINGERING = auto()
    GONE = auto()


class HttpConnection(asyncio.BufferedProtocol):
    """One caller."""

    def __init__(self, desk: ConnectionTable, loop: asyncio.AbstractEventLoop) -> None:
        """Belong to *desk*."""
        self._desk, self._loop = desk, loop
        self._limits, self._watch = desk.limits, desk.watch
        self._line: CallerTransport
        self._incoming = RequestReader(desk.limits)
        self._outgoing: ResponseWriter
        self._stage = ConnectionStage.IDLE
        self.since = loop.time()
        """When it came to be where it is."""
        self._asked = self._retiring = self._seated = False
        self._answering: RequestHead | None = None
        self._unread: Callable[[], None] | None = None
        self._discarded = 0

    # -- asyncio calls these -----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It stands, and its handshake is done."""
        self._line = CallerTransport(transport)
        self._outgoing = ResponseWriter(self._line.transport, self._loop, self._written)
        refusal = self._desk.admit(transport)
        if refusal is None and not self._desk.find_seat():
            refusal = rejections.too_many(self._limits.connections)
        self._desk.enter(self, admitted=refusal is None)
        if refusal is not None:
            self._refuse(refusal)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone, perhaps in the middle of something, perhaps before it stood; may be said twice."""
        if self not in self._desk.present:
            return
        asked = self._answering or self._incoming.head
        if asked is not None:
            self._watch.abandoned(route_label(self._desk.routes, asked))
        self._mourn()
        self._stage = ConnectionStage.GONE
        self._forget()
        self._desk.leave(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Say where the next bytes go."""
        return self._incoming.room()

    def buffer_updated(self, nbytes: int) -> None:
        """Read on."""
        if self._stage is ConnectionStage.LINGERING:
            self._discard(nbytes)
            return
        self._begin()
        try:
            self._follow(self._incoming.grow(nbytes))
        except RequestRejectedError as error:
            self._refuse(error.refusal)

    def eof_received(self) -> bool:
        """Let the transport close itself: whatever could be answered has been, as nothing is read before that."""
        return False

    def pause_writing(self) -> None:
        """The caller reads more slowly than we write."""
        self._outgoing.pause()

    def resume_writing(self) -> None:
        """Everything that was written has gone out."""
        self._outgoing.resume()

    # -- reading -----------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self._stage is ConnectionStage.IDLE:
            self._stage = ConnectionStage.READING
            self.since = self._loop.time()

    def _follow(self, progress: ReadProgress) -> None:
        """Do what there is to do when so much has come."""
        if progress is ReadProgress.WHOLE:
            self._answer()
        elif progress is ReadProgress.LARGE:
            self._find_place()
        elif self._incoming.invite:
            self._incoming.invite = False
            self._line.transport.write(CONTINUE)

    def _find_place(self) -> None:
        """Have a place for a large body, or wait for one and read nothing meanwhile."""
        self._seated = self._desk.places.take(self)
        if self._seated:
            self._follow(self._incoming.seat())
            return
        self._stage = ConnectionStage.WAITING
        self.since = self._loop.time()
        self._line.hold()

    def seat(self) -> None:
        """Go on in the next turn: a place was given."""
        self._seated = True
        self._loop.call_soon(self._proceed)

    def _proceed(self) -> None:
        if self._stage is not ConnectionStage.WAITING:
            return
        # The caller could not send while we did not read: its time begins again.
        self._stage = ConnectionStage.IDLE
        self._begin()
        self._line.release()
        try:
            self._follow(self._incoming.seat())
        except RequestRejectedError as error:
            self._refuse(error.refusal)

    # -- answering ---------------------------------------------------------------------------------------------------

    def _answer(self) -> None:
        """Ask whoever answers this, and begin to write."""
        head = self._answering = self._incoming.head
        assert head is not None, "there is a whole request"
        self._stage = ConnectionStage.ANSWERING
        self._asked = True
        began = perf_counter()
        body = self._incoming.take()
        reply, more = dispatch(self._desk.routes, head, body)
        seconds = perf_counter() - began
        if not head.keep or self._retiring:
            self._retiring = True
            more += CLOSE
        elif head.old:
            more += KEEP
        self._unread = reply.unread
        size = sum(map(len, reply.pieces))
        name = route_label(self._desk.routes, head)
        if self._line.hung_up():
            # It is answered all the same: it may have closed only its own direction.
            self._watch.abandoned(name)
            self._mourn()
            self._answering = None
        self.since = self._loop.time()
        self._outgoing.begin(portions(reply, size, more, bodiless=head.method == "HEAD"))
        if self._stage is ConnectionStage.ANSWERING:
            self._line.hold()
        # Told when the answer is on its way, so that it does not have to wait for that.
        self._watch.served(name, reply.status, seconds, len(body), size)

    def _written(self) -> None:
        """An answer is out: begin again."""
        self._forget()
        self._stage = ConnectionStage.IDLE
        self.since = self._loop.time()
        if self._retiring and self._incoming.ahead:
            self._linger()
        elif self._retiring:
            self._close()
        elif self._incoming.ahead:
            self._line.hold()
            self._loop.call_soon(self._next)
        else:
            self._line.release()

    def _next(self) -> None:
        """Take up what was sent ahead."""
        if self._stage is not ConnectionStage.IDLE or self._line.closing:
            return
        self._begin()
        self._line.release()
        try:
            self._follow(self._incoming.advance())
        except RequestRejectedError as error:
            self._refuse(error.refusal)

    def _mourn(self) -> None:
        """Tell whoever made the answer that nobody reads it."""
        unread, self._unread = self._unread, None
        if unread is not None:
            unread()

    def _forget(self) -> None:
        """Let go of the request, its answer and its place."""
        self._answering = self._unread = None
        self._incoming.drop()
        self._outgoing.drop()
        self._desk.places.leave(self)
        if self._seated:
            self._seated = False
            self._desk.places.free()

    # -- refusing and ending -----------------------------------------------------------------------------------------

    def _refuse(self, refusal: RequestRejection) -> None:
        """Say why, and end it when the caller has had time to read that."""
        self._watch.refused(refusal.why)
        self._forget()
        reply = text_response(refusal.status, refusal.words)
        for portion in portions(reply, len(reply.pieces[0]), CLOSE):
            self._line.transport.write(portion)
        self._linger()

    def _linger(self) -> None:
        """
        Throw away what still comes, for a while.

        Closing at once, with bytes unread, would take the answer away from the caller before it has read it.
        """
        self._stage = ConnectionStage.LINGERING
        self.since = self._loop.time()
        self._incoming = RequestReader(self._limits)
        self._line.end_sending()
        self._line.release()
        self._desk.dismiss(self)

    def _close(self) -> None:
        """End it in order; what comes while TLS says goodbye is thrown away."""
        self._stage = ConnectionStage.LINGERING
        self.since = self._loop.time()
        self._line.transport.close()

    def _discard(self, count: int) -> None:
        self._discarded += count
        if self._discarded > self._limits.large_body:
            self.abort()

    def look(self, now: float) -> None:
        """Do what is due."""
        stage = self._stage
        if stage is ConnectionStage.WAITING and self._line.hung_up():
            self.abort()
        elif now < self.since + self._patience():
            return
        elif stage is ConnectionStage.READING:
            self._refuse(rejections.too_slow(self._limits.read_seconds))
        elif stage is ConnectionStage.WAITING:
            self._refuse(rejections.too_busy(self._limits.large_at_once))
        elif stage is ConnectionStage.IDLE:
            self._close()
        else:
            if stage is ConnectionStage.ANSWERING:
                self._answering = None
                self._watch.refused(rejections.TOO_SLOW)
            self.abort()

    def _patience(self) -> float:
        """Say for how many seconds it may be where it is."""
        limits, stage = self._limits, self._stage
        if stage is ConnectionStage.LINGERING:
            return min(LINGER, limits.read_seconds)
        if stage is ConnectionStage.ANSWERING:
            return limits.write_seconds
        # Who has never asked anything is no caller that comes back: it has no more time than for a request.
        return limits.idle_seconds if stage is ConnectionStage.IDLE and self._asked else limits.read_seconds

    def expire(self) -> None:
        """End after the next answer."""
        self._retiring = True

    def retire(self) -> None:
        """Answer what has been asked and end."""
        self._retiring = True
        if self._stage is ConnectionStage.IDLE and not self._incoming.ahead:
            self._close()

    def give_way(self) -> None:
        """End for the sake of somebody else: in order if nothing is under way, as an answer may still be read."""
        self._watch.refused(rejections.TOO_MANY)
        if self._stage is ConnectionStage.IDLE:
            self._close()
            return
        self._answering = None
        self._incoming.drop()
        self.abort()

    def abort(self) -> None:
        """End now."""
        self._line.abort()
