"""The endpoints of a service: probes for every client, debug endpoints for clients on the same machine."""

import asyncio
import json
from collections.abc import Awaitable

import pytest

from lamina.model.errors import InputError
from lamina.serving.endpoints import LOOPBACK_ONLY, ServiceEndpoints
from lamina.serving.request import HttpRequest
from lamina.serving.response import HttpResponse, text_response
from tests.unit.serving.visiting import PATIENCE, get, serving

NEAR = {"peer": "127.0.0.1", "headers": {"host": "127.0.0.1:10259"}}
DEBUG = ("/debug/dump", "/debug/slow", "/debug/decisions/default/p1")


async def slow(_: str) -> HttpResponse:
    await asyncio.sleep(0)
    return text_response(200, "slow")


async def broken(_: str) -> HttpResponse:
    await asyncio.sleep(0)
    raise InputError.one("the API server", "no quorum")


def endpoints(*unsynced: str) -> ServiceEndpoints:
    def unusable(_: str) -> HttpResponse:
        raise InputError.one("here", "no dump")

    return ServiceEndpoints(
        unsynced=lambda: unsynced,
        exposition=lambda: b"metric 1.0\n",
        about={"agents": ["a", "b"]},
        debug={
            "/debug/dump": lambda rest: text_response(200, f"dump{rest}"),
            "/debug/decisions/": lambda rest: text_response(200, f"about {rest}"),
            "/debug/slow": slow,
            "/debug/broken": broken,
            "/debug/unusable": unusable,
        },
    )


def answered(path: str, *unsynced: str, method: str = "GET", **more) -> HttpResponse:
    async def waited() -> HttpResponse:
        result = endpoints(*unsynced)(HttpRequest(method, path, **more))
        if isinstance(result, Awaitable):
            result = await result
        assert isinstance(result, HttpResponse)
        return result

    return asyncio.run(waited())


def told(path: str, *unsynced: str, **more) -> tuple[int, str]:
    response = answered(path, *unsynced, **more)
    return response.status, b"".join(response.pieces).decode()


# --------------------------------------------------------------------------------------------------------------- probes


@pytest.mark.parametrize("path", ["/livez", "/healthz"])
def test_a_process_that_answers_is_alive(path):
    assert (200, "ok\n") == told(path, "Pod")


def test_a_service_is_ready_when_everything_is_synced():
    assert (200, "ok\n") == told("/readyz")
    assert (503, "not everything was seen yet: Pod, Node\n") == told("/readyz", "Pod", "Node")


def test_the_version_has_the_fields_that_the_service_adds():
    status, text = told("/version")

    assert (200, ["a", "b"], True) == (status, json.loads(text)["agents"], bool(json.loads(text)["version"]))


def test_metrics_are_prometheus_text():
    response = answered("/metrics")

    assert "text/plain; version=0.0.4; charset=utf-8" == response.content_type
    assert b"metric 1.0\n" == b"".join(response.pieces)


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics", "/version"])
def test_probes_and_metrics_are_for_every_client(path):
    assert 200 == told(path, peer="10.0.0.7", headers={"host": "10.0.0.1:10259"})[0]


# ------------------------------------------------------------------------------------------------------ debug endpoints


@pytest.mark.parametrize(
    ("path", "text"),
    [
        pytest.param("/debug/dump", "dump\n", id="at once"),
        pytest.param("/debug/slow", "slow\n", id="later"),
        pytest.param("/debug/decisions/a/b", "about a/b\n", id="with the rest of the path"),
        pytest.param("/debug/decisions/a/%62%20c", "about a/b c\n", id="decoded"),
        pytest.param("/%64ebug/dump", "dump\n", id="an encoded name"),
    ],
)
def test_a_debug_endpoint_is_found_by_its_path(path, text):
    assert (200, text) == told(path, **NEAR)


@pytest.mark.parametrize("path", ["/debug/", "/debug/dum", "/debug/dump/", "/debug/dump/x", "/debug/decisions"])
def test_other_debug_endpoints_are_not_there(path):
    status, text = told(path, **NEAR)

    assert (404, True) == (status, text.startswith("not found; available: /debug/broken, /debug/decisions/, "))


@pytest.mark.parametrize("path", ["/debug/dump", "/debug/decisions/a/b", "/debug/slow"])
def test_debug_endpoints_are_only_read(path):
    response = answered(path, method="POST", **NEAR)

    assert (405, (("Allow", "GET, HEAD"),)) == (response.status, response.headers)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        pytest.param("/debug/unusable", "here: no dump\n", id="at once"),
        pytest.param("/debug/broken", "the API server: no quorum\n", id="later"),
    ],
)
def test_a_failure_of_another_system_is_told_in_a_line(path, text):
    assert (502, text) == told(path, **NEAR)


