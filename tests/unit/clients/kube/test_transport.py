"""Requests and streams, against a server on the loopback that may do anything."""

import asyncio
import gzip
import json
import socket
import traceback

import pytest

from lamina.clients.kube import streams
from lamina.clients.kube.errors import AnswerTooLongError, ApiError, SilenceError, UnreachableError
from lamina.clients.kube.transport import KubeClient
from tests.unit.clients.kube.loopback import Answer, Asked, Loopback, Stub
from tests.unit.clients.kube.model_cluster import status
from tests.unit.clients.kube.visiting import Visit, never, read, saying

# ------------------------------------------------------------------------------------------------------------ requests


async def test_a_request_says_what_it_wants_and_who_asks():
    async with Visit(saying(b"{}"), prefix="/k8s/clusters/c1") as visit:
        found = await visit.client.request(
            "PATCH",
            "/api/v1/namespaces/d/pods/a%2Fb/status",
            query={"fieldManager": "lämina", "fieldSelector": "status.phase!=Failed,a=b"},
            body=b"[1]",
            content_type="application/merge-patch+json",
        )
        [asked] = visit.server.asked

    assert b"{}" == found
    assert ("PATCH", "/k8s/clusters/c1/api/v1/namespaces/d/pods/a%2Fb/status") == (asked.method, asked.path)
    assert {"fieldManager": "lämina", "fieldSelector": "status.phase!=Failed,a=b"} == asked.query
    assert b"[1]" == asked.body
    assert "application/merge-patch+json" == asked.headers["content-type"]
    assert "application/json" == asked.headers["accept"]
    assert "identity" == asked.headers["accept-encoding"]
    assert "Bearer first" == asked.headers["authorization"]
    assert "lamina-test/1" == asked.headers["user-agent"]


async def test_a_connection_serves_many_requests():
    async with Visit(saying(b"{}")) as visit:
        for _ in range(20):
            await visit.client.request("POST", "/x", body=b"{}")

        assert (20, 1) == (len(visit.server.asked), visit.server.connections)


async def test_a_connection_the_server_will_not_use_again_is_hung_up():
    """Whether or not the server does so itself."""
    async with Visit(saying(b"{}", Connection="close")) as visit:
        await visit.client.request("GET", "/x")
        await visit.client.request("GET", "/x")
        calls = visit.client._pool

        assert calls is not None
        assert (2, 0) == (visit.server.connections, len(calls._idle))
        assert not calls._busy


async def test_no_more_connections_are_open_than_allowed():
    async def slowly(asked: Asked, reply: Answer) -> None:
        while server.connections < 3:
            await asyncio.sleep(0.001)
        await reply.reply(b"{}")

    async with Loopback(slowly) as server:
        client = KubeClient(Stub(server.url), connections=3)
        await asyncio.gather(*(client.request("GET", "/x") for _ in range(30)))
        await client.close()

    assert 3 == server.connections


async def test_streams_do_not_take_connections_away_from_requests():
    async def answer(asked: Asked, reply: Answer) -> None:
        if asked.watches:
            await reply.begin()
            await asyncio.sleep(60)
        await reply.reply(b"{}")

    async with Loopback(answer) as server:
        client = KubeClient(Stub(server.url), connections=1)
        async with (
            client.stream("/a", query={"watch": "true"}, read_timeout=60),
            client.stream("/b", query={"watch": "true"}, read_timeout=60),
        ):
            assert b"{}" == await client.request("GET", "/x")
        await client.close()


@pytest.mark.parametrize("again", [True, False], ids=["accepted the second time", "refused again"])
@pytest.mark.parametrize("streamed", [True, False], ids=["stream", "request"])
async def test_after_a_401_new_credentials_are_tried_once(again, streamed):
    async def answer(asked: Asked, reply: Answer) -> None:
        if again and asked.headers["authorization"] == "Bearer second":
            await reply.reply(b"{}")
        else:
            await reply.reply(json.dumps(status(401, "Unauthorized")).encode(), "401 Unauthorized")

    async with Visit(answer) as visit:
        asking = read(visit.client) if streamed else visit.client.request("GET", "/x")
        if again:
            assert await asking in (b"{}", [b"{}"])
        else:
            with pytest.raises(ApiError) as raised:
                await asking
            assert 401 == raised.value.status
        assert ["Bearer first"] == visit.access.refusals, "only what was used is refused"
        assert 2 == len(visit.server.asked)


