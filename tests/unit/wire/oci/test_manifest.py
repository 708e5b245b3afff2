"""Image manifests: only the bytes that were asked for, only manifests, and no claim believed too far."""

import hashlib
import json

import pytest

from lamina.model.digest import Digest, digest_of
from lamina.model.image import Image, Layer, Platform
from lamina.wire.errors import WireError
from lamina.wire.oci.manifest import (
    DOCKER_MANIFEST,
    INDEXES,
    LAYER_LIMIT,
    MANIFEST_LIMIT,
    OCI_MANIFEST,
    SIZE_LIMIT,
    decode_manifest,
)

BASE, APP = digest_of(b"base"), digest_of(b"app")
GZIP = "application/vnd.oci.image.layer.v1.tar+gzip"


def a_layer(digest=BASE, size=100, **more):
    return {"mediaType": GZIP, "digest": digest, "size": size, **more}


def a_manifest(**fields):
    """The bytes of an OCI manifest with two layers, except for *fields*; None leaves one out."""
    config = {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest_of(b"{}"), "size": 2}
    document = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "config": config,
        "layers": [a_layer(BASE, 100), a_layer(APP, 20)],
        **fields,
    }
    return json.dumps({name: value for name, value in document.items() if value is not None}).encode()


def read(data, **options):
    return decode_manifest(data, digest_of(data), **options)


def refusal(data, **options):
    """What reading *data* is refused with."""
    with pytest.raises(WireError) as caught:
        read(data, **options)
    assert f"cannot read image manifest {digest_of(data)}: {caught.value.problem}" == str(caught.value)
    return caught.value.problem


def test_a_manifest_becomes_an_image_with_layers_from_the_bottom_up():
    data = a_manifest()
    image = read(data, names=("nginx:1.27",), platform=Platform("linux", "arm64"))

    assert (
        Image(
            digest=digest_of(data),
            layers=(Layer(BASE, 100), Layer(APP, 20)),
            names=("nginx:1.27",),
            platform=Platform("linux", "arm64"),
        )
        == image
    )


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"mediaType": DOCKER_MANIFEST}, id="Docker's"),
        pytest.param({"mediaType": None}, id="OCI's, which need not say what it is"),
        pytest.param({"annotations": {"a": "b"}, "subject": {}}, id="with more in it"),
    ],
)
def test_manifests_of_both_schools_are_read(fields):
    assert (Layer(BASE, 100), Layer(APP, 20)) == read(a_manifest(**fields)).layers


@pytest.mark.parametrize("content_type", ["", OCI_MANIFEST, f"{OCI_MANIFEST}; charset=utf-8"])
def test_the_registry_may_say_what_it_serves(content_type):
    assert 120 == read(a_manifest(), content_type=content_type).size


def test_an_image_can_be_empty():
    assert 0 == read(a_manifest(layers=[])).size


def test_a_layer_may_be_listed_twice():
    """The empty layer often is; it is downloaded once."""
    image = read(a_manifest(layers=[a_layer(BASE, 32), a_layer(APP, 20), a_layer(BASE, 32)]))

    assert 3 == len(image.layers)
    assert 52 == image.size


def test_a_claim_beyond_all_measure_counts_as_the_largest_size():
    assert SIZE_LIMIT == read(a_manifest(layers=[a_layer(size=2**70)])).size


def test_a_digest_of_the_longer_kind_is_checked_alike():
    data = a_manifest()
    expected = Digest(f"sha512:{hashlib.sha512(data).hexdigest()}")

    assert expected == decode_manifest(data, expected).digest
    with pytest.raises(WireError, match="the bytes have digest sha512:"):
        decode_manifest(data + b" ", expected)


@pytest.mark.parametrize(
    "data", [pytest.param(a_manifest() + b" ", id="a byte more"), pytest.param(b"not even JSON", id="something else")]
)
def test_bytes_that_were_not_asked_for_are_not_looked_into(data):
    with pytest.raises(WireError, match=f"the bytes have digest {digest_of(data)}; fetch it again"):
        decode_manifest(data, digest_of(a_manifest()))


