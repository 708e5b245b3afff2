"""Every bound of the server: what is just allowed, what is just not, and that it costs nobody else anything."""

import asyncio

import pytest

from lamina.serving.rejections import TOO_BUSY, TOO_LARGE, TOO_MANY, TOO_SLOW
from lamina.serving.response import HttpResponse
from lamina.serving.server_limits import ServerLimits
from tests.unit.serving.visiting import PAGE, PATIENCE, Caller, chunks, get, post, serving, until

SOON = 0.2
"""Seconds; short, for bounds in time that are to be reached."""
SMALL = ServerLimits(header=300, small_body=1_000, large_body=5_000, large_at_once=1)


def test_the_bounds_are_what_is_promised():
    limits = ServerLimits()

    assert (8 * 1024, 4 * 1024**2, 96 * 1024**2) == (limits.header, limits.small_body, limits.large_body)
    assert (2, 64) == (limits.large_at_once, limits.connections)
    assert (10, 120, 10) == (limits.read_seconds, limits.idle_seconds, limits.write_seconds)


# --------------------------------------------------------------------------------------------------------------- sizes


@pytest.mark.parametrize(
    ("size", "status"), [pytest.param(8 * 1024, 200, id="just fits"), pytest.param(8 * 1024 + 1, 431, id="a byte more")]
)
async def test_a_head_has_8_kib_at_most(size, status):
    padding = size - len(get("/page", "X-Padding: "))
    async with serving() as server, server.call() as caller:
        answer = await caller.ask(get("/page", "X-Padding: " + "x" * padding))

        assert status == answer.status
        assert ([TOO_LARGE] if status == 431 else []) == server.notes.refusals


async def test_a_head_that_never_ends_is_refused_before_it_has_ended():
    async with serving() as server, server.call() as caller:
        answer = await caller.ask(b"GET /" + b"x" * 9_000)

        assert 431 == answer.status
        assert b"the request has more than 8192 bytes before its body, which is the limit\n" == answer.body


@pytest.mark.parametrize("chunked", [False, True], ids=["known length", "chunked"])
@pytest.mark.parametrize("size", [1_000, 1_001, 5_000], ids=["small", "just large", "as large as can be"])
async def test_a_body_up_to_the_limit_is_read(size, chunked):
    async with serving(SMALL) as server, server.call() as caller:
        body = b"x" * size
        pieces = [body[start : start + 300] for start in range(0, size, 300)]

        assert body == (await caller.ask(chunks(*pieces) if chunked else post("/echo", body))).body
        assert PAGE == (await caller.ask(get())).body


@pytest.mark.parametrize("chunked", [False, True], ids=["known length", "chunked"])
async def test_a_body_beyond_the_limit_is_refused_before_it_is_read(chunked):
    async with serving(SMALL) as server, server.call() as caller:
        whole = chunks(b"x" * 5_000, b"y") if chunked else post("/echo", b"x" * 5_001)
        answer = await caller.ask(whole[: whole.index(b"\r\n1\r\n") + 5] if chunked else whole[:-5_001])

        assert (413, b"the body has more than 5000 bytes, which is the limit\n") == (
            answer.status,
            answer.body,
        )
        assert [TOO_LARGE] == server.notes.refusals


async def test_the_largest_body_of_all_is_announced_at_no_cost():
    async with serving() as server, server.call() as caller:
        await caller.send(f"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: {96 * 1024**2}\r\n\r\n".encode())
        async with server.call() as other:
            assert 413 == (await other.ask(post("/echo", b"").replace(b": 0", b": %d" % (96 * 1024**2 + 1)))).status
            assert PAGE == (await (await server.connect()).ask(get())).body


# -------------------------------------------------------------------------------------------------------- large places


@pytest.mark.realtime
@pytest.mark.parametrize("chunked", [False, True], ids=["known length", "chunked"])
async def test_a_large_body_waits_for_a_place_and_small_ones_do_not(chunked):
    body = b"x" * 3_000
    large = chunks(body[:700], body[700:]) if chunked else post("/echo", body)
    async with serving(SMALL) as server, server.call() as first, server.call() as second:
        await first.send(post("/echo", body)[:-1])
        await until(lambda: server.notes.counts[-1] == 2)
        await asyncio.sleep(0.01)
        waiting = asyncio.create_task(second.ask(large))
        async with server.call() as other:
            assert b"y" * 1_000 == (await other.ask(post("/echo", b"y" * 1_000))).body
        assert not waiting.done()

        assert body == (await first.ask(b"x")).body
        assert body == (await waiting).body


