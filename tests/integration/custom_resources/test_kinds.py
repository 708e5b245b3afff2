"""NodeLayers and ImageLayers on a real API server: what it takes, what it refuses and in which words, what people see."""

import base64
import json

import pytest

from lamina.model.digest import digest_of
from lamina.model.image import Platform
from lamina.model.layer_report import ActivePull, NodeRuntime
from lamina.wire.custom_resources.image_layers import decode_image_layers, decode_image_layers_list
from lamina.wire.custom_resources.node_layers import STATUS_LIMIT, decode_node_layers, decode_node_layers_list
from lamina.wire.custom_resources.node_layers_status import IMAGES_WEIGHT, ImageTotals, encode_node_layers_status
from tests.integration.custom_resources.people import (
    IMAGE_LAYERS,
    NODE_LAYERS,
    a_manifest,
    a_node_layers,
    a_status,
    an_image,
    an_image_layers,
    forget,
    named,
    refused,
)

pytestmark = [pytest.mark.realtime, pytest.mark.slow]

NODE = "ip-192-168-123-234.ec2.internal"
GOOD = digest_of(b"good")


@pytest.fixture
def node_layers(cluster):
    """The path of a NodeLayers whose status nobody has written yet."""
    path = f"{NODE_LAYERS}/{NODE}"
    forget(cluster, path)
    cluster.api("POST", NODE_LAYERS, a_node_layers(NODE))
    yield path
    forget(cluster, path)


@pytest.fixture
def image_layers(cluster):
    """The path of an ImageLayers."""
    path = f"{IMAGE_LAYERS}/{named('kept')}"
    forget(cluster, path)
    cluster.api("POST", IMAGE_LAYERS, an_image_layers("kept", diff_ids=[GOOD], unpacked_sizes=[7]))
    yield path
    forget(cluster, path)


def raw(cluster, path) -> bytes:
    return json.dumps(cluster.api("GET", path)).encode()


# ------------------------------------------------------------------------------------------------------- what people see


def columns(cluster, *words):
    """The heading and the lines of a table."""
    heading, *lines = cluster.kubectl("get", *words).splitlines()
    return heading.split(), lines


def test_node_layers_are_shown_in_80_columns(cluster, node_layers):
    """With the largest figures, and a name as clouds give it."""
    patch = encode_node_layers_status(
        decode_node_layers(
            json.dumps(
                {"metadata": {"name": NODE}, **a_status(an_image(1), runtime=NodeRuntime("containerd", "2.1"))}
            ).encode()
        ),
        ImageTotals(99_999, 900 * 2**30),
    )
    cluster.api("PATCH", f"{node_layers}/status", json.loads(patch))
    heading, lines = columns(cluster, "nl", NODE)

    assert ["NAME", "IMAGES", "LAYERS", "SIZE", "FREE", "FRESH", "AGE"] == heading
    assert 80 >= max(map(len, lines))
    assert [NODE, "1", "99999", "900Gi", "0"] == lines[0].split()[:5]


def test_a_wide_table_tells_more(cluster, node_layers):
    cluster.api("PATCH", f"{node_layers}/status", a_status(runtime=NodeRuntime("containerd", "2.1")))
    heading, lines = columns(cluster, "nl", NODE, "-o", "wide")

    assert ["RUNTIME", "CONDITION"] == heading[-2:]
    assert ["containerd", "Complete"] == lines[0].split()[-2:]


def test_image_layers_are_shown_in_80_columns(cluster, image_layers):
    heading, lines = columns(cluster, "il")

    assert ["NAME", "AGE"] == heading
    assert 80 >= max(map(len, lines))


def test_both_kinds_are_found_by_their_category(cluster, node_layers, image_layers):
    found = cluster.kubectl("get", "layers", "-o", "name")

    assert {f"nodelayers.lamina.dev/{NODE}", f"imagelayers.lamina.dev/{named('kept')}"} <= set(found.split())


