"""What each row lacks of what a pod wants."""

from collections.abc import Sequence

import numpy as np
import pytest

from lamina.layers.bit_matrix import FIRST_ROWS
from lamina.layers.layer_index import REMEMBERED, LayerIndex
from lamina.layers.layer_set import LayerSet
from lamina.layers.not_held import MOST_COUNTED, held_bytes, not_held_at, not_held_on, update_rows
from lamina.model.image import Image, Layer
from lamina.testing import a_digest
from tests.unit.layers.shelf import APP, BOTTOM, MB, OS, TOOL, read, stacked, unread

TOP = APP.layers[1]
TWIN = stacked("twin:1", read("os", 240, 400, "zstd"), read("app", 120, 100, "zstd"))
TURNED = stacked("turned:1", TOP, BOTTOM)
NIL = read("nil", 1, 2)
TWICE = stacked("twice:1", BOTTOM, NIL, TOP, NIL)
Lacks = tuple[float, float, bool]


def told(wanted: LayerSet, row: int) -> Lacks:
    return wanted.download[row] / MB, wanted.unpack[row] / MB, bool(wanted.complete[row])


def lacks(wants: Sequence[Image], holds: Sequence[Image], coming: Sequence[Image] = (), *, by_prefix: bool) -> Lacks:
    """Ask about one row, in MB: all rows at once, that row patched, and that row alone have to say the same."""
    index = LayerIndex()
    wanted, patched = index.want(wants), index.want(wants)
    update_rows(index, patched, 6)
    index.hold(5, holds, by_prefix=by_prefix)
    index.expect(5, coming)
    update_rows(index, wanted, 6)
    update_rows(index, patched, 6)
    alone = [float(one[0]) for one in not_held_at(index, wanted, np.array([5]))]
    assert told(wanted, 5) == told(patched, 5) == (alone[0] / MB, alone[1] / MB, bool(alone[2]))
    if len(wants) == 1:
        assert (alone[0], alone[1]) == not_held_on(index, wants[0], 5)
    return told(wanted, 5)


# ------------------------------------------------------------------------------------------------------ prefixes and sets


@pytest.mark.parametrize(
    ("wants", "holds", "by_prefix", "by_blob", "unpack", "complete"),
    [
        # wants, holds: MB to download by prefix, by blob, MB to unpack, whether all is there
        pytest.param([APP], [], 375, 375, 500, False, id="a node that has nothing"),
        pytest.param([APP], [APP], 0, 0, 0, True, id="the image itself"),
        pytest.param([APP], [OS], 125, 125, 100, False, id="its base"),
        pytest.param([APP], [TOOL], 125, 125, 100, False, id="another image on the same base"),
        pytest.param([OS], [APP], 0, 0, 0, False, id="all its layers, under another name: the manifest is missing"),
        pytest.param([APP], [TURNED], 375, 0, 500, False, id="the same blobs upside down: nothing to unpack onto"),
        pytest.param([APP], [stacked("x", TOP)], 375, 250, 500, False, id="a blob from the middle"),
        pytest.param([APP], [TWIN], 0, 0, 0, False, id="the same content packed differently"),
        pytest.param([APP], [stacked("x", TWIN.layers[1])], 375, 250, 500, False, id="one layer packed differently"),
        pytest.param([APP, TOOL], [], 500, 500, 800, False, id="two images: 250+125+125, the base once"),
        pytest.param([APP, TOOL], [OS], 250, 250, 400, False, id="two images, their base is there"),
        pytest.param([APP, TOOL], [APP], 125, 125, 300, False, id="two images, one is there"),
        pytest.param([APP, TOOL], [APP, TOOL], 0, 0, 0, True, id="two images, both are there"),
        pytest.param([APP, APP], [OS], 125, 125, 100, False, id="the same image twice"),
        pytest.param([APP, TURNED], [], 750, 375, 1000, False, id="two orders: thrown-away blobs come twice"),
        pytest.param([APP, TURNED], [APP], 375, 0, 500, False, id="two orders, one is there"),
        pytest.param([TWICE], [], 376, 376, 504, False, id="a layer listed twice: down once, unpacked twice"),
        pytest.param([TWICE], [stacked("x", BOTTOM, NIL)], 125, 125, 102, False, id="listed twice, up to the first"),
        pytest.param([TWICE], [stacked("x", NIL)], 376, 375, 504, False, id="listed twice, there as a blob"),
        pytest.param([TWICE], [TWICE], 0, 0, 0, True, id="listed twice, all there"),
        pytest.param([stacked("e")], [], 0, 0, 0, False, id="an image without layers still has to be pulled"),
        pytest.param([stacked("e")], [stacked("e")], 0, 0, 0, True, id="an image without layers, there"),
        pytest.param([], [], 0, 0, 0, True, id="nothing"),
    ],
)
def test_what_is_lacking_depends_on_how_the_runtime_reuses_layers(wants, holds, by_prefix, by_blob, unpack, complete):
    """By prefix only, or any blob it knows; what has to be unpacked is the same."""
    assert (by_prefix, unpack, complete) == lacks(wants, holds, by_prefix=True)
    assert (by_blob, unpack, complete) == lacks(wants, holds, by_prefix=False)


