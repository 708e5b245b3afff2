"""
One client connection: requests in, responses out, one after the other.

`connection_stage` draws the states. While a response is written, nothing is read: data that the client sends ahead
stays in one buffer here and in the kernel's. While a handler is awaited or a stream is open, that buffer is filled, so
that a client that closes the connection is noticed at once. It is then gone, even if it closed only its own direction.
Each turn of the event loop answers one request of a connection, so that other connections get theirs.

A connection has no timers: the server checks all connections periodically. The response time is measured with
`perf_counter`, because uvloop's clock has whole milliseconds only.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Final

from lamina.serving import rejections
from lamina.serving.caller_transport import CallerTransport
from lamina.serving.connection_stage import WORKING, ConnectionStage, stage_seconds
from lamina.serving.connection_table import ConnectionTable
from lamina.serving.pending_handler import PendingHandler
from lamina.serving.rejections import RequestRejectedError, RequestRejection
from lamina.serving.request import HttpRequest, RequestHeaders
from lamina.serving.request_dispatch import HandlerResponse, HandlerResult, checked_headers, dispatch
from lamina.serving.request_head import RequestHead
from lamina.serving.request_reader import ReadProgress, RequestReader
from lamina.serving.response import CONTINUE, HttpResponse, StreamingResponse, portions, stream_head
from lamina.serving.response_stream import ResponseStream
from lamina.serving.response_writer import ResponseWriter

CLOSE: Final = "Connection: close\r\n"
KEEP: Final = "Connection: keep-alive\r\n"
CHUNKED: Final = "Transfer-Encoding: chunked\r\n"

log = logging.getLogger(__name__)


class HttpConnection(asyncio.BufferedProtocol):
    """One client connection."""

    def __init__(self, table: ConnectionTable, loop: asyncio.AbstractEventLoop) -> None:
        """Belong to *table*, the table of all connections."""
        self._table, self._loop = table, loop
        self._limits, self._metrics = table.limits, table.metrics
        self._transport: CallerTransport
        self._incoming = RequestReader(table.limits)
        self._outgoing: ResponseWriter
        self._stage = ConnectionStage.IDLE
        self.since = loop.time()
        """When the current state began, in event loop time; infinite for a stream, which is never idle."""
        self._asked = self._retiring = self._has_slot = False
        self._answering: RequestHead | None = None
        self._began = 0.0
        self._body_size = 0
        self._pending: PendingHandler | None = None
        self._stream: ResponseStream | None = None
        self._peer = ""
        self._unread: Callable[[], None] | None = None
        self._discarded = 0

    # -- asyncio callbacks -------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Admit or reject the client; its TLS handshake is complete."""
        self._transport = CallerTransport(transport)
        self._peer = self._transport.peer()
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
            self._metrics.abandoned(self._table.label(asked.method, asked.path))
        self._report_unread()
        self._stage = ConnectionStage.GONE
        self._cancel_handler()
        if self._stream is not None:
            self._stream.lost()
            self._stream = None
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
        if self._stage in WORKING:
            if not self._incoming.store(nbytes):
                self._transport.hold()
            return
        self._begin()
        try:
            self._follow(self._incoming.grow(nbytes))
        except RequestRejectedError as error:
            self._refuse(error.refusal)

    def eof_received(self) -> bool:
        """Close the transport: all complete requests are answered, because nothing else is read before that."""
        if self._stage in WORKING:
            self.abort()
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
        """Call the handler."""
        head = self._answering = self._incoming.head
        assert head is not None, "there is a whole request"
        self._stage = ConnectionStage.ANSWERING
        self._asked = True
        self._began = perf_counter()
        body = self._incoming.take()
        self._body_size = len(body)
        request = HttpRequest(head.method, head.path, head.query, RequestHeaders(head.raw), body, self._peer)
        result = dispatch(self._table.handler, request)
        if isinstance(result, HttpResponse):
            self._respond(head, result)
        else:
            self._follow_handler(head, result)

    def _follow_handler(self, head: RequestHead, result: HandlerResult) -> None:
        """Act on the handler's result."""
        if isinstance(result, HttpResponse):
            self._respond(head, result)
        elif isinstance(result, StreamingResponse):
            self._begin_stream(head, result)
        else:
            self._await(head, result)

    def _respond(self, head: RequestHead, reply: HttpResponse) -> None:
        """Start to write a complete response."""
        seconds = perf_counter() - self._began
        more = ""
        if reply.headers:
            reply, more = checked_headers(reply, head.path)
        if self._retiring or head.old or not head.keep:
            more += self._connection_line(head)
        self._unread = reply.unread
        size = sum(map(len, reply.pieces))
        name = self._table.label(head.method, head.path)
        if self._transport.hung_up():
            # Answer nevertheless: the client may have closed only its own direction.
            self._metrics.abandoned(name)
            self._report_unread()
            self._answering = None
        self._outgoing.begin(portions(reply, size, more, bodiless=head.method == "HEAD"))
        if self._stage is ConnectionStage.ANSWERING:
            self.since = self._loop.time()
            self._transport.hold()
        # Record after the write has begun, so that the response does not wait for it.
        self._metrics.served(name, reply.status, seconds, self._body_size, size)

    def _connection_line(self, head: RequestHead) -> str:
        """Return the header that tells the client what becomes of the connection, if it cannot know."""
        if not head.keep or self._retiring:
            self._retiring = True
            return CLOSE
        return KEEP if head.old else ""

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

    # -- awaited handlers --------------------------------------------------------------------------------------------

    def _await(self, head: RequestHead, result: Awaitable[HandlerResponse]) -> None:
        """Wait for the handler without blocking other connections."""
        self._work(ConnectionStage.AWAITING)
        self.since = self._loop.time()
        self._pending = PendingHandler(
            result, head.path, self._table.pending, lambda reply: self._handler_done(head, reply)
        )

    def _handler_done(self, head: RequestHead, reply: HandlerResponse) -> None:
        self._pending = None
        self._stage = ConnectionStage.ANSWERING
        self._follow_handler(head, reply)

    def _cancel_handler(self) -> None:
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.cancel()

    def _give_up_handler(self) -> None:
        """Answer that the handler took too long."""
        head, refusal = self._answering, rejections.too_late(self._limits.handler_seconds)
        assert head is not None, "a handler has a request"
        self._cancel_handler()
        self._metrics.refused(refusal.why)
        self._stage = ConnectionStage.ANSWERING
        self._respond(head, self._table.rejection(refusal))

    def _work(self, stage: ConnectionStage) -> None:
        """Enter a state in which the application has the request."""
        self._stage = stage
        if not self._incoming.make_room():
            self._transport.hold()

    # -- streams -----------------------------------------------------------------------------------------------------

    def _begin_stream(self, head: RequestHead, reply: StreamingResponse) -> None:
        """Write the head of a stream, and hand the stream to the application."""
        seconds = perf_counter() - self._began
        if head.old:
            self._retiring = True  # its body ends with the connection
        checked, more = checked_headers(reply, head.path)
        if not isinstance(checked, StreamingResponse):
            self._loop.call_soon(reply.closed)
            self._respond(head, checked)
            return
        self._work(ConnectionStage.STREAMING)
        self.since = math.inf
        self._answering = None
        self._release_slot()
        more += self._connection_line(head) + ("" if head.old else CHUNKED)
        self._stream = ResponseStream(
            self,
            self._transport.transport,
            reply.closed,
            most_unsent=self._limits.stream_unsent,
            chunked=not head.old and head.method != "HEAD",
        )
        if self._transport.closing:
            return  # the handler was awaited, and the client has left meanwhile
        self._transport.transport.write(stream_head(reply, more))
        if head.method == "HEAD":
            self._stream.finish()
        else:
            self._open_stream(self._stream, reply)
        self._metrics.served(self._table.label(head.method, head.path), reply.status, seconds, self._body_size, 0)

    def _open_stream(self, stream: ResponseStream, reply: StreamingResponse) -> None:
        try:
            reply.opened(stream)
        except Exception:  # one failed request must not end the server
            log.exception("stream handler failed")
            stream.closed = True
            self.abort()

    def stream_finished(self) -> None:
        """Write the end of a stream's body; then the connection can serve the next request."""
        assert self._stream is not None, "it was open"
        ending, self._stream = self._stream.ending, None
        self._stage = ConnectionStage.ANSWERING
        self.since = self._loop.time()
        self._outgoing.begin(iter((ending,) if ending else ()))
        if self._stage is ConnectionStage.ANSWERING:
            self._transport.hold()

    def stream_overflowed(self) -> None:
        """Cut off a client that does not read its stream."""
        self._metrics.refused(rejections.TOO_SLOW)
        self.abort()

    # -- after a response --------------------------------------------------------------------------------------------

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
            self._release_slot()

    def _release_slot(self) -> None:
        if self._has_slot:
            self._has_slot = False
            self._table.slots.release()

    # -- rejections and closing --------------------------------------------------------------------------------------

    def _refuse(self, refusal: RequestRejection) -> None:
        """Send the rejection, then close when the client has had time to read it."""
        self._metrics.refused(refusal.why)
        self._forget()
        reply = self._table.rejection(refusal)
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
        if (stage is ConnectionStage.WAITING or stage in WORKING) and self._transport.hung_up():
            self.abort()
        elif now < self.since + stage_seconds(stage, self._limits, asked=self._asked):
            return
        elif stage is ConnectionStage.READING:
            self._refuse(rejections.too_slow(self._limits.read_seconds))
        elif stage is ConnectionStage.WAITING:
            self._refuse(rejections.too_busy(self._limits.large_at_once))
        elif stage is ConnectionStage.AWAITING:
            self._give_up_handler()
        elif stage is ConnectionStage.IDLE:
            self._close()
        else:
            if stage is ConnectionStage.ANSWERING:
                self._answering = None
                self._metrics.refused(rejections.TOO_SLOW)
            self.abort()

    def expire(self) -> None:
        """Close after the next response."""
        self._retiring = True

    def retire(self) -> None:
        """Answer pending requests and end the stream, then close."""
        self._retiring = True
        if self._stream is not None:
            self._stream.finish()
        elif self._stage is ConnectionStage.IDLE and not self._incoming.ahead:
            self._close()

    def give_way(self) -> None:
        """Close to make room for a new connection: gracefully if idle, because the client may still be reading."""
        self._metrics.refused(rejections.TOO_MANY)
        if self._stage is ConnectionStage.IDLE:
            self._close()
            return
        self._answering = None
        self._incoming.drop()
        self.abort()

    def abort(self) -> None:
        """Close now."""
        self._transport.abort()
