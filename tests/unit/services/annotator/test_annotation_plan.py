"""Which nodes are worth a write, in which order, and what is written."""

import math
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.services.annotator.annotation_plan import (
    ASKED,
    MOVED,
    OLD,
    UNKNOWN,
    AnnotationWrite,
    WriteRules,
    age_of,
    number_in,
    plan,
    removals,
)
from lamina.services.annotator.node_values import DesiredNumber, DesiredValues
from lamina.testing import a_node

NOON = 1772366400.0
RULES = WriteRules(keys=("a", "b"), stamp="at")
NOW, FIVE_AGO, OLD_STAMP, ANCIENT = (f"2026-03-01T{time}Z" for time in ("12:00:00", "11:55:00", "11:49:00", "11:29:59"))


def wanted(a=100, b=None, step=10.0, at=NOON, unknown=()):
    numbers = {"a": DesiredNumber(a, step)} | ({} if b is None else {"b": DesiredNumber(b, step)})
    return DesiredValues(numbers, at, frozenset(unknown))


HALF = wanted(unknown="b")
"""What is known of b for the moment is nothing."""


def planned(annotations, new):
    nodes = {"n1": a_node("n1", uid="u1", annotations={"other": "x", **annotations})}
    return plan(nodes, {} if new is None else {"n1": new}, NOON, RULES)


@pytest.mark.parametrize(
    ("annotations", "new", "written"),
    [
        pytest.param({}, wanted(), {"a": "100", "at": NOW}, id="nothing stands there"),
        pytest.param({"a": "95", "at": FIVE_AGO}, wanted(), None, id="less than a step away"),
        pytest.param({"a": "90", "at": FIVE_AGO}, wanted(), {"a": "100", "at": NOW}, id="a step away"),
        pytest.param({"a": "100", "at": OLD_STAMP}, wanted(), {"a": "100", "at": NOW}, id="old"),
        pytest.param({"a": "100"}, wanted(), {"a": "100", "at": NOW}, id="without a stamp"),
        pytest.param({"a": "N/A", "at": NOW}, wanted(), {"a": "100", "at": NOW}, id="no number"),
        pytest.param(
            {"a": "100", "b": "7", "at": NOW}, wanted(), {"a": "100", "b": None, "at": NOW}, id="one too many"
        ),
        pytest.param({"a": "100", "b": "7", "at": NOW}, HALF, None, id="one is not known for a moment"),
        pytest.param({"a": "100", "b": "7", "at": OLD_STAMP}, HALF, None, id="no new stamp on what is not known"),
        pytest.param(
            {"a": "0", "b": "7", "at": FIVE_AGO}, HALF, {"a": "100"}, id="the other moves under the old stamp"
        ),
        pytest.param(
            {"a": "100", "b": "7", "at": ANCIENT}, HALF, {"a": "100", "b": None, "at": NOW}, id="one not known for long"
        ),
        pytest.param({"a": "100", "at": OLD_STAMP}, HALF, {"a": "100", "at": NOW}, id="one that never stood there"),
        pytest.param({"b": "7"}, wanted(), {"a": "100", "at": NOW}, id="somebody else's beside ours"),
        pytest.param({"a": "100", "b": "7"}, HALF, {"a": "100", "at": NOW}, id="somebody else's, and not known"),
        pytest.param({"a": "100", "at": NOW}, wanted(b=5), {"a": "100", "b": "5", "at": NOW}, id="one too few"),
        pytest.param({"a": "100", "at": NOW}, None, None, id="nothing is known for a moment"),
        pytest.param({"a": "100", "at": ANCIENT}, None, {"a": None, "at": None}, id="nothing is known for long"),
        pytest.param({"a": "100", "at": "noon"}, None, {"a": None, "at": None}, id="a stamp that is no time"),
        pytest.param({"a": "100"}, None, None, id="somebody else's"),
    ],
)
def test_what_is_written_when(annotations, new, written):
    assert ([] if written is None else [written]) == [change.annotations for change in planned(annotations, new)]


def test_a_change_says_why():
    assert [MOVED] == [one.why for one in planned({}, wanted())]
    assert [OLD] == [one.why for one in planned({"a": "100", "at": OLD_STAMP}, wanted())]
    assert [UNKNOWN] == [one.why for one in planned({"a": "1", "at": ANCIENT}, None)]


def test_the_most_urgent_comes_first():
    stands = {"moved a lot": "0", "moved": "80", "old": "100", "still": "99"}
    nodes = {
        name: a_node(name, annotations={"a": a, "at": OLD_STAMP if name == "old" else FIVE_AGO})
        for name, a in stands.items()
    }
    nodes["new"] = a_node("new")
    changes = plan(nodes, dict.fromkeys(nodes, wanted()), NOON, RULES)

    assert ["new", "moved a lot", "moved", "old"] == [one.node for one in changes]


