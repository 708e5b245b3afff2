"""NodeLayers: what a node's agent wrote, read without believing more than the schema allows."""

import json

import msgspec
import pytest

from lamina.model.digest import digest_of
from lamina.model.image import Platform
from lamina.model.layer_report import ActivePull, HeldImage, LayerReport, NodeRuntime
from lamina.wire.custom_resources.api_group import METADATA_LIMIT
from lamina.wire.custom_resources.node_layers import (
    IMAGE_LIMIT,
    NAME_LENGTH,
    NAME_LIMIT,
    PULL_LIMIT,
    STATUS_LIMIT,
    TEXT_LENGTH,
    decode_node_layers,
    decode_node_layers_list,
)
from lamina.wire.errors import WireError

NGINX, REDIS = digest_of(b"nginx"), digest_of(b"redis")
SHORT_NAME = "docker.io/library/nginx:1.27"


def an_object(name="n1", **status):
    """The NodeLayers of a node, as the API server sends it, except for what *status* says; None leaves a field out."""
    told = {"observedAt": "2026-03-01T12:30:05Z", "sequence": 7, "images": [{"digest": NGINX, "size": 70}], **status}
    return {
        "apiVersion": "lamina.dev/v1alpha1",
        "kind": "NodeLayers",
        "metadata": {"name": name, "uid": "u", "resourceVersion": "12"},
        "status": {field: value for field, value in told.items() if value is not None},
    }


def read(value):
    return decode_node_layers(json.dumps(value).encode())


def refusal(value):
    """What an object is refused with: one line that names it."""
    with pytest.raises(WireError) as caught:
        read(value)
    assert 1 == len(str(caught.value).splitlines())
    return str(caught.value)


def test_an_object_becomes_the_report_of_its_node():
    found = read(
        an_object(
            nodeUID="uid-1",
            runtime={"name": "containerd", "version": "2.1.4"},
            platform={"os": "linux", "architecture": "arm64", "variant": "v8"},
            reuse="Set",
            renewSeconds=600,
            images=[
                {"digest": NGINX, "size": 70, "names": [SHORT_NAME]},
                {"digest": REDIS, "size": 40, "lazy": True},
            ],
            pulling=[{"name": "redis:8", "digest": REDIS, "done": 10, "total": 40}, {"name": "busybox"}],
            diskBytes=1000,
            freeBytes=400,
            downloadRate=125_000_000,
            unpackRate=80_000_000,
        )
    )

    assert (
        LayerReport(
            node="n1",
            node_uid="uid-1",
            sequence=7,
            observed_at=1772368205.0,
            images=(HeldImage(NGINX, 70, (SHORT_NAME,)), HeldImage(REDIS, 40, (), True)),
            reuse="set",
            renews_within=600.0,
            download_rate=125e6,
            unpack_rate=80e6,
            disk=1000,
            disk_free=400,
            pulling=(ActivePull("redis:8", REDIS, 10, 40), ActivePull("busybox")),
            runtime=NodeRuntime("containerd", "2.1.4"),
            platform=Platform("linux", "arm64", "v8"),
        )
        == found
    )


def test_what_an_agent_does_not_tell_is_not_known():
    assert LayerReport(node="n1", observed_at=1772368205.0) == read(an_object(sequence=None, images=None))


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        pytest.param("Prefix", "prefix", id="prefix"),
        pytest.param("Set", "set", id="set"),
        pytest.param("Telepathy", "prefix", id="what a newer agent may say is the lesser promise"),
        pytest.param(None, "prefix", id="left out"),
    ],
)
def test_how_layers_are_reused_is_prefix_unless_said_otherwise(told, meant):
    assert meant == read(an_object(reuse=told)).reuse


