"""What strangers pushed: bounded, checked, read once, and left out with a reason."""

import json

import pytest

from lamina.clients.cri.containerd import image_documents
from lamina.clients.cri.containerd.containerd_client import ContainerdClient
from lamina.clients.cri.containerd.image_documents import ContainerdDocuments, UnusableError
from lamina.model.image import Layer, Platform
from testbed import made

BASE, APP = made.layer({"lib/base": b"b" * 1000}), made.layer({"app/main": b"a" * 500}, "zstd")
IMAGE = made.image([BASE, APP], architecture="amd64")
OTHER = made.image([APP], architecture="s390x")


@pytest.fixture
async def read(fake):
    """Documents of the fake, on a node that is linux/amd64."""
    calls = ContainerdClient(fake.socket, "k8s.io")
    read = ContainerdDocuments(calls)
    read.platform = Platform("linux", "amd64")
    yield read
    await calls.close()


def an_index(*entries):
    return made.encode({"schemaVersion": 2, "mediaType": made.INDEX, "manifests": list(entries)})


def a_manifest(**fields):
    """The bytes of the image's manifest, except for *fields*."""
    return made.encode({**json.loads(IMAGE.manifest), **fields})


async def refusal(read, target):
    with pytest.raises(UnusableError) as caught:
        await read.read(target)
    return caught.value.reason


async def test_an_image_has_its_layers_with_both_digests(fake, read):
    fake.store(IMAGE)
    image = await read.read(IMAGE.digest)

    expected = (Layer(BASE.digest, BASE.size, BASE.diff_id), Layer(APP.digest, APP.size, APP.diff_id))
    assert expected == image.layers
    assert (IMAGE.manifest, made.MANIFEST, Platform("linux", "amd64")) == (
        image.manifest,
        image.media_type,
        image.platform,
    )
    assert made.digest(f"{BASE.diff_id} {APP.diff_id}".encode()) == image.top
    assert (BASE.diff_id, image.top) == image.chain()


async def test_a_manifest_of_docker_is_called_so(fake, read):
    image = made.image([BASE], architecture="amd64", docker=True)
    fake.store(image)

    assert made.DOCKER_MANIFEST == (await read.read(image.digest)).media_type


@pytest.mark.parametrize("docker", [False, True], ids=["OCI", "Docker"])
async def test_of_an_index_the_manifest_for_this_node_is_chosen(fake, read, docker):
    index = made.index([OTHER, IMAGE], attestations=True, docker=docker)
    fake.store(IMAGE)
    fake.blob(index.index)

    assert IMAGE.digest == (await read.read(index.digest)).digest
    assert IMAGE.digest == read.known(index.digest).digest


async def test_where_the_best_match_was_not_pulled_the_next_is_taken(fake, read):
    small = made.image([APP], architecture="386")
    index = made.index([IMAGE, small])
    fake.store(small)
    fake.blob(index.index)

    assert small.digest == (await read.read(index.digest)).digest


async def test_an_entry_without_a_platform_has_to_fit_by_its_configuration(fake, read):
    fake.store(IMAGE)
    fake.store(OTHER)
    good = fake.blob(an_index(made.descriptor(made.MANIFEST, IMAGE.manifest)))
    bad = fake.blob(an_index(made.descriptor(made.MANIFEST, OTHER.manifest)))

    assert IMAGE.digest == (await read.read(good)).digest
    assert image_documents.NO_PLATFORM == await refusal(read, bad)


async def test_indexes_within_indexes_are_followed_a_little_way(fake, read):
    fake.store(IMAGE)
    inner = IMAGE.manifest
    depths = []
    for _ in range(4):
        inner = an_index(made.descriptor(made.INDEX, inner))
        depths.append(fake.blob(inner))

    assert IMAGE.digest == (await read.read(depths[2])).digest
    assert image_documents.TOO_DEEP == await refusal(read, depths[3])


def with_config(config):
    """A manifest whose configuration is *config*, and the configuration."""
    return a_manifest(config=made.descriptor(made.CONFIG, config)), config


def config_of(count):
    ids = [made.digest(b"%d" % number) for number in range(count)]
    return made.encode({"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": ids}})


SCHEMA_1 = made.encode({"schemaVersion": 1, "name": "old", "fsLayers": [{"blobSum": BASE.digest}]})
CHART = a_manifest(config=made.descriptor("application/vnd.cncf.helm.config.v1+json", b"{}"))
MANY = a_manifest(layers=[made.descriptor(made.LAYER, BASE.blob)] * 20_000)


