"""What nodes of a cluster hold of an image: as their runtimes reuse layers, and as the scheduler counts it."""

import msgspec
import pytest

from lamina.cli.catalog.cluster_images import NodeInCluster
from lamina.cli.image.cluster_holdings import holdings, undescribed
from lamina.layers.inventory import Inventory
from lamina.layers.not_held import not_held_on
from lamina.model.image import Platform
from lamina.testing import an_image, held

WANTED = an_image("team/app:2", {"base": 100, "libs": 50, "app2": 7})
BEFORE = an_image("team/app:1", {"base": 100, "libs": 50, "app1": 5})
LOOSE = an_image("team/tool:1", {"other": 30, "libs": 50})
REPEATING = an_image("team/twice:1", {"base": 100, "empty": 3, "more": 20})
REPEATING = msgspec.structs.replace(REPEATING, layers=(*REPEATING.layers, REPEATING.layers[1]))
IMAGES = (WANTED, BEFORE, LOOSE, REPEATING)
ARM = Platform(architecture="arm64")


def a_node(name, *images, reuse="prefix", platform=None):
    report = msgspec.structs.replace(held(name, *images), reuse=reuse)
    return NodeInCluster(name, platform or Platform(), report)


def one(node, image=WANTED, images=IMAGES):
    (found,), _ = holdings([node], images, image)
    return found


@pytest.mark.parametrize(
    ("images", "reuse", "layers", "missing", "whole"),
    [
        pytest.param([WANTED], "prefix", (0, 1, 2), 0, True, id="the image itself"),
        pytest.param([], "prefix", (), 157, False, id="nothing"),
        pytest.param([BEFORE], "prefix", (0, 1), 7, False, id="the version before: its lower layers"),
        pytest.param([LOOSE], "prefix", (), 157, False, id="a layer on another base does not count by prefix"),
        pytest.param([LOOSE], "set", (1,), 107, False, id="a layer on another base counts where blobs are reused"),
        pytest.param([BEFORE, LOOSE], "set", (0, 1), 7, False, id="two images together"),
    ],
)
def test_a_node_holds_what_its_runtime_can_reuse(images, reuse, layers, missing, whole):
    found = one(a_node("n", *images, reuse=reuse))

    assert (layers, missing, WANTED.size - missing, whole) == (found.layers, found.missing, found.present, found.whole)


@pytest.mark.parametrize("reuse", ["prefix", "set"])
@pytest.mark.parametrize("image", IMAGES, ids=lambda one: one.names[0])
@pytest.mark.parametrize(
    "images", [[WANTED], [BEFORE, LOOSE], [REPEATING], [LOOSE]], ids=["it", "two", "twice", "loose"]
)
def test_the_scheduler_counts_the_same_bytes(image, images, reuse):
    node = a_node("n", *images, reuse=reuse)
    inventory = Inventory()
    inventory.learn(IMAGES)
    inventory.join("n", "", 0)
    inventory.report(node.report)
    inventory.index.want([image])

    assert not_held_on(inventory.index, image, 0)[0] == one(node, image).missing


def test_a_layer_that_an_image_lists_twice_is_pulled_once():
    found = one(a_node("n"), REPEATING)

    assert (REPEATING.size, 0) == (found.missing, found.present)


def test_an_image_whose_layers_are_not_known_brings_nothing():
    assert () == one(a_node("n", BEFORE), images=(WANTED,)).layers


def test_nodes_are_sorted_by_what_they_have_and_a_silent_one_is_last():
    nodes = [NodeInCluster("silent", Platform()), a_node("empty"), a_node("some", BEFORE), a_node("all", WANTED)]
    found, _ = holdings(nodes, IMAGES, WANTED)

    assert ["all", "some", "empty", "silent"] == [one.node for one in found]
    assert [True, True, True, False] == [one.reported for one in found]


def test_nodes_of_other_platforms_are_counted_and_not_listed():
    found, others = holdings([a_node("n"), a_node("arm", platform=ARM)], IMAGES, WANTED)

    assert (["n"], 1) == ([one.node for one in found], others)


@pytest.mark.parametrize(
    ("ref", "images", "count"),
    [
        pytest.param("team/app:2", (BEFORE,), 1, id="held under this name, layers not known"),
        pytest.param("docker.io/team/app:2", (BEFORE,), 1, id="in another spelling"),
        pytest.param("team/app:2", IMAGES, 0, id="layers known"),
        pytest.param("team/other:1", (), 0, id="not held"),
    ],
)
def test_an_image_that_nodes_hold_and_that_is_not_described_is_noticed(ref, images, count):
    nodes = [a_node("n", WANTED), NodeInCluster("silent", Platform())]

    assert count == undescribed(ref, nodes, images)
