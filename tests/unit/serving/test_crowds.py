"""Where anybody may call and newcomers go first: whoever stays keeps nobody out."""

import asyncio

import pytest

from lamina.serving.connection_table import SPARE
from lamina.serving.rejections import TOO_MANY
from lamina.serving.response import HttpResponse
from lamina.serving.server_limits import ServerLimits
from tests.unit.serving.visiting import PAGE, get, post, serving, until

OPEN = ServerLimits(connections=3, newcomers_first=True, read_seconds=600, idle_seconds=600, write_seconds=600)


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        pytest.param(b"", False, id="silent"),
        pytest.param(b"GET /pa", False, id="in the head"),
        pytest.param(post("/echo", b"body")[:-1], False, id="in the body"),
        pytest.param(get(), True, id="after an answer"),
        pytest.param(post("/long", b"64"), True, id="without reading the answer"),
    ],
)
async def test_who_stays_keeps_nobody_out(said, asked):
    async with serving(OPEN) as server:
        crowd = []
        for number in range(10):
            crowd.append(await server.connect(limit=1024))
            await crowd[-1].send(said)
            if asked:
                await until(lambda number=number: len(server.notes.answers) == number + 1)
        async with server.call() as caller:
            assert PAGE == (await caller.ask(get())).body

        # Of the 11 that came 3 are there.
        assert [TOO_MANY] * 8 == server.notes.refusals
        assert [] == server.notes.gone
        await crowd[0].cut_off()


@pytest.mark.realtime
async def test_who_asks_now_and_then_stays_and_who_is_silent_goes():
    async with serving(OPEN) as server, server.call() as caller:
        for _ in range(10):
            await asyncio.sleep(0.01)
            assert PAGE == (await caller.ask(get())).body
            await server.connect()


async def test_an_answer_can_still_be_read_by_who_had_to_make_room():
    async with serving(ServerLimits(connections=1, newcomers_first=True)) as server, server.call() as first:
        await first.send(get())
        await until(lambda: server.notes.answers)
        async with server.call() as second:
            assert PAGE == (await second.ask(get())).body

        assert PAGE == (await first.answer()).body
        assert not await first.cut_off()


async def test_who_made_an_answer_hears_that_its_reader_had_to_make_room():
    heard: list[str] = []

    def long(body) -> HttpResponse:
        return HttpResponse(pieces=(bytes(64 * 1024**2),), unread=lambda: heard.append("unread"))

    async with serving(ServerLimits(connections=1, newcomers_first=True), more=long) as server:
        deaf = await server.connect(limit=1024)
        await deaf.send(post("/more", b""))
        await until(lambda: server.notes.answers)
        async with server.call() as caller:
            assert PAGE == (await caller.ask(get())).body

        assert ["unread"] == heard


async def test_however_many_come_too_many_each_is_told_so():
    async with serving(ServerLimits(connections=1)) as server:
        first = await server.connect()
        await first.ask(get())
        for _ in range(3 * SPARE):
            assert 503 == (await (await server.connect()).answer()).status

        assert [TOO_MANY] * 3 * SPARE == server.notes.refusals
        assert 200 == (await first.ask(get())).status
