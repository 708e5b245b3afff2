"""Responses that the application writes piece by piece: watched until one side has enough."""

import asyncio
import logging

import pytest

from lamina.serving.rejections import TOO_SLOW
from lamina.serving.request import HttpRequest
from lamina.serving.response import HttpResponse, StreamingResponse
from lamina.serving.response_stream import ResponseStream
from lamina.serving.server_limits import ServerLimits
from tests.unit.serving.papers import Files, context
from tests.unit.serving.visiting import EITHER_LOOP, PAGE, PATIENCE, Caller, Server, get, post, serving, until

MIB = 1024**2
PATHS = ("/page", "/echo")


class Application:
    """Answers /page at once and streams everything else; takes down what becomes of the streams."""

    def __init__(self) -> None:
        self.streams: list[ResponseStream] = []
        self.ended = 0
        self.first: tuple[bytes, ...] = ()

    def __call__(self, request: HttpRequest) -> HttpResponse | StreamingResponse:
        if request.path == "/page":
            return HttpResponse(pieces=(PAGE,))
        return StreamingResponse(opened=self.opened, closed=self.closed, headers=(("X-Stream", "1"),))

    def opened(self, stream: ResponseStream) -> None:
        self.streams.append(stream)
        for data in self.first:
            stream.write(data)

    def closed(self) -> None:
        self.ended += 1


async def chunk(caller: Caller) -> bytes:
    """Read one chunk; the last one is empty."""
    async with asyncio.timeout(PATIENCE):
        size = int(await caller.reader.readuntil(b"\r\n"), 16)
        return (await caller.reader.readexactly(size + 2))[:-2]


async def watch(caller: Caller, application: Application) -> ResponseStream:
    """Ask for a stream and read its head."""
    count = len(application.streams)
    await caller.send(get("/watch"))
    answer = await caller.answer()
    assert (200, "chunked", "1") == (answer.status, answer.headers["transfer-encoding"], answer.headers["x-stream"])
    assert "content-length" not in answer.headers
    assert count + 1 == len(application.streams)
    return application.streams[-1]


async def test_one_write_is_one_chunk_and_arrives_at_once():
    application = Application()
    async with serving(handler=application) as server, server.call() as caller:
        stream = await watch(caller, application)
        for data in (b"a", b"two\r\nlines\n", bytes(MIB)):
            assert stream.write(data)
            assert data == await chunk(caller)
        assert (False, 0) == (stream.closed, application.ended)


async def test_an_empty_write_does_not_end_the_body():
    application = Application()
    async with serving(handler=application) as server, server.call() as caller:
        stream = await watch(caller, application)
        assert stream.write(b"")
        assert stream.write(b"more")
        assert b"more" == await chunk(caller)


async def test_what_is_written_while_the_stream_opens_comes_after_the_head():
    application = Application()
    application.first = (b"one", b"two")
    async with serving(handler=application) as server, server.call() as caller:
        await watch(caller, application)
        assert [b"one", b"two"] == [await chunk(caller), await chunk(caller)]


async def test_a_finished_stream_leaves_the_connection_for_the_next_request():
    application = Application()
    async with serving(handler=application) as server, server.call() as caller:
        for round_ in range(3):
            stream = await watch(caller, application)
            stream.write(b"data")
            stream.finish()
            assert [b"data", b""] == [await chunk(caller), await chunk(caller)]
            await until(lambda done=round_ + 1: application.ended == done)
            assert (True, False) == (stream.closed, stream.write(b"late"))
            assert PAGE == (await caller.ask(get())).body
        assert [1] == server.notes.counts
        assert ([], []) == (server.notes.gone, server.notes.refusals)


async def test_finishing_twice_ends_the_body_once():
    application = Application()
    async with serving(handler=application) as server, server.call() as caller:
        stream = await watch(caller, application)
        stream.finish()
        stream.finish()
        assert b"" == await chunk(caller)
        assert PAGE == (await caller.ask(get())).body
        assert 1 == application.ended


async def test_a_stream_may_be_finished_while_it_opens():
    class Quick(Application):
        def opened(self, stream: ResponseStream) -> None:
            super().opened(stream)
            stream.write(b"all")
            stream.finish()

    application = Quick()
    async with serving(handler=application) as server, server.call() as caller:
        for _ in range(2):
            await watch(caller, application)
            assert [b"all", b""] == [await chunk(caller), await chunk(caller)]
        assert 2 == application.ended


