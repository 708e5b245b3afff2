"""What a runtime holds, in the words of the pipe: counted once, cut where it is too much, whole where it is not."""

import msgspec
import pytest

from lamina.model.digest import Digest
from lamina.model.image import Layer, Platform
from lamina.model.layer_report import ActivePull, NodeRuntime
from lamina.services.node_agent.inventory_frames import InventoryFrameBuilder, describe_image, is_measured
from lamina.wire.node_agent_frames import FrameCutter, FramePlatform, encode_frame
from tests.unit.services.node_agent.scripted import an_image, holding, unmeasured


def test_a_look_says_what_the_runtime_said():
    pull = ActivePull("big:1", an_image(3).digest, 5, 10)
    look = InventoryFrameBuilder().of(
        holding(an_image(1), reuse="set", pulling=(pull,), download_rate=2.0, unpack_rate=3.0), 7.0
    )

    assert ("containerd", "2.4.2", "set", FramePlatform("linux", "amd64", "")) == (
        look.runtime,
        look.version,
        look.reuse,
        look.platform,
    )
    assert (7.0, 2.0, 3.0, 10**12, 10**11) == (
        look.observed_at,
        look.download_rate,
        look.unpack_rate,
        look.disk,
        look.disk_free,
    )
    assert [(an_image(1).digest, an_image(1).size, an_image(1).names)] == [
        (one.digest, one.size, one.names) for one in look.images
    ]
    assert ("big:1", an_image(3).digest, 5, 10) == msgspec.structs.astuple(look.pulling[0])


def test_a_layer_that_two_images_share_counts_once():
    # 1 and 8 have the same bottom: 5001 packed, 10002 unpacked; the others have 1001 and 1008.
    look = InventoryFrameBuilder().of(holding(an_image(1), an_image(8)), 1.0)

    assert (3, 2 * (5001 + 1001 + 1008)) == (look.layers, look.size)


def test_where_sizes_are_not_known_yet_the_compressed_ones_count():
    assert 5001 + 1001 == InventoryFrameBuilder().of(holding(unmeasured(an_image(1))), 1.0).size


def test_where_a_runtime_tells_nothing_of_layers_the_size_of_images_counts():
    bare = msgspec.structs.replace(an_image(1), layers=(), size=77)

    assert (0, 77) == (
        InventoryFrameBuilder().of(holding(bare), 1.0).layers,
        InventoryFrameBuilder().of(holding(bare), 1.0).size,
    )


def test_whatever_a_runtime_says_is_a_frame():
    odd = holding(
        msgspec.structs.replace(an_image(1), names=("x" * 600, "", "two words"), size=-1),
        runtime=NodeRuntime("r" * 500, "v" * 500),
        platform=Platform("o" * 500, "a", ""),
        pulling=tuple(ActivePull("n" * 900, Digest("sha512:" + "0" * 128), -1, 2**80) for _ in range(40)),
        download_rate=-1.0,
        unpack_rate=1e300,
        disk=-5,
        disk_free=2**90,
    )
    look = InventoryFrameBuilder().of(odd, -1.0)

    assert [look] == list(FrameCutter().feed(encode_frame(look)))


def test_what_seldom_changes_is_worked_out_once():
    looks, images = InventoryFrameBuilder(), holding(*(an_image(one) for one in range(10)))
    first, second = looks.of(images, 1.0), looks.of(msgspec.structs.replace(images, disk_free=5), 2.0)

    assert first.images is second.images
    assert first.images != looks.of(holding(an_image(1)), 3.0).images


def test_a_description_says_what_an_image_consists_of():
    image = an_image(1, layers=3)
    found = describe_image(image)

    assert found is not None
    assert (image.manifest, image.media_type) == (found.manifest, found.media_type)
    assert [layer.diff_id for layer in image.layers] == list(found.diff_ids)
    assert [layer.unpacked for layer in image.layers] == list(found.unpacked)


def test_hints_are_told_for_every_layer_or_for_none():
    image = an_image(1)
    bottom, top = image.layers
    for broken in (
        Layer(top.digest, top.size, None, None),
        Layer(top.digest, top.size, Digest("sha512:" + "0" * 128), None),
    ):
        found = describe_image(msgspec.structs.replace(image, layers=(bottom, broken)))
        assert found is not None
        assert ((), ()) == (found.diff_ids, found.unpacked)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"manifest": b""}, id="no manifest"),
        pytest.param({"manifest": b"x" * 48_001}, id="long manifest"),
        pytest.param({"media_type": "x" * 129}, id="long media type"),
        pytest.param({"layers": an_image(1, layers=257).layers}, id="many layers"),
    ],
)
def test_what_has_no_room_in_an_object_is_not_described(fields):
    assert describe_image(msgspec.structs.replace(an_image(1), **fields)) is None


def test_an_image_is_measured_when_every_layer_is():
    assert is_measured(an_image(1))
    assert not is_measured(unmeasured(an_image(1)))
    assert is_measured(msgspec.structs.replace(an_image(1), layers=()))
