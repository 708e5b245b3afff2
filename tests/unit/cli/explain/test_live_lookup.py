"""`lamina explain` on a cluster: the pod that was asked for and no other, and a scheduler that is believed within bounds."""

import json
import sys
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from lamina.cli.explain import live_lookup
from lamina.cli.main import run
from lamina.clients.kube.errors import ApiError, UnreachableError
from lamina.model.errors import InputError
from tests.unit.services.fakes import a_decision

PLACED: dict[str, Any] = {
    "kind": "Pod",
    "metadata": {"name": "web-0", "namespace": "shop"},
    "spec": {"nodeName": "n1", "schedulerName": "lamina"},
}


class Cluster:
    """An API server that knows one pod."""

    def __init__(self, answer: object = PLACED) -> None:
        self.answer = answer
        self.paths: list[str] = []
        self.closed = False

    async def request(self, method: str, path: str, **_: object) -> bytes:
        self.paths.append(path)
        if isinstance(self.answer, Exception):
            raise self.answer
        return json.dumps(self.answer).encode()

    async def close(self) -> None:
        self.closed = True


@pytest.fixture
def cluster(monkeypatch) -> Cluster:
    made = Cluster()
    monkeypatch.setattr(live_lookup, "load_access", lambda *_: SimpleNamespace(namespace="usual"))
    monkeypatch.setattr(live_lookup, "KubeClient", lambda *_, **__: made)
    return made


def lamina(monkeypatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["lamina", *arguments])
    return run()


# ------------------------------------------------------------------------------------------------------------- the pod


@pytest.mark.parametrize(
    ("pod", "namespace", "path"),
    [
        pytest.param("web-0", "", "/api/v1/namespaces/usual/pods/web-0", id="where the context says"),
        pytest.param("web-0", "shop", "/api/v1/namespaces/shop/pods/web-0", id="with -n"),
        pytest.param("shop/web-0", "", "/api/v1/namespaces/shop/pods/web-0", id="namespace/name"),
        pytest.param("shop/web-0", "other", "/api/v1/namespaces/shop/pods/web-0", id="the nearer word counts"),
        pytest.param("web-0.example", "", "/api/v1/namespaces/usual/pods/web-0.example", id="a name with dots"),
    ],
)
def test_the_pod_is_asked_for_where_it_is(cluster, pod, namespace, path):
    live_lookup.query_pod(pod, namespace, None, "")

    assert [path] == cluster.paths
    assert cluster.closed


HOSTILE = [
    pytest.param("../../../apis/apps/v1", "", id="up and away"),
    pytest.param("kube-system/../../nodes/n1", "", id="up and down"),
    pytest.param("a/b/c", "", id="two slashes"),
    pytest.param("..", "", id="up"),
    pytest.param(".", "", id="here"),
    pytest.param("", "", id="nothing"),
    pytest.param("shop/", "", id="no name"),
    pytest.param("web-0?watch=true", "", id="a query"),
    pytest.param("web-0#x", "", id="a fragment"),
    pytest.param("web-0%2flog", "", id="an escaped slash"),
    pytest.param("%2e%2e%2fsecrets%2fx", "", id="escaped dots"),
    pytest.param("web 0", "", id="a space"),
    pytest.param("web-0\r\nX: y", "", id="a line break"),
    pytest.param("web-0", "shop/pods/x?y=", id="a namespace that is a path"),
    pytest.param("web-0", "..", id="a namespace that goes up"),
]


@pytest.mark.parametrize(("pod", "namespace"), HOSTILE)
def test_no_name_becomes_another_path(cluster, pod, namespace):
    refused = ""
    try:
        live_lookup.query_pod(pod, namespace, None, "")
    except InputError as error:
        refused = str(error)
    if refused:
        assert 1 == len(refused.splitlines())
        assert [] == cluster.paths
        return
    (path,) = cluster.paths
    parts = urlsplit(path)
    segments = [unquote(part) for part in parts.path.split("/")]
    assert ("", "") == (parts.query, parts.fragment)
    assert ["", "api", "v1", "namespaces"] == segments[:4]
    assert 7 == len(segments)
    assert "pods" == segments[5]
    assert not {"", ".", ".."} & set(segments[4:])
    assert not any(letter in "".join(segments[4:]) for letter in "/ \r\n"), "the server decodes"


def test_a_pod_that_is_not_there_is_told_with_a_hint(cluster, monkeypatch, capsys):
    cluster.answer = ApiError("GET pod", 404, "NotFound", 'pods "web-0" not found')
    code = lamina(monkeypatch, "explain", "web-0", "-n", "shop")
    err = capsys.readouterr().err

    assert (2, 1) == (code, len(err.splitlines()))
    assert "there is no pod shop/web-0 in this cluster; name its namespace with -n" in err
    assert cluster.closed


@pytest.mark.parametrize(
    "trouble",
    [ApiError("GET pod", 403, "Forbidden", "not for you"), UnreachableError("GET pod", "connection refused")],
    ids=["forbidden", "unreachable"],
)
def test_other_troubles_are_told_in_one_line(cluster, monkeypatch, capsys, trouble):
    cluster.answer = trouble
    code = lamina(monkeypatch, "explain", "shop/web-0")

    assert (1, f"{trouble}\n") == (code, capsys.readouterr().err)


