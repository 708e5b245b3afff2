"""
Laws of Lamina's own objects: what an agent writes is read as what it meant, what anybody else writes is read or refused,
and what names mean follows from what nodes hold now, not from the order in which they said so.
"""

import json
from collections import Counter
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.layers.tag_votes import TagVotes
from lamina.model.digest import Digest, digest_of
from lamina.model.image import Image, Layer, Platform
from lamina.model.layer_report import ActivePull, HeldImage, LayerReport, NodeRuntime
from lamina.qos.engine import QosEngine
from lamina.qos.life_cycle_facts import PodCreated
from lamina.qos.promise import ControllerKey, Promise, QosApproach, QosSettings
from lamina.qos.qos_view import qos_view
from lamina.services.scheduler.qos.history_conversion import summary_of
from lamina.wire.custom_resources.image_layers import WEIGHT_LIMIT, decode_image_layers, encode_image_layers
from lamina.wire.custom_resources.node_layers import STATUS_LIMIT, decode_node_layers
from lamina.wire.custom_resources.node_layers_status import IMAGES_WEIGHT, ImageTotals, encode_node_layers_status, keep
from lamina.wire.custom_resources.qos_history import decode_qos_history
from lamina.wire.errors import WireError
from lamina.wire.oci.manifest import DOCKER_MANIFEST, OCI_MANIFEST, SIZE_LIMIT

counts = st.integers(0, 2**53)
digests = st.integers(0, 40).map(lambda number: digest_of(str(number).encode()))
words = st.text(st.characters(codec="utf-8"), max_size=20)
tags = st.integers(0, 9).map(lambda number: f"registry.example/app-{number}:v1")
platforms = st.builds(Platform, st.just("linux"), st.sampled_from(["amd64", "arm64"]), st.sampled_from(["", "v8"]))


def tuples(elements, most=4):
    return st.lists(elements, max_size=most).map(tuple)


images = st.builds(
    HeldImage, digests, counts, tuples(tags).map(lambda names: tuple(dict.fromkeys(names))), st.booleans()
)
reports = st.builds(
    LayerReport,
    node=st.just("n1"),
    node_uid=words,
    sequence=counts,
    observed_at=st.integers(0, 4_000_000_000_000).map(lambda milliseconds: milliseconds / 1000),
    images=st.lists(images, max_size=8, unique_by=lambda image: image.digest).map(
        lambda held: tuple(sorted(held, key=lambda image: image.digest))
    ),
    reuse=st.sampled_from(["prefix", "set"]),
    renews_within=st.integers(0, 86_400).map(float),
    download_rate=counts.map(float),
    unpack_rate=counts.map(float),
    disk=counts,
    disk_free=counts,
    pulling=tuples(st.builds(ActivePull, words, st.none() | digests, counts, counts)),
    runtime=st.builds(NodeRuntime, words, words),
    platform=st.none() | platforms,
)


@given(reports, counts, counts)
def test_a_report_that_an_agent_writes_is_read_as_the_same(report, layers, size):
    patch = encode_node_layers_status(report, ImageTotals(layers, size))
    written = msgspec.json.encode({"metadata": {"name": "n1"}, **json.loads(patch)})

    assert report == decode_node_layers(written)


@given(st.lists(st.builds(HeldImage, digests, counts, tuples(tags, 30)), max_size=60))
def test_what_is_kept_of_a_report_is_the_largest_of_it_and_fits(held):
    kept = keep(held)

    assert sorted((-image.size, image.digest) for image in held)[: len(kept)] == [
        (-one.size, one.digest) for one in kept
    ]
    assert IMAGES_WEIGHT >= sum(128 + sum(3 + len(name) for name in one.names) for one in kept)
    assert STATUS_LIMIT >= len(encode_node_layers_status(LayerReport(node="n1", images=tuple(held))))


