"""The service's own pages: probes for everybody, names of pods and nodes for who stands on the same machine."""

import asyncio
import json
from types import SimpleNamespace
from unittest import mock

import pytest
from aiohttp.test_utils import TestClient, TestServer, make_mocked_request
from yarl import URL

from lamina.model.events import NodeSeen, PodSeen
from lamina.scheduling.config.named_profiles import named
from lamina.scheduling.contract.commands import Bind
from lamina.scheduling.plugins.in_tree import registry
from lamina.services.informers.event_queue import EventQueue
from lamina.services.informers.informer_set import InformerSet
from lamina.services.scheduler import comparer, endpoints
from lamina.services.scheduler.decision_journal import DecisionJournal
from lamina.services.scheduler.endpoints import SchedulerEndpoints
from lamina.services.scheduler.event_ring import EventRing, TiePicks
from lamina.services.scheduler.metrics import SchedulerMetrics
from lamina.services.scheduler.recordings import RecordingWriter
from lamina.services.scheduler.scheduler_host import SchedulerHost
from lamina.services.scheduler.scheduler_parts import SchedulerParts
from lamina.services.scheduler.shadow_executor import ShadowExecutor
from lamina.testing import a_loop, a_node, a_pod
from lamina.trace.recording_reader import read_recording
from tests.unit.services.fakes import ScriptedClient, StillClock, a_decision, refused

DEBUG = ("/debug/cache", "/debug/dump", "/debug/observed", "/debug/events", "/debug/decisions/default/p1")


def parts(client: ScriptedClient | None = None, *, observing: bool = False) -> SchedulerParts:
    clock, inbox, loop = StillClock(), EventQueue(), a_loop()
    client = client or ScriptedClient()
    informers = InformerSet(client, inbox)
    metrics = SchedulerMetrics(clock)
    metrics.watch(loop, informers)
    observer = ShadowExecutor(inbox.put, clock) if observing else None
    if observer is not None:
        observer.connect(loop)
    return SchedulerParts(
        client=client,
        informers=informers,
        loop=loop,
        host=SchedulerHost(loop, inbox, SimpleNamespace(busy=False), SimpleNamespace(), clock),
        metrics=metrics,
        journal=DecisionJournal(),
        ring=EventRing(loop, TiePicks(lambda _: 0), clock.now),
        recordings=RecordingWriter(named("lamina-balanced", registry(entry_points=False)), "brief", ()),
        shadow=observer,
    )


class Visit:
    """Somebody who asks for pages."""

    def __init__(self, made: SchedulerParts | None = None) -> None:
        self.parts = made or parts()

    async def get(self, path: str, **headers: str) -> tuple[int, str]:
        server = TestServer(SchedulerEndpoints(self.parts).app())
        async with TestClient(server) as client, client.get(path, headers=headers) as response:
            return response.status, await response.text()


def synced(made: SchedulerParts) -> SchedulerParts:
    for reflector in made.informers.reflectors.values():
        reflector.synced = True
    return made


# --------------------------------------------------------------------------------------------------------------- probes


@pytest.mark.parametrize("path", ["/livez", "/healthz"])
async def test_a_process_that_turns_is_alive(path):
    assert (200, "ok\n") == await Visit().get(path)


async def test_who_has_not_seen_everything_is_not_ready_and_says_what_is_missing():
    made = synced(parts())
    made.informers.reflectors["Pod"].synced = made.informers.reflectors["NodeLayers"].synced = False

    assert (503, "not everything was seen yet: Pod, NodeLayers\n") == await Visit(made).get("/readyz")


async def test_who_has_seen_everything_is_ready():
    assert (200, "ok\n") == await Visit(synced(parts())).get("/readyz")


async def test_metrics_are_prometheus_text():
    async with TestClient(TestServer(SchedulerEndpoints(parts()).app())) as client, client.get("/metrics") as response:
        assert 200 == response.status
        assert "text/plain; version=0.0.4; charset=utf-8" == response.headers["Content-Type"]
        assert "scheduler_pending_pods" in await response.text()


