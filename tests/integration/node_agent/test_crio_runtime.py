"""A real CRI-O: what its files tell is what it pulled, and what it says itself over CRI agrees with them."""

import asyncio
import subprocess

import pytest

from lamina.clients.cri.plain.cri_source import CriSource
from lamina.clients.cri.runtime_discovery import find_source
from lamina.clients.cri.storage.storage_source import StorageSource
from lamina.model.image import Layer
from lamina.model.layer_report import NodeRuntime
from testbed import leftovers, made
from testbed.crio import CriO
from testbed.errors import MissingError
from testbed.fixtures import do_without
from tests.integration.node_agent.held import in_order, told

pytestmark = [
    pytest.mark.realtime,
    pytest.mark.testbed("cri-o", "runc", "registry"),
    pytest.mark.needs(root=True),
    pytest.mark.slow,
]

BASE = made.layer({"lib/base": made.noise(11, 300_000)})
ZSTD = made.layer({"lib/zstd": made.noise(12, 200_000)}, "zstd")
PLAIN = made.layer({"lib/plain": made.noise(13, 100_000)}, "none")
IMAGE = made.image([BASE, ZSTD, PLAIN])
INDEX = made.index([made.image([BASE, PLAIN]), made.image([ZSTD], architecture="s390x")], attestations=True)

DOCKERS = made.image([PLAIN, BASE], docker=True)


@pytest.fixture
def runtime(registry_server):
    try:
        with CriO(registry=registry_server.host) as one:
            yield one
    except MissingError as error:
        do_without(error)


@pytest.fixture
async def over_cri(runtime):
    one = CriSource(runtime.socket)
    yield one
    await one.close()


def push(registry, name, image):
    return made.push(registry.host, f"crio/{name}:1", image)


def named(reference, *digests):
    repository = reference.rpartition(":")[0]
    return [reference, *(f"{repository}@{digest}" for digest in digests)]


async def test_what_it_pulled_is_told_as_it_was_made(registry_server, runtime):
    looking = StorageSource(runtime.root)
    assert () == (await looking.look()).images
    made_here = {"image": IMAGE, "index": INDEX, "dockers": DOCKERS}
    image, index, dockers = (push(registry_server, name, one) for name, one in made_here.items())
    for reference in (image, index, dockers):
        runtime.pull(reference)
    here = INDEX.images[0]

    found = await looking.look()

    assert (NodeRuntime("cri-o"), "set") == (found.runtime, found.reuse)
    assert (
        in_order(
            told(IMAGE, *named(image, IMAGE.digest)),
            told(here, *named(index, here.digest, INDEX.digest)),
            told(DOCKERS, *named(dockers, DOCKERS.digest)),
        )
        == found.images
    )
    runtime.remove(image)
    runtime.remove(dockers)
    assert (told(here, *named(index, here.digest, INDEX.digest)),) == (await looking.look()).images


async def test_an_image_that_was_pulled_by_digest_goes_by_its_digest(registry_server, runtime):
    push(registry_server, "image", IMAGE)
    reference = f"{registry_server.host}/crio/image@{IMAGE.digest}"
    runtime.pull(reference)

    assert (told(IMAGE, reference),) == (await StorageSource(runtime.root).look()).images


async def test_its_own_words_and_its_files_agree(registry_server, runtime, over_cri):
    """Over CRI the digest of an index is an image of its own, and layers are known by their diff ids alone."""
    runtime.pull(push(registry_server, "image", IMAGE))
    runtime.pull(push(registry_server, "index", INDEX))

    files, words = await StorageSource(runtime.root).look(), await over_cri.look()

    assert (NodeRuntime("cri-o", "1.36.3"), "set") == (words.runtime, words.reuse)
    assert {name for image in files.images for name in image.names} == {
        name for image in words.images for name in image.names
    }
    here = INDEX.images[0]
    assert sorted([IMAGE.digest, here.digest, INDEX.digest]) == [image.digest for image in words.images]
    unpacked = {each.digest: [layer.diff_id for layer in each.layers] for each in (IMAGE, here)}
    unpacked[INDEX.digest] = unpacked[here.digest]
    assert unpacked == {image.digest: [layer.diff_id for layer in image.layers] for image in words.images}
    assert all(layer == Layer(layer.digest, 0, layer.digest) for image in words.images for layer in image.layers)
    assert {image.platform for image in files.images} == {image.platform for image in words.images}
    # What is free changes all the time, the disk does not.
    assert files.disk == words.disk


@pytest.mark.needs("skopeo", root=True)
async def test_an_image_may_stand_on_layers_of_a_store_that_is_only_read(registry_server, tmp_path):
    """CRI-O fetches nothing it has there, so only both stores together have the whole image."""
    below, above = made.image([BASE]), made.image([BASE, ZSTD])
    made.write_layout(tmp_path / "layout", "it", below)
    shared = tmp_path / "shared"
    place = f"containers-storage:[overlay@{shared}+{tmp_path / 'run'}]example.com/base:1"
    subprocess.run(["skopeo", "--insecure-policy", "copy", "-q", f"oci:{tmp_path / 'layout'}:it", place], check=True)
    with CriO(registry=registry_server.host, stores=[shared]) as runtime:
        reference = push(registry_server, "above", above)
        runtime.pull(reference)

        alone = await StorageSource(runtime.root).look()
        together = await StorageSource(runtime.root, additional=[shared]).look()
    # The overlay driver mounts its folder onto itself and leaves it so.
    leftovers.unmount(tmp_path)

    assert () == alone.images
    assert (
        in_order(
            told(below, "example.com/base:1", f"example.com/base@{below.digest}"),
            told(above, *named(reference, above.digest)),
        )
        == together.images
    )


async def test_a_runtime_that_is_down_can_still_be_looked_at(registry_server, runtime):
    runtime.pull(push(registry_server, "image", IMAGE))
    runtime.program.kill()

    assert [IMAGE.digest] == [image.digest for image in (await StorageSource(runtime.root).look()).images]


@pytest.mark.parametrize(
    ("wanted", "kind"), [("auto", StorageSource), ("crio", StorageSource), ("cri", CriSource)], ids=str
)
async def test_it_is_found(runtime, wanted, kind):
    source = await find_source(wanted, socket=runtime.socket, storage=runtime.root, disk=None)
    await source.close()

    assert kind is type(source)


async def test_looks_while_it_pulls_never_tell_half_an_image(registry_server, runtime):
    images = [made.image([BASE, made.layer({f"app/{number}": made.noise(number, 2000)}), ZSTD]) for number in range(20)]
    references = [push(registry_server, f"n{number}", image) for number, image in enumerate(images)]
    expected = {
        image.digest: told(image, *named(reference, image.digest))
        for image, reference in zip(images, references, strict=True)
    }
    looking = StorageSource(runtime.root)
    pulling = asyncio.ensure_future(asyncio.to_thread(lambda: [runtime.pull(reference) for reference in references]))
    looks = 0
    while not pulling.done():
        found = (await looking.look()).images
        # An image has no name for a moment: the record comes first.
        assert [expected[image.digest].layers for image in found] == [image.layers for image in found]
        looks += 1
    await pulling

    assert looks > 5
    assert in_order(*expected.values()) == (await looking.look()).images