@st.composite
def written_images(draw):
    """An image, and the arguments with which an agent writes it."""
    layers = draw(st.lists(st.tuples(digests, st.integers(0, SIZE_LIMIT)), max_size=6, unique_by=lambda one: one[0]))
    count = len(layers)
    media_type = draw(st.sampled_from(["", OCI_MANIFEST, DOCKER_MANIFEST]))
    document = {"schemaVersion": 2, "layers": [{"digest": digest, "size": size} for digest, size in layers]}
    manifest = json.dumps({**document, "mediaType": media_type or None}).encode()
    diff_ids = draw(st.just([None] * count) | st.lists(digests, min_size=count, max_size=count))
    sizes = draw(st.just([None] * count) | st.lists(st.integers(0, SIZE_LIMIT), min_size=count, max_size=count))
    platform = draw(st.none() | platforms)
    image = Image(
        digest_of(manifest),
        tuple(
            Layer(digest, size, diff_id, unpacked)
            for (digest, size), diff_id, unpacked in zip(layers, diff_ids, sizes, strict=True)
        ),
        (),
        platform or Platform(),
    )
    arguments = {
        "media_type": media_type,
        "platform": platform,
        "diff_ids": [one for one in diff_ids if one is not None],
        "unpacked_sizes": [one for one in sizes if one is not None],
    }
    return image, manifest, arguments


@given(written_images())
def test_an_image_that_an_agent_writes_is_read_as_the_same(written):
    image, manifest, arguments = written

    assert image == decode_image_layers(encode_image_layers(manifest, **arguments))


@given(written_images(), st.integers(0, 10_000), st.integers(1, 255))
def test_a_manifest_that_was_touched_is_not_believed(written, where, change):
    """Not even in one bit."""
    _, manifest, arguments = written
    found = json.loads(encode_image_layers(manifest, **arguments))
    touched = bytearray(manifest)
    touched[where % len(touched)] ^= change
    found["spec"]["manifest"] = bytes(touched)

    with pytest.raises(WireError, match="does not match its name"):
        decode_image_layers(msgspec.json.encode(found))


@given(written_images())
def test_what_an_agent_writes_weighs_no_more_than_the_schema_allows(written):
    _, manifest, arguments = written
    spec = json.loads(encode_image_layers(manifest, **arguments))["spec"]

    weight = len(spec["manifest"]) + 74 * len(spec.get("diffIDs", ())) + 20 * len(spec.get("unpackedSizes", ()))
    assert WEIGHT_LIMIT >= weight


# What strangers send: JSON of the right names and any values.
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words | digests,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
NODE_FIELDS = ["nodeUID", "runtime", "platform", "reuse", "sequence", "observedAt", "images", "pulling", "diskBytes"]
IMAGE_FIELDS = ["manifest", "mediaType", "platform", "diffIDs", "unpackedSizes"]


@given(
    st.fixed_dictionaries({"name": words | st.just("n1")}),
    st.dictionaries(st.sampled_from(NODE_FIELDS), values),
    st.dictionaries(st.sampled_from(IMAGE_FIELDS), values),
)
@settings(max_examples=200)
def test_whatever_is_sent_is_read_or_refused_in_one_line(metadata, status, spec):
    document = {"metadata": metadata, "status": {"observedAt": "2026-03-01T12:30:05Z", **status}, "spec": spec}
    for decode in (decode_node_layers, decode_image_layers):
        try:
            decode(json.dumps(document).encode())
        except WireError as error:
            assert 1 == len(str(error).splitlines())  # noqa: PT017 - what is read is fine, too


