"""
Some time in the life of a node: at every quiet moment the agent says what is true, and soon.

Pulls, removals, tags that move, pulls that are cut off, restarts, crashes; two names of one image, one image in two
compressions, indexes. The dice have a seed, so a node that was told wrongly can be lived through again.
"""

import asyncio
import random
import time

import pytest

from lamina.clients.cri.containerd.containerd_source import ContainerdSource
from lamina.services.node_agent.runtime_reader import RuntimeReader
from testbed.slow_proxy import SlowProxy
from tests.integration.node_agent.churn import SLOW, Churn, Hearer

pytestmark = [
    pytest.mark.realtime,
    pytest.mark.testbed("containerd", "registry"),
    pytest.mark.needs(root=True),
    pytest.mark.slow,
]

WITHIN = 15.0
"""Seconds after which everybody knows of a change."""
AFTER_REMOVAL = 6.0

KEPT, DROPPED = False, True
LONG = pytest.mark.soak
DEBIAN = pytest.mark.needs("containerd", root=True)
LIVES = [
    pytest.param("2.4.2", KEPT, 1, 20.0, id="half a minute"),
    pytest.param("2.4.2", KEPT, 2, 600.0, marks=LONG, id="ten minutes"),
    pytest.param("2.4.2", DROPPED, 3, 600.0, marks=LONG, id="ten minutes, blobs dropped"),
    pytest.param("debian", KEPT, 4, 600.0, marks=(LONG, DEBIAN), id="ten minutes of an old containerd"),
    pytest.param("debian", DROPPED, 5, 600.0, marks=(LONG, DEBIAN), id="ten minutes of an old one, blobs dropped"),
]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("version", "discard", "seed", "seconds"), LIVES)
async def test_what_is_said_is_true_at_every_quiet_moment(
    registry_server, containerd_factory, version, discard, seed, seconds
):
    runtime = containerd_factory(registry=registry_server.host, version=version, discard=discard)
    hearer = Hearer()

    async def open_source():
        return ContainerdSource(runtime.socket)

    with SlowProxy(registry_server.host, bytes_per_second=SLOW) as road:
        runtime.allow(road.host, road.host)
        churn = Churn(runtime, registry_server.host, road, seed)
        reading = asyncio.create_task(RuntimeReader(open_source, hearer, random.Random(seed)).run())
        ends = time.monotonic() + seconds
        try:
            while time.monotonic() < ends:
                happened = await asyncio.to_thread(churn.happen)
                assert churn.truth() == await said(hearer, churn.truth()), happened
                if churn.has_blobs:
                    assert ("prefix" if discard else "set") == hearer.reuse, happened
            await asyncio.sleep(AFTER_REMOVAL)
            assert churn.truth() == hearer.said
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


async def said(hearer, truth):
    """What is said once that is *truth*, or when it should have been."""
    ends = time.monotonic() + WITHIN
    while hearer.said != truth and time.monotonic() < ends:
        await asyncio.sleep(0.1)
    return hearer.said
