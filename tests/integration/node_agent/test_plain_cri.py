"""A containerd, seen as a kubelet sees it."""

import asyncio

import pytest

from lamina.clients.cri.plain import cri_source
from lamina.clients.cri.plain.cri_source import CriSource
from lamina.clients.cri.runtime_source import RuntimeSourceError
from lamina.model.image import Layer, Platform
from testbed import made

pytestmark = [
    pytest.mark.realtime,
    pytest.mark.testbed("containerd", "registry"),
    pytest.mark.needs(root=True),
    pytest.mark.slow,
]

BASE = made.layer({"lib/base": made.noise(21, 300_000)})
ZSTD = made.layer({"lib/zstd": made.noise(22, 200_000)}, "zstd")
IMAGE = made.image([BASE, ZSTD])
INDEX = made.index([made.image([ZSTD, BASE]), made.image([ZSTD], architecture="s390x")])

VERSIONS = [
    pytest.param("2.4.2", "2.4.2", id="our own build"),
    pytest.param("debian", "1.6", marks=pytest.mark.needs("containerd", root=True), id="the installed one"),
]


@pytest.fixture
def runtime(registry_server, containerd_factory, request):
    return containerd_factory(registry=registry_server.host, **getattr(request, "param", {}))


@pytest.fixture
async def looking(runtime):
    one = CriSource(runtime.socket)
    yield one
    await one.close()


def push(registry, name, image):
    return made.push(registry.host, f"plain/{name}:1", image)


def unpacked(image):
    return tuple(Layer(each.diff_id, 0, each.diff_id) for each in image.layers)


@pytest.mark.parametrize(("version", "said"), VERSIONS)
async def test_names_digests_and_diff_ids_are_told(registry_server, containerd_factory, version, said):
    """An image of several platforms goes by the digest of its index."""
    runtime = containerd_factory(registry=registry_server.host, version=version)
    references = {
        IMAGE.digest: push(registry_server, "image", IMAGE),
        INDEX.digest: push(registry_server, "index", INDEX),
    }
    for reference in references.values():
        runtime.pull(reference)
    looking = CriSource(runtime.socket)

    found = await looking.look()
    await looking.close()

    assert ("containerd", "prefix") == (found.runtime.name, found.reuse)
    assert said in found.runtime.version
    layers = {IMAGE.digest: unpacked(IMAGE), INDEX.digest: unpacked(INDEX.images[0])}
    assert sorted(layers) == [image.digest for image in found.images]
    assert layers == {image.digest: image.layers for image in found.images}
    assert {Platform("linux", made.machine())} == {image.platform for image in found.images}
    for image in found.images:
        reference = references[image.digest]
        assert (reference, f"{reference.rpartition(':')[0]}@{image.digest}") == image.names
        # containerd counts the documents of an image too.
        assert sum(each.size for each in IMAGE.layers) < image.size
    assert 0 < found.disk_free < found.disk


async def test_a_pull_and_a_removal_are_heard_of(registry_server, runtime, looking, monkeypatch):
    monkeypatch.setattr(cri_source, "POLL_SECONDS", 0.5)
    reference = push(registry_server, "image", IMAGE)
    assert () == (await looking.look()).images
    waiting = asyncio.ensure_future(looking.changed())
    await asyncio.sleep(1.5)
    assert not waiting.done()

    await asyncio.to_thread(runtime.pull, reference)
    await asyncio.wait_for(waiting, 30)
    assert [IMAGE.digest] == [image.digest for image in (await looking.look()).images]
    await asyncio.to_thread(runtime.remove, reference)
    await asyncio.wait_for(looking.changed(), 30)
    assert () == (await looking.look()).images


async def test_a_runtime_that_was_away_is_looked_at_again(registry_server, runtime, looking):
    await asyncio.to_thread(runtime.pull, push(registry_server, "image", IMAGE))
    before = await looking.look()
    runtime.program.kill()
    with pytest.raises(RuntimeSourceError, match="no response"):
        await looking.look()
    await asyncio.to_thread(runtime.program.start)
    await asyncio.sleep(2.5)

    assert before.images == (await looking.look()).images
