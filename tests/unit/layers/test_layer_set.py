"""LayerSet and LayerLines: the layers of a pod's images, without rows."""

import numpy as np

from lamina.layers.layer_index import LayerIndex
from lamina.layers.layer_set import LayerLines, LayerSet
from tests.unit.layers.shelf import APP, BOTTOM, MB, OS, TOOL, read, stacked


def wanted(*images) -> LayerSet:
    return LayerIndex().want(images)


def test_parts_tell_what_is_left_after_so_many_from_the_bottom():
    """The last entry is for the whole image: all layers and the image itself are one more than all layers."""
    parts = LayerLines([4, 5, 6], [0, 0, 0], [10, 200, 3000], [1, 2, 3])

    assert [3210, 3200, 3000, 0, 0] == parts.download_after.tolist()
    assert [6, 5, 3, 0, 0] == parts.unpack_after.tolist()
    assert (3210.0, 6.0) == (parts.total, parts.total_unpacked)


def test_parts_without_other_lines_have_none():
    """Then they need no lookup."""
    assert LayerLines([4], [0], [1], [1]).others is None
    assert [0, 9] == LayerLines([4, 5], [0, 9], [1, 1], [1, 1]).others.tolist()


def test_what_is_wanted_is_every_distinct_layer_with_its_size():
    """Over all images of a pod; the total is what a node that has nothing downloads."""
    both = wanted(APP, TOOL, APP)

    assert (APP, TOOL) == both.images
    assert {layer.digest: layer.size for image in (APP, TOOL) for layer in image.layers} == both.sizes
    assert (250 + 125 + 125) * MB == both.total


def test_a_layer_listed_twice_is_wanted_once_as_a_blob_and_twice_unpacked():
    """It lies on something else each time."""
    twice = wanted(stacked("x", BOTTOM, read("top", 5, 7), BOTTOM))

    assert (255 * MB, 255 * MB) == (twice.total, twice.chains.total)
    assert (2, 3) == (len(twice.blobs.lines), len(twice.chains.lines))
    assert (400 + 7 + 400) * MB == twice.chains.total_unpacked


def test_weights_say_what_a_line_counts_for():
    """Chains, then images, then blobs; bytes by chain, unpacked bytes, images, bytes by blob."""
    both = wanted(APP, OS)

    expected = [
        [250 * MB, 125 * MB, 0, 0, 0, 0],
        [400 * MB, 100 * MB, 0, 0, 0, 0],
        [0, 0, 1, 1, 0, 0],
        [0, 0, 0, 0, 250 * MB, 125 * MB],
    ]
    assert np.array_equal(np.array(expected), both.weights)
    assert both.weights is both.weights


def test_nothing_can_be_wanted_too():
    """A pod whose images are empty, or that has none."""
    assert (0, {}, (4, 0)) == (wanted().total, wanted().sizes, wanted().weights.shape)
    assert (0, (4, 1)) == (wanted(stacked("scratch")).total, wanted(stacked("scratch")).weights.shape)


def test_rows_are_computed_by_the_query():
    """Not before."""
    one = wanted(APP)

    assert (-1, 0, 0, 0) == (one.position, len(one.download), len(one.unpack), len(one.complete))