@pytest.mark.realtime
async def test_who_waits_for_a_place_is_not_read():
    """The caller's own writes stop: what waits is held by its kernel, not by us."""
    limits = ServerLimits(small_body=1_000, large_body=64 * 1024**2, large_at_once=1)
    async with serving(limits) as server, server.call() as first, server.call() as second:
        await first.send(post("/echo", b"x" * 2_000)[:-1])
        await asyncio.sleep(0.05)
        second.writer.write(post("/echo", b"y" * 32 * 1024**2))
        for _ in range(20):
            await asyncio.sleep(0.005)
        assert second.writer.transport.get_write_buffer_size() > 0

        await first.ask(b"x")
        assert 32 * 1024**2 == len((await second.answer()).body)


@pytest.mark.realtime
async def test_places_are_given_in_the_order_they_were_asked_for():
    order: list[bytes] = []

    def note(body) -> HttpResponse:
        order.append(bytes(body[:1]))
        return HttpResponse()

    async with serving(SMALL, note=note) as server:
        first = await server.connect()
        await first.send(post("/note", b"0" * 2_000)[:-1])
        waiting = []
        for name in (b"1", b"2", b"3", b"4"):
            caller = await server.connect()
            await caller.send(post("/note", name * 2_000))
            waiting.append(caller)
            await asyncio.sleep(0.02)
        await first.ask(b"0")
        for caller in waiting:
            assert 200 == (await caller.answer()).status

    assert [b"0", b"1", b"2", b"3", b"4"] == order


@pytest.mark.realtime
async def test_a_place_is_held_until_the_answer_is_out():
    limits = ServerLimits(small_body=1_000, large_body=5_000, large_at_once=1)
    async with serving(limits, long=lambda body: HttpResponse(pieces=(b"x" * 1024**2,) * 32)) as server:
        first, second = await server.connect(limit=1024), await server.connect()
        await first.send(post("/long", b"x" * 2_000))
        await first.reader.readuntil(b"\r\n\r\n")
        waiting = asyncio.create_task(second.ask(post("/echo", b"x" * 2_000)))
        await asyncio.sleep(0.05)
        assert not waiting.done()

        await first.reader.readexactly(32 * 1024**2)
        assert 200 == (await waiting).status


@pytest.mark.realtime
@pytest.mark.parametrize("how", ["leaves", "is too slow", "is refused"])
async def test_who_had_a_place_and_is_gone_gives_it_back(how):
    limits = ServerLimits(
        small_body=1_000, large_body=5_000, large_at_once=1, read_seconds=SOON if "slow" in how else 10
    )
    async with serving(limits) as server:
        first, second = await server.connect(), await server.connect()
        await first.send(chunks(b"x" * 2_000, b"x" * 2_000)[:-10])
        await asyncio.sleep(SOON / 2)
        await second.send(post("/echo", b"x" * 2_000))
        if how == "leaves":
            await first.close()
        elif how == "is refused":
            await first.send(b"xxx no end of a chunk\r\n")

        assert 200 == (await second.answer()).status


@pytest.mark.realtime
async def test_who_waits_for_a_place_too_long_is_told_so():
    async with serving(ServerLimits(small_body=1_000, large_body=5_000, large_at_once=1, read_seconds=SOON)) as server:
        callers = [await server.connect() for _ in range(3)]
        await callers[0].send(post("/long", b"64" + b" " * 2_000))
        await until(lambda: server.notes.counts[-1] == 3)
        for caller in callers[1:]:
            await caller.send(post("/echo", b"x" * 2_000))
        answers = [await caller.answer() for caller in callers[1:]]

        assert [503, 503] == [answer.status for answer in answers]
        assert b"1 large requests are in progress, which is the limit; retry later\n" == answers[0].body
        assert [TOO_BUSY, TOO_BUSY] == server.notes.refusals


@pytest.mark.realtime
async def test_who_gives_up_waiting_is_noticed_although_nobody_reads():
    limits = ServerLimits(small_body=1_000, large_body=5_000, large_at_once=1, read_seconds=60, idle_seconds=SOON)
    async with serving(limits) as server:
        first, second = await server.connect(), await server.connect()
        await first.send(post("/echo", b"x" * 2_000)[:-1])
        await asyncio.sleep(0.02)
        await second.send(post("/echo", b"x" * 2_000))
        await asyncio.sleep(0.02)
        await second.close()
        await until(lambda: server.notes.gone == ["/echo"])

        assert 200 == (await first.ask(b"x")).status
        # The place is not kept for somebody who is gone.
        assert 200 == (await (await server.connect()).ask(post("/echo", b"x" * 2_000))).status


# --------------------------------------------------------------------------------------------------------- connections


async def test_a_connection_too_many_is_told_so_and_the_others_go_on():
    async with serving(ServerLimits(connections=2)) as server:
        first, second, third = [await server.connect() for _ in range(3)]
        answer = await third.ask(get())

        assert (503, "close") == (answer.status, answer.headers["connection"])
        assert b"there are 2 connections, which is the limit; close some, or retry later\n" == answer.body
        assert b"" == await third.rest()
        assert [TOO_MANY] == server.notes.refusals
        assert [200, 200] == [(await caller.ask(get())).status for caller in (first, second)]

        await first.close()
        await until(lambda: server.notes.counts == [1, 2, 1])
        assert 200 == (await (await server.connect()).ask(get())).status


