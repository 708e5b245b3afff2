"""Inventory: images that are described without a name and named by the nodes that hold them."""

import itertools

import msgspec
import pytest

from lamina.layers.inventory import Inventory
from lamina.model.image import Platform
from lamina.model.pod import PodUid
from lamina.testing import held
from tests.unit.layers.shelf import APP, MB, OS, TOOL, but, seconds

ARM = Platform(architecture="arm64")


def nameless(image):
    """The image as an ImageLayers tells of it: what it consists of, and not what it is called."""
    return msgspec.structs.replace(image, names=())


def found(inventory, name="app:1", platform=None):
    image = inventory.catalog.find(name, platform or Platform())
    return None if image is None else image.digest


@pytest.mark.parametrize("order", list(itertools.permutations(["node", "report", "image", "pod"])), ids=", ".join)
def test_a_tag_that_only_a_node_knows_leads_to_layers_that_only_an_object_knows(order):
    """In whichever order they come; the pod is bound to n2, where it waits for the image from then on."""
    inventory = Inventory()
    steps = {
        "node": lambda: (inventory.join("n1", "uid-1", 4), inventory.join("n2", "uid-2", 5)),
        "report": lambda: (inventory.report(held("n1", APP)), inventory.report(held("n2"))),
        "image": lambda: inventory.learn([nameless(APP), nameless(OS)]),
        "pod": lambda: inventory.expect(PodUid("p"), "n2", ("docker.io/library/app:1",)),
    }
    for step in order:
        steps[step]()

    assert APP.digest == found(inventory)
    assert 0 == seconds(inventory, "app:1")
    assert frozenset([APP.digest]) == inventory.index.expected(5)


def test_what_was_kept_by_name_is_judged_anew_when_a_name_gets_a_meaning():
    inventory = Inventory()
    inventory.learn([nameless(APP)])
    inventory.join("n1", "uid-1", 4)
    assert inventory.readiness_cache.readiness(("app:1",)) is None

    before = inventory.meanings
    inventory.report(held("n1", APP))
    assert before < inventory.meanings
    assert inventory.readiness_cache.readiness(("app:1",)) is not None


@pytest.mark.parametrize(
    "report",
    [
        pytest.param(held("n1", APP, sequence=2), id="the same again"),
        pytest.param(held("n1", APP, nameless(TOOL), sequence=2), id="one more, without a name"),
        pytest.param(but(held("n1", APP, sequence=2), download_rate=1e6), id="how fast it is"),
    ],
)
def test_reports_that_name_nothing_new_change_no_meaning(report):
    """Everything that was kept by name would be judged anew for nothing."""
    inventory = Inventory()
    inventory.learn([nameless(APP), nameless(TOOL)])
    inventory.join("n1", "uid-1", 4)
    inventory.report(held("n1", APP))
    before = inventory.meanings
    inventory.report(report)

    assert before == inventory.meanings


def test_names_of_unknown_images_change_no_meaning():
    """There is nothing yet that they could lead to; learning the image is news enough."""
    inventory = Inventory()
    inventory.join("n1", "uid-1", 4)
    inventory.report(held("n1", APP))

    assert 0 == inventory.meanings


def test_names_of_images_that_were_described_by_name_change_no_meaning(inventory):
    """In a simulation, or with a catalog, names are known already."""
    before = inventory.meanings
    inventory.report(held("n1", APP, TOOL))

    assert before == inventory.meanings


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda inventory: inventory.leave("n1"), id="the node leaves"),
        pytest.param(lambda inventory: inventory.withdraw("n1"), id="its report is withdrawn"),
        pytest.param(lambda inventory: inventory.report(held("n1", sequence=2)), id="the image is gone"),
        pytest.param(
            lambda inventory: inventory.report(but(held("n1", APP, sequence=2), disk=MB)), id="it cannot be true"
        ),
    ],
)
def test_a_name_that_no_node_holds_any_longer_means_nothing(end):
    inventory = Inventory()
    inventory.learn([nameless(APP)])
    inventory.join("n1", "uid-1", 4)
    inventory.report(held("n1", APP))
    before = inventory.meanings
    end(inventory)

    assert found(inventory) is None
    assert before < inventory.meanings


def test_a_node_that_turns_out_to_be_of_another_platform_speaks_for_that_one():
    """The kubelet reports it a little later than the node's name."""
    inventory = Inventory()
    inventory.learn([nameless(APP)])
    inventory.join("n1", "uid-1", 4)
    inventory.report(held("n1", APP))
    inventory.join("n1", "uid-1", 4, ARM)

    assert (None, APP.digest) == (found(inventory), found(inventory, platform=ARM))


def test_one_node_cannot_rename_what_the_others_hold():
    inventory = Inventory()
    inventory.learn([nameless(APP), nameless(TOOL)])
    for row in range(3):
        inventory.join(f"n{row}", "", row)
    inventory.report(held("n0", APP))
    inventory.report(held("n1", APP))
    inventory.report(held("n2", msgspec.structs.replace(TOOL, names=APP.names)))

    assert APP.digest == found(inventory)