@pytest.mark.parametrize(
    "told",
    [
        pytest.param(None, id="nothing"),
        pytest.param({"os": "linux"}, id="half of it"),
        pytest.param({"architecture": "arm64"}, id="the other half"),
    ],
)
def test_a_platform_is_told_whole_or_not_at_all(told):
    assert read(an_object(platform=told)).platform is None


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({"metadata": {"name": "n1"}}, id="no status"),
        pytest.param({"metadata": {"name": "n1"}, "status": {}}, id="an empty status"),
        pytest.param(an_object(observedAt=None), id="a status without a time"),
    ],
)
def test_an_object_without_a_report_does_not_say_that_its_node_holds_nothing(value):
    assert "cannot read NodeLayers n1: its node agent has not reported yet" == refusal(value)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        pytest.param({"kind": "Pod"}, "this is a Pod", id="another kind"),
        pytest.param({"kind": "Pod\nor so"}, "this is a Pod or so", id="another kind, on two lines"),
        pytest.param(an_object(name="n\n1", sequence=-1), "NodeLayers n 1: status", id="a name on two lines"),
        pytest.param([], "Expected `object`", id="no object"),
        pytest.param(an_object(name=""), "it has no name", id="no name"),
        pytest.param(an_object(images=[{"digest": "sha256:12"}]), "'sha256:12' is not a digest", id="a short digest"),
        pytest.param(an_object(images=[{}]), "missing required field `digest`", id="an image without a digest"),
        pytest.param(an_object(images=[{"digest": NGINX, "size": -1}]), "status.images: size: -1", id="negative size"),
        pytest.param(
            an_object(images=[{"digest": NGINX, "names": [""]}]), "a name of 0 characters", id="an empty name"
        ),
        pytest.param(
            an_object(images=[{"digest": NGINX, "names": ["n" * (NAME_LENGTH + 1)]}]),
            "513 characters",
            id="a long name",
        ),
        pytest.param(
            an_object(images=[{"digest": NGINX, "names": ["n"] * (NAME_LIMIT + 1)}]), "17 names", id="many names"
        ),
        pytest.param(an_object(images=[{"digest": NGINX}] * (IMAGE_LIMIT + 1)), "2001 images", id="many images"),
        pytest.param(an_object(pulling=[{}] * (PULL_LIMIT + 1)), "17 pulls", id="many pulls"),
        pytest.param(an_object(pulling=[{"digest": "x"}]), "status.pulling: 'x' is not a digest", id="a bad pull"),
        pytest.param(an_object(pulling=[{"done": -1}]), "status.pulling: done: -1", id="a pull that goes backwards"),
        pytest.param(an_object(sequence=-1), "status.sequence: -1", id="a negative sequence"),
        pytest.param(an_object(freeBytes=2**63), "status.freeBytes: 9223372036854775808", id="more than 64 bits"),
        pytest.param(an_object(downloadRate=-5), "status.downloadRate: -5", id="a negative rate"),
        pytest.param(an_object(downloadRate=1.5), "Expected `int`", id="a rate that is no integer"),
        pytest.param(an_object(nodeUID="u" * (TEXT_LENGTH + 1)), "status.nodeUID: 129 characters", id="a long uid"),
        pytest.param(
            an_object(runtime={"name": "r" * (TEXT_LENGTH + 1)}),
            "status.runtime.name: 129 characters",
            id="a long word",
        ),
        pytest.param(
            an_object(platform={"os": "o" * 129, "architecture": "a"}), "status.platform: 129", id="a long platform"
        ),
        pytest.param(an_object(observedAt="yesterday"), "'yesterday' is not a time", id="no time"),
    ],
)
def test_what_the_schema_does_not_allow_is_refused_in_one_line(value, words):
    assert words in refusal(value)


def test_an_object_is_measured_before_it_is_read():
    value = an_object(padding="x" * (STATUS_LIMIT + METADATA_LIMIT))

    assert "the limit is 278528" in refusal(value)


def test_a_time_before_1970_counts_as_1970():
    """Times are seconds since 1970; no report is older."""
    assert 0.0 == read(an_object(observedAt="1950-01-01T00:00:00Z")).observed_at


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b'{"kind": "NodeLayers"', id="half an object"),
        pytest.param(b'{"status":{"pulling":' + b"[" * 100_000, id="too deep"),
        pytest.param(b"\xff\xfe", id="no text"),
    ],
)
def test_what_is_no_json_is_refused_in_one_line(data):
    with pytest.raises(WireError) as caught:
        decode_node_layers(data)
    assert 1 == len(str(caught.value).splitlines())


def test_an_object_may_come_as_a_part_of_what_was_received():
    """As reflectors hand it on."""
    event = json.dumps({"type": "ADDED", "object": an_object()}).encode()
    parts = msgspec.json.decode(event, type=dict[str, msgspec.Raw])

    assert read(an_object()) == decode_node_layers(parts["object"])


def test_nodes_that_hold_the_same_share_what_was_read():
    one, two = (read(an_object(name=name)).images[0] for name in ("n1", "n2"))

    assert one is two


def a_list(*items, **fields):
    page = {"kind": "NodeLayersList", "metadata": {"resourceVersion": "9", "continue": "c"}, "items": list(items)}
    return json.dumps({**page, **fields}).encode()


def test_a_list_is_read_without_what_cannot_be_read():
    page = decode_node_layers_list(a_list(an_object("n1"), an_object("n2", sequence=-1), an_object("n3")))

    assert ["n1", "n3"] == [report.node for report in page.items]
    assert ["cannot read NodeLayers n2: status.sequence: -1 is not between 0 and 2^63"] == list(map(str, page.refused))
    assert ("9", "c") == (page.resource_version, page.continue_token)


def test_an_empty_list_is_a_list():
    assert () == decode_node_layers_list(a_list(items=None)).items


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(a_list(kind="PodList"), "this is a PodList; ask for a list of nodelayers", id="of another kind"),
        pytest.param(b"{", "truncated", id="half of it"),
    ],
)
def test_what_is_no_such_list_is_refused(data, words):
    with pytest.raises(WireError, match=words) as caught:
        decode_node_layers_list(data)
    assert str(caught.value).startswith("cannot read NodeLayersList: ")


def test_a_list_omits_nodes_without_a_report():
    data = json.dumps({"items": [{"metadata": {"name": "n1"}}, an_object(name="n2")]}).encode()

    page = decode_node_layers_list(data)

    assert (["n2"], ()) == ([report.node for report in page.items], page.refused)