@pytest.mark.parametrize(
    ("blobs", "expected"),
    [
        pytest.param((b"not json",), image_documents.MALFORMED, id="no document"),
        pytest.param((b"[" * 100_000,), image_documents.MALFORMED, id="brackets without end"),
        pytest.param((made.encode({}),), image_documents.NO_IMAGE, id="an empty document"),
        pytest.param((SCHEMA_1,), image_documents.NO_IMAGE, id="schema 1"),
        pytest.param((CHART, b"{}"), image_documents.NO_IMAGE, id="a chart"),
        pytest.param((a_manifest(artifactType="a/b"), IMAGE.config), image_documents.NO_IMAGE, id="an artifact"),
        pytest.param((a_manifest(config=None),), image_documents.NO_IMAGE, id="no configuration"),
        pytest.param((a_manifest(layers=[]), IMAGE.config), image_documents.NO_LAYERS, id="no layers"),
        pytest.param((MANY, IMAGE.config), image_documents.MALFORMED, id="20,000 layers"),
        pytest.param((a_manifest(manifests=[]),), image_documents.MALFORMED, id="index and manifest in one"),
        pytest.param((an_index(),), image_documents.NO_PLATFORM, id="an empty index"),
        pytest.param((an_index({"digest": "x"}),), image_documents.MALFORMED, id="an index of no digests"),
        pytest.param(with_config(config_of(1)), image_documents.OTHER_COUNT, id="fewer diff ids than layers"),
        pytest.param(with_config(config_of(300)), image_documents.OTHER_COUNT, id="more diff ids than layers"),
        pytest.param(with_config(b"{"), image_documents.MALFORMED, id="half a configuration"),
        pytest.param(
            with_config(b'{"rootfs": {"diff_ids": ["a", "b"]}}'), image_documents.MALFORMED, id="false diff ids"
        ),
        pytest.param((b" " * (4 * 1024 * 1024 + 1),), image_documents.TOO_LARGE, id="more than 4 MiB"),
        pytest.param(
            with_config(b" " * (4 * 1024 * 1024 + 1)),
            image_documents.TOO_LARGE,
            id="a configuration of more than 4 MiB",
        ),
    ],
)
async def test_what_is_no_usable_image_says_why(fake, read, blobs, expected):
    target, *_ = [fake.blob(blob) for blob in blobs]

    assert expected == await refusal(read, target)
    assert expected == read.refusal(target)


async def test_bytes_that_are_not_what_their_digest_says_are_not_parsed(fake, read):
    fake.store(IMAGE)
    fake.blobs[IMAGE.digest].data = a_manifest(annotations={"another": "one"})

    assert image_documents.FALSE_DIGEST == await refusal(read, IMAGE.digest)


async def test_a_target_that_is_no_digest_is_not_asked_for(fake, read):
    assert image_documents.MALFORMED == await refusal(read, "../../etc/passwd")
    assert 0 == fake.asked["Content/Read"]


async def test_every_document_is_read_once(fake, read):
    fake.store(IMAGE)
    broken = fake.blob(b"{")
    for _ in range(3):
        await read.read(IMAGE.digest)
        assert image_documents.MALFORMED == await refusal(read, broken)

    # Manifest, configuration and the broken one.
    assert 3 == fake.asked["Content/Read"]


async def test_what_is_absent_may_come_later(fake, read):
    assert image_documents.ABSENT == await refusal(read, IMAGE.digest)
    assert "" == read.refusal(IMAGE.digest)
    fake.store(IMAGE)

    assert IMAGE.digest == (await read.read(IMAGE.digest)).digest


async def test_an_index_whose_best_match_may_still_come_is_not_given_up(fake, read):
    broken = b"{"
    index = an_index(made.entry(IMAGE), made.descriptor(made.MANIFEST, broken))
    fake.blob(broken)
    target = fake.blob(index)
    assert image_documents.ABSENT == await refusal(read, target)
    fake.store(IMAGE)

    assert IMAGE.digest == (await read.read(target)).digest


async def test_what_nobody_needs_is_forgotten(fake, read):
    index = made.index([IMAGE])
    fake.store(IMAGE)
    fake.blob(index.index)
    broken = fake.blob(b"{")
    await read.read(index.digest)
    await refusal(read, broken)

    read.keep({index.digest})
    assert read.known(index.digest) is not None
    assert "" == read.refusal(broken)
    read.keep(set())
    assert read.known(index.digest) is None
    assert read.known(IMAGE.digest) is None
