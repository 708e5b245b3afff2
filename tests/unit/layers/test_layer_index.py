"""LayerIndex: nodes times layers, as bits."""

import numpy as np
import pytest

from lamina.layers.bit_matrix import FIRST_LINES, FIRST_ROWS
from lamina.layers.layer_index import COMING, HELD, NOWHERE, REMEMBERED, LayerIndex
from lamina.model.image import Image, Layer
from lamina.testing import a_digest
from tests.unit.layers.shelf import APP, BOTTOM, MB, OS, TOOL, read, stacked, unread

FAR = [0, 7, 8, 15, FIRST_ROWS - 1, FIRST_ROWS, 5 * FIRST_ROWS + 3]


def index(**rows: Image) -> LayerIndex:
    """Build from ``r0=APP``, ..."""
    made = LayerIndex()
    for row, image in rows.items():
        made.hold(int(row[1:]), [image])
    return made


def rows_with(made: LayerIndex, image: Image, side: int = HELD) -> list[int]:
    """Tell which bits of an image's own line are set."""
    line = made._lines["i" + image.digest]
    return np.flatnonzero(np.unpackbits(made._matrices[side].of(np.array([line])))).tolist()


# -------------------------------------------------------------------------------------------------------- what is where


@pytest.mark.parametrize("row", FAR)
def test_any_row_can_hold_images(row):
    """Bits and bytes do not get mixed up at their borders, nor when the table grows."""
    made = index(r3=OS)
    made.hold(row, [APP])

    assert (frozenset({APP.digest}), frozenset({OS.digest})) == (made.held(row), made.held(3))
    assert ([row], [3]) == (rows_with(made, APP), rows_with(made, OS))
    assert made.capacity > row
    assert {3, row} == set(np.flatnonzero(made.reported).tolist())


@pytest.mark.parametrize("row", FAR)
def test_any_row_can_expect_images(row):
    """On a sheet of its own: what is on its way is not there yet, and says nothing about what is."""
    made = index(r3=APP)
    made.expect(row, [APP])

    assert (frozenset({APP.digest}), frozenset()) == (made.expected(row), made.held(row))
    assert ([3], [row]) == (rows_with(made, APP), rows_with(made, APP, COMING))
    assert not made.reported[row]


def test_there_may_be_any_number_of_layers():
    """The table grows in this direction too and keeps what is in it."""
    made = index(r1=OS)
    many = [stacked(f"x:{number}", Layer(a_digest(str(number)), 1)) for number in range(FIRST_LINES)]
    made.hold(9, many)

    # An image without diff ids has three keys: itself, a blob and a chain; OS has two more.
    assert 3 * FIRST_LINES + 5 == len(made)
    assert ([1], [9]) == (rows_with(made, OS), rows_with(made, many[-1]))
    assert made.nbytes >= 4 * FIRST_LINES * FIRST_ROWS // 8


def test_rows_gain_images_beside_those_they_said():
    """As if they had said so at once; each of them counts as changed once."""
    made, whole = index(r0=OS, r9=TOOL), index(r0=OS, r9=TOOL)
    position = made.position
    made.gain({9: [APP, OS], 0: [APP, OS]})
    whole.hold(9, [TOOL, APP, OS])
    whole.hold(0, [OS, APP])

    assert [9, 0] == made.changed_since(position)
    for image in (OS, APP, TOOL):
        assert rows_with(whole, image) == rows_with(made, image)
    assert [whole.held(row) for row in (0, 9)] == [made.held(row) for row in (0, 9)]
    for row in (0, 9):
        made.hold(row, ())
    assert (0, False) == (len(made), made._matrices[HELD].any())


def test_what_a_row_holds_replaces_what_it_held():
    """What the images that remain share with those that went stays."""
    made = LayerIndex()
    made.want([APP])
    made.hold(0, [APP, TOOL])
    made.hold(0, [TOOL])

    assert {TOOL.digest} == made.held(0)
    assert (False, True) == (made.holds(0, APP.digest), made.holds(0, TOOL.digest))
    assert [HELD, HELD] == made.states(TOOL, 0, by_prefix=True)
    assert [HELD, None] == made.states(APP, 0, by_prefix=True)


