"""Keys: what an image is known by."""

from typing import Any

import pytest

from lamina.layers.layer_keys import keys_of, whole
from lamina.model.image import Image, Layer
from lamina.testing import a_digest
from tests.unit.layers.shelf import APP, BOTTOM, MB, TOOL, read, stacked, unread

TWIN = stacked("twin:1", read("os", 240, 400, "zstd"), read("app", 120, 100, "zstd"))


def keys(image: Image, kind: str) -> list[Any]:
    return [getattr(one, kind) for one in keys_of(image)]


def test_a_layer_is_known_as_a_blob_by_what_it_unpacks_to_and_by_what_lies_below_it():
    """Four keys, and no two alike, not even those of the lowest layer, whose chain is the layer itself."""
    found = [key for one in keys_of(APP) for key in (one.blob, one.diff, one.chain, one.unpacked_chain)]

    assert 8 == len(set(found))
    assert ("b" + BOTTOM.digest, "d" + str(BOTTOM.diff_id)) == tuple(found[:2])
    assert "u" + str(BOTTOM.diff_id) == found[3]


def test_an_image_has_a_key_of_its_own():
    """No layer has it, even if both have the same digest."""
    image = Image(a_digest("x"), (Layer(a_digest("x"), 1),))

    assert whole(image.digest) not in keys(image, "blob")


@pytest.mark.parametrize(
    ("image", "shared"),
    [
        pytest.param(APP, [True, True], id="itself"),
        pytest.param(TOOL, [True, False], id="the same base"),
        pytest.param(stacked("x", read("app", 125, 100), BOTTOM), [False, False], id="the same layers upside down"),
        pytest.param(stacked("x", read("new", 1, 1), *APP.layers), [False, False], id="the same layers on another"),
    ],
)
def test_images_share_chains_as_far_as_they_agree_from_the_bottom(image, shared):
    """And no further: what an unpacked layer looks like depends on what lies below."""
    assert shared == [one in keys(image, "chain") for one in keys(APP, "chain")]
    assert shared == [one in keys(image, "unpacked_chain") for one in keys(APP, "unpacked_chain")]


def test_content_that_was_packed_again_is_the_same_when_unpacked():
    """Blobs and their chains differ; diff ids and the chains of those do not."""
    assert (keys(APP, "diff"), keys(APP, "unpacked_chain")) == (keys(TWIN, "diff"), keys(TWIN, "unpacked_chain"))
    assert not {*keys(APP, "blob"), *keys(APP, "chain")} & {*keys(TWIN, "blob"), *keys(TWIN, "chain")}


def test_without_diff_ids_there_are_still_blobs_and_their_chains():
    """An image of which only the manifest was seen matches one of which more is known."""
    image = Image(a_digest("x"), tuple(map(unread, APP.layers)))

    assert ["", ""] == keys(image, "diff") == keys(image, "unpacked_chain")
    assert (keys(APP, "blob"), keys(APP, "chain")) == (keys(image, "blob"), keys(image, "chain"))


def test_with_one_diff_id_missing_no_chain_is_named_by_diff_ids():
    """Chains go over all of them; the layers that are known keep their own."""
    image = Image(a_digest("x"), (BOTTOM, unread(APP.layers[1])))

    assert (["d" + str(BOTTOM.diff_id), ""], ["", ""]) == (keys(image, "diff"), keys(image, "unpacked_chain"))


def test_a_layer_listed_again_is_marked():
    """It is downloaded once and unpacked as often as it is listed, each time on something else."""
    image = stacked("x", BOTTOM, read("nil", 0, 0), BOTTOM)

    assert [False, False, True] == keys(image, "repeats")
    assert 3 == len(set(keys(image, "chain")))


@pytest.mark.parametrize(
    ("layer", "want"),
    [
        pytest.param(read("x", 10, 31), 31 * MB, id="told"),
        pytest.param(Layer(a_digest("x"), 10, unpacked=0), 0, id="told to be nothing"),
        pytest.param(Layer(a_digest("x"), 10), 23, id="2.3 for each byte where it is unknown"),
        pytest.param(Layer(a_digest("x"), 0), 0, id="of nothing comes nothing"),
    ],
)
def test_unpacked_bytes_are_estimated_where_they_are_unknown(layer, want):
    assert [want] == keys(stacked("x", layer), "unpacked")


def test_an_image_without_layers_has_no_keys_but_its_own():
    assert () == keys_of(stacked("scratch"))
