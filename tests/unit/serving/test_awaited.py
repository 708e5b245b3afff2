"""Responses that a handler has to wait for: other connections do not wait with it."""

import asyncio
import logging

import pytest

from lamina.serving.rejections import TOO_SLOW
from lamina.serving.request import HttpRequest
from lamina.serving.request_dispatch import FAILED, HandlerResult
from lamina.serving.response import HttpResponse, StreamingResponse
from lamina.serving.server_limits import ServerLimits
from tests.unit.serving.visiting import PAGE, get, post, serving, until


class Application:
    """Answers /page at once, and everything else when the test says so."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answers: dict[str, asyncio.Future[HttpResponse]] = {}
        self.cancelled: list[str] = []

    def __call__(self, request: HttpRequest) -> HandlerResult:
        if request.path == "/page":
            return HttpResponse(pieces=(PAGE,))
        self.asked.append(request.path)
        self.answers[request.path] = asyncio.get_running_loop().create_future()
        return self._wait(request.path)

    async def _wait(self, path: str) -> HttpResponse:
        try:
            return await self.answers[path]
        except asyncio.CancelledError:
            self.cancelled.append(path)
            raise

    def answer(self, path: str) -> None:
        self.answers[path].set_result(HttpResponse(pieces=(path.encode(),)))


async def test_others_are_answered_while_one_waits():
    application = Application()
    async with serving(handler=application) as server, server.call() as slow, server.call() as quick:
        await slow.send(get("/slow"))
        await until(lambda: application.asked)
        for _ in range(3):
            assert PAGE == (await quick.ask(get())).body
        application.answer("/slow")

        assert b"/slow" == (await slow.answer()).body
        assert PAGE == (await slow.ask(get())).body


async def test_requests_sent_behind_an_awaited_one_are_answered_in_order():
    application = Application()
    async with serving(handler=application) as server, server.call() as caller:
        sending = asyncio.create_task(caller.send(get("/first") + get() * 5_000 + get("/second") + get()))
        await until(lambda: application.asked)
        assert 0 == len(server.notes.answers)
        application.answer("/first")
        assert b"/first" == (await caller.answer()).body
        for _ in range(5_000):
            assert PAGE == (await caller.answer()).body
        await sending
        await until(lambda: "/second" in application.answers)
        application.answer("/second")
        assert [b"/second", PAGE] == [(await caller.answer()).body, (await caller.answer()).body]


async def test_a_future_is_as_good_as_a_coroutine():
    waiting: list[asyncio.Future[HttpResponse]] = []

    def handler(_: HttpRequest) -> HandlerResult:
        waiting.append(asyncio.get_running_loop().create_future())
        return waiting[-1]

    async with serving(handler=handler) as server, server.call() as caller:
        await caller.send(get())
        await until(lambda: waiting)
        waiting[0].set_result(HttpResponse(status=201))
        assert 201 == (await caller.answer()).status


async def test_a_stream_can_be_waited_for_too():
    async def handler(_: HttpRequest) -> StreamingResponse:
        return StreamingResponse(opened=lambda stream: stream.finish(), closed=lambda: None)

    async with serving(handler=handler) as server, server.call() as caller:
        answer = await caller.ask(get())
        assert "chunked" == answer.headers["transfer-encoding"]


async def test_head_of_an_awaited_response_has_no_body():
    application = Application()
    async with serving(handler=application) as server, server.call() as caller:
        await caller.send(get("/slow", method="HEAD") + get())
        await until(lambda: application.asked)
        application.answer("/slow")
        assert "5" == (await caller.answer(bodiless=True)).headers["content-length"]
        assert PAGE == (await caller.answer()).body


async def test_what_takes_too_long_is_cancelled_and_answered_with_504():
    application = Application()
    async with serving(ServerLimits(handler_seconds=0.05), handler=application) as server, server.call() as caller:
        answer = await caller.ask(get("/slow"))

        assert (504, b"there was no answer within 0.05 seconds; retry later\n") == (answer.status, answer.body)
        assert (["/slow"], [TOO_SLOW]) == (application.cancelled, server.notes.refusals)
        assert PAGE == (await caller.ask(get())).body
        assert [504, 200] == [status for _, status, _, _ in server.notes.answers]


@pytest.mark.parametrize("how", ["abort", "close", "write_eof"])
async def test_what_a_client_no_longer_waits_for_is_cancelled(how):
    application = Application()
    async with serving(handler=application) as server:
        caller = await server.connect()
        await caller.send(get("/slow"))
        await until(lambda: application.asked)
        getattr(caller.writer.transport, how)()
        await until(lambda: application.cancelled)
        await until(lambda: server.notes.counts[-1] == 0)

        assert (["other"], []) == (server.notes.gone, server.notes.answers)


async def test_a_client_that_sent_much_ahead_and_leaves_is_noticed():
    application = Application()
    async with serving(ServerLimits(read_seconds=0.4), handler=application) as server:
        caller = await server.connect()
        caller.writer.write(get("/slow") + get() * 2_500)
        await until(lambda: application.asked)
        caller.writer.transport.abort()
        await until(lambda: application.cancelled)


async def test_a_handler_that_fails_later_costs_one_request(caplog):
    application = Application()
    async with serving(handler=application) as server, server.call() as caller:
        await caller.send(get("/slow"))
        await until(lambda: application.asked)
        application.answers["/slow"].set_exception(ZeroDivisionError("on purpose"))
        answer = await caller.answer()

        assert (500, f"{FAILED}\n") == (answer.status, answer.body.decode())
        assert PAGE == (await caller.ask(get())).body
    (record,) = [one for one in caplog.records if one.levelno >= logging.ERROR]
    assert ("request handler failed", "/slow") == (record.getMessage(), record.path)


async def test_a_handler_that_is_cancelled_by_the_application_costs_one_request():
    application = Application()
    async with serving(handler=application) as server, server.call() as caller:
        await caller.send(get("/slow"))
        await until(lambda: application.asked)
        application.answers["/slow"].cancel()
        assert 500 == (await caller.answer()).status
        assert PAGE == (await caller.ask(get())).body


async def test_stopping_waits_for_answers_and_cancels_what_comes_too_late():
    application = Application()
    async with serving(handler=application) as server:
        slow, slower, idle = [await server.connect() for _ in range(3)]
        await idle.ask(get())
        await slow.send(get("/slow"))
        await slower.send(get("/slower"))
        await until(lambda: len(application.asked) == 2)
        stopping = asyncio.create_task(server.listener.stop(0.5))
        assert b"" == await idle.rest()
        application.answer("/slow")
        answer = await slow.answer()
        await stopping

        assert (b"/slow", "close") == (answer.body, answer.headers["connection"])
        assert await slower.cut_off()
        assert ["/slower"] == application.cancelled


async def test_a_large_request_keeps_its_slot_until_it_is_answered():
    application = Application()
    limits = ServerLimits(small_body=1_000, large_body=5_000, large_at_once=1)
    async with serving(limits, handler=application) as server:
        first, second = await server.connect(), await server.connect()
        await first.send(post("/first", bytes(2_000)))
        await until(lambda: application.asked)
        await second.send(post("/second", bytes(2_000)))
        assert PAGE == (await (await server.connect()).ask(get())).body
        assert ["/first"] == application.asked
        application.answer("/first")
        assert b"/first" == (await first.answer()).body
        await until(lambda: application.asked == ["/first", "/second"])
        application.answer("/second")
        assert b"/second" == (await second.answer()).body
