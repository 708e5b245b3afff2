"""Requests that are not HTTP, or that could be read in two ways: one line that says why, and the connection ends."""

import pytest

from lamina.serving.rejections import BAD_REQUEST, TOO_LARGE
from tests.unit.serving.visiting import chunks, get, post, serving


def head(*lines: str) -> bytes:
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


LENGTH_ONCE = "give the body's length once: either Content-Length or, in HTTP/1.1, Transfer-Encoding: chunked"
NO_HTTP = "not a valid HTTP/1.1 request: "
CHUNKED = "POST /echo HTTP/1.1", "Host: x", "Transfer-Encoding: chunked"

BAD = [
    # -- where does the body end?
    pytest.param(
        head("POST /echo HTTP/1.1", "Host: x"), 411, "the length of the body is missing; send ", id="no length"
    ),
    pytest.param(
        head("POST /echo HTTP/1.1", "Host: x", "Content-Length: 4", "Content-Length: 5"), 400, "", id="two lengths"
    ),
    pytest.param(
        head("POST /echo HTTP/1.1", "Host: x", "Content-Length: 4", "content-length: 4"), 400, "", id="one length twice"
    ),
    pytest.param(head("POST /echo HTTP/1.1", "Host: x", "Content-Length: 4, 4"), 400, "", id="a list of lengths"),
    pytest.param(head("POST /echo HTTP/1.1", "Host: x", "Content-Length: -4"), 400, "", id="a negative length"),
    pytest.param(head("POST /echo HTTP/1.1", "Host: x", "Content-Length: +4"), 400, "", id="a signed length"),
    pytest.param(head("POST /echo HTTP/1.1", "Host: x", "Content-Length: 0x4"), 400, "", id="a length in hexadecimal"),
    pytest.param(head("POST /echo HTTP/1.1", "Host: x", "Content-Length: 4\xb2"), 400, "", id="a digit of other kind"),
    pytest.param(head("POST /echo HTTP/1.1", "Host: x", "Content-Length:"), 400, "", id="an empty length"),
    pytest.param(
        head("POST /echo HTTP/1.1", "Host: x", "Content-Length: 9999999999999999"), 400, "", id="not a number of bytes"
    ),
    pytest.param(
        head("POST /echo HTTP/1.1", "Host: x", f"Content-Length: {2**64 + 4}"), 400, "", id="a length that overflows"
    ),
    pytest.param(head(*CHUNKED, "Content-Length: 4"), 400, "", id="chunks and a length"),
    pytest.param(
        head("POST /echo HTTP/1.1", "Host: x", "Content-Length: 4", "Transfer-Encoding: chunked"),
        400,
        "",
        id="a length and chunks",
    ),
    pytest.param(head(*CHUNKED, "Transfer-Encoding: chunked"), 400, "", id="chunked twice"),
    pytest.param(head(*CHUNKED, "Transfer-Encoding: identity"), 400, "", id="chunked and something else"),
    pytest.param(
        head("POST /echo HTTP/1.1", "Host: x", "Transfer-Encoding: gzip, chunked"),
        501,
        "the only supported transfer encoding",
        id="compressed chunks",
    ),
    pytest.param(head("POST /echo HTTP/1.1", "Host: x", "Transfer-Encoding: xchunked"), 400, "", id="almost chunked"),
    pytest.param(
        head("POST /echo HTTP/1.1", "Host: x", "Transfer-Encoding: chunked, identity"), 400, "", id="not last"
    ),
    pytest.param(head("POST /echo HTTP/1.1", "Host: x", "Transfer-Encoding:\x0bchunked"), 400, "", id="odd blank"),
    pytest.param(
        head("POST /echo HTTP/1.1", "Host: x", "Transfer-Encoding : chunked"), 400, "", id="blank before colon"
    ),
    pytest.param(head("POST /echo HTTP/1.0", "Transfer-Encoding: chunked"), 400, LENGTH_ONCE, id="chunks in HTTP/1.0"),
    pytest.param(get("/page", "Content-Length: 4"), 400, "a GET with a body is not supported", id="GET with a body"),
    pytest.param(get("/page", "Transfer-Encoding: chunked"), 400, "a GET with a body", id="GET with chunks"),
    pytest.param(get("/page", "Content-Length: 4", method="HEAD"), 400, "a HEAD with a body", id="HEAD with a body"),
    # -- chunks
    pytest.param(head(*CHUNKED) + b"x\r\n", 400, "a chunk must begin with a line", id="no size"),
    pytest.param(head(*CHUNKED) + b"\r\n", 400, "a chunk must begin with a line", id="an empty size"),
    pytest.param(head(*CHUNKED) + b"-1\r\n", 400, "a chunk must begin with a line", id="a negative size"),
    pytest.param(head(*CHUNKED) + b"0x4\r\n", 400, "a chunk must begin with a line", id="0x"),
    pytest.param(head(*CHUNKED) + b" 4\r\n", 400, "a chunk must begin with a line", id="a blank before"),
    pytest.param(head(*CHUNKED) + b"4 \r\n", 400, "a chunk must begin with a line", id="a blank after"),
    pytest.param(head(*CHUNKED) + b"000000004\r\n", 400, "a chunk must begin with a line", id="many zeros"),
    pytest.param(head(*CHUNKED) + b"4\r\nbodyX\r\n", 400, "a chunk is longer than its size", id="longer than it says"),
    pytest.param(head(*CHUNKED) + b"4\nbody", 400, "a line between chunks does not end with CR LF", id="LF alone"),
    pytest.param(head(*CHUNKED) + b"4;a\nb\r\nbody", 400, "a line between", id="LF in an extension"),
    pytest.param(head(*CHUNKED) + b"4\r\nbody\n0\r\n", 400, "a line between", id="LF after a chunk"),
    pytest.param(
        head(*CHUNKED) + b"4;a=b\r\nbody\r\n",
        400,
        "a chunk must begin with a line that has only its size",
        id="an extension",
    ),
    pytest.param(head(*CHUNKED) + b"4;" + b"x" * 300, 400, "a line between chunks is too long", id="long extension"),
    pytest.param(chunks(trailer=b"a: b\nc: d\r\n"), 400, "a line between", id="LF in a trailer"),
    pytest.param(chunks(trailer=b"a: b\r\n"), 400, "trailers after the body", id="a trailer"),
    pytest.param(head(*CHUNKED) + b"0\r\n" + b"a" * 9_000, 400, "a line between chunks is too long", id="long trailer"),
    # -- heads
    pytest.param(b"\x16\x03\x01\x02\x00\x01", 400, "this port serves plain HTTP and the client sent TLS", id="TLS"),
    pytest.param(b"\xff" * 20 + b"\r\n\r\n", 400, NO_HTTP, id="bytes"),
    pytest.param(b"hello\r\n\r\n", 400, NO_HTTP, id="words"),
    pytest.param(b"get /page HTTP/1.1\r\nHost: x\r\n\r\n", 400, NO_HTTP, id="a method in small letters"),
    pytest.param(b"GET /page\r\n\r\n", 505, "HTTP/0.9 is not supported; use HTTP/1.1", id="HTTP/0.9"),
    pytest.param(b"GET /page HTTP/2.0\r\nHost: x\r\n\r\n", 505, "HTTP/2.0 is not supported", id="HTTP/2.0"),
    pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "", id="HTTP/2"),
    pytest.param(b"GET /page HTTP/1.2\r\nHost: x\r\n\r\n", 400, NO_HTTP, id="HTTP/1.2"),
    pytest.param(b"GET /page HTTP/1.1\r\n\r\n", 400, "the request must have exactly one Host header", id="no Host"),
    pytest.param(get("/page", "Host: y"), 400, "the request must have exactly one Host header", id="two Hosts"),
    pytest.param(get("/page", " folded"), 400, NO_HTTP, id="a folded header"),
    pytest.param(get("/page", "no colon"), 400, NO_HTTP, id="no colon"),
    pytest.param(get("/page", "a\0b: c"), 400, NO_HTTP, id="a null in a name"),
    pytest.param(get("/page", "a: b\0c"), 400, NO_HTTP, id="a null in a value"),
    pytest.param(b"GET /page HTTP/1.1\nHost: x\n\n\r\n\r\n", 400, NO_HTTP, id="LF alone in the head"),
    pytest.param(b"GET /page HTTP/1.1\r\nHost: x\r\na: b\rc: d\r\n\r\n", 400, NO_HTTP, id="CR alone in the head"),
    pytest.param(b"GET /pa ge HTTP/1.1\r\nHost: x\r\n\r\n", 400, NO_HTTP, id="a blank in the path"),
    pytest.param(
        post("/echo", b"x", "Content-Encoding: gzip"), 415, "compressed bodies are not supported; send", id="compressed"
    ),
    pytest.param(
        post("/echo", b"x", "Expect: 200-ok"), 417, "the only supported expectation is 100-continue", id="expectation"
    ),
]