def test_a_service_without_debug_endpoints_says_which_endpoints_it_has():
    plain = ServiceEndpoints(unsynced=list, exposition=bytes)
    response = plain(HttpRequest("GET", "/debug/dump", peer="10.0.0.7"))

    assert isinstance(response, HttpResponse)
    assert (404, True) == (response.status, b"GET /livez, GET /metrics, " in response.pieces[0])


# ------------------------------------------------------------------------------------------------- clients that may look


@pytest.mark.parametrize("path", DEBUG)
@pytest.mark.parametrize(
    ("peer", "host"),
    [
        pytest.param("127.0.0.1", "127.0.0.1:10259", id="by number"),
        pytest.param("127.0.0.1", "localhost:10259", id="by name"),
        pytest.param("127.0.0.1", "localhost", id="without port"),
        pytest.param("127.8.8.8", "127.0.0.1:80", id="all of 127/8"),
        pytest.param("::1", "[::1]:10259", id="IPv6"),
        pytest.param("::1", "[::1]", id="IPv6 without port"),
        pytest.param("::ffff:127.0.0.1", "127.0.0.1:10259", id="IPv4 at a socket for both"),
    ],
)
def test_clients_on_this_machine_may_look(path, peer, host):
    assert 200 == told(path, peer=peer, headers={"host": host})[0]


@pytest.mark.parametrize("path", [*DEBUG, "/%64ebug/dump", "/debug/nothing"])
@pytest.mark.parametrize(
    ("peer", "host"),
    [
        pytest.param("10.0.0.7", "127.0.0.1:10259", id="from elsewhere"),
        pytest.param("10.0.0.7", "localhost", id="from elsewhere, by name"),
        pytest.param("fe80::1", "[::1]:10259", id="from elsewhere, IPv6"),
        pytest.param("::ffff:10.0.0.7", "localhost", id="from elsewhere, at a socket for both"),
        pytest.param("127.0.0.1", "evil.example", id="a name that was made to mean us"),
        pytest.param("127.0.0.1", "evil.example:10259", id="such a name with a port"),
        pytest.param("127.0.0.1", "127.0.0.1.evil.example", id="a name that looks like us"),
        pytest.param("127.0.0.1", "localhost.evil.example:10259", id="a name that begins like us"),
        pytest.param("127.0.0.1", "10.0.0.7:10259", id="another number"),
        pytest.param("127.0.0.1", "", id="an empty name"),
        pytest.param("127.0.0.1", "[]:1", id="brackets"),
        pytest.param("127.0.0.1", "evil.example@127.0.0.1", id="with a user"),
        pytest.param("127.0.0.1", "localhost, evil.example", id="two names"),
        pytest.param("", "localhost", id="from an unknown address"),
    ],
)
def test_other_clients_may_not(path, peer, host):
    assert (403, f"{LOOPBACK_ONLY}\n") == told(path, peer=peer, headers={"host": host})


def test_a_request_without_a_host_may_not():
    assert 403 == told("/debug/dump", peer="127.0.0.1")[0]


@pytest.mark.parametrize("header", ["x-forwarded-for", "x-real-ip", "forwarded"])
def test_a_client_that_only_says_to_be_near_is_not_believed(header):
    assert 403 == told("/debug/dump", peer="10.0.0.7", headers={"host": "localhost", header: "127.0.0.1"})[0]


@pytest.mark.parametrize(
    "target",
    [
        "//debug/dump",
        "/./debug/dump",
        "/x/../debug/dump",
        "/%2fdebug/dump",
        "/%64ebug/dump",
        "/debug//dump",
        "/debug;x/dump",
        "http://evil.example/debug/dump",
    ],
)
async def test_there_is_no_other_way_of_writing_an_address_that_gets_round_the_rule(target):
    async with serving(handler=endpoints()) as server, server.call() as caller:
        await caller.send(f"GET {target} HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n".encode())
        answer = await caller.rest()

    assert answer.split()[1] in (b"400", b"403", b"404")
    assert b"dump\n" not in answer


async def test_head_of_a_debug_endpoint_has_no_body():
    async with serving(handler=endpoints()) as server, server.call() as caller:
        await caller.send(get("/debug/slow", method="HEAD").replace(b"Host: x", b"Host: localhost"))
        async with asyncio.timeout(PATIENCE):
            assert "5" == (await caller.answer(bodiless=True)).headers["content-length"]