@pytest.mark.parametrize(
    "path", ["/", "/debug", "/debug/", "/debug/pprof", "/metrics/x", "/debug/decisions/p1", "/configz"]
)
async def test_other_pages_are_not_there(path):
    status, _ = await Visit().get(path)

    assert 404 == status


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
@pytest.mark.parametrize("path", ["/metrics", "/debug/dump"])
async def test_pages_are_only_read(method, path):
    async with (
        TestClient(TestServer(SchedulerEndpoints(parts()).app())) as client,
        client.request(method, path) as response,
    ):
        assert 405 == response.status


# ---------------------------------------------------------------------------------------------------------- debug pages


async def test_what_is_believed_is_told():
    made = parts()
    made.loop.feed(NodeSeen(a_node()), PodSeen(a_pod()))
    status, text = await Visit(made).get("/debug/dump")

    assert (200, 1) == (status, json.loads(text)["nodes"])


async def test_cache_and_api_server_are_compared():
    lists = [json.dumps({"kind": kind, "items": []}).encode() for kind in ("NodeList", "PodList")]
    status, text = await Visit(parts(ScriptedClient(*lists))).get("/debug/cache")

    assert (200, {"nodes": 0, "pods": 0, "differences": [], "more": 0}) == (status, json.loads(text))


async def test_an_api_server_that_says_no_is_told_in_a_line():
    status, text = await Visit(parts(ScriptedClient(then=refused(503, "no quorum")))).get("/debug/cache")

    assert 502 == status
    assert "no quorum" in text
    assert 1 == len(text.splitlines())


async def test_only_one_compares_at_a_time(monkeypatch):
    monkeypatch.setattr(comparer, "SECOND_LOOK_AFTER", 0.0)
    nodes, pods = (json.dumps({"kind": kind, "items": []}).encode() for kind in ("NodeList", "PodList"))
    client = ScriptedClient(*(6 * [nodes, pods]), pause=0.02)
    client.before = lambda asked: client.script.insert(0, nodes if asked.path.endswith("nodes") else pods)
    async with TestClient(TestServer(SchedulerEndpoints(parts(client)).app())) as visitor:
        answers = await asyncio.gather(*(visitor.get("/debug/cache") for _ in range(3)))
        for answer in answers:
            answer.release()

    assert 1 == client.most_underway


@pytest.mark.parametrize(
    ("path", "pod"),
    [
        pytest.param("/debug/decisions/default/p1", "default/p1", id="plain"),
        pytest.param("/debug/decisions/default/web-0.example", "default/web-0.example", id="with dots"),
    ],
)
async def test_the_newest_decision_about_a_pod_is_told(path, pod):
    made = parts()
    made.journal.note([Bind(a_pod(), "n1", a_decision(pod))])
    status, text = await Visit(made).get(path)

    assert (200, pod, "n1") == (status, json.loads(text)["pod"], json.loads(text)["chosen"]["node"])


@pytest.mark.parametrize(
    "path",
    [
        "default/nobody",
        "default/%2e%2e",
        "a%2Fb/c",
        "default/<script>",
        "default/%0aforged",
        "default/%ff",
        "default/" + "x" * 500,
    ],
    ids=["unknown", "dots", "a slash", "markup", "a line feed", "no text", "long"],
)
async def test_odd_names_are_pods_nobody_decided_about(path):
    async with TestClient(TestServer(SchedulerEndpoints(parts()).app())) as client:
        url = URL(str(client.make_url("/debug/decisions/")) + path, encoded=True)
        async with client.session.get(url) as response:
            assert 404 == response.status
            assert response.headers["Content-Type"].startswith("text/plain")


async def test_only_an_observing_scheduler_has_something_observed():
    status, text = await Visit().get("/debug/observed")
    assert (404, True) == (status, "--observe" in text)

    status, text = await Visit(parts(observing=True)).get("/debug/observed")
    assert (200, []) == (status, json.loads(text)["last"])


# -------------------------------------------------------------------------------------------------------- who may look


async def answered(path: str, remote: str | None, host: str, **headers: str) -> int:
    """The status somebody at *remote* gets who says that this machine is called *host*."""
    transport = mock.Mock()
    transport.get_extra_info = lambda name, default=None: (remote, 4711) if name == "peername" and remote else default
    request = make_mocked_request("GET", path, headers={"Host": host, **headers}, transport=transport)

    async def page(_: object) -> SimpleNamespace:
        return SimpleNamespace(status=200)

    return (await endpoints._plainly(request, page)).status


