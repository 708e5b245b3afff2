"""What an agent writes: all of it, within bounds, and the smallest images left out first."""

import json

import msgspec
import pytest

from lamina.model.digest import Digest, digest_of
from lamina.model.image import Platform
from lamina.model.layer_report import ActivePull, HeldImage, LayerReport, NodeRuntime
from lamina.wire.custom_resources.node_layers import (
    IMAGE_LIMIT,
    NAME_LIMIT,
    PULL_LIMIT,
    STATUS_LIMIT,
    decode_node_layers,
)
from lamina.wire.custom_resources.node_layers_status import (
    ImageTotals,
    NodeLayersCondition,
    decode_conditions,
    encode_node_layers,
    encode_node_layers_status,
    keep,
    short,
    written_time,
)
from lamina.wire.errors import WireError

NOON = 1772366400.0
LATER = "2026-03-01T13:00:00Z"


def an_image(number: int, *names: str, size: int = 1) -> HeldImage:
    return HeldImage(digest_of(str(number).encode()), size, names)


def a_report(*images: HeldImage, **more) -> LayerReport:
    return LayerReport(node="n1", observed_at=NOON, images=images, **more)


def status(report: LayerReport, *words, **more):
    return json.loads(encode_node_layers_status(report, *words, **more))["status"]


def conditions(report: LayerReport, **more):
    return {one["type"]: (one["status"], one["reason"]) for one in status(report, **more)["conditions"]}


def read_back(patch: bytes) -> LayerReport:
    """What a reader makes of an object with this status."""
    return decode_node_layers(msgspec.json.encode({"metadata": {"name": "n1"}, **json.loads(patch)}))


def test_an_object_goes_when_its_node_goes():
    """Its owner is the node; it must not keep the node from going, which would need a right of its own."""
    found = json.loads(encode_node_layers("n1", "uid-1"))

    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "uid-1"}
    assert {
        "apiVersion": "lamina.dev/v1alpha1",
        "kind": "NodeLayers",
        "metadata": {"name": "n1", "ownerReferences": [owner]},
    } == found


def test_a_status_has_every_field_so_that_a_patch_leaves_nothing_old():
    full = a_report(
        an_image(1, "a:1"),
        platform=Platform("linux", "arm64", "v8"),
        pulling=(ActivePull("b:1", digest_of(b"b"), 1, 2),),
        runtime=NodeRuntime("containerd", "2.1.4"),
    )

    assert set(status(full)) == set(status(a_report()))
    assert (None, []) == (status(a_report())["platform"], status(a_report())["pulling"])


def test_the_same_report_gives_the_same_bytes_whatever_the_order_of_its_images():
    images = [an_image(number) for number in range(5)]

    assert encode_node_layers_status(a_report(*images)) == encode_node_layers_status(a_report(*reversed(images)))


def test_people_are_told_in_few_characters():
    found = status(a_report(an_image(1), disk=2 * 2**40, disk_free=90 * 2**30), ImageTotals(layers=3, size=3 * 2**29))

    assert (1, 3, 3 * 2**29) == (found["imageCount"], found["layerCount"], found["bytes"])
    assert {"size": "1.5Gi", "free": "90Gi"} == found["summary"]


@pytest.mark.parametrize(
    ("size", "text"),
    [
        pytest.param(0, "0", id="nothing"),
        pytest.param(999, "999", id="bytes"),
        pytest.param(1000, "1.0Ki", id="four digits are one too many"),
        pytest.param(1536, "1.5Ki", id="a fraction"),
        pytest.param(10 * 2**20, "10Mi", id="no fraction from ten on"),
        pytest.param(int(9.97 * 2**20), "10Mi", id="nearly ten"),
        pytest.param(1023 * 2**30, "1.0Ti", id="nearly a unit more"),
        pytest.param(2**63 - 1, "8.0Ei", id="the largest"),
    ],
)
def test_sizes_are_shown_in_at_most_five_characters(size, text):
    assert text == short(size)
    assert 5 >= len(short(size))


# ----------------------------------------------------------------------------------------------------------------- bounds


def test_a_usual_node_takes_less_than_64_kib():
    """200 images with a tag and the digest of an index each."""
    images = [
        an_image(number, f"registry.example/team/service-{number}:v1.2.3", f"registry.example/team/x@{digest_of(b'i')}")
        for number in range(200)
    ]

    assert 64 * 1024 > len(encode_node_layers_status(a_report(*images)))