def test_fields_are_explained(cluster):
    assert "Prefix" in cluster.kubectl("explain", "nodelayers.status.reuse")


def test_nodes_are_found_by_their_runtime(cluster, node_layers):
    """From 1.31 on; 1.30 knows the field and does not use it."""
    if cluster.version.startswith("1.30."):
        pytest.skip("selectable fields are off by default in 1.30")
    cluster.api("PATCH", f"{node_layers}/status", a_status(runtime=NodeRuntime("cri-o", "1.36")))

    assert NODE in cluster.kubectl("get", "nl", "--field-selector", "status.runtime.name=cri-o", "-o", "name")
    assert NODE not in cluster.kubectl("get", "nl", "--field-selector", "status.runtime.name=docker", "-o", "name")


# ------------------------------------------------------------------------------------------------------------- NodeLayers


def test_what_an_agent_writes_is_read_as_it_was_meant(cluster, node_layers):
    report = decode_node_layers(
        json.dumps(
            {
                "metadata": {"name": NODE},
                **a_status(
                    an_image(1, "registry.example/app:1", size=2**40),
                    an_image(2),
                    node_uid="uid-1",
                    sequence=2**52,
                    renews_within=600.0,
                    download_rate=125e6,
                    disk=2**41,
                    disk_free=2**40,
                    pulling=(ActivePull("registry.example/new:1", GOOD, 5, 10), ActivePull("other:1")),
                    runtime=NodeRuntime("containerd", "2.1.4"),
                    platform=Platform("linux", "arm64", "v8"),
                    reuse="set",
                ),
            }
        ).encode()
    )
    cluster.api("PATCH", f"{node_layers}/status", json.loads(encode_node_layers_status(report)))

    assert report == decode_node_layers(raw(cluster, node_layers))
    assert report in decode_node_layers_list(json.dumps(cluster.api("GET", NODE_LAYERS)).encode()).items


def test_a_patch_leaves_nothing_of_the_report_before(cluster, node_layers):
    first = a_status(an_image(1), pulling=(ActivePull("a:1", GOOD, 1, 2),), platform=Platform("linux", "arm", "v6"))
    cluster.api("PATCH", f"{node_layers}/status", first)
    cluster.api("PATCH", f"{node_layers}/status", a_status())
    found = decode_node_layers(raw(cluster, node_layers))

    assert ((), (), None) == (found.images, found.pulling, found.platform)


def test_a_status_is_written_through_its_own_door_only(cluster, node_layers):
    """So that a role can tell the two apart."""
    cluster.api("PATCH", f"{node_layers}/status", a_status(an_image(1)))
    cluster.api("PATCH", node_layers, {"metadata": {"labels": {"seen": "yes"}}, **a_status()})
    assert 1 == cluster.api("GET", node_layers)["status"]["imageCount"]

    cluster.api("PATCH", f"{node_layers}/status", {"metadata": {"labels": {"seen": "no"}}, **a_status()})
    assert "yes" == cluster.api("GET", node_layers)["metadata"]["labels"]["seen"]