@pytest.mark.parametrize(
    ("wants", "holds", "download"),
    [
        pytest.param(APP, [stacked("x", *map(unread, APP.layers))], 0, id="the row's image was not read"),
        pytest.param(stacked("x", *map(unread, APP.layers)), [APP], 0, id="the pod's image was not read"),
        pytest.param(stacked("x", *map(unread, APP.layers)), [TWIN], 375, id="not read, and packed differently"),
        pytest.param(stacked("x", BOTTOM, unread(TOP)), [TWIN], 375, id="half read: no chain has a name both know"),
    ],
)
def test_images_match_as_far_as_both_were_read(wants, holds, download):
    """Without diff ids, differently compressed content cannot be recognised."""
    assert download == lacks([wants], holds, by_prefix=True)[0]


def test_a_blob_packed_differently_counts_by_itself_where_its_diff_id_is_known():
    """Even if the layers around it were not read: any blob, 125 of 375."""
    assert 125 == lacks([stacked("x", BOTTOM, unread(TOP))], [TWIN], by_prefix=False)[0]


@pytest.mark.parametrize(
    ("holds", "coming", "by_prefix", "by_blob", "unpack", "complete"),
    [
        pytest.param([], [APP], 0, 0, 0, True, id="the image itself"),
        pytest.param([], [TOOL], 125, 125, 100, False, id="its base, with another image"),
        pytest.param([OS], [stacked("x", TOP)], 125, 0, 100, False, id="the base is there, the top comes as a blob"),
    ],
)
def test_what_is_on_its_way_need_not_be_pulled_again(holds, coming, by_prefix, by_blob, unpack, complete):
    assert (by_prefix, unpack, complete) == lacks([APP], holds, coming, by_prefix=True)
    assert (by_blob, unpack, complete) == lacks([APP], holds, coming, by_prefix=False)


def test_what_is_on_its_way_can_be_left_out():
    """To tell it from what is there."""
    index = LayerIndex()
    wanted = index.want([APP])
    index.hold(0, [OS])
    index.expect(0, [APP])
    download, unpack, complete = not_held_at(index, wanted, np.array([0, 1]), coming=False)

    assert ([125 * MB, 375 * MB], [100 * MB, 500 * MB]) == (download.tolist(), unpack.tolist())
    assert [False, False] == complete.tolist()


