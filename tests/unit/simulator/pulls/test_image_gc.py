"""
How images leave a node. Nothing is unpacked here, so that an image takes the room of its blobs.

Node n1 looks 0.32... of a period after the start of each (a checksum of its name), so times are compared, not guessed.
"""

import zlib

import pytest

from lamina.model.image import Image
from lamina.simulator.pulls import DiskSpec, RuntimeSpec
from tests.unit.simulator.pulls.scene import Node, stack

PLAIN = RuntimeSpec(ratio=0.0, slots=1)
SHARE = zlib.crc32(b"n1") / 2**32
FIRST = 300.0 * SHARE
"""The first look of the collector, which is the first scan as well."""

OLD = [stack(f"{name}:1", name) for name in "abcde"]


def disk(**changes: object) -> DiskSpec:
    """Room for ten layers; no eviction manager unless the test says so."""
    return DiskSpec(**{"capacity": 1000, "evict_below": 0.0, **changes})  # type: ignore[arg-type]


def a_node(*held: Image, **changes: object) -> Node:
    return Node(*held, runtime=PLAIN, disk=disk(**changes))


def names(node: Node) -> list[str]:
    return [image.names[0] for image in node.store.images.values()]


def test_the_longest_unused_images_go_until_the_low_mark_is_reached():
    """900 of 1000 bytes: above 85 %, and 100 more than 80 %: one image."""
    node = a_node(*OLD, stack("big:1", "base", size=400))
    node.store.acquire(OLD[0], 0.0)
    node.env.run(until=FIRST + 1.0)

    assert [("collected, 100 bytes", "b:1", round(FIRST, 6))] == node.log
    assert 800 == node.store.used


def test_nothing_goes_below_the_high_mark():
    node = a_node(*OLD, stack("big:1", "base", size=349))
    node.env.run()

    assert ([], 0.0) == (node.log, node.env.now)


def test_the_high_mark_itself_is_too_much():
    node = a_node(*OLD, stack("big:1", "base", size=350))
    node.env.run()

    assert ["a:1"] == [whom for what, whom, _ in node.log if what.startswith("collected")]


def test_images_go_in_the_order_of_their_last_use():
    node = a_node(*OLD, stack("big:1", "base", size=400))
    for image, end in ((OLD[0], 3 * 300.0), (OLD[1], 2 * 300.0)):
        node.store.acquire(image, 0.0)
        node.env.at(end, node.store.release, image, end)
    for image in OLD[2:]:
        node.store.acquire(image, 0.0)
    node.store.acquire(stack("big:1", "base", size=400), 0.0)
    node.env.run()

    assert ["b:1"] == [whom for _, whom, _ in node.log]


def test_images_in_use_stay_and_nobody_looks_while_all_are():
    node = a_node(*OLD, stack("big:1", "base", size=400))
    for image in node.store.images.values():
        node.store.acquire(image, 0.0)
    node.env.run()

    assert ([], 900) == (node.log, node.store.used)
    assert node.env.now <= 300.0


def test_an_image_that_falls_out_of_use_goes_at_the_next_look():
    node = a_node(*OLD, stack("big:1", "base", size=400))
    for image in node.store.images.values():
        node.store.acquire(image, 0.0)
    node.env.at(1000.0, lambda: node.store.release(OLD[3], 1000.0))
    node.env.run()

    assert [("collected, 100 bytes", "d:1", round(FIRST + 900.0, 6))] == node.log


def test_an_image_that_was_just_pulled_stays_until_it_was_seen_long_enough():
    """It comes right before a look, which sees it for the first time; at the next it is five minutes old."""
    node = a_node(stack("big:1", "base", size=800))
    node.store.acquire(stack("big:1", "base", size=800), 0.0)
    node.env.at(FIRST - 2.0, node.ask, OLD[0])
    node.env.run()

    assert ("collected, 100 bytes", "a:1", round(FIRST + 300.0, 6)) == node.log[-1]


@pytest.mark.parametrize(
    ("accounting", "removed"),
    [
        # 860 used, 60 to free. Each image says it is 210 bytes, and only 10 of them are its own.
        pytest.param("reported", 1, id="by what images say: stops too early"),
        pytest.param("real", 6, id="by what became free"),
    ],
)
def test_what_counts_is_what_an_image_says_or_what_became_free(accounting, removed):
    sharing = [Image(image.digest, (*BASE.layers, *image.layers), image.names) for image in SMALL]
    node = a_node(*sharing, stack("big:1", "lib", size=560), accounting=accounting)
    node.store.acquire(stack("big:1", "lib", size=560), 0.0)
    node.env.run(until=FIRST + 1.0)

    assert 860 - 10 * removed == node.store.used
    assert [(f"collected, {10 * removed} bytes", round(FIRST, 6))] == [(what, at) for what, _, at in node.log]