def test_a_status_in_a_new_object_is_not_kept(cluster):
    path = f"{NODE_LAYERS}/fresh"
    forget(cluster, path)

    assert "status" not in cluster.api("POST", NODE_LAYERS, {**a_node_layers("fresh"), **a_status()})
    forget(cluster, path)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        pytest.param({"images": [{"digest": "sha256:12"}]}, "status.images[0].digest", id="a short digest"),
        pytest.param({"images": [{"digest": GOOD.upper()}]}, "status.images[0].digest", id="a digest in capitals"),
        pytest.param({"images": [{"size": 1}]}, "status.images[0].digest", id="no digest"),
        pytest.param({"images": [{"digest": GOOD, "size": -1}]}, "status.images[0].size", id="a negative size"),
        pytest.param({"images": [{"digest": GOOD}] * 2001}, "must have at most 2000 items", id="too many images"),
        pytest.param({"images": [{"digest": GOOD, "names": ["x"] * 17}]}, "at most 16 items", id="too many names"),
        pytest.param({"images": [{"digest": GOOD, "names": ["x" * 513]}]}, "512", id="a long name"),
        pytest.param({"images": [{"digest": GOOD, "names": [""]}]}, "names[0]", id="an empty name"),
        pytest.param({"pulling": [{"done": 1}] * 17}, "at most 16 items", id="too many pulls"),
        pytest.param({"pulling": [{"digest": "x"}]}, "status.pulling[0].digest", id="a pull of nothing"),
        pytest.param({"sequence": -1}, "status.sequence", id="a negative sequence"),
        pytest.param({"freeBytes": -1}, "status.freeBytes", id="less than nothing free"),
        pytest.param({"downloadRate": 1.5}, "status.downloadRate", id="a rate that is no integer"),
        pytest.param({"reuse": "Telepathy"}, "status.reuse", id="an unknown reuse"),
        pytest.param({"observedAt": "yesterday"}, "status.observedAt", id="no time"),
        pytest.param({"observedAt": None}, "status.observedAt", id="without a time"),
        pytest.param({"renewSeconds": 86_401}, "status.renewSeconds", id="a promise for another day"),
        pytest.param({"nodeUID": "u" * 129}, "status.nodeUID", id="a long uid"),
        pytest.param({"conditions": [{"type": "Ready"}]}, "status.conditions[0]", id="half a condition"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(cluster, node_layers, status, words):
    patch = {"status": {"observedAt": "2026-03-01T12:00:00Z", **status}}
    code, message = refused(lambda: cluster.api("PATCH", f"{node_layers}/status", patch))

    assert 422 == code
    # 1.30 counts from the status, newer ones from the object.
    assert words.removeprefix("status.") in message


def test_the_largest_status_that_an_agent_writes_is_taken(cluster, node_layers):
    """As many images as there is room for, and readers take it too."""
    images = [an_image(number, f"registry.example/{'x' * 90}-{number}:1", size=number) for number in range(2500)]
    pulls = tuple(ActivePull("p" * 512, GOOD, 2**62, 2**62) for _ in range(16))
    patch = a_status(*images, pulling=pulls, runtime=NodeRuntime("r" * 128, "v" * 128))
    cluster.api("PATCH", f"{node_layers}/status", patch)
    found = raw(cluster, node_layers)

    assert len(images) > len(patch["status"]["images"]) == len(decode_node_layers(found).images)
    assert "Truncated" in {one["type"] for one in json.loads(found)["status"]["conditions"] if one["status"] == "True"}
    assert 0.9 * IMAGES_WEIGHT < len(json.dumps(patch, separators=(",", ":"))) < STATUS_LIMIT


def test_a_larger_status_is_refused_with_what_to_do(cluster, node_layers):
    """Although no part of it is too large by itself."""
    images = [{"digest": an_image(number).digest, "names": ["x" * 500]} for number in range(500)]
    patch = {"status": {"observedAt": "2026-03-01T12:00:00Z", "images": images}}
    code, message = refused(lambda: cluster.api("PATCH", f"{node_layers}/status", patch))

    assert 422 == code
    assert "leave out the smallest ones and set the condition Truncated" in message


def test_who_wrote_which_field_takes_little_room(cluster, node_layers):
    """Lists are atomic: otherwise every image would be listed twice."""
    cluster.api("PATCH", f"{node_layers}/status", a_status(*(an_image(number) for number in range(500))))

    assert 4096 > len(json.dumps(cluster.api("GET", node_layers)["metadata"]))


# ------------------------------------------------------------------------------------------------------------ ImageLayers


def test_an_image_is_read_as_it_was_written(cluster, image_layers):
    found = decode_image_layers(raw(cluster, image_layers))

    assert (digest_of(a_manifest("kept")), GOOD, 7) == (found.digest, found.layers[0].diff_id, found.layers[0].unpacked)
    assert found in decode_image_layers_list(json.dumps(cluster.api("GET", IMAGE_LAYERS)).encode()).items


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"manifest": base64.b64encode(a_manifest("other")).decode()}, id="its manifest"),
        pytest.param({"diffIDs": [digest_of(b"other")]}, id="a hint"),
        pytest.param({"diffIDs": None}, id="without a hint"),
        pytest.param({"platform": {"os": "linux"}}, id="one hint more"),
    ],
)
def test_an_image_never_changes(cluster, image_layers, change):
    code, message = refused(lambda: cluster.api("PATCH", image_layers, {"spec": change}))

    assert 422 == code
    assert "an ImageLayers never changes, because its name is the digest of its content; create another one" in message