def test_an_image_listed_twice_is_there_once():
    """Reports may repeat themselves."""
    made = LayerIndex()
    made.hold(0, [APP, APP])
    made.hold(0, [])

    assert (frozenset(), 0) == (made.held(0), len(made))


@pytest.mark.parametrize(
    ("before", "after", "news"),
    [
        pytest.param(None, [], True, id="the first word, even if it is nothing"),
        pytest.param([], [], False, id="still nothing"),
        pytest.param([APP, TOOL], [TOOL, APP], False, id="the same in another order"),
        pytest.param([APP, TOOL], [APP], True, id="an image less"),
        pytest.param([APP], [APP, OS], True, id="an image more, though all its layers were there"),
        pytest.param([APP], [TOOL], True, id="another image"),
    ],
)
def test_it_says_whether_holding_changed_anything(before, after, news):
    """What did not change need not be ranked anew."""
    made = LayerIndex()
    if before is not None:
        made.hold(0, before)
    position = made.position

    assert news == made.hold(0, after)
    assert news == (made.position > position)


def test_reusing_layers_in_another_way_is_news():
    """Even if the row holds the same."""
    made = index(r0=APP)

    assert made.hold(0, [APP], by_prefix=False)
    assert not made.hold(0, [APP], by_prefix=False)
    assert (False, True) == (made.by_prefix[0], made.by_prefix[1])


def test_it_says_whether_expecting_changed_anything():
    made = LayerIndex()

    assert [True, False, True, False] == [made.expect(0, images) for images in ([APP], [APP], [], [])]


def test_a_row_that_was_forgotten_never_said_anything():
    """Unlike one that holds nothing. What is on its way there is another matter."""
    made = index(r0=APP, r1=APP)
    made.hold(0, [APP], by_prefix=False)
    made.expect(0, [TOOL])
    made.forget(0)
    made.hold(1, ())

    assert (frozenset(), frozenset()) == (made.held(0), made.held(1))
    assert [False, True] == made.reported[:2].tolist()
    assert made.by_prefix[0]
    assert {TOOL.digest} == made.expected(0)


def test_forgetting_what_was_never_known_is_nothing():
    """Nodes may leave that never reported, also those in rows beyond the capacity."""
    made = index(r0=OS)
    made.forget(2 * FIRST_ROWS)

    assert 5 == len(made)


def test_an_image_is_held_while_any_row_holds_it():
    """Expecting or wanting it is not holding it."""
    made = index(r0=APP, r9=APP)
    made.expect(3, [TOOL])
    made.want([OS])

    assert (True, False, False) == tuple(made.is_held(image.digest) for image in (APP, TOOL, OS))
    made.hold(0, ())
    assert made.is_held(APP.digest)
    made.hold(9, ())
    assert not made.is_held(APP.digest)


def test_room_can_be_made_for_rows_of_which_nothing_is_known():
    """They never reported."""
    made = index(r0=APP)
    made.reach(FIRST_ROWS)
    assert FIRST_ROWS == made.capacity
    made.reach(FIRST_ROWS + 1)

    assert 2 * FIRST_ROWS == made.capacity == len(made.by_prefix)
    assert [0] == np.flatnonzero(made.reported).tolist()
    assert made.by_prefix.all()


# -------------------------------------------------------------------------------------------------------- lines and memory


def test_lines_live_as_long_as_the_image_is_held_expected_or_queried():
    """The last one of them frees the lines."""
    made = index(r0=OS)
    made.expect(5, [OS])
    wanted = made.want([OS])

    lengths = [len(made)]
    for deed in (lambda: made.hold(0, ()), lambda: made.unwant(wanted), lambda: made.expect(5, ())):
        deed()
        lengths.append(len(made))
    assert [5, 5, 5, 0] == lengths
    assert not any(matrix.any() for matrix in made._matrices)


