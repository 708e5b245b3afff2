"""Descriptions of images: created where they are missing, complete if that is soon, slowly, and never for nothing."""

import asyncio
import itertools
import json
import random
from typing import Any

import pytest

from lamina.clients.kube.errors import ApiError, UnreachableError
from lamina.model.digest import digest_of
from lamina.services.node_agent.image_layers_writer import (
    AT_ONCE,
    PER_HOUR,
    REFUSED_FOR,
    SIZES_WITHIN,
    THERE_FOR,
    WAITING_BYTES,
    ImageLayersWriter,
)
from lamina.services.node_agent.inventory_frames import describe_image
from lamina.wire.custom_resources.api_group import object_name
from lamina.wire.custom_resources.image_layers import decode_image_layers
from lamina.wire.node_agent_frames import ImageFrame
from tests.unit.services.fakes import Asked, leaping
from tests.unit.services.node_agent.scripted import an_image, unmeasured


class Server:
    """Keeps ImageLayers as an API server would, and does what *refusals* say before."""

    def __init__(self, *stored: str) -> None:
        self.stored: dict[str, bytes] = dict.fromkeys(stored, b"{}")
        self.refusals: list[BaseException | None] = []
        self.asked: list[Asked] = []

    @property
    def verbs(self) -> list[str]:
        return [one.method for one in self.asked]

    async def request(self, method, path, *, query=None, body=None, content_type="", timeout=0.0, limit=0) -> bytes:
        self.asked.append(Asked(method, path, {}, body or b"", asyncio.get_running_loop().time()))
        if self.refusals and (refusal := self.refusals.pop(0)) is not None:
            raise refusal
        name = path.rpartition("/")[2] if method == "GET" else json.loads(body)["metadata"]["name"]
        if method == "GET" and name not in self.stored:
            raise ApiError(f"GET {path}", 404)
        if method == "POST" and name in self.stored:
            raise ApiError(f"POST {path}", 409)
        self.stored[name] = body or b""
        return b"{}"


def describe(server: Server, *steps: Any, holds: range | None = range(100)) -> ImageLayersWriter:
    """Offer one image after the other; numbers are seconds in between."""
    found: list[ImageLayersWriter] = []

    async def story() -> None:
        describer = ImageLayersWriter(server, random.Random(1))
        found.append(describer)
        if holds is not None:
            describer.hold([an_image(one).digest for one in holds])
        running = asyncio.create_task(describer.run())
        for step in steps:
            match step:
                case ImageFrame():
                    describer.offer(step)
                case int() | float():
                    await asyncio.sleep(step)
                case _:
                    step(describer)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    leaping(story())
    return found[0]


def offer(number: int) -> ImageFrame:
    found = describe_image(an_image(number))
    assert found is not None
    return found


def half(number: int) -> ImageFrame:
    found = describe_image(unmeasured(an_image(number)))
    assert found is not None
    return found


def named(number: int) -> str:
    return object_name(an_image(number).digest)


def test_what_is_missing_is_created_with_everything_that_is_known():
    server = Server()
    describe(server, offer(1), 5)
    image = decode_image_layers(server.stored[named(1)])

    assert ["GET", "POST"] == server.verbs
    assert (an_image(1).digest, an_image(1).layers) == (image.digest, image.layers)
    assert an_image(1).platform == image.platform


def test_what_is_there_is_left_alone_and_not_asked_for_again_for_a_day():
    server = Server(named(1))
    describe(server, offer(1), 5, offer(1), 3600, offer(1), 0.85 * THERE_FOR, offer(1), 5)
    assert ["GET"] == server.verbs

    server = Server(named(1))
    describe(server, offer(1), 1.2 * THERE_FOR, offer(1), 5)
    assert ["GET", "GET"] == server.verbs


def test_whether_it_is_there_is_asked_before_sizes_are_waited_for():
    server = Server(named(1))
    describe(server, half(1), 5)

    assert ["GET"] == server.verbs


def test_an_image_waits_for_its_sizes():
    server = Server()
    describe(server, half(1), 20, offer(1), 5)

    assert [("GET", 1000.0), ("POST", 1020.0)] == [(one.method, one.at) for one in server.asked]
    # Twice 5001 and 1001.
    assert 12_004 == sum(layer.unpacked or 0 for layer in decode_image_layers(server.stored[named(1)]).layers)


def test_an_image_does_not_wait_for_ever():
    server = Server()
    describe(server, half(1), SIZES_WITHIN + 5)

    assert SIZES_WITHIN <= server.asked[1].at - server.asked[0].at <= SIZES_WITHIN + 2
    assert {None} == {layer.unpacked for layer in decode_image_layers(server.stored[named(1)]).layers}


def test_sizes_that_were_known_are_not_forgotten_when_an_image_is_offered_without():
    server = Server()
    server.refusals = [UnreachableError("x", "down")]
    describe(server, offer(1), half(1), 5)

    assert None not in {layer.unpacked for layer in decode_image_layers(server.stored[named(1)]).layers}


def test_somebody_else_may_have_been_first():
    server = Server()
    server.refusals = [ApiError("GET", 404), ApiError("POST", 409)]
    describe(server, offer(1), 5, offer(1), 100)

    assert ["GET", "POST"] == server.verbs