def test_labels_of_an_image_may_change(cluster, image_layers):
    """They say nothing about layers."""
    cluster.api("PATCH", image_layers, {"metadata": {"labels": {"kept": "yes"}}})

    assert "yes" == cluster.api("GET", image_layers)["metadata"]["labels"]["kept"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param({"metadata": {"name": "nginx"}}, "must be the digest of its manifest", id="another name"),
        pytest.param({"metadata": {"name": "sha256-" + "a" * 63}}, "must be the digest", id="a short name"),
        pytest.param({"metadata": {"name": "sha256-" + "a" * 65}}, "must be the digest", id="a long name"),
        pytest.param({"spec": {}}, "spec.manifest", id="no manifest"),
        pytest.param({"spec": None}, "spec", id="no spec"),
        pytest.param({"spec": {"manifest": "***!"}}, "spec.manifest", id="no base64"),
        pytest.param({"spec": {"manifest": "A" * 64_004}}, "spec.manifest", id="a large manifest"),
        pytest.param({"spec": {"manifest": "AAAA", "diffIDs": ["x"]}}, "spec.diffIDs[0]", id="a bad hint"),
        pytest.param({"spec": {"manifest": "AAAA", "diffIDs": [GOOD] * 257}}, "at most 256", id="many hints"),
        pytest.param({"spec": {"manifest": "AAAA", "unpackedSizes": [-1]}}, "spec.unpackedSizes[0]", id="negative"),
        pytest.param(
            {"spec": {"manifest": "A" * 60_000, "diffIDs": [GOOD] * 100}},
            "leave out unpackedSizes",
            id="large together",
        ),
    ],
)
def test_what_is_no_image_is_refused_with_its_place(cluster, change, words):
    value = {**an_image_layers("refused"), **change}
    code, message = refused(lambda: cluster.api("POST", f"{IMAGE_LAYERS}?dryRun=All", value))

    assert 422 == code
    assert words in message


def test_the_largest_object_is_taken_by_server_and_readers(cluster):
    document = json.loads(a_manifest("large"))
    manifest = json.dumps({**document, "annotations": {"x": "y" * 47_800}}).encode()
    value = {**an_image_layers("large"), "spec": {"manifest": base64.b64encode(manifest).decode()}}
    value["metadata"]["name"] = digest_of(manifest).replace(":", "-")
    path = f"{IMAGE_LAYERS}/{value['metadata']['name']}"
    forget(cluster, path)
    cluster.api("POST", IMAGE_LAYERS, value)

    assert digest_of(manifest) == decode_image_layers(raw(cluster, path)).digest
    forget(cluster, path)


def test_a_forgery_is_taken_by_the_server_and_by_no_reader(cluster):
    """The server cannot compute digests; whoever reads does."""
    forged = {**an_image_layers("true"), "metadata": {"name": "sha256-" + "0" * 64}}
    path = f"{IMAGE_LAYERS}/{forged['metadata']['name']}"
    forget(cluster, path)
    cluster.api("POST", IMAGE_LAYERS, forged)
    page = decode_image_layers_list(json.dumps(cluster.api("GET", IMAGE_LAYERS)).encode())
    forget(cluster, path)

    assert "does not match its name" in next(str(error) for error in page.refused if "0" * 64 in str(error))
