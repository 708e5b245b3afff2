"""LayerIndex: nodes times layers, as bits."""

import pytest

from lamina.layers.index import FIRST_LINES, FIRST_ROWS, REMEMBERED, LayerIndex
from lamina.layers.wanted import WantedLayers
from lamina.model.image import Layer
from lamina.testing import a_digest

SIZES = {"a": 1, "b": 20, "c": 300}


def layers(names: str) -> list[Layer]:
    return [Layer(a_digest(name), SIZES.get(name, 5)) for name in names]


def index(**rows: str) -> LayerIndex:
    """Build from ``r0="ab"``, ..."""
    made = LayerIndex()
    for row, names in rows.items():
        made.replace(int(row[1:]), layers(names))
    return made


def wanted(names: str) -> WantedLayers:
    return WantedLayers({a_digest(name): SIZES.get(name, 5) for name in names})


def present(made: LayerIndex, names: str, height: int) -> list[int]:
    return list(map(int, made.present_bytes(wanted(names), height)))


@pytest.mark.parametrize(
    ("names", "want"),
    [
        pytest.param("", [0, 0, 0, -1], id="nothing wanted"),
        pytest.param("a", [1, 0, 1, -1], id="one layer"),
        pytest.param("abc", [21, 0, 301, -1], id="several: 1+20, 0, 1+300"),
        pytest.param("z", [0, 0, 0, -1], id="a layer nobody has"),
        pytest.param("az", [1, 0, 1, -1], id="one of two that nobody has"),
    ],
)
def test_bytes_are_counted_where_their_layers_are(names, want):
    """Row 0 holds a and b, row 1 nothing, row 2 a and c, row 3 never said and is -1."""
    assert want == present(index(r0="ab", r1="", r2="ac"), names, 4)


def test_the_size_that_counts_is_the_one_asked_with():
    """The index knows who holds what, not how large it is."""
    assert [7] == index(r0="a").present_bytes(WantedLayers({a_digest("a"): 7}), 1).tolist()


@pytest.mark.parametrize("height", [0, 1, 3, 8, 9, FIRST_ROWS, FIRST_ROWS + 1, 3 * FIRST_ROWS])
def test_any_number_of_rows_can_be_asked_for(height):
    """More than were ever told about, or fewer."""
    made = index(r0="a", r2="a")

    assert [1 if row in (0, 2) else -1 for row in range(height)] == present(made, "a", height)


@pytest.mark.parametrize("row", [0, 7, 8, 15, FIRST_ROWS - 1, FIRST_ROWS, 5 * FIRST_ROWS + 3])
def test_any_row_can_hold_layers(row):
    """Bits and bytes do not get mixed up at their borders, nor when the table grows."""
    made = index(r3="b")
    made.replace(row, layers("ac"))

    assert {a_digest("a"), a_digest("c")} == made.held(row)
    counts = enumerate(present(made, "abc", max(row, 3) + 2))
    assert {3: 20, row: 301} == {place: count for place, count in counts if count >= 0}


def test_there_may_be_any_number_of_layers():
    """The table grows in this direction too and keeps what is in it."""
    many = 3 * FIRST_LINES
    made = LayerIndex()
    digests = [a_digest(str(number)) for number in range(many)]
    made.replace(1, [Layer(digest, 1) for digest in digests])
    made.replace(9, [Layer(digest, 1) for digest in digests[::2]])

    assert many == len(made)
    assert [-1, many, -1, -1, -1, -1, -1, -1, -1, many // 2] == (
        made.present_bytes(WantedLayers(dict.fromkeys(digests, 1)), 10).tolist()
    )


def test_a_list_replaces_the_one_before():
    """What is no longer listed is gone."""
    made = index(r0="ab")
    made.replace(0, layers("bc"))

    assert {a_digest("b"), a_digest("c")} == made.held(0)
    assert [320] == present(made, "abc", 1)


def test_a_layer_listed_twice_is_there_once():
    """Images list the same empty layer again and again."""
    made = index(r0="aab")

    assert [21] == present(made, "ab", 1)
    made.replace(0, ())
    assert 0 == len(made)