def test_lines_of_shared_layers_live_as_long_as_any_image_that_has_them():
    """APP has nine keys: itself and four for each layer; TOOL shares the four of the base."""
    made = index(r0=APP, r1=TOOL)
    lengths = [len(made)]
    made.hold(0, ())
    lengths.append(len(made))

    assert [9 + 5, 9] == lengths


def test_an_unused_layer_gives_its_line_back():
    """However many images come and go, the table stays as large as what is there at one time."""
    made = LayerIndex()
    for number in range(FIRST_LINES):
        made.hold(0, [stacked(f"x:{number}", Layer(a_digest(f"{number}"), 1))])

    assert 3 == len(made)
    assert FIRST_LINES == made._matrices[HELD].lines


def test_a_line_that_is_used_again_holds_nothing_of_the_layer_before():
    """The new image is where it was put and nowhere else."""
    made = index(r0=APP, r1=APP, r2=OS)
    made.expect(3, [APP])
    for row in (0, 1):
        made.hold(row, ())
    made.expect(3, ())
    made.hold(2, [OS, stacked("x", *(Layer(a_digest(f"{one}"), 1) for one in range(9)))])

    every = made._matrices[HELD].of(np.arange(FIRST_LINES))
    assert {2} == {row for line in every for row in np.flatnonzero(np.unpackbits(line))}
    assert not made._matrices[COMING].any()


def test_nothing_stands_in_the_first_line():
    """What has no key points there."""
    made = index(r0=stacked("x", unread(BOTTOM)))

    assert made.want([stacked("x", unread(BOTTOM))]).blobs.others is None
    assert NOWHERE not in made._lines.values()
    assert not any(matrix.of(np.array([NOWHERE])).any() for matrix in made._matrices)


def test_line_numbers_do_not_depend_on_how_sets_are_walked():
    """Images that go are let go of in the order of their digests."""
    made = LayerIndex()
    images = [stacked(f"x:{number}", Layer(a_digest(f"{number}"), 1)) for number in range(20)]
    made.hold(0, images)
    in_order = [made._lines["i" + digest] for digest in sorted(image.digest for image in images)]
    made.hold(0, ())

    assert in_order == [line for line in made._spare if line in in_order]


# -------------------------------------------------------------------------------------------------------------- changes


def test_a_reader_that_is_behind_gets_the_rows_that_changed():
    """Repetitions included; each change is returned once."""
    made = index(r0=APP)
    position = made.position
    made.hold(4, [APP])
    made.expect(5, [APP])
    made.forget(4)
    made.touch(9)

    assert [4, 5, 4, 9] == made.changed_since(position)
    assert [] == made.changed_since(made.position)


def test_what_was_on_its_way_and_has_come_is_no_change():
    """The row will have what it would have had; an image that comes unexpectedly is another matter."""
    made = index(r0=OS)
    made.expect(0, [APP])
    position = made.position

    assert ([], [APP.digest], False) == made.swap(0, [OS, APP], by_prefix=True)
    assert made.expect(0, [])
    assert [] == made.changed_since(position)
    assert ([OS.digest], [TOOL.digest], True) == made.swap(0, [APP, TOOL], by_prefix=False)
    assert [0] == made.changed_since(position)


@pytest.mark.parametrize("stays", [pytest.param([TOOL], id="shares the base"), pytest.param([], id="nothing stays")])
def test_lines_that_an_image_shares_stay_when_another_goes(stays):
    made = LayerIndex()
    made.hold(3, [APP, *stays])
    made.hold(3, stays)

    made.take(APP)
    blobs, chains = made.parts(APP)
    assert [bool(stays), False] == [bool(one) for one in made.on(blobs, 3)]
    assert [bool(stays), False] == [bool(one) for one in made.on(chains, 3)]