@pytest.mark.parametrize("streamed", [True, False], ids=["stream", "request"])
@pytest.mark.parametrize("code", ["400 Bad Request", "403 Forbidden", "404 Not Found", "409 Conflict", "500 Oh"])
async def test_any_other_answer_is_raised_and_not_tried_again(code, streamed):
    body = json.dumps(status(int(code[:3]), "Because", "of this")).encode()
    async with Visit(saying(body, code, Retry_After="4")) as visit:
        with pytest.raises(ApiError) as raised:
            await (read(visit.client) if streamed else visit.client.request("GET", "/x"))
        assert 1 == len(visit.server.asked)

    assert (int(code[:3]), "Because", 4.0) == (raised.value.status, raised.value.reason, raised.value.retry_after)
    assert "of this" in str(raised.value)


async def test_a_refusal_that_comes_in_pieces_is_read_to_its_end():
    body = json.dumps(status(403, "Forbidden", "because of this")).encode()

    async def answer(asked: Asked, reply: Answer) -> None:
        await reply.begin("403 Forbidden")
        for start in range(0, len(body), 40):
            await reply.chunk(body[start : start + 40])
            await asyncio.sleep(0)
        await reply.finish()

    async with Visit(answer) as visit:
        with pytest.raises(ApiError, match="403 Forbidden: because of this"):
            await visit.client.request("GET", "/x")


async def test_a_redirect_is_not_followed():
    async with Visit(saying(b"", "302 Found", Location="http://127.0.0.1:1/steal")) as visit:
        with pytest.raises(ApiError) as raised:
            await visit.client.request("GET", "/x")
        assert 1 == len(visit.server.asked)

    assert 302 == raised.value.status


@pytest.mark.parametrize("declared", [True, False], ids=["length declared", "length unknown"])
async def test_an_answer_that_is_too_long_is_not_read(declared):
    async def answer(asked: Asked, reply: Answer) -> None:
        if declared:
            await reply.reply(b"x" * 2_000_000)
            return
        await reply.begin()
        while True:
            await reply.chunk(b"x" * 10_000)

    async with Visit(answer) as visit:
        with pytest.raises(AnswerTooLongError, match="1000000"):
            await visit.client.request("GET", "/x", limit=1_000_000)


@pytest.mark.parametrize("declared", [True, False], ids=["length declared", "length unknown"])
async def test_an_answer_of_exactly_the_limit_is_read(declared):
    async def answer(asked: Asked, reply: Answer) -> None:
        if declared:
            await reply.reply(b"x" * 300_000)
        else:
            await reply.begin()
            await reply.chunk(b"x" * 300_000)
            await reply.finish()

    async with Visit(answer) as visit:
        assert 300_000 == len(await visit.client.request("GET", "/x", limit=300_000))


async def test_a_refusal_without_end_is_cut():
    async def answer(asked: Asked, reply: Answer) -> None:
        await reply.begin("500 Oh")
        while True:
            await reply.chunk(b"x" * 10_000)

    async with Visit(answer) as visit:
        with pytest.raises(ApiError) as raised:
            await visit.client.request("GET", "/x")

    assert streams.ERROR_LIMIT > len(raised.value.message)


@pytest.mark.parametrize("streamed", [True, False], ids=["stream", "request"])
async def test_a_compressed_answer_is_refused(streamed):
    async with Visit(saying(gzip.compress(b"x" * 10_000), Content_Encoding="gzip")) as visit:
        with pytest.raises(ApiError, match="unexpected compression: gzip"):
            await (read(visit.client) if streamed else visit.client.request("GET", "/x"))


# ---------------------------------------------------------------------------------------------------------- no answer


async def refused(asked: Asked, reply: Answer) -> None:
    reply.reset()


async def half(asked: Asked, reply: Answer) -> None:
    await reply.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")


async def nonsense(asked: Asked, reply: Answer) -> None:
    await reply.send(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        pytest.param(refused, "", id="reset"),
        pytest.param(half, "in the middle of the response", id="half an answer"),
        pytest.param(nonsense, "not HTTP", id="another protocol"),
        pytest.param(never, "no response within 0.2 seconds", id="silence"),
    ],
)
async def test_what_the_network_does_is_said_in_one_line_without_credentials(handler, words):
    query = {"secret": "cana" + "ry"}
    async with Visit(handler) as visit:
        with pytest.raises(UnreachableError) as raised:
            await visit.client.request("GET", "/x", query=query, timeout=0.2)

    told = "".join(traceback.format_exception(raised.value))
    assert str(raised.value).startswith("GET /x: ")
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)
    assert "Bearer" not in told
    assert "canary" not in told


