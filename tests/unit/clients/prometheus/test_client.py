"""Questions to a server on the loopback that may do anything: answers are read, everything else is one line."""

import asyncio
import gzip
import json
import socket
import ssl

import pytest
import trustme

from lamina.clients.prometheus import client, query_results
from lamina.clients.prometheus.client import PrometheusClient
from lamina.clients.prometheus.errors import (
    BAD_QUERY,
    NOT_USABLE,
    REFUSED,
    TOO_MUCH,
    UNREACHABLE,
    PrometheusError,
    one_line,
)
from lamina.clients.prometheus.query_results import InstantSample, RangeSeries
from lamina.clients.prometheus.server import PrometheusServer
from tests.unit.clients.kube.loopback import Answer, Asked, Handler, Loopback


def a_vector(*values, at=1000.5, **more) -> bytes:
    result = [{"metric": {"instance": f"i{n}"}, "value": [at, value]} for n, value in enumerate(values)]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}, **more}).encode()


def saying(body: bytes, status: str = "200 OK", **headers: str) -> Handler:
    async def answer(asked: Asked, reply: Answer) -> None:
        await reply.reply(body, status, {name.replace("_", "-"): value for name, value in headers.items()})

    return answer


async def ask(handler: Handler, question="up", *, context=None, timeout=10.0, **server):
    async with Loopback(handler, context) as loopback:
        asker = PrometheusClient(PrometheusServer(url=loopback.url + "/prefix", **server), timeout=timeout)
        try:
            return await asker.query(question), loopback, asker
        finally:
            await asker.close()


async def refused(handler: Handler, **more) -> PrometheusError:
    with pytest.raises(PrometheusError) as raised:
        await ask(handler, **more)
    words = str(raised.value)
    assert words.startswith("Prometheus at 127.0.0.1:")
    assert 1 == len(words.splitlines())
    return raised.value


async def test_an_instant_query_gives_one_number_for_each_series(tmp_path):
    (tmp_path / "token").write_text("t1")
    answer, loopback, _ = await ask(saying(a_vector("1.5", "NaN")), 'up{a="b"} + 1', token_file=tmp_path / "token")
    first, second = answer.series
    asked = loopback.asked[0]

    assert InstantSample({"instance": "i0"}, 1000.5, 1.5) == first
    assert second.value != second.value
    assert ("GET", "/prefix/api/v1/query") == (asked.method, asked.path)
    assert {"query": 'up{a="b"} + 1', "timeout": "10"} == asked.query
    assert ("Bearer t1", "identity") == (asked.headers["authorization"], asked.headers["accept-encoding"])


async def test_a_moment_can_be_named_and_warnings_are_kept():
    async with Loopback(saying(a_vector(warnings=["half of it"] * 20))) as loopback:
        asker = PrometheusClient(PrometheusServer(url=loopback.url))
        answer = await asker.query("up", at=1234.5678)
        await asker.close()

    assert ("1234.568", (), 8) == (loopback.asked[0].query["time"], answer.series, len(answer.warnings))


@pytest.mark.parametrize(("timeout", "told"), [(2.5, "2.5"), (10.0, "10"), (0.25, "0.25")])
async def test_a_server_is_told_the_deadline_in_seconds_which_may_have_a_fraction(timeout, told):
    _, loopback, _ = await ask(saying(a_vector("1")), timeout=timeout)

    assert told == loopback.asked[0].query["timeout"]


async def test_a_scalar_is_a_number_of_nobody():
    body = json.dumps({"status": "success", "data": {"resultType": "scalar", "result": [1.5, "2"]}}).encode()

    assert (InstantSample({}, 1.5, 2.0),) == (await ask(saying(body)))[0].series