@pytest.mark.parametrize(
    ("changes", "known"),
    [
        pytest.param(REMEMBERED, True, id="some"),
        pytest.param(2 * REMEMBERED, True, id="as many as are remembered at most"),
        pytest.param(2 * REMEMBERED + 1, False, id="one more"),
        pytest.param(9 * REMEMBERED, False, id="many"),
    ],
)
def test_changes_are_remembered_for_a_while(changes, known):
    """After that one has to look at everything."""
    made = LayerIndex()
    for _ in range(changes):
        made.touch(1)

    assert (None if not known else [1] * changes) == made.changed_since(0)
    assert [1] == made.changed_since(changes - 1)


# ----------------------------------------------------------------------------------------------------------------- parts


def test_one_image_needs_no_parts_of_its_own():
    """Pods of one image come in crowds."""
    made = index(r0=APP)

    assert made.want([APP]).blobs is made.want([APP]).blobs is made.plan(APP).blobs


def test_several_images_have_each_distinct_blob_and_chain_once():
    """The base that two of them share counts once; a blob in two places is one blob and two chains."""
    made = LayerIndex()
    both = made.want([APP, TOOL])
    turned = made.want([APP, stacked("x", *APP.layers[::-1])])

    assert [250 * MB, 125 * MB, 125 * MB] == both.blobs.bytes.tolist() == both.chains.bytes.tolist()
    assert [250 * MB, 125 * MB] == turned.blobs.bytes.tolist()
    assert [250 * MB, 125 * MB, 125 * MB, 250 * MB] == turned.chains.bytes.tolist()


@pytest.mark.parametrize("turned", [False, True], ids=["the one that knows last", "the one that knows first"])
def test_what_one_image_does_not_know_of_a_layer_another_does(turned):
    """In whichever order a pod lists them: the row holds the base, packed differently."""
    images = [stacked("x", unread(BOTTOM)), APP]
    made = index(r0=stacked("y", read("os", 240, 400, "zstd")))
    wanted = made.want(images[::-1] if turned else images)

    assert [True, False] == (made.bits_of(wanted.blobs)[:, 0] == 128).tolist()
    assert [True, False] == (made.bits_of(wanted.chains)[:, 0] == 128).tolist()
    assert 400 * MB == wanted.chains.unpacked[0]


def test_what_is_on_its_way_counts_or_does_not():
    """As one asks."""
    made = index(r0=OS)
    made.expect(1, [APP])
    wanted = made.want([APP])

    assert [0b1100_0000, 0b0100_0000] == made.bits_of(wanted.chains)[:, 0].tolist()
    assert [0b1000_0000, 0] == made.bits_of(wanted.chains, coming=False)[:, 0].tolist()
    assert [[0b0100_0000]] == made.wholes_of(wanted, slice(0, 1)).tolist()
    assert [[0]] == made.wholes_of(wanted, slice(0, 1), coming=False).tolist()


@pytest.mark.parametrize(
    ("by_prefix", "base", "top"),
    [
        pytest.param(True, None, None, id="by prefix: neither lies on the same layers"),
        pytest.param(False, HELD, COMING, id="any blob: one is there, the other on its way"),
    ],
)
def test_each_layer_is_there_or_on_its_way_or_neither(by_prefix, base, top):
    """The row holds the base on top of another layer, and expects the upper layer on top of nothing."""
    made = LayerIndex()
    made.want([APP])
    made.hold(0, [stacked("x", read("new", 1, 1), BOTTOM)])
    made.expect(0, [stacked("y", APP.layers[1])])

    assert [base, top] == made.states(APP, 0, by_prefix=by_prefix)


def test_what_is_there_and_on_its_way_is_there():
    """The base comes with the image that is on its way, and was there before."""
    made = index(r0=OS)
    made.expect(0, [APP])

    assert [HELD, COMING] == made.states(APP, 0, by_prefix=True) == made.states(APP, 0, by_prefix=False)
