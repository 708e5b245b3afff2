"""What the extender counts."""

import asyncio

import pytest

from lamina.scheduling.loop.extender_core import ExtenderCore
from lamina.services.extender.metrics import ExtenderMetrics, ExtenderStateCollector
from lamina.services.extender.wiring import ENDPOINT_LIMITS, EndpointMetrics
from lamina.serving.http_server import HttpServer
from lamina.serving.rejections import TOO_MANY
from lamina.serving.response import HttpResponse
from lamina.serving.routes import Routes


def test_watches_that_are_interrupted_are_told_however_ready_it_is() -> None:
    metrics = ExtenderMetrics()
    stale = {"Node": 0.0, "Pod": 90.5}
    metrics.registry.register(ExtenderStateCollector(ExtenderCore([]), lambda: True, lambda: stale))
    exposition = metrics.exposition().decode()

    assert 'lamina_extender_stale_seconds{kind="Node"} 0.0' in exposition
    assert 'lamina_extender_stale_seconds{kind="Pod"} 90.5' in exposition
    assert "lamina_extender_ready 1.0" in exposition


@pytest.mark.parametrize(
    ("path", "verb", "counted"),
    [
        pytest.param("/scheduler/priorities/x", "priorities/x", 1.0, id="a question"),
        pytest.param("/metrics", "/metrics", 0.0, id="a page"),
        pytest.param("other", "other", 0.0, id="nothing that is there"),
    ],
)
def test_questions_are_timed_and_missed_and_pages_are_not(path: str, verb: str, counted: float) -> None:
    metrics = ExtenderMetrics()
    metrics.served(path, 200, 0.25, 10, 20)
    metrics.abandoned(path)
    found = metrics.registry.get_sample_value

    assert counted == (found("lamina_extender_request_duration_seconds_count", {"verb": verb}) or 0.0)
    assert 0.25 * counted == (found("lamina_extender_request_duration_seconds_sum", {"verb": verb}) or 0.0)
    assert counted == found("lamina_extender_abandoned_total")


async def test_whoever_stays_at_the_pages_keeps_no_probe_out_and_is_counted_apart() -> None:
    metrics = ExtenderMetrics()
    listener = HttpServer(Routes(posts={}, gets={"/livez": HttpResponse}), ENDPOINT_LIMITS, EndpointMetrics(metrics))
    await listener.start("127.0.0.1", 0)
    try:
        crowd = [await asyncio.open_connection("127.0.0.1", listener.port) for _ in range(40)]
        reader, probe = await asyncio.open_connection("127.0.0.1", listener.port)
        probe.write(b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        async with asyncio.timeout(20.0):
            assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
        for _, writer in crowd:
            writer.transport.abort()
        probe.close()
    finally:
        await listener.stop(0)

    # Of the 41 that came 16 had a place.
    assert 25.0 == metrics.registry.get_sample_value("lamina_extender_pages_refused_total", {"reason": TOO_MANY})
    assert "lamina_extender_refused_total{" not in metrics.exposition().decode()


def test_who_has_read_a_page_is_not_waited_for_as_long_as_one_who_asks() -> None:
    assert (16, 5.0) == (ENDPOINT_LIMITS.connections, ENDPOINT_LIMITS.idle_seconds)
