"""Which nodes are worth a write, in which order, and what is written."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.services.annotator.planning import (
    ASKED,
    MOVED,
    OLD,
    UNKNOWN,
    Change,
    Rules,
    age_of,
    number_in,
    plan,
    removals,
)
from lamina.services.annotator.values import Number, Wanted
from lamina.testing import a_node

NOON = 1772366400.0
RULES = Rules(keys=("a", "b"), stamp="at")
NOW, FIVE_AGO, OLD_STAMP, ANCIENT = (f"2026-03-01T{time}Z" for time in ("12:00:00", "11:55:00", "11:49:00", "11:29:59"))


def wanted(a=100, b=None, step=10.0, at=NOON):
    numbers = {"a": Number(a, step)} | ({} if b is None else {"b": Number(b, step)})
    return Wanted(numbers, at)


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


def test_everything_is_taken_off_when_asked():
    nodes = {
        "n1": a_node("n1", uid="u1", annotations={"a": "1", "at": NOW, "other": "x"}),
        "n2": a_node("n2", annotations={"other": "x"}),
        "n3": a_node("n3", annotations={"b": "somebody else's"}),
    }

    assert [Change("n1", "u1", {"a": None, "at": None}, ASKED), Change("n3", "", {"b": None}, ASKED)] == removals(
        nodes, RULES
    )


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
