"""ImageNames: which rows list which names, and with which size."""

import pytest

from lamina.model.node import NodeImage
from lamina.scheduling.state.columns import NodeColumns
from lamina.scheduling.state.image_names import ImageNames
from lamina.testing import a_node


def names(**rows: dict[str, int]) -> ImageNames:
    """Build from ``r0={name: size}``, ..."""
    known = ImageNames()
    for row, images in rows.items():
        known.replace(int(row[1:]), [NodeImage((name,), size) for name, size in images.items()])
    return known


def sizes(known: ImageNames, *wanted: str) -> list[int | None]:
    return [None if (one := known.get(name)) is None else one.size for name in wanted]


def test_a_name_knows_the_rows_that_list_it():
    """As a set and as flags."""
    known = names(r0={"a": 1}, r2={"a": 1, "b": 2})
    entry = known.get("a")

    assert entry is not None
    assert {0, 2} == entry.rows
    assert [True, False, True, False] == entry.mask(4).tolist()


def test_an_image_is_known_by_each_of_its_names():
    """A tag and a digest, say."""
    known = ImageNames()
    known.replace(0, [NodeImage(("app:1", "app@sha256:1"), 7)])

    assert [7, 7] == sizes(known, "app:1", "app@sha256:1")


def test_flags_are_patched_when_rows_change():
    """A mask that was handed out once is right the next time too, also for more rows than before."""
    known = names(r0={"a": 1}, r1={"a": 1})
    entry = known.get("a")
    assert entry is not None
    entry.mask(2)
    known.replace(0, ())
    known.replace(5, [NodeImage(("a",), 1)])

    assert [False, True, False, False, False, True] == entry.mask(6).tolist()


def test_a_name_nobody_lists_is_forgotten():
    """Not kept with no rows."""
    known = names(r0={"a": 1})
    known.replace(0, ())

    assert known.get("a") is None


def test_the_first_size_seen_stays_while_anybody_lists_the_name():
    """As in upstream's cache, where nodes disagree about a tag the first one heard wins."""
    known = names(r0={"a": 1}, r1={"a": 2})
    known.replace(0, ())

    assert [1] == sizes(known, "a")


def test_a_name_that_everybody_dropped_takes_the_next_size():
    """It starts anew."""
    known = names(r0={"a": 1})
    known.replace(0, ())
    known.replace(1, [NodeImage(("a",), 2)])

    assert [2] == sizes(known, "a")


def test_the_only_node_that_lists_a_name_may_correct_its_size():
    """Upstream forgets what a node listed before it reads what it lists now."""
    known = names(r0={"a": 1})
    known.replace(0, [NodeImage(("a",), 2)])

    assert [2] == sizes(known, "a")


def test_of_two_entries_with_one_name_the_first_counts():
    """Nodes list every untagged image under the same <none> name."""
    known = ImageNames()
    known.replace(0, [NodeImage(("<none>:<none>",), 1), NodeImage(("<none>:<none>",), 2)])

    assert [1] == sizes(known, "<none>:<none>")


@pytest.mark.parametrize(
    ("before", "after", "news"),
    [
        pytest.param({}, {}, False, id="nothing before and after"),
        pytest.param({}, {"a": 1}, True, id="a name more"),
        pytest.param({"a": 1}, {}, True, id="a name less"),
        pytest.param({"a": 1}, {"b": 1}, True, id="another name"),
        pytest.param({"a": 1, "b": 2}, {"b": 2, "a": 1}, False, id="another order"),
    ],
)
def test_it_says_whether_a_list_changed_anything(before, after, news):
    """What did not change need not be ranked anew."""
    known = names(r0=before)

    assert news == known.replace(0, [NodeImage((name,), size) for name, size in after.items()])


def test_columns_keep_the_names_of_a_row_in_step():
    """Nodes come, change, leave, and their rows are used again."""
    columns = NodeColumns()
    columns.put(a_node("n0", images={"a": 1}))
    columns.put(a_node("n1", images={"a": 1, "b": 2}))
    columns.put(a_node("n1", images={"b": 2}))
    columns.remove("n0")
    columns.put(a_node("n2", images={"c": 3}))

    assert [None, 2, 3] == sizes(columns.images, "a", "b", "c")
    assert {columns.rows["n2"]} == columns.images.get("c").rows
