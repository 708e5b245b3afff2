"""What runtimes tell of an image beyond CRI's own fields."""

import json

import pytest

from lamina.clients.cri.plain.image_details import CriImageDetails, read_details
from lamina.model.image import Layer, Platform
from lamina.wire.oci.manifest import SIZE_LIMIT
from tests.unit.clients.cri.storage.written import sha

A, B = sorted([sha("a"), sha("b")])
SPEC = {"os": "linux", "architecture": "arm64", "variant": "v8", "rootfs": {"type": "layers", "diff_ids": [B, A]}}
HERE = Platform("linux", "arm64", "v8")
UNPACKED = (Layer(B, 0, B), Layer(A, 0, A))


@pytest.mark.parametrize(
    "info",
    [
        pytest.param({"info": json.dumps({"chainID": A, "imageSpec": SPEC})}, id="containerd"),
        pytest.param({"info": json.dumps({"labels": None, "imageSpec": SPEC})}, id="CRI-O and cri-dockerd"),
        pytest.param({"imageSpec": json.dumps(SPEC)}, id="the configuration by itself"),
        pytest.param({"a": "no JSON", "b": "[7]", "info": json.dumps({"imageSpec": SPEC})}, id="among other things"),
    ],
)
def test_a_configuration_is_found_where_runtimes_put_it(info):
    """The layers are called by their diff ids, bottom first; their sizes are not known."""
    assert CriImageDetails(UNPACKED, platform=HERE) == read_details(info, {})


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(None, id="nothing"),
        pytest.param({"imageSpec": None}, id="null"),
        pytest.param({"imageSpec": 7}, id="a number"),
        pytest.param({"imageSpec": {"rootfs": {"diff_ids": ["sha256:short"]}}}, id="no digests"),
        pytest.param({"imageSpec": {"rootfs": {"diff_ids": [A, "sha256:short"]}}}, id="one that is no digest"),
        pytest.param({"imageSpec": {"rootfs": {"diff_ids": [A] * 257}}}, id="more layers than an image may have"),
    ],
)
def test_what_cannot_be_understood_tells_nothing(spec):
    assert CriImageDetails() == read_details({"info": json.dumps(spec)}, {})


def test_an_endless_text_is_not_read():
    assert CriImageDetails() == read_details({"info": json.dumps({"imageSpec": SPEC}) + " " * (4 * 1024 * 1024)}, {})


def test_layers_as_they_were_pulled_go_before_unpacked_ones():
    annotations = {f"imageLayer.{B}": "20", f"imageLayer.{A}": "10", "other": "x"}

    found = read_details({"info": json.dumps({"imageSpec": SPEC})}, annotations)

    assert CriImageDetails((Layer(A, 10), Layer(B, 20)), as_pulled=True, platform=HERE) == found


@pytest.mark.parametrize(
    ("key", "text", "layers"),
    [
        pytest.param(f"imageLayer.{A}", "0", (Layer(A, 0),), id="nothing in it"),
        pytest.param(f"imageLayer.{A}", "9" * 19, (Layer(A, SIZE_LIMIT),), id="too large to be true"),
        pytest.param(f"imageLayer.{A}", "9" * 5000, (), id="endless"),
        pytest.param(f"imageLayer.{A}", "-1", (), id="negative"),
        pytest.param(f"imageLayer.{A}", "٣", (), id="other digits"),
        pytest.param(f"imageLayer.{A}", "", (), id="empty"),
        pytest.param("imageLayer.sha256:short", "1", (), id="no digest"),
    ],
)
def test_sizes_in_annotations_are_claims(key, text, layers):
    assert layers == read_details({}, {key: text}).layers
