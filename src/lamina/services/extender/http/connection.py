"""
One client connection: requests in, responses out, one after the other.

    idle --> reading --> answering --> idle
              |   ^ |
              v   | +--> lingering (rejected) --> gone
             waiting (for a large request slot)

Handlers do not block, so a connection never waits for one. While a response is written, nothing is read: data that the
client sends ahead stays in one buffer here and in the kernel's. Each turn of the event loop answers one request of a
connection, so that other connections get theirs.

A connection has no timers: the server checks all connections periodically. The response time is measured with
`perf_counter`, because uvloop's clock has whole milliseconds only.
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
"""Seconds for a client to read why it was rejected, while the data it still sends is discarded."""
CLOSE: Final = "Connection: close\r\n"
KEEP: Final = "Connection: keep-alive\r\n"


class ConnectionStage(Enum):
    """State of a connection."""

    IDLE = auto()
    READING = auto()
    WAITING = auto()
    ANSWERING = auto()
    LINGERING = auto()
    GONE = auto()


class HttpConnection(asyncio.BufferedProtocol):
    """One client connection."""

    def __init__(self, table: ConnectionTable, loop: asyncio.AbstractEventLoop) -> None:
        """Belong to *table*, the table of all connections."""
        self._table, self._loop = table, loop
        self._limits, self._watch = table.limits, table.watch
        self._transport: CallerTransport
        self._incoming = RequestReader(table.limits)
        self._outgoing: ResponseWriter
        self._stage = ConnectionStage.IDLE
        self.since = loop.time()
        """When the current state began, in event loop time."""
        self._asked = self._retiring = self._has_slot = False
        self._answering: RequestHead | None = None
        self._unread: Callable[[], None] | None = None
        self._discarded = 0

    # -- asyncio callbacks -------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Admit or reject the client; its TLS handshake is complete."""
        self._transport = CallerTransport(transport)
        self._outgoing = ResponseWriter(self._transport.transport, self._loop, self._written)
        refusal = self._table.admit(transport)
        if refusal is None and not self._table.make_room():
            refusal = rejections.too_many(self._limits.connections)
        self._table.add(self, admitted=refusal is None)
        if refusal is not None:
            self._refuse(refusal)

    def connection_lost(self, exc: Exception | None) -> None:
        """Release everything. May be called twice, during a request, or before `connection_made`."""
        if self not in self._table.present:
            return
        asked = self._answering or self._incoming.head
        if asked is not None:
            self._watch.abandoned(route_label(self._table.routes, asked))
        self._report_unread()
        self._stage = ConnectionStage.GONE
        self._forget()
        self._table.remove(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for the next bytes."""
        return self._incoming.room()

    def buffer_updated(self, nbytes: int) -> None:
        """Process *nbytes* new bytes."""
        if self._stage is ConnectionStage.LINGERING:
            self._discard(nbytes)
            return
        self._begin()
        try:
            self._follow(self._incoming.grow(nbytes))
        except RequestRejectedError as error:
            self._refuse(error.refusal)

    def eof_received(self) -> bool:
        """Close the transport: all complete requests are answered, because nothing else is read before that."""
        return False

    def pause_writing(self) -> None:
        """Pause the response: the client reads more slowly than the server writes."""
        self._outgoing.pause()

    def resume_writing(self) -> None:
        """Resume the response: all data was sent."""
        self._outgoing.resume()

    # -- reading -----------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self._stage is ConnectionStage.IDLE:
            self._stage = ConnectionStage.READING
            self.since = self._loop.time()

    def _follow(self, progress: ReadProgress) -> None:
        """Act on the reader's progress."""
        if progress is ReadProgress.WHOLE:
            self._answer()
        elif progress is ReadProgress.LARGE:
            self._find_slot()
        elif self._incoming.invite:
            self._incoming.invite = False
            self._transport.transport.write(CONTINUE)

    def _find_slot(self) -> None:
        """Acquire a slot for a large body, or wait for one without reading."""
        self._has_slot = self._table.slots.acquire(self)
        if self._has_slot:
            self._follow(self._incoming.slot_granted())
            return
        self._stage = ConnectionStage.WAITING
        self.since = self._loop.time()
        self._transport.hold()

    def slot_granted(self) -> None:
        """Continue in the next turn of the event loop: a slot was granted."""
        self._has_slot = True
        self._loop.call_soon(self._proceed)

    def _proceed(self) -> None:
        if self._stage is not ConnectionStage.WAITING:
            return
        # The client could not send while reading was paused, so its time limit starts again.
        self._stage = ConnectionStage.IDLE
        self._begin()
        self._transport.release()
        try:
            self._follow(self._incoming.slot_granted())
        except RequestRejectedError as error:
            self._refuse(error.refusal)

    # -- responses ---------------------------------------------------------------------------------------------------

    def _answer(self) -> None:
        """Call the handler and start to write its response."""
        head = self._answering = self._incoming.head
        assert head is not None, "there is a whole request"
        self._stage = ConnectionStage.ANSWERING
        self._asked = True
        began = perf_counter()
        body = self._incoming.take()
        reply, more = dispatch(self._table.routes, head, body)
        seconds = perf_counter() - began
        if not head.keep or self._retiring:
            self._retiring = True
            more += CLOSE
        elif head.old:
            more += KEEP
        self._unread = reply.unread
        size = sum(map(len, reply.pieces))
        name = route_label(self._table.routes, head)
        if self._transport.hung_up():
            # Answer nevertheless: the client may have closed only its own direction.
            self._watch.abandoned(name)
            self._report_unread()
            self._answering = None
        self.since = self._loop.time()
        self._outgoing.begin(portions(reply, size, more, bodiless=head.method == "HEAD"))
        if self._stage is ConnectionStage.ANSWERING:
            self._transport.hold()
        # Record after the write has begun, so that the response does not wait for it.
        self._watch.served(name, reply.status, seconds, len(body), size)

    def _written(self) -> None:
        """Prepare for the next request after a complete response."""
        self._forget()
        self._stage = ConnectionStage.IDLE
        self.since = self._loop.time()
        if self._retiring and self._incoming.ahead:
            self._linger()
        elif self._retiring:
            self._close()
        elif self._incoming.ahead:
            self._transport.hold()
            self._loop.call_soon(self._next)
        else:
            self._transport.release()

    def _next(self) -> None:
        """Process data that the client sent ahead."""
        if self._stage is not ConnectionStage.IDLE or self._transport.closing:
            return
        self._begin()
        self._transport.release()
        try:
            self._follow(self._incoming.advance())
        except RequestRejectedError as error:
            self._refuse(error.refusal)

    def _report_unread(self) -> None:
        """Call the response's `unread` callback: the client has disconnected."""
        unread, self._unread = self._unread, None
        if unread is not None:
            unread()

    def _forget(self) -> None:
        """Release the request, its response and its slot."""
        self._answering = self._unread = None
        self._incoming.drop()
        self._outgoing.drop()
        self._table.slots.cancel(self)
        if self._has_slot:
            self._has_slot = False
            self._table.slots.release()

    # -- rejections and closing --------------------------------------------------------------------------------------

    def _refuse(self, refusal: RequestRejection) -> None:
        """Send the rejection, then close when the client has had time to read it."""
        self._watch.refused(refusal.why)
        self._forget()
        reply = text_response(refusal.status, refusal.words)
        for portion in portions(reply, len(reply.pieces[0]), CLOSE):
            self._transport.transport.write(portion)
        self._linger()

    def _linger(self) -> None:
        """
        Discard incoming data for a while.

        Closing at once with unread bytes would reset the connection, and the client could lose the response.
        """
        self._stage = ConnectionStage.LINGERING
        self.since = self._loop.time()
        self._incoming = RequestReader(self._limits)
        self._transport.end_sending()
        self._transport.release()
        self._table.mark_closing(self)

    def _close(self) -> None:
        """Close gracefully; discard data that arrives during the TLS shutdown."""
        self._stage = ConnectionStage.LINGERING
        self.since = self._loop.time()
        self._transport.transport.close()

    def _discard(self, count: int) -> None:
        self._discarded += count
        if self._discarded > self._limits.large_body:
            self.abort()

    def look(self, now: float) -> None:
        """Close or reject the connection if its time limit has passed."""
        stage = self._stage
        if stage is ConnectionStage.WAITING and self._transport.hung_up():
            self.abort()
        elif now < self.since + self._time_limit():
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

    def _time_limit(self) -> float:
        """Return the time limit of the current state in seconds."""
        limits, stage = self._limits, self._stage
        if stage is ConnectionStage.LINGERING:
            return min(LINGER, limits.read_seconds)
        if stage is ConnectionStage.ANSWERING:
            return limits.write_seconds
        # A client that has not sent a request yet gets the time limit of a request, not the idle time.
        return limits.idle_seconds if stage is ConnectionStage.IDLE and self._asked else limits.read_seconds

    def expire(self) -> None:
        """Close after the next response."""
        self._retiring = True

    def retire(self) -> None:
        """Answer pending requests, then close."""
        self._retiring = True
        if self._stage is ConnectionStage.IDLE and not self._incoming.ahead:
            self._close()

    def give_way(self) -> None:
        """Close to make room for a new connection: gracefully if idle, because the client may still be reading."""
        self._watch.refused(rejections.TOO_MANY)
        if self._stage is ConnectionStage.IDLE:
            self._close()
            return
        self._answering = None
        self._incoming.drop()
        self.abort()

    def abort(self) -> None:
        """Close now."""
        self._transport.abort()