def test_at_most_five_requests_a_second_are_made():
    server = Server()
    describe(server, *(offer(one) for one in range(50)), 60)
    times = [one.at for one in server.asked]

    assert 100 == len(times)
    assert all(later - earlier >= 0.2 - 1e-9 for earlier, later in itertools.pairwise(times))


@pytest.mark.parametrize(
    ("verb", "status"), [*(("GET", one) for one in (400, 422)), *(("POST", one) for one in (400, 403, 413, 422))]
)
def test_a_refusal_is_remembered_for_an_hour(verb, status):
    server = Server()
    server.refusals = [*([ApiError("GET", 404)] if verb == "POST" else []), ApiError(verb, status, "No", "no")]
    describe(server, offer(1), 5, offer(1), REFUSED_FOR / 2, offer(1), REFUSED_FOR / 2, offer(1), 5)

    assert [*(["GET"] if verb == "POST" else []), verb, "GET", "POST"] == server.verbs


@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param(ApiError("x", 429, "", "", 7.0), id="asked to wait"),
        pytest.param(ApiError("x", 500), id="server error"),
        pytest.param(UnreachableError("x", "down"), id="nobody there"),
        pytest.param(ApiError("x", 401), id="a token that is not known"),
        pytest.param(ApiError("x", 403), id="no right to ask"),
    ],
)
def test_a_server_in_trouble_is_left_in_peace(refusal):
    server = Server()
    server.refusals = [refusal] * 3
    describe(server, *(offer(one) for one in range(3)), 120)
    gaps = [later.at - earlier.at for earlier, later in zip(server.asked, server.asked[1:4], strict=False)]

    assert all(gap >= (7.0 if isinstance(refusal, ApiError) and refusal.retry_after else 1.0) for gap in gaps)
    assert 3 == len(server.stored)


def test_who_may_not_ask_does_not_ask_for_every_image():
    """A role that was forgotten on a thousand nodes is trouble enough."""
    server = Server()
    server.refusals = [ApiError("x", 403)] * 1000
    describe(server, *(offer(one) for one in range(300)), 3600, holds=range(300))

    assert 60 <= len(server.asked) < 100


def test_what_is_described_in_an_hour_is_bounded():
    """However many images a reader invents; first as many as a node may have, and then some every hour."""
    server = Server()
    counts: list[int] = []
    rounds: list[Any] = []
    for start in range(0, 3000, 500):
        images = [an_image(one) for one in range(start, start + 500)]
        rounds += [
            lambda describer, images=images: describer.hold([image.digest for image in images]),
            *(describe_image(image) for image in images),
            600,
        ]
    describe(server, *rounds, lambda _: counts.append(len(server.stored)), 7200, holds=None)

    assert AT_ONCE <= counts[0] <= AT_ONCE + PER_HOUR + 1
    assert len(server.stored) - counts[0] <= 2 * PER_HOUR + 1


def test_what_the_node_does_not_hold_is_not_described():
    server = Server()
    describe(server, offer(1), offer(2), 5, holds=range(2))

    assert [named(1)] == list(server.stored)


def test_nothing_is_described_before_a_look():
    server = Server()
    describe(server, offer(1), 5, holds=None)

    assert [] == server.asked


def test_an_image_that_is_gone_while_it_waits_is_not_described():
    server = Server()
    describe(server, half(1), 5, lambda describer: describer.hold([]), 100)

    assert ["GET"] == server.verbs


@pytest.mark.parametrize("manifest", [b"{}", b"not json", b'{"manifests": [], "layers": []}'])
def test_a_manifest_that_cannot_be_used_is_not_posted(manifest):
    server = Server()
    odd = ImageFrame(manifest=manifest, unpacked=(1,))
    describe(server, lambda describer: describer.hold([digest_of(manifest)]), odd, 5, odd, 5)

    assert ["GET"] == server.verbs


def test_hints_count_for_what_they_weigh():
    """A short manifest may come with as many diff ids as there can be layers."""
    manifests = [f'{{"schemaVersion": 2, "layers": [], "x": {one}}}'.encode() for one in range(1000)]
    server = Server()
    server.refusals = [UnreachableError("x", "down")] * 9
    waiting: list[int] = []

    def hold(describer: ImageLayersWriter) -> None:
        describer.hold([digest_of(manifest) for manifest in manifests])

    diff_ids = tuple(digest_of(bytes([one])) for one in range(256))
    offers = [ImageFrame(manifest=manifest, diff_ids=diff_ids, unpacked=(2**40,) * 256) for manifest in manifests]
    describe(server, hold, *offers, lambda describer: waiting.append(len(describer._waiting)), 1)

    assert 80 < waiting[0] < 100


def test_what_waits_is_bounded():
    """And what is turned away is taken when it is offered again."""
    many = [an_image(one, filling=40_000) for one in range(120)]
    offers = [found for image in many if (found := describe_image(image)) is not None]
    server = Server()
    server.refusals = [UnreachableError("x", "down")]
    most: list[int] = []

    def hold(describer: ImageLayersWriter) -> None:
        describer.hold([image.digest for image in many])

    def weigh(describer: ImageLayersWriter) -> None:
        most.append(describer._bytes)

    describe(server, hold, *offers, weigh, 100, *offers, 100, weigh)

    assert WAITING_BYTES - 50_000 < most[0] <= WAITING_BYTES
    assert (0, 120) == (most[1], len(server.stored))