BASE = stack("base:1", "base", size=200)
SMALL = [stack(f"s{number}:1", f"s{number}", size=10) for number in range(10)]


def test_shared_layers_stay_while_an_image_refers_to_them():
    shared = [stack("x:1", "base", "web"), stack("y:1", "base", "api")]
    node = a_node(*shared, stack("big:1", "lib", size=600))
    node.store.acquire(shared[1], 0.0)
    node.store.acquire(stack("big:1", "lib", size=600), 0.0)
    node.env.run(until=FIRST + 1.0)

    assert [("collected, 100 bytes", "x:1", round(FIRST, 6))] == node.log
    assert (3, 3) == (len(node.store.blobs), len(node.store.chains))


# -------------------------------------------------------------------------------------------------------- no room left


EAGER = {"high": 2.0, "evict_below": 0.15}


def test_all_unused_images_go_at_once_when_too_little_is_free():
    node = a_node(*OLD, stack("big:1", "base", size=400), **EAGER)
    node.store.acquire(OLD[2], 0.0)
    node.store.acquire(stack("big:1", "base", size=400), 0.0)
    node.env.run()

    assert [("pressure, 400 bytes", "a:1 b:1 d:1 e:1", round(10.0 * SHARE, 6))] == node.log
    assert ["c:1", "big:1"] == names(node)


def test_exactly_the_threshold_is_enough():
    node = a_node(*OLD, stack("big:1", "base", size=350), **EAGER)
    node.env.run()

    assert ([], 0.0) == (node.log, node.env.now)


def test_disk_pressure_is_told_at_every_look_after_something_changed_until_there_is_room():
    """Pods go one by one, and their images with them; 850 bytes are few enough."""
    node = a_node(*OLD, stack("big:1", "base", size=500), **EAGER)
    for image in node.store.images.values():
        node.store.acquire(image, 0.0)
    node.env.at(20.0, lambda: node.store.release(OLD[0], 20.0))
    node.env.at(40.0, lambda: node.store.release(OLD[1], 40.0))
    node.env.run()
    first, second, third, fourth = (round(after + 10.0 * SHARE, 6) for after in (0.0, 20.0, 30.0, 40.0))

    assert [
        ("pressure", "on", first),
        ("pressure, 100 bytes", "a:1", second),
        ("pressure", "on", second),
        ("pressure", "on", third),  # was that enough? It was not
        ("pressure, 100 bytes", "b:1", fourth),
        ("pressure", "off", fourth),
    ] == node.log


def test_also_in_need_an_image_that_was_just_seen_stays_for_a_while():
    """Kubelet's emergency removal goes through the same sieve as its collection: two minutes from the first look."""
    node = a_node(stack("big:1", "base", size=800), **EAGER)
    node.store.acquire(stack("big:1", "base", size=800), 0.0)
    node.ask(OLD[0])
    node.env.run()
    seen = next(at for what, _, at in node.log if what == "pressure")

    gone = round(seen + 120.0, 6)
    assert [("pressure, 100 bytes", "a:1", gone), ("pressure", "off", gone)] == node.log[-2:]


def test_room_that_is_only_promised_counts():
    """The layer needs 80 s to come; the eviction manager does not wait for it."""
    node = a_node(OLD[0], **EAGER)
    node.ask(stack("big:1", "base", size=800))
    node.env.run()

    assert "pressure, 100 bytes" in {what for what, _, at in node.log if at < 20.0}


def test_nodes_do_not_look_at_the_same_time():
    looks = set()
    for number in range(20):
        node = Node(*OLD, stack("big:1", "base", size=400), runtime=PLAIN, disk=disk(), name=f"n{number}")
        node.env.run()
        looks.add(node.log[0][2])

    assert 20 == len(looks)
    assert all(0.0 <= look < 300.0 for look in looks)


def test_a_node_that_is_back_says_whether_it_still_lacks_room():
    """It was short of room when it went; a pod was ended meanwhile, and another asks when it is back."""
    node = a_node(*OLD[:2], stack("big:1", "base", size=700), **EAGER)
    for image in node.store.images.values():
        node.store.acquire(image, 0.0)
    node.env.at(50.0, node.puller.stop)
    node.env.at(60.0, lambda: node.store.release(OLD[0], 60.0))
    node.env.at(100.0, node.ask, OLD[1])
    node.env.run()

    assert ["on", "a:1", "off"] == [whom for what, whom, _ in node.log if what.startswith("pressure")]
    assert [] == [entry for entry in node.log if 50.0 < entry[2] < 100.0]


def test_nobody_looks_after_a_node_that_is_gone():
    node = a_node(*OLD, stack("big:1", "base", size=400))
    node.store.acquire(OLD[0], 0.0)
    node.puller.stop()
    node.store.release(OLD[0], 0.0)
    node.env.run()

    assert ([], 0.0) == (node.log, node.env.now)