@pytest.mark.parametrize(("request_bytes", "status", "words"), BAD)
async def test_what_is_not_clear_is_refused_in_a_line_and_ends_the_connection(request_bytes, status, words):
    async with serving() as server, server.call() as caller:
        # What would be a request of its own if the bad one ended somewhere else.
        answer = await caller.ask(request_bytes + get())
        line = answer.body.decode()

        assert (status, "close") == (answer.status, answer.headers["connection"])
        assert line.startswith(words)
        assert line.endswith("\n")
        assert 1 == len(line.splitlines())
        assert b"" == await caller.rest()
        assert ([BAD_REQUEST], []) == (server.notes.refusals, server.notes.answers)


async def test_identity_is_no_encoding():
    async with serving() as server, server.call() as caller:
        assert 200 == (await caller.ask(post("/echo", b"x", "Content-Encoding: identity"))).status


async def test_a_refusal_reaches_a_caller_that_goes_on_sending():
    """Closing with bytes unread would reset the connection, and with it the words on their way."""
    async with serving() as server, server.call() as caller:
        await caller.send(head("POST /echo HTTP/1.1", "Host: x", "Content-Length: 999999999") + b"x" * 5_000_000)

        assert 413 == (await caller.answer()).status
        assert [TOO_LARGE] == server.notes.refusals


async def test_a_refusal_costs_nobody_else_anything():
    async with serving() as server, server.call() as good, server.call() as bad:
        await good.send(post("/echo", b"body")[:-2])
        await bad.ask(b"hello\r\n\r\n")

        assert b"body" == (await good.ask(b"dy")).body
