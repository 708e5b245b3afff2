"""A registry in trouble: look-ups end in time with a reason, it is left alone, and found again when it is back."""

import asyncio
import time

import pytest

from lamina.clients.oci import resolver as resolver_module
from lamina.clients.oci.circuit_breaker import FAILURES, FIRST
from lamina.clients.oci.registry_config import RegistryConfig, RegistrySettings
from lamina.clients.oci.resolver import TOO_SLOW, UNREACHABLE, ResolvedImages
from lamina.model.image import Platform
from testbed import made
from testbed.registry_server import RegistryServer
from testbed.slow_proxy import SlowProxy
from tests.unit.clients.oci.registry_stub import Asking, Clock

pytestmark = [pytest.mark.realtime, pytest.mark.testbed("registry")]

AMD64 = Platform()
IMAGE = made.image([made.layer({"a": b"a"})], architecture="amd64")


def rules(*hosts):
    return RegistryConfig(tuple(RegistrySettings(host, plain_http=True, private=True) for host in hosts))


async def reasons(resolver, host, names):
    return [(await resolver.find(f"{host}/app:{name}", [AMD64])).reason for name in names]


@pytest.mark.parametrize(
    ("stop", "go_on", "reason"),
    [
        pytest.param("pause", "resume", TOO_SLOW, id="it says nothing any more"),
        pytest.param("kill", "start", UNREACHABLE, id="it is gone"),
    ],
)
async def test_a_registry_that_fails_is_left_alone_and_found_again(stop, go_on, reason, monkeypatch):
    monkeypatch.setattr(resolver_module, "PATIENCE", 0.5)
    clock = Clock()
    with RegistryServer() as registry:
        reference = made.push(registry.host, "app:1", IMAGE)
        async with Asking(rules(registry.host), clock=clock) as resolver:
            before = await resolver.find(reference, [AMD64])
            getattr(registry.program, stop)()
            failed = await reasons(resolver, registry.host, range(10, 10 + FAILURES))
            began = time.monotonic()
            alone = await reasons(resolver, registry.host, range(20, 120))
            taken = time.monotonic() - began
            known = await resolver.find(reference, [AMD64])
            getattr(registry.program, go_on)()
            clock.now += FIRST
            made.push(registry.host, "app:2", IMAGE)
            monkeypatch.undo()
            after = await resolver.find(f"{registry.host}/app:2", [AMD64])

    assert [ResolvedImages, ResolvedImages, ResolvedImages] == [type(one) for one in (before, known, after)]
    assert [reason] * FAILURES == failed
    assert [UNREACHABLE] * 100 == alone
    assert taken < 2.0, "somebody waited for a registry that is to be left alone"


async def test_a_slow_registry_costs_no_more_than_the_time_that_was_set(registry_server, monkeypatch):
    monkeypatch.setattr(resolver_module, "PATIENCE", 1.0)
    made.push(registry_server.host, "slow:1", IMAGE)
    with SlowProxy(registry_server.host, 50) as slow:
        async with Asking(rules(slow.host)) as resolver:
            began = time.monotonic()
            answer = await resolver.find(f"{slow.host}/slow:1", [AMD64])
            taken = time.monotonic() - began

    assert TOO_SLOW == answer.reason
    assert 0.9 <= taken < 5.0


async def test_others_do_not_wait_for_a_registry_that_says_nothing(registry_server):
    reference = made.push(registry_server.host, "quick:1", IMAGE)
    with RegistryServer() as stuck:
        stuck.program.pause()
        async with Asking(rules(registry_server.host, stuck.host)) as resolver:
            waiting = [
                asyncio.create_task(resolver.find(f"{stuck.host}/app:{number}", [AMD64])) for number in range(100)
            ]
            await asyncio.sleep(0)
            began = time.monotonic()
            found = await resolver.find(reference, [AMD64])
            taken = time.monotonic() - began
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        stuck.program.resume()

    assert isinstance(found, ResolvedImages)
    assert taken < 5.0
