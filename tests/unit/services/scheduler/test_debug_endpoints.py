"""The scheduler's own endpoints, read over a real connection: probes, and what operators ask for."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from yarl import URL

from lamina.model.events import NodeSeen, PodSeen
from lamina.scheduling.config.named_profiles import named
from lamina.scheduling.contract.commands import Bind
from lamina.scheduling.plugins.in_tree import registry
from lamina.services.informers.event_queue import EventQueue
from lamina.services.informers.informer_set import InformerSet
from lamina.services.scheduler import comparer
from lamina.services.scheduler.debug_endpoints import DebuggedParts, SchedulerDebugEndpoints
from lamina.services.scheduler.decision_journal import DecisionJournal
from lamina.services.scheduler.event_ring import EventRing, TiePicks
from lamina.services.scheduler.metrics import SchedulerMetrics, SchedulerStateCollector
from lamina.services.scheduler.recordings import RecordingWriter
from lamina.services.scheduler.shadow_executor import ShadowExecutor
from lamina.services.scheduler.wiring import ENDPOINT_LIMITS
from lamina.serving.endpoints import ServiceEndpoints
from lamina.serving.http_server import HttpServer
from lamina.serving.server_limits import NoServerMetrics
from lamina.testing import a_loop, a_node, a_pod
from lamina.trace.recording_reader import read_recording
from tests.unit.services.fakes import ScriptedClient, StillClock, a_decision, refused


class Scheduler:
    """The parts of a scheduler that its endpoints show, and its endpoints."""

    def __init__(self, client: ScriptedClient | None = None, *, observing: bool = False) -> None:
        clock, inbox, self.loop = StillClock(), EventQueue(), a_loop()
        client = client or ScriptedClient()
        self.informers = InformerSet(client, inbox)
        metrics = SchedulerMetrics(clock)
        metrics.registry.register(SchedulerStateCollector(self.loop, self.informers))
        self.parts = DebuggedParts(
            client=client,
            loop=self.loop,
            journal=DecisionJournal(),
            ring=EventRing(self.loop, TiePicks(lambda _: 0), clock.now),
            recordings=RecordingWriter(named("lamina-balanced", registry(entry_points=False)), "brief", ()),
            shadow=ShadowExecutor(self.loop, inbox.put, clock) if observing else None,
        )
        self.endpoints = ServiceEndpoints(
            unsynced=lambda: self.informers.unsynced,
            exposition=metrics.exposition,
            debug=SchedulerDebugEndpoints(self.parts).handlers(),
        )

    @asynccontextmanager
    async def served(self) -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
        """Serve the endpoints; give a client and the address."""
        server = HttpServer(self.endpoints, ENDPOINT_LIMITS, NoServerMetrics())
        await server.start("127.0.0.1", 0)
        try:
            async with aiohttp.ClientSession() as session:
                yield session, f"http://127.0.0.1:{server.port}"
        finally:
            await server.stop(1.0)

    async def get(self, path: str, **headers: str) -> tuple[int, str]:
        async with self.served() as (session, address), session.get(address + path, headers=headers) as response:
            return response.status, await response.text()

    def sync(self) -> "Scheduler":
        for reflector in self.informers.reflectors.values():
            reflector.synced = True
        return self


async def test_a_scheduler_that_has_not_seen_everything_is_not_ready_and_says_what_is_missing():
    scheduler = Scheduler().sync()
    scheduler.informers.reflectors["Pod"].synced = scheduler.informers.reflectors["NodeLayers"].synced = False

    assert (503, "not everything was seen yet: Pod, NodeLayers\n") == await scheduler.get("/readyz")


async def test_a_scheduler_that_has_seen_everything_is_ready():
    assert (200, "ok\n") == await Scheduler().sync().get("/readyz")


async def test_metrics_are_prometheus_text():
    async with Scheduler().served() as (session, address), session.get(f"{address}/metrics") as response:
        assert 200 == response.status
        assert "text/plain; version=0.0.4; charset=utf-8" == response.headers["Content-Type"]
        assert "scheduler_pending_pods" in await response.text()


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/debug",
        "/debug/",
        "/debug/pprof",
        "/metrics/x",
        "/debug/decisions",
        "/debug/decisions/",
        "/debug/decisions/p1",
        "/debug/decisions/a/b/c",
        "/debug/decisions//p1",
        "/configz",
    ],
)
async def test_other_endpoints_are_not_there(path):
    status, text = await Scheduler().get(path)

    assert (404, 1) == (status, len(text.splitlines()))


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
@pytest.mark.parametrize("path", ["/metrics", "/debug/dump"])
async def test_endpoints_are_only_read(method, path):
    async with Scheduler().served() as (session, address), session.request(method, address + path) as response:
        assert (405, "GET, HEAD") == (response.status, response.headers["Allow"])


# ------------------------------------------------------------------------------------------------------------ contents


async def test_what_is_believed_is_told():
    scheduler = Scheduler()
    scheduler.loop.feed(NodeSeen(a_node()), PodSeen(a_pod()))
    status, text = await scheduler.get("/debug/dump")

    assert (200, 1) == (status, json.loads(text)["nodes"])


async def test_cache_and_api_server_are_compared():
    lists = [json.dumps({"kind": kind, "items": []}).encode() for kind in ("NodeList", "PodList")]
    status, text = await Scheduler(ScriptedClient(*lists)).get("/debug/cache")

    assert (200, {"nodes": 0, "pods": 0, "differences": [], "more": 0}) == (status, json.loads(text))


async def test_an_api_server_that_says_no_is_told_in_a_line():
    status, text = await Scheduler(ScriptedClient(then=refused(503, "no quorum"))).get("/debug/cache")

    assert 502 == status
    assert "no quorum" in text
    assert 1 == len(text.splitlines())


async def test_only_one_compares_at_a_time(monkeypatch):
    monkeypatch.setattr(comparer, "SECOND_LOOK_AFTER", 0.0)
    nodes, pods = (json.dumps({"kind": kind, "items": []}).encode() for kind in ("NodeList", "PodList"))
    client = ScriptedClient(*(6 * [nodes, pods]), pause=0.02)
    client.before = lambda asked: client.script.insert(0, nodes if asked.path.endswith("nodes") else pods)
    async with Scheduler(client).served() as (session, address):
        answers = await asyncio.gather(*(session.get(f"{address}/debug/cache") for _ in range(3)))
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
    scheduler = Scheduler()
    scheduler.parts.journal.note([Bind(a_pod(), "n1", a_decision(pod))])
    status, text = await scheduler.get(path)

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
async def test_odd_names_are_pods_without_a_decision(path):
    async with (
        Scheduler().served() as (session, address),
        session.get(URL(f"{address}/debug/decisions/{path}", encoded=True)) as response,
    ):
        assert 404 == response.status
        assert response.headers["Content-Type"].startswith("text/plain")


async def test_only_an_observing_scheduler_has_something_observed():
    status, text = await Scheduler().get("/debug/observed")
    assert (404, True) == (status, "--observe" in text)

    status, text = await Scheduler(observing=True).get("/debug/observed")
    assert (200, []) == (status, json.loads(text)["last"])


async def test_events_are_served_as_a_recording(tmp_path):
    scheduler = Scheduler()
    scheduler.parts.ring.take(NodeSeen(a_node("n1")), PodSeen(a_pod("p1")))
    scheduler.parts.ring.decide(1)
    async with scheduler.served() as (session, address), session.get(f"{address}/debug/events") as response:
        assert 'attachment; filename="events.lamrec"' == response.headers["Content-Disposition"]
        assert "application/zstd" == response.headers["Content-Type"]
        (tmp_path / "events.lamrec").write_bytes(await response.read())
    kinds = [type(record).__name__ for record in read_recording(tmp_path / "events.lamrec")]

    assert ["RecordingHeader", "TakenEvents", "DecideCall", "RecordingEnd"] == [
        kind for kind in kinds if kind != "SnapshotPart"
    ]


async def test_over_a_real_connection_the_name_counts_too():
    scheduler = Scheduler()

    assert 200 == (await scheduler.get("/debug/dump"))[0]
    status, text = await scheduler.get("/debug/dump", Host="evil.example")
    assert (403, True) == (status, "port-forward" in text)


# ------------------------------------------------------------------------------------------------------------- clients


async def test_a_crowd_that_holds_connections_open_does_not_keep_a_probe_out():
    """The kubelet would restart the scheduler. Clients that asked and do not read count among them."""
    async with Scheduler().sync().served() as (session, address):
        port = URL(address).port
        crowd = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2 * ENDPOINT_LIMITS.connections)]
        for number, (_, writer) in enumerate(crowd):
            writer.write(b"GET /debug/du" if number % 2 else b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        async with session.get(f"{address}/livez") as response:
            assert (200, "ok\n") == (response.status, await response.text())
        for _, writer in crowd:
            writer.transport.abort()


def test_the_limits_of_the_endpoints_suit_probes_and_long_downloads():
    limits = ENDPOINT_LIMITS

    assert (64, True) == (limits.connections, limits.newcomers_first)
    assert limits.large_body <= 1024, "they take no bodies"
    assert min(limits.write_seconds, limits.handler_seconds) >= 300.0
