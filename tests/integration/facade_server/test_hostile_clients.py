"""Clients that break the rules: they get a Status object or are cut off, and other clients notice nothing."""

import contextlib
import json
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.simulator.facade.api_messages import LARGEST_BODY
from lamina.testing import ApiCluster, apiserver
from tests.integration.facade_server.raw_client import (
    POD,
    PODS,
    ask,
    connect,
    open_watch,
    pod,
    read_answer,
    read_until,
    send_raw,
)

pytestmark = pytest.mark.realtime

FEW_WATCHES = 2_000
MANY_WATCHES = 10_000
MOST_MEMORY_KIB = 1024 * 1024
"""Of a server with 10,000 watches: 100 KiB for each, of which 64 KiB are its buffer for requests."""
PROTOBUF = "application/vnd.kubernetes.protobuf"


@pytest.fixture
def cluster() -> Iterator[ApiCluster]:
    with apiserver(nodes=2) as found:
        yield found


def until(condition) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def assert_status(answer: tuple[int, object], code: int, reason: str) -> None:
    status, found = answer
    assert (code, "Status", "v1", "Failure", reason, code) == (
        status,
        found["kind"],
        found["apiVersion"],
        found["status"],
        found["reason"],
        found["code"],
    )
    assert found["message"]


# -- bodies ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "headers", "code", "reason"),
    [
        pytest.param(b"{", {}, 400, "BadRequest", id="cut JSON"),
        pytest.param(b"[1]", {}, 400, "BadRequest", id="JSON that is no object"),
        pytest.param(b'{"a":' * 5_000 + b"1" + b"}" * 5_000, {}, 400, "BadRequest", id="deep JSON"),
        pytest.param(b"\xff\xfe", {}, 400, "BadRequest", id="no UTF-8"),
        pytest.param(b"", {}, 400, "BadRequest", id="empty"),
        pytest.param(b"k8s\x00\xff\xff\xff", {"Content-Type": PROTOBUF}, 400, "BadRequest", id="cut protobuf"),
        pytest.param(b"nothing", {"Content-Type": PROTOBUF}, 400, "BadRequest", id="protobuf without its mark"),
        pytest.param(b"x", {"Content-Type": "text/csv"}, 415, "UnsupportedMediaType", id="unknown media type"),
        pytest.param(b" " * (LARGEST_BODY + 1), {}, 413, "RequestEntityTooLarge", id="a little too large"),
    ],
)
def test_a_bad_body_gets_a_status_object(cluster, body, headers, code, reason):
    assert_status(ask(cluster.url, "POST", PODS, body, headers), code, reason)
    assert 200 == ask(cluster.url, "GET", PODS)[0]


@pytest.mark.parametrize(
    ("head", "code", "reason"),
    [
        pytest.param("Content-Length: 99999999999", 413, "RequestEntityTooLarge", id="a huge length"),
        pytest.param("Content-Length: -1", 400, "BadRequest", id="a negative length"),
        pytest.param("Transfer-Encoding: gzip", None, None, id="an unknown encoding"),
        pytest.param("X: " + "x" * 100_000, 431, "RequestHeaderFieldsTooLarge", id="a huge header"),
    ],
)
def test_a_request_that_cannot_be_read_gets_a_status_object(cluster, head, code, reason):
    data = f"POST {PODS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{head}\r\n\r\n".encode()
    status, body = send_raw(cluster.url, data)
    found = json.loads(body)

    assert_status((status, found), code or status, reason or found["reason"])
    assert 400 <= status < 600


def test_a_chunked_body_without_an_end_is_cut_off_at_the_limit(cluster):
    with connect(cluster.url) as line:
        line.sendall(
            f"POST {PODS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            "Transfer-Encoding: chunked\r\n\r\n".encode()
        )
        chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
        # The server closes its side as soon as it knows; what is still being sent then may reset the connection.
        with contextlib.suppress(OSError):
            for _ in range(64):
                line.sendall(chunk)
        with contextlib.suppress(ConnectionResetError):
            assert 413 == read_answer(line)[0]
    assert 200 == ask(cluster.url, "GET", PODS)[0]