def test_what_misleads_comes_first_and_what_waited_for_twice_the_refresh_time_before_what_moved():
    ages = {"moved": FIVE_AGO, "waited": "2026-03-01T11:40:00Z", "waited longer": "2026-03-01T11:39:00Z"}
    nodes = {name: a_node(name, annotations={"a": "0", "at": stamp}) for name, stamp in ages.items()}
    nodes["unknown"] = a_node("unknown", annotations={"a": "0", "at": ANCIENT})
    known = {"moved": wanted(1000), "waited": wanted(0), "waited longer": wanted(0)}

    assert ["unknown", "waited longer", "waited", "moved"] == [one.node for one in plan(nodes, known, NOON, RULES)]


def test_a_write_that_leaves_the_stamp_does_not_come_first_again_and_again():
    nodes = {
        "half": a_node("half", annotations={"a": "0", "b": "7", "at": "2026-03-01T11:35:00Z"}),
        "late": a_node("late", annotations={"a": "100", "at": "2026-03-01T11:40:00Z"}),
    }
    changes = plan(nodes, {"half": HALF, "late": wanted()}, NOON, RULES)

    assert [("late", {"a": "100", "at": NOW}), ("half", {"a": "100"})] == [
        (one.node, one.annotations) for one in changes
    ]


def test_a_node_that_refused_comes_after_all_others_until_it_waited_as_long():
    nodes = {name: a_node(name) for name in ("refuses", "new")}
    nodes["old"] = a_node("old", annotations={"a": "100", "at": OLD_STAMP})
    nodes["late"] = a_node("late", annotations={"a": "100", "at": "2026-03-01T11:35:00Z"})
    known = dict.fromkeys(nodes, wanted())

    def order(ago: float) -> list[str]:
        return [one.node for one in plan(nodes, known, NOON, RULES, {"refuses": NOON - ago})]

    assert ["new", "late", "old", "refuses"] == order(60.0) == order(1199.0)
    # 11:35 is 1500 seconds ago.
    assert ["new", "late", "refuses", "old"] == order(1200.0)
    assert ["new", "refuses", "late", "old"] == order(1501.0)


def test_where_everything_moves_all_the_time_everything_gets_its_turn():
    """
    Three writes a round of one minute, for 100 nodes; ten of them are no longer known, ten do not move.
    """
    nodes = {f"n{n}": a_node(f"n{n}", annotations={"a": "0", "at": NOW}) for n in range(100)}
    gone, still = [f"n{n}" for n in range(10)], [f"n{n}" for n in range(10, 20)]
    written: dict[str, list[int]] = {name: [0] for name in nodes}
    for turn in range(1, 200):
        now = NOON + 60 * turn
        known = {name: wanted(0 if name in still else 1000 * (turn % 2), at=now) for name in nodes if name not in gone}
        for change in plan(nodes, known, now, RULES)[:3]:
            written[change.node].append(turn)
            after = {**nodes[change.node].annotations, **change.annotations}
            kept = {key: value for key, value in after.items() if value is not None}
            nodes[change.node] = msgspec.structs.replace(nodes[change.node], annotations=kept)

    # Forgotten after 30 minutes, and then three in every round.
    assert [31, 31, 31, 32, 32, 32, 33, 33, 33, 34] == sorted(written[name][-1] for name in gone)
    # A turn takes 90 / 3 rounds, and four more while the unknown ones are taken off.
    waits = [
        later - earlier for name in nodes if name not in gone for earlier, later in pairwise([*written[name], 200])
    ]
    assert max(waits) <= 20 + 34


def test_everything_is_taken_off_when_asked():
    nodes = {
        "n1": a_node("n1", uid="u1", annotations={"a": "1", "at": NOW, "other": "x"}),
        "n2": a_node("n2", annotations={"other": "x"}),
        "n3": a_node("n3", annotations={"b": "somebody else's"}),
    }

    assert [
        AnnotationWrite("n1", "u1", {"a": None, "at": None}, ASKED),
        AnnotationWrite("n3", "", {"b": None}, ASKED),
    ] == removals(nodes, RULES)


@given(st.integers(0, 1000), st.integers(0, 1000), st.floats(1, 100))
def test_what_was_just_written_is_not_written_again(before, after, step):
    """
    The second round without a change writes nothing, whatever stood there before.
    """
    (change,) = planned({"a": str(before)}, wanted(after, step=step))
    again = planned({key: value for key, value in change.annotations.items() if value}, wanted(after, step=step))

    assert [] == again


@pytest.mark.parametrize(
    ("text", "number"),
    [(None, None), ("1.5", 1.5), ("x", None), ("nan", None), ("inf", None), ("9" * 100, None), (" 7 ", 7.0)],
)
def test_annotations_are_read_with_care(text, number):
    assert number == number_in(text)


@pytest.mark.parametrize(
    ("stamp", "age"),
    [
        pytest.param(None, math.inf, id="none"),
        pytest.param("", math.inf, id="empty"),
        pytest.param("x", math.inf, id="no time"),
        pytest.param(FIVE_AGO, 300.0, id="five minutes ago"),
        pytest.param("2026-03-01T12:04:00Z", 0.0, id="a little ahead"),
        pytest.param("2027-01-01T00:00:00Z", math.inf, id="next year"),
    ],
)
def test_ages_are_never_negative_and_never_believed_blindly(stamp, age):
    assert age == age_of(stamp, NOON)