async def test_a_range_query_gives_numbers_over_time():
    result = [{"metric": {"a": "b"}, "values": [[1, "2"], [3, "+Inf"]]}]
    body = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()
    async with Loopback(saying(body)) as loopback:
        asker = PrometheusClient(PrometheusServer(url=loopback.url))
        answer = await asker.query_range("up", 1.0, 3.0, 2.0)
        with pytest.raises(ValueError, match="at most 11000"):
            await asker.query_range("up", 0.0, 100_000.0, 1.0)
        await asker.close()

    assert (RangeSeries({"a": "b"}, ((1.0, 2.0), (3.0, float("inf")))),) == answer.curves
    assert {"query": "up", "start": "1.000", "end": "3.000", "step": "2", "timeout": "10"} == loopback.asked[0].query


def a_matrix(*lengths: int) -> bytes:
    result = [{"metric": {}, "values": [[n, "1"] for n in range(length)]} for length in lengths]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param(a_vector("1"), NOT_USABLE, id="another type"),
        pytest.param(a_matrix(1).replace(b'"1"', b'"x"'), NOT_USABLE, id="no number"),
        pytest.param(a_matrix(1).replace(b"{}", b"7"), NOT_USABLE, id="no labels"),
        pytest.param(a_matrix(6, 5), TOO_MUCH, id="too many numbers"),
        pytest.param(a_matrix(1, 1, 1), TOO_MUCH, id="too many series"),
    ],
)
async def test_a_range_that_cannot_be_used_is_one_line(monkeypatch, body, reason):
    monkeypatch.setattr(query_results, "MOST_SERIES", 2)
    monkeypatch.setattr(query_results, "MOST_SAMPLES", 10)
    async with Loopback(saying(body)) as loopback:
        asker = PrometheusClient(PrometheusServer(url=loopback.url))
        with pytest.raises(PrometheusError) as raised:
            await asker.query_range("up", 0.0, 10.0, 1.0)
        await asker.close()

    assert (reason, 1) == (raised.value.reason, len(str(raised.value).splitlines()))
    assert {"asked": 1, reason: 1} == asker.counts


async def test_a_long_range_is_read_in_slices(monkeypatch):
    """
    Whoever else has something to do gets a chance after every slice; here every series is one.
    """
    monkeypatch.setattr(client, "SLICE", -1.0)
    body = a_matrix(*[1] * 50)
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def at_once(*_: object) -> bytes:
        return body

    asker = PrometheusClient(PrometheusServer(url="http://127.0.0.1:1"))
    monkeypatch.setattr(asker, "_exchange", at_once)
    rival = asyncio.create_task(others())
    await asker.query_range("up", 0.0, 30.0, 1.0)
    rival.cancel()

    assert turns >= 50


ERROR = json.dumps({"status": "error", "errorType": "bad_data", "error": "parse\nerror " + "x" * 900}).encode()


@pytest.mark.parametrize(
    ("handler", "reason", "words"),
    [
        pytest.param(
            saying(ERROR, "400 Bad Request"), BAD_QUERY, "rejects the query: bad_data: parse error", id="query"
        ),
        pytest.param(saying(b"", "401 Unauthorized"), REFUSED, "rejects the credentials (401)", id="unknown"),
        pytest.param(saying(b"", "403 Forbidden"), REFUSED, "rejects the credentials (403)", id="forbidden"),
        pytest.param(saying(b"<html>", "404 Not Found"), NOT_USABLE, "no Prometheus API there (404)", id="elsewhere"),
        pytest.param(saying(b"x" * 90_000, "502 Bad Gateway"), UNREACHABLE, "returned HTTP 502", id="proxy"),
        pytest.param(saying(b"", "302 Found", Location="http://a/"), REFUSED, "redirects (302)", id="redirect"),
        pytest.param(saying(b"<html>"), NOT_USABLE, "not a query result", id="a page"),
        pytest.param(saying(b"[" * 100_000), NOT_USABLE, "not a query result", id="deep"),
        pytest.param(saying(b'{"status":"success"}'), NOT_USABLE, "has no result", id="no result"),
        pytest.param(saying(a_vector("one")), NOT_USABLE, "not a query result", id="no number"),
        pytest.param(saying(a_vector("1" * 100)), NOT_USABLE, "a number is too long", id="a long number"),
        pytest.param(
            saying(gzip.compress(b"{}"), Content_Encoding="gzip"),
            NOT_USABLE,
            "unexpected compression: gzip",
            id="compressed",
        ),
        pytest.param(
            saying(b'{"status":"success","data":{"resultType":"matrix","result":[]}}'),
            NOT_USABLE,
            "expected a vector or a scalar, got a matrix",
            id="another type",
        ),
    ],
)
async def test_what_is_no_answer_is_one_line(handler, reason, words):
    error = await refused(handler)

    assert reason == error.reason
    assert words in str(error)
    assert len(str(error)) < 450


