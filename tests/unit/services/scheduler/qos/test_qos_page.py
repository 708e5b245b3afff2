"""The debug page over a real connection: its forms, who may read it, and that it stays small and quick to compute."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html.parser import HTMLParser

import aiohttp
import pytest

from lamina.qos import qos_view as views
from lamina.qos.life_cycle_facts import PodCreated
from lamina.qos.page_formats import controller_table, replica_table
from lamina.qos.promise import ControllerKey
from lamina.qos.qos_view import qos_view
from lamina.services.scheduler.qos import qos_page
from lamina.services.scheduler.qos.qos_page import FRESH, PAGE_LIMITS, QosPage
from lamina.serving.http_server import HttpServer
from lamina.serving.request import HttpRequest
from lamina.serving.server_limits import NoServerMetrics
from tests.unit.qos.qos_lives import Cluster, promised
from tests.unit.services.fakes import StillClock

BROWSER = {"accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8", "host": "localhost:10000"}
CURL = {"accept": "*/*", "host": "127.0.0.1:10000"}


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    made.create(0, "g", of="gold", promise=promised(1.0), replicas=1)
    made.bind(2, "g", took=1.0)
    made.create(0, "<b>", of="<script>alert(1)</script>", promise=promised(0.5), replicas=1)
    return made


def page(cluster: Cluster, now: float = 100.0, *, loopback_only: bool = True) -> QosPage:
    return QosPage(lambda: cluster.engine, StillClock(now), loopback_only=loopback_only)


def get(
    shown: QosPage, path: str, headers: dict[str, str] | None = None, *, peer: str = "127.0.0.1", method: str = "GET"
) -> tuple[int, str]:
    response = shown(HttpRequest(method, path, headers=CURL if headers is None else headers, peer=peer))
    return response.status, b"".join(response.pieces).decode()


@pytest.mark.parametrize(
    ("path", "form"),
    [
        pytest.param("/", controller_table, id="for curl and watch"),
        pytest.param("/controllers", controller_table, id="first format"),
        pytest.param("/replicas", replica_table, id="later format"),
    ],
)
def test_tables_are_those_of_the_original(cluster, path, form):
    assert (200, form(qos_view(cluster.engine, 100.0))) == get(page(cluster), path)


def test_json_has_all_figures(cluster):
    status, body = get(page(cluster), "/qos.json")
    found = json.loads(body)

    assert (200, 100.0, 2, 2, 0) == (
        status,
        found["at"],
        len(found["controllers"]),
        len(found["replicas"]),
        found["omitted"],
    )


class Words(HTMLParser):
    """The tags, ids and links of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.scopes: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        found = dict(attrs)
        self.addresses += [found[key] or "" for key in ("href", "src") if key in found]
        self.scopes += [found["scope"] or ""] if "scope" in found else []


def test_a_browser_gets_a_page_without_anything_from_elsewhere(cluster):
    status, text = get(page(cluster), "/", BROWSER)
    found = Words(text)

    assert status == 200
    assert ["controllers", "replicas", "qos.json"] == found.addresses
    assert {"caption", "main", "h1", "label"} <= set(found.tags)
    assert 9 * ["col"] + 2 * ["row"] == found.scopes
    assert 1 == found.tags.count("script"), "names of controllers are escaped"
    assert "&lt;script&gt;alert(1)" in text
    assert "color-scheme:light dark" in text
    assert "2 controllers, 2 below their SLO, at 1970-01-01 00:01:40 UTC" in text


def test_the_policy_allows_the_pages_own_script_and_style_only(cluster):
    response = page(cluster)(HttpRequest("GET", "/", headers=BROWSER, peer="127.0.0.1"))
    policy = dict(response.headers)["Content-Security-Policy"]

    assert "default-src 'none'" in policy
    assert 2 == len(re.findall(r"'sha256-[A-Za-z0-9+/]{43}='", policy))
    assert "unsafe" not in policy


@pytest.mark.parametrize(
    ("headers", "peer", "status"),
    [
        pytest.param(CURL, "127.0.0.1", 200, id="this machine"),
        pytest.param(CURL, "10.0.0.7", 403, id="another machine"),
        pytest.param({"host": "evil.example"}, "127.0.0.1", 403, id="a name that was pointed here"),
        pytest.param({}, "127.0.0.1", 403, id="no host"),
    ],
)
def test_on_loopback_only_this_machine_reads_it(cluster, headers, peer, status):
    assert status == get(page(cluster), "/", headers, peer=peer)[0]
    assert 200 == get(page(cluster, loopback_only=False), "/", headers, peer=peer)[0]


@pytest.mark.parametrize(
    ("path", "method", "status", "words"),
    [
        pytest.param("/livez", "GET", 200, "ok", id="probe"),
        pytest.param("/metrics", "GET", 404, "available: /, /controllers, /replicas, /qos.json, /livez", id="unknown"),
        pytest.param("/", "POST", 405, "/ accepts GET, HEAD only", id="not to be written"),
    ],
)
def test_other_requests_are_answered_in_one_line(cluster, path, method, status, words):
    found, text = get(page(cluster), path, method=method)

    assert (status, 1) == (found, text.count("\n"))
    assert words in text


def test_figures_are_computed_at_most_four_times_a_second(cluster, monkeypatch):
    """Many readers cost as much as one."""
    calls = []

    def counted(*arguments: object) -> object:
        calls.append(arguments)
        return views.qos_view(*arguments)

    monkeypatch.setattr(qos_page, "qos_view", counted)
    clock = StillClock(100.0)
    shown = QosPage(lambda: cluster.engine, clock, loopback_only=True)
    for _ in range(100):
        for path in ("/", "/replicas", "/qos.json"):
            get(shown, path)
    assert 1 == len(calls)

    clock.at += FRESH
    get(shown, "/")
    assert 2 == len(calls)


def test_a_page_is_bounded_whatever_the_cluster():
    crowd = Cluster()
    for number in range(qos_page.MOST_ROWS + 500):
        key = ControllerKey("default", "Deployment", f"web-{number:05}")
        crowd.engine.feed(PodCreated(0.0, f"p{number}", "default", f"p{number}", key, promised(0.5)), 0.0)
    _, text = get(page(crowd), "/")

    assert qos_page.MOST_ROWS + 2 == text.count("\n")
    assert text.endswith("\n1000 more controllers and replicas are not shown\n")
    assert "1000 more controllers and replicas are not shown" in get(page(crowd), "/", BROWSER)[1]


@asynccontextmanager
async def served(shown: QosPage) -> AsyncIterator[str]:
    server = HttpServer(shown, PAGE_LIMITS, NoServerMetrics())
    await server.start("127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        await server.stop(1.0)


async def test_many_clients_that_stay_do_not_keep_others_out(cluster):
    async with served(page(cluster)) as url:
        host, port = url.removeprefix("http://").split(":")
        idle = [await asyncio.open_connection(host, int(port)) for _ in range(PAGE_LIMITS.connections + 5)]
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            assert 200 == response.status
            assert (await response.text()).lstrip().startswith("CONTROLLER")
        for _, writer in idle:
            writer.close()