async def test_events_are_served_as_a_recording(tmp_path):
    made = parts()
    made.ring.take(NodeSeen(a_node("n1")), PodSeen(a_pod("p1")))
    made.ring.decide(1)
    server = TestServer(SchedulerEndpoints(made).app())
    async with TestClient(server) as client, client.get("/debug/events") as response:
        assert 'attachment; filename="events.lamrec"' == response.headers["Content-Disposition"]
        (tmp_path / "events.lamrec").write_bytes(await response.read())
    kinds = [type(record).__name__ for record in read_recording(tmp_path / "events.lamrec")]

    assert ["RecordingHeader", "TakenEvents", "DecideCall", "RecordingEnd"] == [
        kind for kind in kinds if kind != "SnapshotPart"
    ]


@pytest.mark.parametrize("path", DEBUG)
@pytest.mark.parametrize(
    ("remote", "host"),
    [
        pytest.param("127.0.0.1", "127.0.0.1:10259", id="by number"),
        pytest.param("127.0.0.1", "localhost:10259", id="by name"),
        pytest.param("127.0.0.1", "localhost", id="without port"),
        pytest.param("127.8.8.8", "127.0.0.1:80", id="all of 127/8"),
        pytest.param("::1", "[::1]:10259", id="IPv6"),
        pytest.param("::1", "[::1]", id="IPv6 without port"),
    ],
)
async def test_who_stands_on_this_machine_may_look(path, remote, host):
    assert 200 == await answered(path, remote, host)


@pytest.mark.parametrize("path", [*DEBUG, "/%64ebug/dump", "/debug/nothing"])
@pytest.mark.parametrize(
    ("remote", "host"),
    [
        pytest.param("10.0.0.7", "127.0.0.1:10259", id="from elsewhere"),
        pytest.param("10.0.0.7", "localhost", id="from elsewhere, by name"),
        pytest.param("fe80::1", "[::1]:10259", id="from elsewhere, IPv6"),
        pytest.param("127.0.0.1", "evil.example", id="a name that was made to mean us"),
        pytest.param("127.0.0.1", "evil.example:10259", id="such a name with a port"),
        pytest.param("127.0.0.1", "127.0.0.1.evil.example", id="a name that looks like us"),
        pytest.param("127.0.0.1", "localhost.evil.example:10259", id="a name that begins like us"),
        pytest.param("127.0.0.1", "10.0.0.7:10259", id="another number"),
        pytest.param("127.0.0.1", "", id="no name"),
        pytest.param("127.0.0.1", "[]:1", id="brackets"),
        pytest.param("127.0.0.1", "evil.example@127.0.0.1", id="with a user"),
        pytest.param("", "localhost", id="nobody knows from where"),
        pytest.param(None, "localhost", id="from nowhere"),
    ],
)
async def test_nobody_else_may(path, remote, host):
    assert 403 == await answered(path, remote, host)


@pytest.mark.parametrize("header", ["X-Forwarded-For", "X-Real-IP", "Forwarded"])
async def test_who_only_says_to_be_near_is_not_believed(header):
    assert 403 == await answered("/debug/dump", "10.0.0.7", "localhost", **{header: "127.0.0.1"})


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics"])
async def test_probes_and_metrics_are_for_everybody(path):
    assert 200 == await answered(path, "10.0.0.7", "10.0.0.1:10259")


async def test_over_a_real_connection_the_name_counts_too():
    visit = Visit()

    assert 200 == (await visit.get("/debug/dump"))[0]
    status, text = await visit.get("/debug/dump", Host="evil.example")
    assert (403, True) == (status, "port-forward" in text)


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
    async with TestServer(SchedulerEndpoints(parts()).app()) as server:
        reader, writer = await asyncio.open_connection(server.host, server.port)
        writer.write(f"GET {target} HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n".encode())
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()

    assert answer.split()[1] in (b"400", b"403", b"404")
    assert b"nodesSample" not in answer