@pytest.mark.parametrize("streamed", [True, False], ids=["stream", "request"])
async def test_a_connection_that_breaks_is_not_tried_again(streamed):
    async with Visit(refused) as visit:
        with pytest.raises(UnreachableError):
            await (read(visit.client) if streamed else visit.client.request("GET", "/x"))

        assert 1 == len(visit.server.asked)


@pytest.mark.parametrize("streamed", [True, False], ids=["stream", "request"])
async def test_a_server_that_is_not_there_is_unreachable(streamed):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        client = KubeClient(Stub(f"http://127.0.0.1:{free.getsockname()[1]}"))
    with pytest.raises(UnreachableError, match="is the server running"):
        await (read(client) if streamed else client.request("GET", "/x"))
    await client.close()


async def test_a_token_that_is_no_header_is_not_shown():
    async with Visit(saying(b"{}")) as visit:
        visit.access.token = "canary\r\nX-Other: 1"
        with pytest.raises(UnreachableError) as raised:
            await visit.client.request("GET", "/x")
        assert [] == visit.server.asked

    assert "canary" not in "".join(traceback.format_exception(raised.value))


async def test_proxies_of_the_environment_are_not_used(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    async with Visit(saying(b"{}")) as visit:
        assert b"{}" == await visit.client.request("GET", "/x")


# ------------------------------------------------------------------------------------------------------------- streams


async def test_a_stream_brings_what_comes_when_it_comes():
    more = asyncio.Event()

    async def answer(asked: Asked, reply: Answer) -> None:
        await reply.begin()
        await reply.chunk(b"one\n")
        await more.wait()
        await reply.chunk(b"two\n")
        await reply.finish()

    async with (
        Visit(answer) as visit,
        visit.client.stream("/w", query={"watch": "true"}, read_timeout=10) as chunks,
    ):
        assert b"one\n" == await anext(chunks)
        more.set()
        assert [b"two\n"] == [chunk async for chunk in chunks]


async def test_a_stream_that_falls_silent_is_told_from_one_that_breaks():
    async def silent(asked: Asked, reply: Answer) -> None:
        await reply.begin()
        await reply.chunk(b"one\n")
        await asyncio.sleep(60)

    async def cut(asked: Asked, reply: Answer) -> None:
        await reply.begin()
        await reply.chunk(b"one\n")
        reply.reset()

    async def ended(asked: Asked, reply: Answer) -> None:
        await reply.begin()
        await reply.chunk(b"one\n")  # and the connection is closed without the end of the answer

    async with Visit(silent) as visit:
        with pytest.raises(SilenceError, match=r"no data for 0\.1 seconds"):
            await read(visit.client, 0.1)
    for handler in (cut, ended):
        async with Visit(handler) as visit:
            with pytest.raises(UnreachableError) as raised:
                await read(visit.client)
        assert not isinstance(raised.value, SilenceError)


async def test_a_stream_that_does_not_begin_is_unreachable():
    async with Visit(never) as visit:
        with pytest.raises(UnreachableError) as raised:
            await read(visit.client, 0.1)

    assert not isinstance(raised.value, SilenceError)


async def test_a_slow_reader_holds_the_server_up_and_not_the_memory():
    sent = 0

    async def answer(asked: Asked, reply: Answer) -> None:
        nonlocal sent
        await reply.begin()
        while True:
            await reply.chunk(b"x" * 65_536)
            sent += 65_536

    async with Visit(answer) as visit, visit.client.stream("/w", query={}, read_timeout=10) as chunks:
        await anext(chunks)
        before = -1
        while before < sent < 32 * 1024**2:
            before = sent
            for _ in range(200):
                await asyncio.sleep(0.001)

        # Buffers of two sockets and of the reader; a server that was not held up would have sent hundreds of megabytes.
        assert before == sent
        assert 32 * 1024**2 > sent


async def test_a_stream_that_is_left_is_closed():
    gone = asyncio.Event()

    async def answer(asked: Asked, reply: Answer) -> None:
        await reply.begin()
        try:
            while True:
                await reply.chunk(b"x\n")
                await asyncio.sleep(0.005)
        except ConnectionError:
            gone.set()
            raise

    async with Visit(answer) as visit:
        async with visit.client.stream("/w", query={}, read_timeout=10) as chunks:
            await anext(chunks)
        async with asyncio.timeout(60):
            await gone.wait()


async def test_a_client_that_was_never_used_can_be_closed():
    client = KubeClient(Stub("http://127.0.0.1:1"))
    await client.close()
    await client.close()