@pytest.mark.parametrize("media_type", sorted(INDEXES))
def test_an_index_is_not_a_manifest(media_type):
    """Of several platforms, one has to be chosen first."""
    index = {"schemaVersion": 2, "mediaType": media_type, "manifests": [{"digest": BASE, "size": 100}]}

    assert refusal(json.dumps(index).encode()).startswith("this is an index of several platforms; choose one")


LAYERS = [a_layer(digest_of(b"%d" % number)) for number in range(LAYER_LIMIT + 1)]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(b"", "Input data was truncated; check what was pushed", id="nothing"),
        pytest.param(b"[]", "Expected", id="a list"),
        pytest.param(b"[" * 100_000, "Expected", id="deep lists"),
        pytest.param(b'{"config":' + b"[" * 100_000, "maximum recursion depth", id="deep inside"),
        pytest.param(b'{"mediaType":"\xff"}', "'utf-8' codec can't decode", id="not UTF-8"),
        pytest.param(a_manifest(manifests=[]), "it lists layers and manifests", id="readable in two ways"),
        pytest.param(
            a_manifest(layers=None, mediaType=None, manifests=[]),
            "this is an index",
            id="an index that does not say so",
        ),
        pytest.param(b'{"schemaVersion":2,"manifests":null}', "it lists no layers", id="no list of either kind"),
        pytest.param(a_manifest(schemaVersion=1), "schema version 1 is not 2; push", id="the old schema"),
        pytest.param(a_manifest(schemaVersion=None), "schema version 0 is not 2", id="no schema"),
        pytest.param(a_manifest(mediaType="text/html"), "text/html is not an image manifest", id="a web page"),
        pytest.param(a_manifest(layers=None), "it lists no layers; check the reference", id="no layers"),
        pytest.param(a_manifest(layers=[{"digest": BASE}]), "Object missing", id="no size"),
        pytest.param(a_manifest(layers=[a_layer(size="9")]), "Expected", id="size as text"),
        pytest.param(a_manifest(layers=[a_layer(size=1.5)]), "Expected", id="half a byte"),
        pytest.param(
            a_manifest(layers=[a_layer(), a_layer(APP, -1)]), "layers[1]: the size -1 is negative", id="negative size"
        ),
        pytest.param(
            a_manifest(layers=[a_layer("sha256:../../etc")]), "layers[0]: 'sha256:../../etc' is not a digest", id="path"
        ),
        pytest.param(a_manifest(layers=[a_layer(f"md5:{'0' * 32}")]), "layers[0]: 'md5:", id="weak digest"),
        pytest.param(
            a_manifest(layers=[a_layer(BASE, 1), a_layer(BASE, 2)]),
            f"layers[1]: {BASE} is listed again with another size",
            id="one layer, two sizes",
        ),
        pytest.param(a_manifest(layers=LAYERS), "it has 257 layers, the limit is 256", id="too many layers"),
        pytest.param(b" " * (MANIFEST_LIMIT + 1), "it has 4194305 bytes, the limit is 4194304", id="too long"),
    ],
)
def test_what_is_not_a_manifest_we_can_use_is_refused(data, words):
    assert refusal(data).startswith(words)


def test_as_many_layers_and_bytes_as_allowed_are_read():
    data = a_manifest(layers=LAYERS[:-1])

    assert LAYER_LIMIT == len(read(data.ljust(MANIFEST_LIMIT)).layers)


def test_a_document_that_is_one_thing_to_itself_and_another_to_its_registry_is_refused():
    """What it is would depend on whom one believes."""
    problem = refusal(a_manifest(), content_type=DOCKER_MANIFEST)

    assert problem.startswith(f"it says it is {OCI_MANIFEST}, the registry says {DOCKER_MANIFEST}")


def test_an_index_is_recognised_by_what_the_registry_calls_it():
    problem = refusal(a_manifest(mediaType=None), content_type=sorted(INDEXES)[0])

    assert problem.startswith("this is an index")


def test_what_a_stranger_calls_a_document_sends_nothing_to_a_terminal():
    data = a_manifest(mediaType="a\x1b[2J\nb")

    with pytest.raises(WireError, match=r"a \[2J b is not an image manifest") as caught:
        decode_manifest(data, digest_of(data))
    assert str(caught.value).isprintable()
