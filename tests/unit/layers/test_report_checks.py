"""Intake: what may be wrong with a report, and what is left of it."""

import math
from typing import Any

import msgspec
import pytest

from lamina.layers.report_checks import (
    IMPLAUSIBLE_FIGURES,
    LARGEST_DISK,
    MOST_IMAGES,
    TOO_MANY_IMAGES,
    cleaned,
    least_bytes,
)
from lamina.model.image import Layer
from lamina.model.layer_report import HeldImage, LayerReport
from lamina.testing import a_digest, held
from tests.unit.layers.shelf import APP, MB, TOOL, stacked

SOUND = LayerReport(
    node="n1",
    node_uid="uid",
    sequence=4,
    observed_at=10.0,
    images=(HeldImage(APP.digest),),
    reuse="set",
    renews_within=60.0,
    download_rate=1e8,
    unpack_rate=2e8,
    disk=1000,
    disk_free=10,
)


def but(**changes: Any) -> LayerReport:
    return msgspec.structs.replace(SOUND, **changes)


@pytest.mark.parametrize(
    "report",
    [
        pytest.param(SOUND, id="with everything"),
        pytest.param(held("n1"), id="with nothing"),
        pytest.param(but(disk=0, disk_free=0), id="nothing about the disk"),
        pytest.param(but(disk_free=0), id="a full disk"),
        pytest.param(but(disk_free=1000), id="an empty disk"),
        pytest.param(but(disk=LARGEST_DISK), id="a large disk"),
        pytest.param(but(images=(HeldImage(APP.digest),) * MOST_IMAGES), id="many images"),
    ],
)
def test_a_sound_report_is_taken_as_it_is(report):
    assert (report, "") == cleaned(report)


@pytest.mark.parametrize("figure", [-1.0, -math.inf, math.inf, math.nan])
@pytest.mark.parametrize("field", ["observed_at", "renews_within", "download_rate", "unpack_rate"])
def test_a_figure_that_cannot_be_counts_as_not_told(field, figure):
    """And so does the disk; what the report says about images stays."""
    assert (but(**{field: 0.0}, disk=0, disk_free=0), IMPLAUSIBLE_FIGURES) == cleaned(but(**{field: figure}))


@pytest.mark.parametrize(
    ("disk", "free"),
    [
        pytest.param(-1, 0, id="a negative disk"),
        pytest.param(-5, -5, id="all of a negative disk"),
        pytest.param(1000, -1, id="negative room"),
        pytest.param(1000, 1001, id="more room than disk"),
        pytest.param(0, 1, id="room on no disk"),
        pytest.param(LARGEST_DISK + 1, 0, id="a disk no machine has"),
        pytest.param(10**400, 10**399, id="a disk no float can hold"),
    ],
)
def test_a_disk_that_cannot_be_counts_as_not_told(disk, free):
    assert (but(disk=0, disk_free=0), IMPLAUSIBLE_FIGURES) == cleaned(but(disk=disk, disk_free=free))


@pytest.mark.parametrize("images", [MOST_IMAGES + 1, 100_000])
def test_more_images_than_any_node_holds_are_cut_off(images):
    many = tuple(HeldImage(a_digest(str(number % 9))) for number in range(images))

    report, complaint = cleaned(but(images=many))
    assert (but(images=many[:MOST_IMAGES]), TOO_MANY_IMAGES) == (report, complaint)


def test_a_report_with_everything_wrong_is_complained_of_once():
    report, complaint = cleaned(but(disk=-1, renews_within=math.nan, images=SOUND.images * 100_000))

    assert IMPLAUSIBLE_FIGURES == complaint
    assert but(disk=0, disk_free=0, renews_within=0.0, images=SOUND.images * MOST_IMAGES) == report


def test_images_take_each_distinct_layer_once():
    """Compressed: 250 + 125 + 125. Less than that no runtime can make of them."""
    assert 500 * MB == least_bytes([APP, TOOL, APP])


@pytest.mark.parametrize("turned", [False, True], ids=["the smaller first", "the larger first"])
def test_of_two_sizes_of_a_layer_the_larger_counts(turned):
    """One of two manifests lies; in whichever order they become known."""
    liar = stacked("liar:1", Layer(APP.layers[0].digest, 300 * MB))

    assert (300 + 125) * MB == least_bytes([liar, APP][:: -1 if turned else 1])
