"""Requests that are fine, over real sockets: what comes in, what goes out, what is told."""

import asyncio
import logging
import socket
import time

import pytest

from lamina.model.errors import InputError
from lamina.serving.http_server import HttpServer
from lamina.serving.request_dispatch import FAILED
from lamina.serving.response import HttpResponse
from lamina.serving.server_limits import ServerLimits, is_loopback
from tests.unit.serving.visiting import (
    EITHER_LOOP,
    PAGE,
    PIECE,
    Notebook,
    chunks,
    get,
    post,
    routes,
    serving,
    until,
)

MIB = 1024**2


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(0, id="nothing"),
        pytest.param(1, id="a byte"),
        pytest.param(25_000, id="500 names"),
        pytest.param(64 * 1024, id="as long as the buffer"),
        pytest.param(219_000, id="5,000 names"),
        pytest.param(4 * MIB, id="the longest small one"),
        pytest.param(4 * MIB + 1, id="the shortest large one"),
        pytest.param(20 * MIB, id="2,000 nodes"),
    ],
)
@pytest.mark.parametrize("chunked", [False, True], ids=["known length", "chunked"])
async def test_a_body_arrives_as_it_was_sent(size, chunked):
    body = (PIECE * (size // len(PIECE) + 1))[:size]
    pieces = [body[start : start + 100_000] for start in range(0, size, 100_000)]
    async with serving() as server, server.call() as caller:
        sending = asyncio.create_task(caller.send(chunks(*pieces) if chunked else post("/echo", body)))
        answer = await caller.answer()
        await sending

        assert (200, "application/json", str(size)) == (
            answer.status,
            answer.headers["content-type"],
            answer.headers["content-length"],
        )
        assert body == answer.body
        assert [("/echo", 200, size, size)] == server.notes.answers
        assert [] == server.notes.gone + server.notes.refusals


async def test_a_connection_is_kept_for_the_next_request():
    async with serving() as server, server.call() as caller:
        for number in range(3_000):
            answer = await caller.ask(post("/echo", b"%d" % number) if number % 2 else get())
            assert (b"%d" % number if number % 2 else PAGE) == answer.body

        assert [1] == server.notes.counts
    await until(lambda: server.notes.counts == [1, 0])


async def test_a_body_stays_as_it_was_when_the_next_request_comes():
    """An answer may be made of pieces of its question, and be written while the next question is read."""
    kept = []

    def keep(body) -> HttpResponse:
        kept.append(body)
        return HttpResponse()

    async with serving(keep=keep) as server, server.call() as caller:
        for letter in (b"a", b"b"):
            for size in (10, 100_000, 5_000_000):
                await caller.ask(post("/keep", letter * size))

    assert [letter * size for letter in (b"a", b"b") for size in (10, 100_000, 5_000_000)] == [*map(bytes, kept)]


async def test_requests_sent_ahead_are_answered_in_order():
    count = 500
    asked = [post("/echo", b"x" * number) if number % 3 else chunks(b"x" * number) for number in range(1, count)]
    async with serving() as server, server.call() as caller:
        sending = asyncio.create_task(caller.send(b"".join(asked)))
        answers = [await caller.answer() for _ in asked]
        await sending

    assert list(range(1, count)) == [len(answer.body) for answer in answers]


async def test_requests_sent_ahead_wait_while_nobody_reads_the_answers():
    """What is not read yet stays with the caller: the server holds one answer, however much was asked for."""
    asked = 0

    def long(body) -> HttpResponse:
        nonlocal asked
        asked += 1
        return HttpResponse(pieces=(PIECE,) * 32)

    async with serving(more=long) as server, server.call(limit=1024) as caller:
        await caller.send(post("/more", b"x") * 50)
        await until(lambda: asked)
        await caller.send(post("/more", b"x"))
        async with server.call() as other:
            for _ in range(20):
                await other.ask(get())

        assert asked == 1


async def test_an_empty_line_before_a_request_is_passed_over():
    async with serving() as server, server.call() as caller:
        assert PAGE == (await caller.ask(b"\r\n\r\n" + get())).body
        assert PAGE == (await caller.ask(b"\r\n" + get())).body


@pytest.mark.parametrize(
    "target",
    ["/page", "/page?timeout=5s", "http://extender.kube-system:8888/page", "http://x/page?a=b", "/page#there"],
)
async def test_a_route_is_found_by_its_path(target):
    async with serving() as server, server.call() as caller:
        assert PAGE == (await caller.ask(get(target))).body


async def test_head_tells_what_get_would_and_leaves_the_body_out():
    async with serving() as server, server.call() as caller:
        await caller.send(get(method="HEAD") + get())
        head = await caller.answer(bodiless=True)
        whole = await caller.answer()

    assert (200, str(len(PAGE))) == (head.status, head.headers["content-length"])
    assert whole.body == PAGE


@pytest.mark.parametrize(
    ("request_bytes", "kept"),
    [
        pytest.param(get(), None, id="1.1"),
        pytest.param(get("/page", "Connection: close"), "close", id="1.1, close"),
        pytest.param(b"GET /page HTTP/1.0\r\n\r\n", "close", id="1.0"),
        pytest.param(b"GET /page HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "keep-alive", id="1.0, keep"),
    ],
)
async def test_the_answer_says_what_becomes_of_the_connection(request_bytes, kept):
    async with serving() as server, server.call() as caller:
        answer = await caller.ask(request_bytes)

        assert kept == answer.headers.get("connection")
        if kept == "close":
            assert await caller.rest() == b""
        else:
            assert PAGE == (await caller.ask(get())).body


async def test_the_last_answer_reaches_a_caller_that_has_sent_more():
    async with serving() as server, server.call() as caller:
        await caller.send(get("/page", "Connection: close") + get() * 5_000)

        assert PAGE == (await caller.answer()).body
        assert not await caller.cut_off()
        assert 1 == len(server.notes.answers)


@pytest.mark.realtime
async def test_who_asks_first_whether_to_send_a_body_is_invited():
    async with serving() as server, server.call() as caller:
        for length in ("Content-Length: 4", "Transfer-Encoding: chunked"):
            await caller.send(f"POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n{length}\r\n\r\n".encode())
            assert b"HTTP/1.1 100 Continue\r\n\r\n" == await caller.reader.readexactly(25)
            body = b"body" if length.endswith("4") else b"4\r\nbody\r\n0\r\n\r\n"
            await caller.send(body[:2])
            await asyncio.sleep(0.02)
            # Once is enough: what comes next is the answer.
            assert b"body" == (await caller.ask(body[2:])).body


async def test_who_sends_the_body_without_waiting_is_not_invited():
    async with serving() as server, server.call() as caller:
        answer = await caller.ask(post("/echo", b"body", "Expect: 100-continue"))

        assert (200, b"body") == (answer.status, answer.body)


async def test_an_offer_to_speak_something_else_is_passed_over():
    async with serving() as server, server.call() as caller:
        offer = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__")
        assert PAGE == (await caller.ask(get("/page", *offer))).body
        assert b"body" == (await caller.ask(post("/echo", b"body", *offer))).body


# ------------------------------------------------------------------------------------------------- answers that say no


async def test_what_is_not_there_is_answered_with_what_is():
    async with serving() as server, server.call() as caller:
        answer = await caller.ask(post("/nowhere", b"body"))

        routes_there = "GET /page, POST /echo, POST /fail, POST /long"
        assert (404, f"not found; available: {routes_there}\n") == (answer.status, answer.body.decode())
        assert "text/plain; charset=utf-8" == answer.headers["content-type"]
        assert 200 == (await caller.ask(get())).status
        assert [("other", 404), ("/page", 200)] == [one[:2] for one in server.notes.answers]


@pytest.mark.parametrize(
    ("request_bytes", "allowed"),
    [
        pytest.param(get("/echo"), "POST", id="GET"),
        pytest.param(post("/page", b""), "GET, HEAD", id="POST"),
        pytest.param(get("/page", method="DELETE"), "GET, HEAD", id="DELETE"),
        pytest.param(get("/page", method="OPTIONS"), "GET, HEAD", id="OPTIONS"),
        pytest.param(post("/echo", b"x").replace(b"POST", b"PUT"), "POST", id="PUT"),
    ],
)
async def test_a_wrong_method_is_answered_with_the_right_ones(request_bytes, allowed):
    async with serving() as server, server.call() as caller:
        answer = await caller.ask(request_bytes)

        assert (405, allowed) == (answer.status, answer.headers["allow"])
        assert answer.body.decode().endswith(f"accepts {allowed} only\n")
        assert 200 == (await caller.ask(get())).status


async def test_a_handler_that_fails_costs_one_request_and_leaves_a_trace(caplog):
    async with serving() as server, server.call() as caller:
        answer = await caller.ask(post("/fail", b"body"))

        assert (500, f"{FAILED}\n") == (answer.status, answer.body.decode())
        assert 200 == (await caller.ask(get())).status
        assert ("/fail", 500, 4, len(FAILED) + 1) == server.notes.answers[0]
    (record,) = [one for one in caplog.records if one.levelno >= logging.ERROR]
    assert ("request handler failed", "/fail") == (record.getMessage(), record.path)
    assert record.exc_info is not None


# ------------------------------------------------------------------------------------------------- how long it took


@pytest.mark.realtime
@EITHER_LOOP
def test_the_seconds_of_an_answer_are_those_its_handler_took_however_few(loop):
    few = 0.0003

    def busy(body) -> HttpResponse:
        end = time.perf_counter() + few
        while time.perf_counter() < end:
            pass
        return HttpResponse()

    async def story() -> list[float]:
        async with serving(busy=busy) as server, server.call() as caller:
            for _ in range(30):
                await caller.ask(post("/busy", b""))
            return server.notes.seconds

    with asyncio.Runner(loop_factory=loop) as runner:
        seconds = runner.run(story())
    assert (30, True) == (len(seconds), min(seconds) >= few)


async def test_the_seconds_of_an_answer_end_with_its_first_byte():
    async with serving() as server, server.call(limit=1024) as caller:
        await caller.send(post("/long", b"64"))
        # Nobody has read it, and most of it is still here.
        await until(lambda: server.notes.answers)

        assert ([("/long", 200, 2, 64 * MIB)], []) == (server.notes.answers, server.notes.gone)
        await caller.answer()
        assert 1 == len(server.notes.seconds)


# ---------------------------------------------------------------------------------------------------- callers that leave


async def test_a_caller_that_hung_up_while_it_was_answered_is_counted():
    with socket.socket() as caller:

        def slow(body) -> HttpResponse:
            caller.close()  # its time is up while the handler works
            return HttpResponse(pieces=(b"late",))

        async with serving(slow=slow) as server:
            caller.connect(("127.0.0.1", server.listener.port))
            caller.sendall(post("/slow", b"x"))
            await until(lambda: server.notes.gone)

        assert (["/slow"], [("/slow", 200, 1, 4)]) == (server.notes.gone, server.notes.answers)


async def test_who_made_an_answer_hears_once_that_nobody_read_it_and_only_then():
    heard: list[str] = []

    def answer(body) -> HttpResponse:
        name = bytes(body).decode()
        return HttpResponse(
            pieces=(bytes(64 * MIB) if name == "long" else b"short",), unread=lambda: heard.append(name)
        )

    async with serving(tell=answer) as server:
        reader, leaver = await server.connect(), await server.connect()
        await leaver.send(post("/tell", b"long"))
        await leaver.reader.readexactly(100)
        # Others are answered meanwhile, and read it.
        await reader.ask(post("/tell", b"short"))
        leaver.writer.transport.abort()
        await until(lambda: server.notes.counts[-1] == 1)
        await reader.close()
        await until(lambda: server.notes.counts[-1] == 0)

        assert ["long"] == heard


@pytest.mark.parametrize(
    ("part", "gone"),
    [
        pytest.param(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf", ["/echo"], id="in the body"),
        pytest.param(b"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n", ["other"], id="no route"),
        pytest.param(b"POST /echo HTTP/1.1\r\nHo", [], id="in the head"),
        pytest.param(b"", [], id="before the first byte"),
        pytest.param(get(), [], id="after its answer was sent"),
    ],
)
async def test_a_caller_that_leaves_in_the_middle_is_counted_if_it_had_asked(part, gone):
    async with serving() as server:
        caller = await server.connect()
        await caller.send(part)
        await until(lambda: server.notes.counts == [1])
        if part == get():
            await caller.answer()
        await caller.close()
        await until(lambda: server.notes.counts == [1, 0])

        assert (gone, []) == (server.notes.gone, server.notes.refusals)


async def test_a_caller_that_leaves_in_the_middle_of_its_answer_is_counted():
    async with serving() as server:
        caller = await server.connect()
        await caller.send(post("/long", b"64"))
        await caller.reader.readexactly(100)
        caller.writer.transport.abort()
        await until(lambda: server.notes.counts == [1, 0])

        assert (["/long"], [("/long", 200, 2, 64 * MIB)]) == (server.notes.gone, server.notes.answers)


async def test_who_closes_only_its_own_direction_is_answered():
    async with serving() as server, server.call() as caller:
        await caller.send(get() + get("/page", "Connection: close"))
        caller.writer.write_eof()

        assert 2 == (await caller.rest()).count(PAGE)


# ---------------------------------------------------------------------------------------------------- where it listens


@pytest.mark.parametrize(
    ("host", "near"),
    [
        ("localhost", True),
        ("LOCALHOST", True),
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("[::1]", True),
        ("::ffff:127.0.0.1", True),
        ("", False),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("::ffff:10.0.0.1", False),
        ("localhost.example.com", False),
        ("127.0.0.1.example.com", False),
    ],
)
def test_only_loopback_addresses_and_localhost_are_near(host, near):
    assert near == is_loopback(host)


@pytest.mark.parametrize("host", ["", "0.0.0.0", "127.0.0.1", "localhost", "::1", "::"])
async def test_it_listens_where_it_is_told(host):
    listener = HttpServer(routes(), ServerLimits(), Notebook())
    await listener.start(host, 0)
    try:
        _, writer = await asyncio.open_connection("::1" if host == "::1" else "127.0.0.1", listener.port)
        writer.close()
        await writer.wait_closed()
    finally:
        await listener.stop(0)


@pytest.mark.parametrize("host", ["127.0.0.1", "no.such.name.invalid"])
async def test_where_it_cannot_listen_is_said_in_a_line(host):
    async with serving() as server:
        with pytest.raises(InputError) as caught:
            await HttpServer(routes(), ServerLimits(), Notebook()).start(host, server.listener.port)

        assert str(caught.value).startswith(f"{host}:{server.listener.port}: cannot listen: ")
        assert str(caught.value).endswith("; try another address or port")


# ------------------------------------------------------------------------------------------------------------ the end


async def test_who_never_started_can_be_stopped():
    await HttpServer(routes(), ServerLimits(), Notebook()).stop(0)


async def test_stopping_lets_nobody_in_and_closes_idle_connections():
    async with serving() as server:
        idle = await server.connect()
        await idle.ask(get())
        await server.listener.stop(10)

        assert b"" == await idle.rest()
        with pytest.raises(ConnectionRefusedError):
            await server.connect()


@pytest.mark.realtime
async def test_stopping_answers_what_has_been_asked():
    async with serving() as server:
        reading, writing, stuck = [await server.connect() for _ in range(3)]
        await reading.send(post("/echo", b"whole")[:-2])
        await writing.send(post("/long", b"32"))
        await stuck.send(post("/long", b"64"))
        await until(lambda: server.notes.counts == [1, 2, 3])
        await stuck.reader.readexactly(100)
        stopping = asyncio.create_task(server.listener.stop(2))
        await asyncio.sleep(0.05)
        await reading.send(b"le")

        answer = await reading.answer()
        assert (b"whole", "close") == (answer.body, answer.headers["connection"])
        assert PIECE * 32 == (await writing.answer()).body
        assert not stopping.done()
        await stopping
        assert await stuck.cut_off()
        assert ["/long"] == server.notes.gone
        assert 0 == server.notes.counts[-1]