def test_a_page_for_people_and_the_same_as_data(cluster, monkeypatch, capsys):
    assert 0 == lamina(monkeypatch, "explain", "shop/web-0")
    assert "shop/web-0 -> n1, by scheduler lamina" in capsys.readouterr().out

    assert 0 == lamina(monkeypatch, "explain", "shop/web-0", "-o", "json")
    told = json.loads(capsys.readouterr().out)
    assert ("shop/web-0", "n1") == (told["pod"], told["node"])

    assert 0 == lamina(monkeypatch, "explain", "shop/web-0", "-o", "yaml")
    assert "node: n1" in capsys.readouterr().out


def test_earlier_attempts_are_kept_by_traces_only(cluster, monkeypatch, capsys):
    assert 2 == lamina(monkeypatch, "explain", "web-0", "--attempt", "1")
    assert "--trace" in capsys.readouterr().err
    assert [] == cluster.paths


# -------------------------------------------------------------------------------------------------------- the scheduler


class Scheduler:
    """A scheduler's pages, or something that looks like them."""

    def __init__(self, body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.body, self.status, self.headers = body, status, headers
        self.asked: list[str] = []

    async def ask(self, pod: str = "shop/web-0", suffix: str = "") -> Any:
        app = web.Application()
        app.router.add_get("/{rest:.*}", self._answer)
        async with TestServer(app) as server:
            return await live_lookup._query_scheduler(str(server.make_url("/")).rstrip("/") + suffix, pod)

    async def _answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        return web.Response(body=self.body, status=self.status, headers=self.headers)


async def test_what_a_scheduler_remembers_is_told():
    scheduler = Scheduler(msgspec.json.encode(a_decision("shop/web-0")))

    assert a_decision("shop/web-0") == await scheduler.ask(suffix="/")
    assert ["/debug/decisions/shop/web-0"] == scheduler.asked


async def test_a_scheduler_that_remembers_nothing_says_so():
    assert await Scheduler(b"no decision", 404).ask() is None


async def test_a_long_decision_is_read_to_its_end():
    decision = a_decision("shop/web-0", verdicts=30_000)

    assert decision == await Scheduler(msgspec.json.encode(decision)).ask()


@pytest.mark.parametrize(
    ("scheduler", "words"),
    [
        pytest.param(Scheduler(b"not JSON"), "cannot be read", id="nonsense"),
        pytest.param(Scheduler(b'{"pod": "x"}'), "cannot be read", id="half a decision"),
        pytest.param(Scheduler(b"[" * 100_000), "cannot be read", id="deep"),
        pytest.param(Scheduler(b"debug pages are served to loopback only", 403), "403: debug pages", id="forbidden"),
        pytest.param(Scheduler(b"", 500), "answered 500", id="in trouble"),
        pytest.param(Scheduler(b"", 302, {"Location": "http://127.0.0.1:1/"}), "answered 302", id="sends elsewhere"),
    ],
)
async def test_a_scheduler_that_does_not_tell_is_named(scheduler, words):
    with pytest.raises(InputError, match=words) as caught:
        await scheduler.ask()

    assert "--scheduler" in str(caught.value)
    assert 1 == len(str(caught.value).splitlines())


async def test_what_a_stranger_answers_is_quoted_in_one_line():
    with pytest.raises(InputError) as caught:
        await Scheduler(b"<html>\n<body>\x1b[2Jsorry", 500).ask()

    assert 1 == len(str(caught.value).splitlines())
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1",
        "not a url",
        "ftp://127.0.0.1",
        "file:///etc/passwd",
        "http://",
        "http://[::1",
        "http://127.0.0.1:99999",
    ],
)
async def test_an_address_that_is_none_is_told_with_a_hint(url):
    with pytest.raises(InputError, match="port-forward") as caught:
        await live_lookup._query_scheduler(url, "shop/web-0")

    assert 1 == len(str(caught.value).splitlines())


async def test_more_than_any_decision_has_is_not_read(monkeypatch):
    monkeypatch.setattr(live_lookup, "LARGEST", 100)

    with pytest.raises(InputError):
        await Scheduler(b" " * 5000).ask()


def test_the_page_says_when_a_scheduler_has_forgotten(cluster, monkeypatch, capsys):
    monkeypatch.setattr(live_lookup, "query_scheduler", lambda *_: None)
    assert 0 == lamina(monkeypatch, "explain", "shop/web-0", "--scheduler", "http://127.0.0.1:10259")

    assert "http://127.0.0.1:10259 has no decision about this pod" in capsys.readouterr().err


def test_what_the_scheduler_tells_comes_before_what_the_pod_tells(cluster, monkeypatch, capsys):
    monkeypatch.setattr(
        live_lookup, "query_scheduler", lambda *_: a_decision("shop/web-0", "n1", runner_up="n2", saved=2.0)
    )
    assert 0 == lamina(monkeypatch, "explain", "shop/web-0", "--scheduler", "http://127.0.0.1:10259")

    out = capsys.readouterr().out
    assert "60 points ahead of n2" in out


def test_what_the_scheduler_tells_is_not_about_simulations(cluster, monkeypatch, capsys):
    monkeypatch.setattr(
        live_lookup, "query_scheduler", lambda *_: a_decision("shop/web-0", "n1", runner_up="n2", saved=2.0)
    )
    lamina(monkeypatch, "explain", "shop/web-0", "--scheduler", "http://127.0.0.1:10259")

    out = capsys.readouterr().out
    assert "simulation" not in out
    assert "layers on n1, bottom first" not in out