@pytest.mark.parametrize("behind", [1, 5_000], ids=["one request", "more than the buffer holds"])
async def test_requests_sent_behind_a_stream_are_answered_when_it_is_finished(behind):
    application = Application()
    async with serving(handler=application) as server, server.call() as caller:
        stream = await watch(caller, application)
        sending = asyncio.create_task(caller.send(get() * behind))
        stream.write(b"data")
        assert b"data" == await chunk(caller)
        assert 1 == len(server.notes.answers)
        stream.finish()
        assert b"" == await chunk(caller)
        for _ in range(behind):
            assert PAGE == (await caller.answer()).body
        await sending


async def test_a_request_in_the_same_packet_as_the_one_for_a_stream_waits_for_its_end():
    application = Application()
    async with serving(handler=application) as server, server.call() as caller:
        await caller.send(get("/watch") + get() + get("/watch") + get())
        for number in range(2):
            assert 200 == (await caller.answer()).status
            await until(lambda there=number + 1: len(application.streams) == there)
            application.streams[-1].finish()
            assert b"" == await chunk(caller)
            assert PAGE == (await caller.answer()).body


async def test_a_client_that_leaves_ends_its_stream_once_and_costs_nothing_else():
    application = Application()
    async with serving(handler=application) as server:
        leaver, stayer = await server.connect(), await server.connect()
        left, stays = await watch(leaver, application), await watch(stayer, application)
        leaver.writer.transport.abort()
        await until(lambda: application.ended)

        assert (True, False) == (left.closed, left.write(b"late"))
        left.finish()
        assert stays.write(b"data")
        assert b"data" == await chunk(stayer)
        assert 1 == application.ended
        # To leave a stream is not to miss an answer.
        assert [] == server.notes.gone


async def test_a_client_that_closes_its_own_direction_has_left():
    application = Application()
    async with serving(handler=application) as server:
        caller = await server.connect()
        await watch(caller, application)
        caller.writer.write_eof()
        await until(lambda: application.ended)
        await until(lambda: server.notes.counts[-1] == 0)


async def test_a_client_that_sent_much_ahead_and_leaves_ends_its_stream():
    """Its data fills the buffer, so the server does not read to the end of it."""
    application = Application()
    async with serving(ServerLimits(read_seconds=0.4), handler=application) as server:
        caller = await server.connect()
        await watch(caller, application)
        caller.writer.write(get() * 2_500)
        await asyncio.sleep(0)
        caller.writer.transport.abort()
        await until(lambda: application.ended)


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])
@EITHER_LOOP
def test_a_client_that_does_not_read_is_cut_off_when_too_much_is_unsent(loop, secure, files: Files):
    most = 4 * MIB
    piece = bytes(64 * 1024)

    async def story() -> None:
        application = Application()
        tls, ours = (files.tls(), context()) if secure else (None, None)
        async with serving(ServerLimits(stream_unsent=most), tls, handler=application) as server:
            slow, other = await server.connect(ours, limit=1024), await server.connect(ours)
            stream, fine = await watch(slow, application), await watch(other, application)
            written = 0
            while stream.write(piece):
                written += len(piece)
                assert stream.unsent <= most
                assert written < 100 * MIB
                await asyncio.sleep(0)

            assert (True, 0) == (stream.closed, application.ended), "it is told in a later turn"
            await until(lambda: application.ended)
            assert written >= most - len(piece)
            assert [TOO_SLOW] == server.notes.refusals
            assert fine.write(b"data")
            assert b"data" == await chunk(other)
            assert 1 == application.ended

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(story())


async def test_a_stream_is_not_idle_however_long_it_is_quiet():
    application = Application()
    limits = ServerLimits(read_seconds=0.05, idle_seconds=0.05, write_seconds=0.05, handler_seconds=0.05)
    async with serving(limits, handler=application) as server, server.call() as caller:
        stream = await watch(caller, application)
        async with server.call() as other:
            await other.ask(get())
            assert b"" == await other.rest(), "what is idle is closed meanwhile"
        stream.write(b"data")
        assert b"data" == await chunk(caller)


