"""What a node's runtime holds, and the room it takes."""

import math

import pytest

from lamina.model.errors import WiringError
from lamina.model.image import Image, Layer
from lamina.simulator.pulls import DiskSpec, NodeImageStore, RuntimeSpec
from lamina.simulator.pulls.image_store import SCAN
from lamina.testing import a_digest, an_image

SET = RuntimeSpec(ratio=2.0)
PREFIX = RuntimeSpec(ratio=2.0, reuse="prefix")
LAZY = RuntimeSpec(ratio=2.0, lazy=0.1)

APP = an_image("app:1", {"base": 60, "runtime": 30, "app": 10})
OTHER = an_image("other:1", {"base": 60, "other": 5})
TURNED = an_image("turned:1", {"runtime": 30, "base": 60})


@pytest.mark.parametrize(
    ("held", "runtime", "missing"),
    [
        pytest.param([], SET, ["base", "runtime", "app"], id="a cold node misses all layers, bottom first"),
        pytest.param([OTHER], SET, ["runtime", "app"], id="a layer of another image counts"),
        pytest.param([APP], SET, [], id="the image itself"),
        pytest.param([TURNED], SET, ["app"], id="kept blobs count wherever they were"),
        pytest.param([OTHER], PREFIX, ["runtime", "app"], id="a prefix counts without blobs"),
        pytest.param([TURNED], PREFIX, ["base", "runtime", "app"], id="without blobs nothing but a prefix counts"),
    ],
)
def test_missing_is_what_no_image_brought(held, runtime, missing):
    store = NodeImageStore(runtime, None, held)

    assert [a_digest(name) for name in missing] == [layer.digest for layer in store.missing(APP)]


def test_a_layer_that_an_image_repeats_is_missed_once():
    """Manifests do list the same empty layer several times."""
    image = an_image("app:1", {"empty": 1, "app": 10})
    twice = type(image)(image.digest, (*image.layers, image.layers[0]), image.names)

    assert [a_digest("empty"), a_digest("app")] == [layer.digest for layer in NodeImageStore(SET).missing(twice)]


def test_layers_packed_differently_are_one_chain_where_diff_ids_say_so():
    """The same content under gzip and zstd: two blobs, one unpacked layer."""
    content = a_digest("content")
    gzip = Image(a_digest("i1"), (Layer(a_digest("gzip"), 10, content, 30),))
    zstd = Image(a_digest("i2"), (Layer(a_digest("zstd"), 8, content, 30),))

    assert () == NodeImageStore(SET, None, [gzip]).missing(zstd)


@pytest.mark.parametrize(
    ("runtime", "used"),
    [
        pytest.param(SET, 105 + 210, id="blobs and unpacked layers"),
        pytest.param(PREFIX, 210, id="unpacked layers only"),
        pytest.param(LAZY, 105, id="what is pulled lazily is not unpacked"),
    ],
)
def test_shared_layers_take_room_once(runtime, used):
    store = NodeImageStore(runtime, None, [APP, OTHER])

    assert (used, 105) == (store.used, store.size)
    assert [APP.digest, OTHER.digest] == list(store.images)


def test_a_layer_takes_the_room_it_says_and_else_the_ratio():
    image = Image(a_digest("i"), (Layer(a_digest("a"), 10), Layer(a_digest("b"), 10, unpacked=90)))

    assert 20 + 20 + 90 == NodeImageStore(SET, None, [image]).used


def test_unpacked_layers_in_another_order_take_room_again():
    assert 100 + 200 + 180 == NodeImageStore(SET, None, [APP, TURNED]).used


def test_an_image_is_not_there_before_its_layers_are():
    with pytest.raises(AssertionError, match="all its layers"):
        NodeImageStore(SET).put_image(NodeImageStore(SET).runtime_image(APP), 0.0)


def test_room_is_promised_up_to_the_last_byte_and_not_beyond():
    store = NodeImageStore(SET, DiskSpec(capacity=100))

    assert [True, False, True, False] == [store.reserve(size) for size in (90, 11, 10, 1)]
    assert (100, 0) == (store.used, store.free)


