"""Any runtime that speaks CRI, by one that says what it is told to; real ones are in tests/integration/agent."""

import asyncio
import json

import grpc
import pytest

from lamina.clients.cri.plain import cri_client, cri_source
from lamina.clients.cri.plain.cri_source import CriSource
from lamina.clients.cri.protos import cri_pb2
from lamina.clients.cri.runtime_source import RuntimeSourceError
from lamina.model.image import Layer, Platform
from lamina.model.layer_report import NodeRuntime
from tests.unit.clients.cri.plain.spoken import Spoken
from tests.unit.clients.cri.storage.written import sha

A, B = sorted([sha("a"), sha("b")])
CONFIG = {"info": json.dumps({"imageSpec": {"architecture": "amd64", "os": "linux", "rootfs": {"diff_ids": [A]}}})}


def an_image(name: str, *digests: str, tags: tuple[str, ...] = (), size: int = 7, **annotations: str) -> cri_pb2.Image:
    return cri_pb2.Image(
        id=name,
        repo_tags=tags,
        repo_digests=[f"example.com/{name}@{digest}" for digest in digests],
        size=size,
        spec=cri_pb2.ImageSpec(annotations=annotations),
    )


@pytest.fixture
async def runtime():
    async with Spoken() as one:
        yield one


@pytest.fixture
async def looking(runtime):
    one = CriSource(runtime.socket)
    yield one
    await one.close()


async def test_a_look_tells_what_cri_tells(runtime, looking, tmp_path):
    runtime.images = [an_image("web", A, tags=("example.com/web:1", "<none>:<none>"))]
    runtime.info = {"web": CONFIG}
    runtime.mountpoint = str(tmp_path)

    found = await looking.look()

    (image,) = found.images
    assert (NodeRuntime("spoken", "1.0"), "prefix") == (found.runtime, found.reuse)
    assert (A, ("example.com/web:1", f"example.com/web@{A}"), 7) == (image.digest, image.names, image.size)
    assert ((Layer(A, 0, A),), Platform(), b"") == (image.layers, image.platform, image.manifest)
    assert 0 < found.disk_free < found.disk


async def test_layers_in_annotations_make_a_node_whose_blobs_are_reused_in_any_place(runtime, looking):
    runtime.images = [an_image("web", A, **{f"imageLayer.{A}": "10", f"imageLayer.{B}": "20"})]

    found = await looking.look()

    assert "set" == found.reuse
    assert [((Layer(A, 10), Layer(B, 20)), 30)] == [(image.layers, image.size) for image in found.images]


@pytest.mark.parametrize(("name", "reuse"), [("cri-o", "set"), ("containerd", "prefix"), ("docker", "prefix")])
async def test_only_cri_o_is_known_to_reuse_any_layer(runtime, looking, name, reuse):
    runtime.name = name

    assert reuse == (await looking.look()).reuse


async def test_an_image_with_two_digests_is_told_under_both_and_tags_go_to_the_first(runtime, looking):
    runtime.images = [an_image("web", B, A, tags=("example.com/web:1",))]

    found = await looking.look()

    assert [(A, ("example.com/web:1", f"example.com/web@{A}")), (B, (f"example.com/web@{B}",))] == [
        (image.digest, image.names) for image in found.images
    ]


@pytest.mark.parametrize(
    "image",
    [
        pytest.param(an_image("web"), id="no digest: it was never pulled"),
        pytest.param(an_image("web", "sha256:short"), id="no digest, but something else"),
        pytest.param(an_image("", A), id="no id"),
    ],
)
async def test_what_cannot_be_named_is_no_image(runtime, looking, image):
    runtime.images = [image]

    assert () == (await looking.look()).images


async def test_an_image_is_asked_for_once(runtime, looking):
    runtime.images = [an_image("web", A), an_image("db", B)]
    runtime.info = {"web": CONFIG}
    await looking.look()
    runtime.images = [an_image("db", B), an_image("new", A)]
    await looking.look()

    assert 3 == runtime.calls["ImageStatus"]
    assert 2 == runtime.calls["ListImages"]


async def test_an_image_that_goes_while_it_is_asked_for_is_asked_for_again_when_it_is_back(runtime, looking):
    runtime.images, runtime.info, runtime.gone = [an_image("web", A)], {"web": CONFIG}, {"web"}

    assert [()] == [image.layers for image in (await looking.look()).images]
    runtime.gone = set()
    assert [(Layer(A, 0, A),)] == [image.layers for image in (await looking.look()).images]


