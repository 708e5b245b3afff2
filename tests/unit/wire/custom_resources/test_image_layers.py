"""ImageLayers: a manifest under the name of its digest, and hints that are believed as far as they fit."""

import base64
import json

import pytest

from lamina.model.digest import digest_of
from lamina.model.image import Image, Layer, Platform
from lamina.wire.custom_resources.api_group import METADATA_LIMIT, digest_in, object_name
from lamina.wire.custom_resources.image_layers import (
    MANIFEST_LIMIT,
    SPEC_LIMIT,
    WEIGHT_LIMIT,
    decode_image_layers,
    decode_image_layers_list,
    encode_image_layers,
)
from lamina.wire.errors import WireError
from lamina.wire.oci.manifest import DOCKER_MANIFEST, INDEXES, OCI_MANIFEST, SIZE_LIMIT

BASE, APP = digest_of(b"base"), digest_of(b"app")
DIFF_IDS = [digest_of(b"base, unpacked"), digest_of(b"app, unpacked")]
LAYERS = [{"digest": BASE, "size": 100}, {"digest": APP, "size": 20}]


def a_manifest(**fields) -> bytes:
    document = {"schemaVersion": 2, "mediaType": OCI_MANIFEST, "layers": LAYERS, **fields}
    return json.dumps({name: value for name, value in document.items() if value is not None}).encode()


def an_object(manifest: bytes | None = None, name: str = "", **spec):
    manifest = a_manifest() if manifest is None else manifest
    return {
        "kind": "ImageLayers",
        "metadata": {"name": name or object_name(digest_of(manifest))},
        "spec": {"manifest": base64.b64encode(manifest).decode(), **spec},
    }


def read(value) -> Image:
    return decode_image_layers(json.dumps(value).encode())


def refusal(value) -> str:
    with pytest.raises(WireError) as caught:
        read(value)
    assert 1 == len(str(caught.value).splitlines())
    return str(caught.value)


def test_an_object_becomes_the_image_its_manifest_describes():
    found = read(
        an_object(
            mediaType=OCI_MANIFEST,
            platform={"os": "linux", "architecture": "arm64", "variant": "v8"},
            diffIDs=DIFF_IDS,
            unpackedSizes=[230, 50],
        )
    )

    assert (
        Image(
            digest_of(a_manifest()),
            (Layer(BASE, 100, DIFF_IDS[0], 230), Layer(APP, 20, DIFF_IDS[1], 50)),
            (),
            Platform("linux", "arm64", "v8"),
        )
        == found
    )


def test_a_manifest_alone_is_enough():
    assert Image(digest_of(a_manifest()), (Layer(BASE, 100), Layer(APP, 20))) == read(an_object())


@pytest.mark.parametrize(
    "hints",
    [
        pytest.param({"diffIDs": DIFF_IDS[:1], "unpackedSizes": [230]}, id="too few"),
        pytest.param({"diffIDs": [*DIFF_IDS, BASE], "unpackedSizes": [1, 2, 3]}, id="too many"),
        pytest.param({"diffIDs": ["sha256:1", DIFF_IDS[1]], "unpackedSizes": [-1, 5]}, id="nonsense"),
        pytest.param({"diffIDs": ["sha512:" + "0" * 128] * 2, "unpackedSizes": [0, SIZE_LIMIT + 1]}, id="implausible"),
        pytest.param({"diffIDs": None, "unpackedSizes": None}, id="null"),
    ],
)
def test_hints_that_do_not_fit_are_not_believed_and_do_no_harm(hints):
    assert read(an_object()) == read(an_object(**hints))


@pytest.mark.parametrize(
    "platform",
    [
        pytest.param({"os": "linux"}, id="half of one"),
        pytest.param({"os": "linux", "architecture": "a" * 129}, id="a long one"),
        pytest.param(None, id="none"),
    ],
)
def test_a_platform_that_makes_no_sense_is_the_usual_one(platform):
    assert Platform() == read(an_object(platform=platform)).platform