# -- paths and headers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "code", "reason"),
    [
        pytest.param("GET", "/nothing", 404, "NotFound", id="unknown path"),
        pytest.param("GET", "/api/v1/unknowns", 404, "NotFound", id="unknown resource"),
        pytest.param("GET", "/apis/none.example/v1/things", 404, "NotFound", id="unknown group"),
        pytest.param("GET", f"{PODS}/none", 404, "NotFound", id="unknown object"),
        pytest.param("GET", "/api/v1/pods?fieldSelector=a%3Db", 400, "BadRequest", id="unknown field selector"),
        pytest.param("GET", "/api/v1/pods?limit=x", 400, "BadRequest", id="a limit that is no number"),
        pytest.param("GET", "/api/v1/pods?" + "a=b&" * 100, 400, "BadRequest", id="too many parameters"),
        pytest.param("PUT", "/api/v1/pods", 405, "MethodNotAllowed", id="a verb that is not supported"),
        pytest.param("GET", "/lamina/none", 404, "NotFound", id="unknown control endpoint"),
        pytest.param("PUT", "/lamina/clock", 405, "MethodNotAllowed", id="a verb that a control endpoint has not"),
    ],
)
def test_a_bad_path_gets_a_status_object(cluster, method, path, code, reason):
    assert_status(ask(cluster.url, method, path, None if method == "GET" else POD), code, reason)


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"Host": "evil.example"}, id="another host"),
        pytest.param({"Host": "evil.example:80"}, id="another host with a port"),
        pytest.param({"Host": "127.0.0.1.evil.example"}, id="a name that begins like an address"),
        pytest.param({"Origin": "https://evil.example"}, id="a web page"),
        pytest.param({"Origin": "null"}, id="a web page without an origin"),
    ],
)
def test_requests_of_web_pages_are_rejected(cluster, headers):
    assert_status(ask(cluster.url, "GET", PODS, headers=headers), 403, "Forbidden")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:1234", "[::1]:5"])
def test_names_of_this_machine_are_accepted(cluster, host):
    assert 200 == ask(cluster.url, "GET", PODS, headers={"Host": host})[0]


# -- watches -------------------------------------------------------------------------------------------------------------


def test_a_watch_that_is_not_read_is_cut_off_and_others_get_everything():
    """The slow one reads nothing: 40 updates of 250 KB are more than the watches may hold and the kernel takes."""
    with apiserver(nodes=0, watch_buffer=2 * 1024**2) as cluster:
        starve_one_watch(cluster)


def starve_one_watch(cluster: ApiCluster) -> None:
    slow, quick = open_watch(cluster.url), open_watch(cluster.url)
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    with slow, quick:
        until(lambda: cluster.watches == 2)
        assert 201 == ask(cluster.url, "POST", PODS, pod("a"))[0]
        read_until(quick, b'"name":"a"')
        for number in range(40):
            patch = {"metadata": {"annotations": {"filler": f"{number}-" + "x" * 250_000}}}
            answer = ask(cluster.url, "PATCH", f"{PODS}/a", patch, {"Content-Type": "application/merge-patch+json"})
            assert 200 == answer[0]
            read_until(quick, f'"filler":"{number}-'.encode())
        until(lambda: cluster.watches == 1)
        assert 201 == ask(cluster.url, "POST", PODS, pod("b"))[0]
        assert b'"name":"b"' in read_until(quick, b'"name":"b"')


def watch_everything(url: str, count: int) -> None:
    """Open *count* watches, then create a pod, and read it from all of them."""
    lines = [open_watch(url) for _ in range(count)]
    try:
        for line in lines:
            read_until(line, b"\r\n\r\n")
        assert 201 == ask(url, "POST", PODS, pod("seen"))[0]
        for line in lines:
            assert b'"name":"seen"' in read_until(line, b'"name":"seen"')
    finally:
        for line in lines:
            line.close()
    assert 200 == ask(url, "GET", PODS)[0]


def allow_open_files(count: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        pytest.skip(f"needs {count} open files, and this process may open {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count), hard))


@pytest.mark.slow
def test_two_thousand_watches_all_see_an_event_and_leave_nothing_behind(cluster):
    allow_open_files(2 * FEW_WATCHES + 500)
    watch_everything(cluster.url, FEW_WATCHES)
    until(lambda: cluster.watches == 0)


@pytest.mark.soak
def test_ten_thousand_watches_all_see_an_event_in_bounded_memory(tmp_path):
    """The server is a process of its own: 10,000 connections are as many open files at each end."""
    allow_open_files(MANY_WATCHES + 500)
    ready = tmp_path / "ready.json"
    words = [sys.executable, "-m", "lamina.cli.main", "apiserver", "--nodes", "2", "--ready-file", str(ready)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as server:
        try:
            until(ready.exists)
            watch_everything(json.loads(ready.read_text())["url"], MANY_WATCHES)
            peak = Path(f"/proc/{server.pid}/status").read_text().split("VmHWM:")[1].split()[0]
            assert int(peak) < MOST_MEMORY_KIB
        finally:
            server.terminate()
            server.wait()