def test_the_smallest_images_are_left_out_where_there_are_too_many():
    images = [an_image(number, size=number) for number in range(IMAGE_LIMIT + 3)]
    found = status(a_report(*images))

    assert {one.digest for one in images[3:]} >= {one["digest"] for one in found["images"]}
    assert IMAGE_LIMIT + 3 == found["imageCount"]
    dropped = IMAGE_LIMIT + 3 - len(found["images"])
    assert ("True", "TooManyImages", f"{dropped} of 2003 images are left out, the smallest ones") == next(
        (one["status"], one["reason"], one["message"]) for one in found["conditions"] if one["type"] == "Truncated"
    )


def test_no_status_is_larger_than_an_object_may_be():
    """Whatever its images and pulls are called."""
    names = tuple(f"registry.example/{'long/' * 80}image:{number}" for number in range(NAME_LIMIT))
    pulls = tuple(ActivePull("p" * 9999, digest_of(b"p"), 2**62, 2**62) for _ in range(99))
    report = a_report(*(an_image(number, *names) for number in range(3000)), pulling=pulls)
    patch = encode_node_layers_status(report, trouble="x" * 9999)

    assert STATUS_LIMIT > len(patch)
    assert PULL_LIMIT == len(read_back(patch).pulling)


def test_images_of_one_size_are_kept_in_the_order_of_their_digests():
    images = [an_image(number) for number in range(IMAGE_LIMIT + 9)]

    assert sorted(one.digest for one in images)[: len(keep(images))] == [one.digest for one in keep(images)]


@pytest.mark.parametrize(
    ("names", "told"),
    [
        pytest.param(["a:1", "a:1"], ["a:1"], id="twice"),
        pytest.param([f"a@{digest_of(b'7')}", "a:1"], ["a:1"], id="the digest that it has anyway"),
        pytest.param([f"a@{digest_of(b'8')}"], [f"a@{digest_of(b'8')}"], id="the digest of an index says something"),
        pytest.param(["", "A B", "x" * 600], [], id="what is no name"),
        pytest.param([f"a:{n}" for n in range(20)], [f"a:{n}" for n in range(NAME_LIMIT)], id="very many"),
    ],
)
def test_names_are_told_that_say_something(names, told):
    assert told == [name for image in keep([an_image(7, *names)]) for name in image.names]


def test_an_image_that_has_no_sha256_cannot_be_listed():
    odd = HeldImage(Digest("sha512:" + "0" * 128), 5)

    assert [] == status(a_report(odd))["images"]
    assert ("True", "TooManyImages") == conditions(a_report(odd))["Truncated"]


# ------------------------------------------------------------------------------------------------------------- conditions


def test_conditions_say_that_all_is_well():
    assert {
        "Ready": ("True", "Complete"),
        "RuntimeReachable": ("True", "Answering"),
        "Truncated": ("False", "Complete"),
    } == conditions(a_report(an_image(1)))


def test_conditions_say_when_the_runtime_does_not_answer():
    found = status(a_report(an_image(1)), trouble="no socket")

    assert ("False", "RuntimeUnreachable") == conditions(a_report(), trouble="no socket")["Ready"]
    assert "no socket" == next(one["message"] for one in found["conditions"] if one["type"] == "RuntimeReachable")


def test_a_condition_knows_since_when_it_holds():
    first = encode_node_layers_status(a_report())
    later = msgspec.structs.replace(a_report(), observed_at=NOON + 3600)
    second = encode_node_layers_status(later, trouble="gone", before=decode_conditions(first))

    since = {one.type: one.last_transition_time for one in decode_conditions(second)}
    assert {"Ready": LATER, "RuntimeReachable": LATER, "Truncated": "2026-03-01T12:00:00Z"} == since


@pytest.mark.parametrize(
    "data", [pytest.param(b"{}", id="no status"), pytest.param(b'{"status":{"conditions":null}}', id="none")]
)
def test_an_object_may_have_no_conditions_yet(data):
    assert () == decode_conditions(data)


def test_conditions_that_make_no_sense_are_refused():
    with pytest.raises(WireError, match="cannot read NodeLayers"):
        decode_conditions(b'{"status":{"conditions":[{}]}}')


def test_a_condition_without_a_time_gets_one():
    before = [NodeLayersCondition("Ready", "True", "Complete")]

    assert "2026-03-01T12:00:00Z" == status(a_report(), before=before)["conditions"][0]["lastTransitionTime"]


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        pytest.param(NOON, "2026-03-01T12:00:00Z", id="whole seconds"),
        pytest.param(NOON + 0.25, "2026-03-01T12:00:00.250000Z", id="a fraction"),
        pytest.param(0.0, "1970-01-01T00:00:00Z", id="the first"),
    ],
)
def test_times_are_written_as_kubernetes_writes_them(moment, text):
    assert text == written_time(moment)