@pytest.mark.parametrize(
    ("before", "after", "news"),
    [
        pytest.param(None, "", True, id="the first word, even if it is nothing"),
        pytest.param("", "", False, id="still nothing"),
        pytest.param("ab", "ba", False, id="the same in another order"),
        pytest.param("ab", "a", True, id="a layer less"),
        pytest.param("a", "ab", True, id="a layer more"),
        pytest.param("a", "b", True, id="another layer"),
    ],
)
def test_it_says_whether_a_list_changed_anything(before, after, news):
    """What did not change need not be ranked anew."""
    made = LayerIndex() if before is None else index(r0=before)

    assert news == made.replace(0, layers(after))


def test_a_row_that_was_forgotten_never_said_anything():
    """Unlike one that holds nothing."""
    made = index(r0="a", r1="a")
    made.forget(0)
    made.replace(1, ())

    assert (frozenset(), frozenset()) == (made.held(0), made.held(1))
    assert [-1, 0] == present(made, "a", 2)


def test_forgetting_what_was_never_known_is_nothing():
    """Nodes may leave that never reported."""
    made = index(r0="a")
    made.forget(5)

    assert 1 == len(made)


def test_a_layer_nobody_holds_any_more_gives_its_line_back():
    """However many layers come and go, the table stays as large as what is there at one time."""
    made = LayerIndex()
    for number in range(4 * FIRST_LINES):
        made.replace(0, [Layer(a_digest(f"{number}/{one}"), 1) for one in range(3)])

    assert 3 == len(made)
    assert made._used <= 6
    assert FIRST_LINES == len(made._bits)


def test_a_line_that_is_used_again_holds_nothing_of_the_layer_before():
    """The new layer is where it was put and nowhere else."""
    made = index(r0="a", r1="a", r2="b")
    made.replace(0, ())
    made.replace(1, ())
    made.replace(2, layers("bc"))

    assert [0, 0, 300] == present(made, "c", 3)
    assert [0, 0, 0] == present(made, "a", 3)


def test_sums_of_large_layers_are_exact():
    """Up to 2**53, which no image will ever reach."""
    large = WantedLayers({a_digest("a"): 2**52, a_digest("b"): 2**51 + 1, a_digest("c"): 1})

    assert 2**52 + 2**51 + 2 == large.total
    assert [2**52 + 2**51 + 2] == index(r0="abc").present_bytes(large, 1).tolist()


# ------------------------------------------------------------------------------------------------------- asking again


def test_whoever_asks_again_is_told_how_it_is_now():
    """The bytes are counted once and then patched where rows changed."""
    made, asked = index(r0="ab", r1="a"), wanted("abc")
    assert [21, 1, -1, -1] == made.present_bytes(asked, 4).tolist()
    made.replace(0, layers("c"))
    made.forget(1)
    made.replace(2, layers("b"))
    made.replace(3, ())

    assert [300, -1, 20, 0] == made.present_bytes(asked, 4).tolist()


@pytest.mark.parametrize("changes", [REMEMBERED, 2 * REMEMBERED, 2 * REMEMBERED + 1, 5 * REMEMBERED])
def test_whoever_asks_again_after_long_is_told_all_the_same(changes):
    """Changes are remembered for a while; after that everything is counted anew."""
    made, asked = index(r0="a"), wanted("ab")
    made.present_bytes(asked, 2)
    for number in range(changes):
        made.replace(1, layers("ab"[number % 2]))
    made.replace(0, layers("b"))

    assert present(made, "ab", 2) == made.present_bytes(asked, 2).tolist()
    assert 20 == made.present_bytes(asked, 2)[0]


def test_whoever_asks_again_may_ask_about_more_rows():
    """Nodes have come in the meantime, more than there was room for."""
    made, asked = index(r0="a"), wanted("a")
    made.present_bytes(asked, 1)
    last = 2 * FIRST_ROWS + 1
    made.replace(last, layers("a"))

    told = made.present_bytes(asked, last + 1).tolist()
    assert [0, last] == [row for row, count in enumerate(told) if count == 1]
    assert [1] == made.present_bytes(asked, 1).tolist()


def test_two_who_ask_do_not_disturb_each_other():
    """Each is patched by what it has not seen yet."""
    made, first, second = index(r0="a"), wanted("a"), wanted("ab")
    made.present_bytes(first, 1)
    made.replace(0, layers("ab"))
    made.present_bytes(second, 1)
    made.replace(0, layers("b"))

    assert ([0], [20]) == (made.present_bytes(first, 1).tolist(), made.present_bytes(second, 1).tolist())