async def test_nobody_follows_a_redirect_with_a_token(tmp_path):
    (tmp_path / "token").write_text("canary")
    async with Loopback(saying(a_vector("1"))) as other:
        location = f"{other.url}/api/v1/query"
        error = await refused(saying(b"", "307 Moved", Location=location), token_file=tmp_path / "token")

    assert [] == other.asked
    assert "canary" not in repr(error) + str(error)


async def test_more_bytes_than_are_read_end_the_connection(monkeypatch):
    monkeypatch.setattr(client, "LIMIT", 10_000)

    async def endless(asked: Asked, reply: Answer) -> None:
        await reply.begin()
        for _ in range(10_000):
            await reply.chunk(b" " * 1000)

    assert TOO_MUCH == (await refused(endless)).reason
    assert TOO_MUCH == (await refused(saying(b" " * 10_001))).reason


async def test_more_series_than_are_looked_at_are_refused(monkeypatch):
    monkeypatch.setattr(query_results, "MOST_SERIES", 2)

    assert TOO_MUCH == (await refused(saying(a_vector("1", "2", "3")))).reason


async def test_a_server_that_says_nothing_or_drips_is_given_up_in_time():
    async def silent(asked: Asked, reply: Answer) -> None:
        await asyncio.sleep(60)

    async def drips(asked: Asked, reply: Answer) -> None:
        await reply.begin()
        while True:
            await reply.chunk(b" ")
            await asyncio.sleep(0.01)

    for handler in (silent, drips):
        error = await refused(handler, timeout=0.3)
        assert (UNREACHABLE, True) == (error.reason, "no response within 0.3 seconds" in str(error))


async def test_a_connection_that_breaks_is_one_line():
    async def breaks(asked: Asked, reply: Answer) -> None:
        await reply.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
        reply.reset()

    async def nonsense(asked: Asked, reply: Answer) -> None:
        await reply.send(b"\x00\x01 nonsense\r\n\r\n")

    for handler in (breaks, nonsense):
        assert UNREACHABLE == (await refused(handler)).reason


async def test_nobody_there_is_one_line():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        asker = PrometheusClient(PrometheusServer(url=f"http://127.0.0.1:{probe.getsockname()[1]}"))
    with pytest.raises(PrometheusError, match="connection failed; is it running"):
        await asker.query("up")
    await asker.close()
    assert {"asked": 1, UNREACHABLE: 1} == asker.counts


async def test_a_query_that_no_proxy_would_take_is_not_sent():
    asker = PrometheusClient(PrometheusServer(url="http://127.0.0.1:1"))
    with pytest.raises(PrometheusError, match="use a recording rule"):
        await asker.query("x" * 5000)


async def test_a_server_is_believed_by_its_authority_only(tmp_path):
    authority, stranger = trustme.CA(), trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    for name, one in (("right", authority), ("wrong", stranger)):
        one.cert_pem.write_to_path(str(tmp_path / name))

    answer, _, _ = await ask(saying(a_vector("1")), context=context, ca_file=tmp_path / "right")
    assert 1 == len(answer.series)
    error = await refused(saying(a_vector("1")), context=context, ca_file=tmp_path / "wrong")
    assert "TLS certificate rejected" in str(error)


def test_words_of_a_stranger_stay_on_one_line():
    assert "a b c" == one_line("a\nb\x1b c")
    assert 300 == len(one_line("x" * 1000))
