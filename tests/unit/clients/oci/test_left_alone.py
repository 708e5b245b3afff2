"""Registries in trouble are left alone, and a look-up ends when its time is over."""

import asyncio

import pytest

from lamina.clients.oci import resolver as resolver_module
from lamina.clients.oci.circuit_breaker import FAILURES, FIRST
from lamina.clients.oci.resolver import (
    BUSY,
    NO_SUCH_IMAGE,
    TOO_SLOW,
    UNREACHABLE,
    ImageNotFound,
    RegistryResolver,
    ResolvedImages,
)
from tests.unit.clients.oci.registry_stub import (
    AMD64,
    Asking,
    Clock,
    Stub,
    rules_for,
    saying,
)


async def reason(resolver: RegistryResolver, reference: str, **more: object) -> str:
    answer = await resolver.find(reference, [AMD64], **more)  # type: ignore[arg-type]
    assert isinstance(answer, ImageNotFound)
    return answer.reason


# -------------------------------------------------------------------------------------------------------- left alone


async def test_a_registry_in_trouble_is_left_alone_and_tried_again():
    async with Stub() as registry, Asking(rules_for(registry), clock=(clock := Clock())) as resolver:
        registry.always = saying(status="500 Internal Server Error")
        for number in range(FAILURES + 5):
            assert UNREACHABLE == await reason(resolver, f"{registry.host}/a:{number}")
        asked = len(registry.asked)
        clock.now += FIRST
        registry.always = None
        found = await resolver.find(registry.put_image(), [AMD64])

        assert FAILURES == asked
        assert isinstance(found, ResolvedImages)


async def test_a_registry_that_says_when_to_come_back_is_left_alone_until_then():
    async with Stub() as registry, Asking(rules_for(registry), clock=(clock := Clock())) as resolver:
        reference = registry.put_image()
        registry.always = saying(status="429 Too Many Requests", Retry_After="120")
        first = await reason(resolver, reference)
        registry.always = None
        second = await reason(resolver, f"{reference}2")
        clock.now += 119
        third = await reason(resolver, f"{reference}3")
        clock.now += 1
        found = await resolver.find(reference, [AMD64])

        assert (BUSY, UNREACHABLE, UNREACHABLE) == (first, second, third)
        assert isinstance(found, ResolvedImages)
        assert 4 == len(registry.asked)


@pytest.mark.parametrize(
    ("header", "pause"),
    [
        pytest.param({"Retry_After": "7"}, 7, id="seconds"),
        pytest.param({"Retry_After": "0"}, 1, id="at once"),
        pytest.param({"Retry_After": "999999"}, 300, id="too long"),
        pytest.param({"Retry_After": "soon"}, 30, id="nonsense"),
        pytest.param({}, 30, id="nothing"),
        pytest.param(
            {"Retry_After": "Wed, 21 Oct 2026 07:28:40 GMT", "Date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 40, id="a date"
        ),
        pytest.param({"Retry_After": "Wed, 21 Oct 2026 07:28:40 GMT"}, 30, id="a date without today's"),
    ],
)
async def test_how_long_a_registry_wants_to_be_left_alone(header, pause):
    async with Stub() as registry, Asking(rules_for(registry), clock=(clock := Clock())) as resolver:
        registry.always = saying(status="429 Too Many Requests", **header)
        await resolver.find(f"{registry.host}/a:1", [AMD64])
        clock.now += pause - 0.5
        await resolver.find(f"{registry.host}/a:2", [AMD64])
        before = len(registry.asked)
        clock.now += 0.5
        await resolver.find(f"{registry.host}/a:3", [AMD64])

        assert (1, 2) == (before, len(registry.asked))


async def test_refusals_do_not_mean_trouble():
    async with Stub() as registry, Asking(rules_for(registry)) as resolver:
        for number in range(3 * FAILURES):
            assert NO_SUCH_IMAGE == await reason(resolver, f"{registry.host}/a:{number}")

        assert 3 * FAILURES == len(registry.asked)


# ----------------------------------------------------------------------------------------------------------------- end


async def test_closing_ends_what_is_under_way():
    async with Stub() as registry:

        async def never(asked, reply):
            await asyncio.Event().wait()

        registry.always = never
        resolver = RegistryResolver(rules_for(registry))
        task = asyncio.create_task(resolver.find(f"{registry.host}/a:1", [AMD64]))
        while not registry.asked:
            await asyncio.sleep(0.01)
        await resolver.close()

        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_look_up_ends_when_its_time_is_over(monkeypatch):
    monkeypatch.setattr(resolver_module, "PATIENCE", 0.2)
    async with Stub() as registry, Asking(rules_for(registry), clock=Clock()) as resolver:

        async def never(asked, reply):
            await asyncio.Event().wait()

        registry.always = never
        reasons = [await reason(resolver, f"{registry.host}/a:{number}") for number in range(FAILURES + 2)]

        assert [TOO_SLOW] * FAILURES + [UNREACHABLE] * 2 == reasons
        assert FAILURES == len(registry.asked)