TIMES = st.dictionaries(
    st.sampled_from(["effective", "discarded", "waiting", "binding"]), st.floats(0, 1e10) | st.integers(-5, 10**11)
)
PODS = st.fixed_dictionaries(
    {"uid": st.sampled_from("abcdef"), "state": st.sampled_from(["effective", "discarded", "waiting", "binding"])},
    optional={"times": TIMES, "ended": st.booleans(), "succeeded": st.booleans()},
)
SLOTS = st.fixed_dictionaries(
    {}, optional={"times": TIMES, "incarnations": counts, "members": st.lists(st.sampled_from("abcdef"), max_size=3)}
)
CONTROLLERS = st.fixed_dictionaries(
    {
        "namespace": st.just("default"),
        "name": st.sampled_from("wxyz"),
        "slo": st.floats(0, 1),
        "importance": st.floats(-1e12, 1e12),
        "approach": st.sampled_from(list(QosApproach)),
        "overheadLimit": st.floats(0, 1),
    },
    optional={
        "kind": st.sampled_from(["", "Job"]),
        "replicas": st.integers(0, 5),
        "times": TIMES,
        "incarnations": counts,
        "succeeded": counts,
        "slots": st.lists(SLOTS, max_size=3),
        "pods": st.lists(PODS, max_size=4),
        "unknown": values,
    },
)


@given(st.lists(CONTROLLERS | st.dictionaries(words, values, max_size=3), max_size=4), st.integers(0, 4_000_000_000))
@settings(max_examples=200)
def test_a_history_that_is_read_can_be_adopted_whatever_it_says(controllers, at):
    """It may contradict itself and the cluster; the figures are never out of bounds."""
    observed = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    document = {"metadata": {"name": "x"}, "spec": {"observedAt": observed, "controllers": controllers}}
    try:
        found = decode_qos_history(json.dumps(document).encode())
    except WireError as error:
        assert 1 == len(str(error).splitlines())  # noqa: PT017 - what is read is adopted
        return
    engine = QosEngine(QosSettings(most_idle=100))
    engine.adopt(summary_of(found), 2e9)
    for one in found.controllers:
        key = ControllerKey(one.namespace, one.kind, one.name)
        promise = Promise(one.slo, one.importance, QosApproach(one.approach), one.overhead_limit)
        engine.feed(PodCreated(2e9 - 5, f"new-{key}-{key.kind}", "default", "new", key, promise, 1), 2e9)
        engine.feed(PodCreated(2e9 - 9, f"a-{key}-{key.kind}", "default", "a", key, promise, 1), 2e9)
    engine.finish_adoption()
    view = qos_view(engine, 2e9 + 5)

    assert all(0 <= each.qos <= 1 for each in view.controllers)
    assert all(0 <= each.qos <= 1 for each in view.replicas)
    assert len(found.controllers) == len(view.controllers)
    written = engine.summary(2e9 + 5, 100, 100)
    assert len(written.controllers) == len(found.controllers)


@given(st.lists(st.tuples(st.integers(0, 3), tuples(images)), max_size=12), st.randoms(use_true_random=False))
def test_what_names_mean_follows_from_what_nodes_hold_now(history, dice):
    """Whatever they held before, and in whichever order they told it."""
    platform = Platform()
    kept, anew = TagVotes(str), TagVotes(str)
    held: dict[int, tuple[HeldImage, ...]] = {}
    meant: dict[str, Digest | None] = {f"registry.example/app-{number}:v1": None for number in range(10)}
    for node, now in history:
        changed = kept.change(platform, held.get(node, ()), now)
        held[node] = now
        moved = {name: digest for name, digest in meant.items() if kept.means(name, platform) != digest}
        assert moved == changed
        meant = {name: kept.means(name, platform) for name in meant}
    nodes = list(held)
    dice.shuffle(nodes)
    for node in nodes:
        anew.change(platform, (), held[node])

    votes: dict[str, Counter[Digest]] = {name: Counter() for name in meant}
    for now in held.values():
        for name, digest in {name: image.digest for image in now for name in image.names}.items():
            votes[name][digest] += 1
    expected = {
        name: max(((count, digest) for digest, count in found.items()), default=(0, None))[1]
        for name, found in votes.items()
    }
    assert expected == meant == {name: anew.means(name, platform) for name in meant}