@pytest.mark.parametrize("layers", [MOST_COUNTED - 1, MOST_COUNTED, MOST_COUNTED + 1, 300, 1024])
def test_an_image_may_have_more_layers_than_fit_into_a_byte(layers):
    """Rows hold none, a part and all of it; each layer has one byte."""
    parts = [Layer(a_digest(str(number)), 1, unpacked=1) for number in range(layers)]
    index = LayerIndex()
    wanted = index.want([stacked("x", *parts)])
    index.hold(1, [stacked("half", *parts[: layers // 2])])
    index.hold(2, [stacked("x", *parts)])
    index.hold(3, [stacked("upper", *parts[layers // 2 :])], by_prefix=False)
    update_rows(index, wanted, 4)

    half = layers // 2
    assert [layers, layers - half, 0, half] == wanted.download[:4].tolist()
    assert [layers, layers - half, 0, layers] == wanted.unpack[:4].tolist()
    assert [False, False, True, False] == wanted.complete[:4].tolist()


def test_sums_of_large_layers_are_exact():
    """Up to 2**53, which no image will ever reach."""
    sizes = [2**52, 2**51 + 1, 1]
    parts = [Layer(a_digest(str(size)), size, unpacked=size) for size in sizes]
    index = LayerIndex()
    one, two = index.want([stacked("x", *parts)]), index.want([stacked("x", *parts), OS])
    index.hold(0, [stacked("y", parts[0])])
    for wanted in (one, two):
        update_rows(index, wanted, 2)

    assert [2**51 + 2, sum(sizes)] == one.download[:2].tolist()
    assert [2**51 + 2 + 250 * MB, sum(sizes) + 250 * MB] == two.download[:2].tolist()
    assert sum(sizes) == one.total


def test_a_layer_of_two_sizes_has_in_each_image_the_size_that_image_gives_it():
    """One of the manifests lies; the liar's pods alone are concerned."""
    liar = stacked("liar:1", Layer(BOTTOM.digest, 1))

    assert (375, 1e-6) == (lacks([APP], [], by_prefix=False)[0], lacks([liar], [], by_prefix=False)[0])
    assert (125, 0) == (lacks([APP], [liar], by_prefix=False)[0], lacks([liar], [APP], by_prefix=False)[0])


# ---------------------------------------------------------------------------------------------------------- looking again


@pytest.mark.parametrize("height", [0, 1, 3, 8, 9, FIRST_ROWS, FIRST_ROWS + 1, 3 * FIRST_ROWS])
@pytest.mark.parametrize("images", [[OS], [OS, APP]], ids=["one image", "two"])
def test_any_number_of_rows_can_be_asked_for(height, images):
    """More than were ever told about, or fewer."""
    index = LayerIndex()
    for row in (0, 2):
        index.hold(row, images)
    wanted = index.want(images)
    update_rows(index, wanted, height)

    assert [row for row in (0, 2) if row < height] == np.flatnonzero(wanted.complete[:height]).tolist()
    assert height <= len(wanted.download) == len(wanted.unpack) == len(wanted.complete)


def test_a_repeated_query_sees_the_current_state():
    """Counted once and then patched where rows changed."""
    index = LayerIndex()
    index.hold(0, [OS])
    index.hold(1, [APP])
    wanted = index.want([APP])
    update_rows(index, wanted, 4)
    first = wanted.download
    index.hold(0, [APP])
    index.forget(1)
    index.expect(2, [OS])
    index.hold(3, [stacked("x", TOP)], by_prefix=False)
    update_rows(index, wanted, 4)

    assert wanted.download is first
    assert [0, 375 * MB, 125 * MB, 250 * MB] == wanted.download[:4].tolist()
    assert [0, 500 * MB, 100 * MB, 500 * MB] == wanted.unpack[:4].tolist()
    assert [True, False, False, False] == wanted.complete[:4].tolist()


def test_nothing_is_counted_when_nothing_changed():
    index = LayerIndex()
    wanted = index.want([APP])
    update_rows(index, wanted, 4)
    wanted.download[0] = -7
    update_rows(index, wanted, 4)
    index.touch(1)
    update_rows(index, wanted, 4)

    assert [-7, 375 * MB] == wanted.download[:2].tolist()


@pytest.mark.parametrize("changes", [REMEMBERED, 2 * REMEMBERED, 2 * REMEMBERED + 1, 5 * REMEMBERED])
def test_a_query_after_many_changes_sees_the_current_state(changes):
    """Changes are remembered for a while; after that everything is counted anew."""
    index = LayerIndex()
    wanted = index.want([APP])
    update_rows(index, wanted, 2)
    for number in range(changes):
        index.hold(1, [(OS, TOOL)[number % 2]])
    index.hold(0, [APP])
    update_rows(index, wanted, 2)

    assert [0, 125 * MB] == wanted.download[:2].tolist()


def test_a_repeated_query_may_cover_more_rows():
    """Nodes have come in the meantime, more than there was room for."""
    index = LayerIndex()
    index.hold(0, [OS])
    wanted = index.want([OS])
    update_rows(index, wanted, 1)
    last = 2 * FIRST_ROWS + 1
    index.hold(last, [OS])
    update_rows(index, wanted, last + 1)

    assert [0, last] == np.flatnonzero(wanted.complete).tolist()


@pytest.mark.parametrize("changes", [2, 3 * REMEMBERED], ids=["soon", "after long"])
def test_a_query_of_fewer_rows_keeps_the_others(changes):
    """What a pod wants is shared by plugins, and one may ask about more rows than another."""
    index = LayerIndex()
    wanted = index.want([OS])
    update_rows(index, wanted, 20)
    for row in range(15, 15 + changes):
        index.hold(15 + row % 10, [OS, (APP, TOOL)[row // 10 % 2]])
    update_rows(index, wanted, 3)

    assert 20 <= len(wanted.download)
    assert [row for row in range(24) if index.held(row)] == np.flatnonzero(wanted.complete[:24]).tolist()


def test_rows_beyond_those_asked_for_may_change():
    """They are computed when they are queried."""
    index = LayerIndex()
    wanted = index.want([OS])
    update_rows(index, wanted, 3)
    index.hold(2 * FIRST_ROWS, [OS])
    index.hold(1, [OS])
    update_rows(index, wanted, 3)

    assert [1] == np.flatnonzero(wanted.complete).tolist()


def test_two_who_look_do_not_disturb_each_other():
    """Each is patched by what it has not seen yet."""
    index = LayerIndex()
    first, second = index.want([APP]), index.want([TOOL])
    update_rows(index, first, 1)
    index.hold(0, [APP])
    update_rows(index, second, 1)
    index.hold(0, [TOOL])
    for wanted in (first, second):
        update_rows(index, wanted, 1)

    assert ([125 * MB], [0]) == (first.download[:1].tolist(), second.download[:1].tolist())


# ------------------------------------------------------------------------------------------------------------- held bytes


@pytest.mark.parametrize("height", [0, 3, 8, 2 * FIRST_ROWS])
def test_bytes_are_held_as_blobs_however_the_row_reuses_them(height):
    """What is on its way is not held; rows that never reported hold nothing."""
    index = LayerIndex()
    index.hold(0, [TURNED])
    index.hold(1, [OS])
    index.expect(1, [APP])
    index.expect(2, [APP])
    held = held_bytes(index, index.want([APP]), height)

    assert ([375 * MB, 250 * MB, 0] + [0] * height)[:height] == held.tolist()