async def test_a_client_that_does_not_read_the_end_of_a_stream_has_the_time_of_a_response():
    application = Application()
    async with serving(ServerLimits(write_seconds=0.05), handler=application) as server:
        caller = await server.connect(limit=1024)
        stream = await watch(caller, application)
        while not stream.unsent:
            stream.write(bytes(MIB))
            await asyncio.sleep(0)
        stream.finish()
        await until(lambda: server.notes.counts[-1] == 0)

        assert ([TOO_SLOW], 1) == (server.notes.refusals, application.ended)


async def test_the_end_of_a_stream_comes_after_everything_that_was_written():
    application = Application()
    async with serving(handler=application) as server, server.call(limit=1024) as caller:
        stream = await watch(caller, application)
        pieces = [bytes([number]) * MIB for number in range(12)]
        for piece in pieces:
            assert stream.write(piece)
        stream.finish()
        assert [*pieces, b""] == [await chunk(caller) for _ in range(13)]
        assert PAGE == (await caller.ask(get())).body


async def test_head_of_a_stream_has_no_body_and_opens_nothing():
    application = Application()
    async with serving(handler=application) as server, server.call() as caller:
        await caller.send(get("/watch", method="HEAD") + get())
        assert "chunked" == (await caller.answer(bodiless=True)).headers["transfer-encoding"]
        assert PAGE == (await caller.answer()).body
        assert ([], 1) == (application.streams, application.ended)


async def test_a_stream_in_http_1_0_ends_with_the_connection():
    application = Application()
    application.first = (b"one,", b"two")
    async with serving(handler=application) as server, server.call() as caller:
        await caller.send(b"GET /watch HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        await until(lambda: application.streams)
        application.streams[0].finish()
        head, _, body = (await caller.rest()).partition(b"\r\n\r\n")

        assert b"\r\nConnection: close" in head
        assert b"Transfer-Encoding" not in head
        assert b"one,two" == body


async def test_stopping_ends_streams_cleanly():
    application = Application()
    async with serving(handler=application) as server:
        caller = await server.connect()
        stream = await watch(caller, application)
        stream.write(b"data")
        await server.listener.stop(10)

        assert [b"data", b""] == [await chunk(caller), await chunk(caller)]
        assert b"" == await caller.rest()
        assert (True, 1) == (stream.closed, application.ended)


async def test_an_application_that_fails_to_open_a_stream_costs_one_connection(caplog):
    class Failing(Application):
        def opened(self, stream: ResponseStream) -> None:
            raise ZeroDivisionError("on purpose")

    application = Failing()
    async with serving(handler=application) as server:
        caller = await server.connect()
        await caller.send(get("/watch"))
        await until(lambda: application.ended)
        await caller.cut_off()
        assert PAGE == (await (await server.connect()).ask(get())).body
    (record,) = [one for one in caplog.records if one.levelno >= logging.ERROR]
    assert "stream handler failed" == record.getMessage()


async def test_a_stream_that_answers_a_large_request_does_not_keep_its_slot():
    application = Application()
    limits = ServerLimits(small_body=1_000, large_body=5_000, large_at_once=1)
    async with serving(limits, handler=application) as server:
        for count in (1, 2):
            caller = await server.connect()
            await caller.send(post("/watch", bytes(2_000)))
            await until(lambda there=count: len(application.streams) == there)


async def test_a_stream_is_counted_when_it_opens():
    application = Application()
    async with serving(handler=application) as server, server.call() as caller:
        await watch(caller, application)
        assert [("other", 200, 0, 0)] == server.notes.answers


async def test_many_streams_get_what_is_written_to_each():
    application = Application()
    async with serving(handler=application) as server:
        callers = [await server.connect() for _ in range(30)]
        for caller in callers:
            await watch(caller, application)
        for turn in range(20):
            for number, stream in enumerate(application.streams):
                assert stream.write(b"%d/%d" % (number, turn))
        for number, caller in enumerate(callers):
            assert [b"%d/%d" % (number, turn) for turn in range(20)] == [await chunk(caller) for _ in range(20)]
        await leave_all(server)
        await until(lambda: application.ended == 30)


async def leave_all(server: Server) -> None:
    for caller in server.callers:
        await caller.close()