@pytest.mark.parametrize(
    ("value", "words"),
    [
        pytest.param(an_object(name="sha256-" + "0" * 64), "which does not match its name; delete it", id="a forgery"),
        pytest.param(an_object(name="nginx"), "its name is not sha256- followed by 64", id="a name of another kind"),
        pytest.param(an_object(name="sha256-12"), "its name is not sha256- followed by 64", id="a short name"),
        pytest.param(
            an_object(name="sha512-" + "0" * 128), "its name is not sha256- followed by 64", id="another algorithm"
        ),
        pytest.param(
            {"kind": "ImageLayers", "metadata": {"name": "sha256-" + "0" * 64}}, "it has no manifest", id="empty"
        ),
        pytest.param(an_object(b""), "it has no manifest", id="an empty manifest"),
        pytest.param({**an_object(), "kind": "Secret"}, "this is a Secret", id="another kind"),
        pytest.param(an_object(b"{}"), "schema version 0 is not 2", id="an empty document"),
        pytest.param(an_object(b"{"), "truncated", id="half a document"),
        pytest.param(
            an_object(a_manifest(manifests=[])), "it lists layers and manifests", id="manifest and index at once"
        ),
        pytest.param(
            an_object(a_manifest(mediaType=sorted(INDEXES)[0], layers=None)), "an index of several", id="an index"
        ),
        pytest.param(an_object(a_manifest(mediaType="a\nb")), "a b is not an image manifest", id="two lines"),
        pytest.param(an_object(mediaType=DOCKER_MANIFEST), "it says it is application/vnd.oci", id="called otherwise"),
        pytest.param(
            an_object(a_manifest(layers=[{"digest": BASE, "size": -1}])), "is negative", id="a negative layer"
        ),
        pytest.param(an_object(a_manifest(layers=[{"digest": "x", "size": 1}])), "layers[0]", id="a bad layer"),
        pytest.param(an_object(a_manifest(layers=LAYERS[:1] * 257)), "257 layers", id="too many layers"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(value, words):
    assert words in refusal(value)
    assert refusal(value).startswith("cannot read ImageLayers")


def test_bytes_that_are_no_base64_are_refused():
    value = an_object()
    value["spec"]["manifest"] = "***"

    assert "base64" in refusal(value)


def test_an_object_is_measured_before_it_is_read():
    assert "the limit is 81920" in refusal(an_object(padding="x" * (SPEC_LIMIT + METADATA_LIMIT)))


def test_a_list_is_read_without_forgeries():
    items = [an_object(), an_object(name="sha256-" + "0" * 64)]
    page = decode_image_layers_list(json.dumps({"kind": "ImageLayersList", "items": items}).encode())

    assert ([read(an_object())], 1) == (list(page.items), len(page.refused))
    assert "0" * 64 in str(page.refused[0])


# ---------------------------------------------------------------------------------------------------------------- writing


def test_what_an_agent_writes_is_read_as_it_was_meant():
    data = encode_image_layers(
        a_manifest(),
        media_type=OCI_MANIFEST,
        platform=Platform("linux", "arm", "v7"),
        diff_ids=DIFF_IDS,
        unpacked_sizes=[230, 50],
    )

    assert Image(
        digest_of(a_manifest()),
        (Layer(BASE, 100, DIFF_IDS[0], 230), Layer(APP, 20, DIFF_IDS[1], 50)),
        (),
        Platform("linux", "arm", "v7"),
    ) == decode_image_layers(data)
    assert ("lamina.dev/v1alpha1", "ImageLayers") == tuple(json.loads(data)[name] for name in ("apiVersion", "kind"))


def test_hints_that_do_not_fit_are_not_written():
    spec = json.loads(encode_image_layers(a_manifest(), diff_ids=DIFF_IDS[:1], unpacked_sizes=[-1, 2]))["spec"]

    assert {"manifest", "mediaType"} == set(spec)


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        pytest.param(a_manifest(annotations={"a": "x" * MANIFEST_LIMIT}), "the limit is 48000", id="a large one"),
        pytest.param(b"{}", "schema version", id="none"),
        pytest.param(a_manifest(manifests=[]), "layers and manifests", id="one that could be read in two ways"),
    ],
)
def test_a_manifest_that_no_reader_would_take_is_not_written(manifest, words):
    with pytest.raises(WireError, match=words):
        encode_image_layers(manifest)


def test_hints_give_way_to_a_large_manifest():
    """127 layers with long annotations: no room for diff ids (9,398 bytes), but for sizes (2,540)."""
    layers = [{"digest": digest_of(bytes([n])), "size": n, "annotations": {"toc": "x" * 240}} for n in range(127)]
    data = encode_image_layers(a_manifest(layers=layers), diff_ids=DIFF_IDS[:1] * 127, unpacked_sizes=[9] * 127)
    spec = json.loads(data)["spec"]

    assert WEIGHT_LIMIT < len(spec["manifest"]) + 74 * 127
    assert {"manifest", "mediaType", "unpackedSizes"} == set(spec)
    assert SPEC_LIMIT > len(json.dumps(spec))


def test_a_digest_and_its_name_lead_to_each_other():
    assert (f"sha256-{BASE.removeprefix('sha256:')}", BASE) == (object_name(BASE), digest_in(object_name(BASE)))