def test_a_node_cannot_begin_with_more_than_its_disk_holds():
    with pytest.raises(WiringError, match=r"take 300 bytes and its disk has 299; give it a larger disk"):
        NodeImageStore(SET, DiskSpec(capacity=299), [APP])


def test_a_node_without_a_disk_to_speak_of_never_fills():
    store = NodeImageStore(SET)

    assert store.reserve(10**18)
    assert math.inf == store.free


# ------------------------------------------------------------------------------------------------------------- removal


@pytest.mark.parametrize(
    ("removed", "freed"),
    [
        pytest.param(APP, (30 + 10) * 3, id="what only this image had"),
        pytest.param(OTHER, 5 * 3, id="nearly nothing of an image that shares its base"),
    ],
)
def test_removing_an_image_frees_what_no_other_refers_to(removed, freed):
    store = NodeImageStore(SET, None, [APP, OTHER])
    before = store.used

    assert freed == store.remove(removed.digest)
    assert before - freed == store.used
    assert removed.digest not in store.images


def test_an_image_in_use_cannot_be_removed():
    store = NodeImageStore(SET, None, [APP])
    store.acquire(APP, 0.0)

    assert [] == store.removable(1000.0)
    with pytest.raises(AssertionError, match="in use"):
        store.remove(APP.digest)


def test_what_a_pull_uses_outlives_its_image():
    store = NodeImageStore(SET, None, [OTHER])
    runtime_image = store.runtime_image(APP)
    store.use(runtime_image)
    store.remove(OTHER.digest)

    assert [a_digest("base")] == list(store.blobs)
    assert 60 + 120 == store.drop(runtime_image)
    assert (0, {}, {}) == (store.used, store.blobs, store.chains)


# ---------------------------------------------------------------------------------------------- as a kubelet sees them


@pytest.mark.parametrize(
    ("acquired", "released", "last_used"),
    [
        pytest.param(10.0, 20.0, -math.inf, id="between two scans nobody saw it"),
        pytest.param(10.0, 310.0, 300.0, id="the last scan before the pod ended"),
        pytest.param(300.0, 300.0, 300.0, id="a scan at that very moment"),
        pytest.param(10.0, 1499.0, 1200.0, id="long use"),
    ],
)
def test_an_image_was_last_used_when_a_scan_last_found_it_in_use(acquired, released, last_used):
    store = NodeImageStore(SET, None, [APP])
    store.acquire(APP, acquired)
    store.release(APP, released)

    assert [last_used] == [record.last_used for record in store.removable(2000.0)]


def test_an_image_is_in_use_until_the_last_pod_has_done_with_it():
    store = NodeImageStore(SET, None, [APP])
    store.acquire(APP, 0.0)
    store.acquire(APP, 100.0)
    store.release(APP, 200.0)
    in_use = store.removable(250.0)
    store.release(APP, 900.0)

    assert ([], [900.0]) == (in_use, [record.last_used for record in store.removable(901.0)])


@pytest.mark.parametrize(
    ("arrived", "looked", "first_seen"),
    [
        pytest.param(10.0, 500.0, SCAN, id="the scan after it came"),
        pytest.param(SCAN, 500.0, SCAN, id="a scan at that very moment"),
        pytest.param(10.0, 50.0, 50.0, id="a look of the collector is a scan as well"),
    ],
)
def test_an_image_is_first_seen_by_a_scan(arrived, looked, first_seen):
    store = NodeImageStore(SET)
    runtime_image = store.runtime_image(APP)
    store.use(runtime_image)
    store.reserve(sum(runtime_image.unpacked))
    store.put_chains(runtime_image.chains, runtime_image.unpacked)
    store.put_image(runtime_image, arrived)

    assert [first_seen] == [record.first_seen for record in store.removable(looked)]


def test_images_go_in_the_order_of_their_last_use_and_then_of_their_arrival():
    store = NodeImageStore(SET, None, [APP, OTHER, TURNED])
    for image, end in ((APP, 700.0), (TURNED, 400.0)):
        store.acquire(image, 0.0)
        store.release(image, end)

    assert [OTHER, TURNED, APP] == [record.runtime_image.image for record in store.removable(1000.0)]
