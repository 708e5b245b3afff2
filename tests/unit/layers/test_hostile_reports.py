"""
Inventory with broken or compromised nodes: implausible reports give their own node a condition, and affect no other.
"""

import math
from typing import Any

import pytest

from lamina.layers.catalog import TOO_MANY_LAYERS, TWO_SIZES
from lamina.layers.inventory import Inventory
from lamina.layers.report_checks import IMPLAUSIBLE_FIGURES, MORE_THAN_DISK, MOST_IMAGES, TOO_MANY_IMAGES
from lamina.model.image import Image, Layer
from lamina.model.layer_report import HeldImage, LayerReport
from lamina.testing import a_digest, held
from tests.unit.layers.shelf import APP, APP_ON_OS, COLD_APP, MB, OS, TOOL, but, read, seconds, stacked

UNKNOWN = math.nan


@pytest.fixture
def inventory():
    """Images are known; a node has row 4."""
    made = Inventory()
    made.learn([OS, APP, TOOL])
    made.join("n1", "uid-1", 4)
    return made


def hostile(**changes: Any) -> LayerReport:
    return but(held("n1", APP, node_uid="uid-1"), **changes)


@pytest.mark.parametrize("early", [False, True], ids=["of a node that is there", "before its node"])
@pytest.mark.parametrize(
    ("report", "complaint", "want"),
    [
        pytest.param(hostile(disk=375 * MB - 1), MORE_THAN_DISK, UNKNOWN, id="more bytes than its disk"),
        pytest.param(hostile(disk=1), MORE_THAN_DISK, UNKNOWN, id="a disk of one byte"),
        pytest.param(hostile(disk=-1), IMPLAUSIBLE_FIGURES, 0, id="a negative disk"),
        pytest.param(hostile(disk=10, disk_free=11), IMPLAUSIBLE_FIGURES, 0, id="more room than disk"),
        pytest.param(hostile(disk=10**400), IMPLAUSIBLE_FIGURES, 0, id="a disk no float can hold"),
        pytest.param(hostile(download_rate=-1.0), IMPLAUSIBLE_FIGURES, 0, id="a negative rate"),
        pytest.param(hostile(download_rate=math.nan), IMPLAUSIBLE_FIGURES, 0, id="a rate that is no number"),
        pytest.param(hostile(unpack_rate=math.inf), IMPLAUSIBLE_FIGURES, 0, id="an infinite rate"),
        pytest.param(hostile(renews_within=math.nan), IMPLAUSIBLE_FIGURES, 0, id="a promise that is no number"),
        pytest.param(hostile(observed_at=-math.inf), IMPLAUSIBLE_FIGURES, 0, id="made before all time"),
        pytest.param(
            hostile(images=(*hostile().images, *[HeldImage(a_digest("x"))] * 100_000)),
            TOO_MANY_IMAGES,
            0,
            id="100,000 images",
        ),
        pytest.param(
            hostile(disk=-1, images=(*hostile().images, *[HeldImage(a_digest("x"))] * 100_000)),
            IMPLAUSIBLE_FIGURES,
            0,
            id="everything at once",
        ),
    ],
)
def test_a_report_that_makes_no_sense_costs_its_node_one_condition(report, complaint, want, early):
    """Plausible parts are used, other nodes are not affected, and the next sound report clears the condition."""
    made = Inventory()
    made.learn([OS, APP, TOOL])
    made.join("n2", "", 0)
    made.report(held("n2", APP))
    deeds = [lambda: made.join("n1", "uid-1", 4), lambda: made.report(report)]
    for deed in deeds[::-1] if early else deeds:
        deed()

    assert {complaint: 1} == made.complaints
    assert {"n1": complaint} == made.conditions
    assert want == pytest.approx(seconds(made, "app:1"), nan_ok=True)
    assert 0 == seconds(made, "app:1", row=0)
    made.report(held("n1", TOOL, sequence=2, node_uid="uid-1"))
    assert ({complaint: 1}, {}) == (made.complaints, made.conditions)
    assert APP_ON_OS == pytest.approx(seconds(made, "app:1"))


def test_what_was_believed_before_is_not_believed_after_a_report_that_cannot_be_true(inventory):
    """The node counts as one that reported nothing, and that is news."""
    inventory.report(held("n1", APP))

    assert [4] == inventory.report(hostile(sequence=2, disk=1))
    assert math.isnan(seconds(inventory, "app:1"))
    assert [] == inventory.report(hostile(sequence=3, disk=1))


def test_a_report_may_turn_out_not_to_be_true_when_its_images_become_known(inventory):
    """It is complained of once, however many images in it become known afterwards."""
    images = [stacked(f"x:{number}", read(str(number), 100, 100)) for number in range(4)]
    inventory.report(but(held("n1", *images), disk=150 * MB, disk_free=0))
    told = [inventory.learn([image]) for image in images]

    assert [(True, [4]), (True, [4]), (True, []), (True, [])] == told
    assert ({MORE_THAN_DISK: 1}, {"n1": MORE_THAN_DISK}) == (inventory.complaints, inventory.conditions)


def test_pods_on_their_way_outlast_a_report_that_cannot_be_true(inventory):
    """They follow from bindings, not from reports; and nothing remains of them when they are gone."""
    inventory.report(held("n1"))
    inventory.expect("p", "n1", ("app:1",))
    inventory.report(hostile(sequence=2, disk=1))
    assert {APP.digest} == inventory.index.expected(4)
    inventory.report(held("n1", sequence=3))
    assert COLD_APP == pytest.approx(seconds(inventory, "app:1"))
    inventory.report(hostile(sequence=4, disk=1))
    inventory.gone("p")

    assert {} == inventory.arrivals.etas
    inventory.report(held("n1", APP, sequence=5))
    assert 0 == seconds(inventory, "app:1")


@pytest.mark.parametrize(
    ("image", "complaint", "known"),
    [
        pytest.param(
            Image(a_digest("huge"), (Layer(a_digest("x"), 1),) * 100_000, ("bad:1",)),
            TOO_MANY_LAYERS,
            False,
            id="100,000 layers",
        ),
        pytest.param(
            Image(a_digest("liar"), (Layer(OS.layers[0].digest, 1),), ("bad:1",)),
            TWO_SIZES,
            True,
            id="a layer that had another size",
        ),
    ],
)
def test_an_implausible_image_is_counted_once_and_affects_no_other(inventory, image, complaint, known):
    """Reports that name it are kept, and count for what else they name."""
    inventory.report(held("n1", image, APP))

    assert known == inventory.learn([image])[0]
    assert ({complaint: 1}, {}) == (inventory.catalog.complaints, inventory.conditions)
    assert known == (not math.isnan(seconds(inventory, "bad:1")))
    assert 0 == seconds(inventory, "app:1")


def test_a_node_can_report_as_many_images_as_are_known(inventory):
    """Up to a limit no node reaches."""
    many = [stacked(f"x:{number}", Layer(a_digest(str(number)), 1)) for number in range(300)]
    inventory.learn(many)
    inventory.report(held("n1", *many))

    assert 300 == len(inventory.index.held(4)) < MOST_IMAGES