async def test_64_connections_are_served_at_once():
    async with serving() as server:
        callers = [await server.connect() for _ in range(65)]
        answers = [await caller.ask(get()) for caller in callers]

        assert [200] * 64 + [503] == [answer.status for answer in answers]


# ---------------------------------------------------------------------------------------------------------------- time

SLOW = [
    pytest.param(b"GE", id="in the head"),
    pytest.param(post("/echo", b"body")[:-1], id="in the body"),
    pytest.param(post("/echo", b"x" * 100_000)[:-1], id="in a longer body"),
    pytest.param(chunks(b"body")[:-1], id="in chunks"),
    pytest.param(b"\r\n", id="before it begins"),
]


@pytest.mark.realtime
@pytest.mark.parametrize("part", SLOW)
async def test_a_request_that_is_not_whole_in_time_is_given_up(part):
    async with serving(ServerLimits(read_seconds=SOON)) as server, server.call() as caller:
        answer = await caller.ask(part)

        assert (408, b"the request was not complete within 0.2 seconds; send it faster\n") == (
            answer.status,
            answer.body,
        )
        assert b"" == await caller.rest()
        assert [TOO_SLOW] == server.notes.refusals


@pytest.mark.realtime
@pytest.mark.parametrize("part", SLOW[:4])
async def test_a_byte_now_and_then_is_not_enough(part):
    """The time is that of the whole request: sending something does not begin it anew."""
    async with serving(ServerLimits(read_seconds=SOON)) as server, server.call() as caller:
        await caller.send(part[:1])
        answering = asyncio.create_task(caller.answer())
        for byte in part[1:60]:
            if answering.done():
                break
            await caller.send(bytes([byte]))
            await asyncio.sleep(0.02)

        assert 408 == (await answering).status


@pytest.mark.realtime
async def test_the_time_of_a_request_begins_with_its_first_byte():
    async with serving(ServerLimits(read_seconds=SOON)) as server, server.call() as caller:
        for _ in range(3):
            await asyncio.sleep(SOON * 0.75)
            assert 200 == (await caller.ask(get())).status


@pytest.mark.realtime
async def test_an_idle_connection_is_closed_without_a_word():
    async with serving(ServerLimits(idle_seconds=SOON)) as server, server.call() as caller:
        await caller.ask(get())

        assert b"" == await caller.rest()
        assert [] == server.notes.refusals


@pytest.mark.realtime
async def test_who_has_not_asked_anything_has_the_time_of_a_request_to_begin():
    async with serving(ServerLimits(read_seconds=SOON, idle_seconds=600)) as server:
        silent, known = await server.connect(), await server.connect()
        await known.ask(get())

        assert b"" == await silent.rest()
        assert [] == server.notes.refusals
        assert 200 == (await known.ask(get())).status


@pytest.mark.realtime
async def test_a_caller_that_does_not_read_its_answer_is_cut_off():
    async with serving(ServerLimits(write_seconds=SOON)) as server, server.call(limit=1024) as caller:
        await caller.send(post("/long", b"64"))
        await until(lambda: server.notes.refusals)

        assert await caller.cut_off()
        assert ([TOO_SLOW], []) == (server.notes.refusals, server.notes.gone)


@pytest.mark.realtime
async def test_a_caller_that_reads_a_little_now_and_then_is_cut_off_too():
    async with serving(ServerLimits(write_seconds=SOON)) as server, server.call(limit=1024) as caller:
        await caller.send(post("/long", b"64"))
        while not server.notes.refusals:
            await caller.reader.read(10_000)
            await asyncio.sleep(0.01)

        assert await caller.cut_off()


@pytest.mark.realtime
async def test_a_caller_that_keeps_sending_after_a_refusal_is_cut_off():
    async with serving(ServerLimits(read_seconds=SOON)) as server, server.call() as caller:
        await caller.send(b"hello\r\n\r\n")
        assert 400 == (await caller.answer()).status
        with pytest.raises(ConnectionError):
            await send_on(caller)


async def send_on(caller: Caller) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            await caller.send(b"hello\r\n\r\n")
            await asyncio.sleep(0.01)


async def test_slow_callers_delay_nobody():
    async with serving() as server:
        reading, writing, mute = await server.connect(), await server.connect(limit=1024), await server.connect()
        await reading.send(post("/echo", b"x" * 8 * 1024**2)[:-1])
        await writing.send(post("/long", b"64"))
        await mute.send(b"P")
        async with server.call() as caller:
            for _ in range(200):
                assert PAGE == (await caller.ask(get())).body

        assert [] == server.notes.refusals