async def test_no_more_images_are_told_than_a_node_may_list(runtime, looking, monkeypatch):
    monkeypatch.setattr(cri_source, "IMAGE_LIMIT", 3)
    runtime.images = [an_image(f"i{number}", sha(f"{number}")) for number in range(9)]

    assert 3 == len((await looking.look()).images)
    assert 3 == runtime.calls["ImageStatus"]


async def test_a_disk_that_cannot_be_seen_is_not_known(runtime, looking):
    runtime.mountpoint = "/not/mounted/here"

    found = await looking.look()

    assert (0, 0) == (found.disk, found.disk_free)


async def test_a_disk_that_was_named_is_not_asked_for(runtime, tmp_path):
    looking = CriSource(runtime.socket, disk=tmp_path)
    try:
        assert (await looking.look()).disk
    finally:
        await looking.close()
    assert 0 == runtime.calls["ImageFsInfo"]


# ------------------------------------------------------------------------------------------------------------- trouble


@pytest.mark.parametrize("method", ["Version", "ListImages", "ImageStatus", "ImageFsInfo"])
@pytest.mark.parametrize(
    ("code", "words"),
    [
        pytest.param(grpc.StatusCode.INTERNAL, "INTERNAL .as told.: see the log", id="a fault of its own"),
        pytest.param(grpc.StatusCode.UNIMPLEMENTED, "does not support", id="another protocol"),
        pytest.param(grpc.StatusCode.UNAVAILABLE, "no response at", id="not there"),
    ],
)
async def test_a_runtime_that_refuses_is_said_in_one_line(runtime, looking, method, code, words):
    runtime.images = [an_image("web", A)]
    runtime.failing = {method: code}

    with pytest.raises(RuntimeSourceError, match=words) as caught:
        await looking.look()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("method", ["Version", "ListImages", "ImageStatus", "ImageFsInfo"])
async def test_bytes_that_are_no_message_are_trouble(runtime, looking, method):
    runtime.images = [an_image("x", A)]
    runtime.garbled = {method}

    with pytest.raises(
        RuntimeSourceError, match=f"{method}: response of .* cannot be decoded; check that it speaks CRI"
    ):
        await looking.look()


async def test_a_runtime_that_does_not_answer_is_given_up(runtime, looking, monkeypatch):
    monkeypatch.setattr(cri_client, "DEADLINE", 0.1)
    runtime.delay = 5.0

    with pytest.raises(RuntimeSourceError, match=r"no response to Version within 0\.1 s"):
        await looking.look()


async def test_a_list_that_is_too_long_is_not_taken(runtime, looking):
    runtime.images = [an_image("web", A, tags=("x" * (17 * 1024 * 1024),))]

    with pytest.raises(RuntimeSourceError, match="ListImages: RESOURCE_EXHAUSTED"):
        await looking.look()


async def test_nobody_at_the_socket_is_said_in_one_line(tmp_path):
    looking = CriSource(tmp_path / "none.sock")
    try:
        with pytest.raises(RuntimeSourceError, match=r"no response at .*none\.sock"):
            await looking.look()
    finally:
        await looking.close()


async def test_a_runtime_that_comes_back_is_looked_at_again(runtime, looking):
    runtime.images = [an_image("web", A)]
    await looking.look()
    runtime.failing = {"ListImages": grpc.StatusCode.UNAVAILABLE}
    with pytest.raises(RuntimeSourceError):
        await looking.look()
    runtime.failing = {}

    assert 1 == len((await looking.look()).images)


# ------------------------------------------------------------------------------------------------------------- changes


@pytest.mark.realtime
async def test_it_waits_until_the_list_is_another(runtime, looking, monkeypatch):
    monkeypatch.setattr(cri_source, "POLL_SECONDS", 0.05)
    runtime.images = [an_image("web", A)]
    await looking.look()
    waiting = asyncio.ensure_future(looking.changed())
    await asyncio.sleep(0.3)
    assert not waiting.done()

    runtime.images = [an_image("web", A, tags=("example.com/web:2",))]
    await asyncio.wait_for(waiting, 10.0)


async def test_it_looks_again_after_a_while_though_nothing_changed(runtime, looking, monkeypatch):
    monkeypatch.setattr(cri_source, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(cri_source, "FULL_LOOK_SECONDS", 0.2)
    await looking.look()

    await asyncio.wait_for(looking.changed(), 10.0)
