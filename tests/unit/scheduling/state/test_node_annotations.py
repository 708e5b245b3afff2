"""Numbers in annotations, as arrays."""

import math

import numpy as np
import pytest

from lamina.model.events import NodeGone, NodeSeen
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.node_annotations import moment, number
from lamina.scheduling.state.view import NodeRow, everything, only
from lamina.testing.builders import a_node

KEY = "congestion-factor"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(None, id="not said"),
        pytest.param("", id="empty"),
        pytest.param("much", id="a word"),
        pytest.param("nan", id="not a number"),
        pytest.param("inf", id="infinity"),
        pytest.param("1_000", id="as only Python writes it"),
        pytest.param("1e999", id="beyond every float"),
        pytest.param("1" * 65, id="too long to mean anything"),
        pytest.param("٥٠", id="digits of another script"),
        pytest.param("５０", id="wide digits"),
    ],
)
def test_what_is_no_finite_number_counts_as_not_said(text: str | None) -> None:
    assert math.isnan(number(text))


@pytest.mark.parametrize(("text", "expected"), [("17", 17.0), (" 2.5 ", 2.5), ("-3", -3.0), ("1e3", 1000.0)])
def test_numbers_are_read_as_people_write_them(text: str, expected: float) -> None:
    assert expected == number(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("1970-01-01T00:01:40Z", 100.0, id="as Kubernetes writes it"),
        pytest.param("1970-01-01T01:01:40.5+01:00", 100.5, id="elsewhere, and more exactly"),
    ],
)
def test_times_are_seconds_since_1970(text: str, expected: float) -> None:
    assert expected == moment(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(None, id="not said"),
        pytest.param("", id="empty"),
        pytest.param("100", id="a number"),
        pytest.param("1970-01-01T00:01:40", id="without a zone"),
        pytest.param("1970-13-01T00:01:40Z", id="no month"),
        pytest.param("١٩٧٠-01-01T00:01:40Z", id="digits of another script"),
        pytest.param("1970-01-01T00:01:40." + "0" * 64 + "Z", id="too long to mean anything"),
    ],
)
def test_what_is_no_time_counts_as_not_said(text: str | None) -> None:
    assert math.isnan(moment(text))


def test_one_key_can_be_asked_for_as_numbers_and_as_times() -> None:
    loop = Loop(lambda _: {}, lambda _: 0)
    columns = loop.cluster.columns
    loop.take(NodeSeen(a_node("a", annotations={KEY: "1970-01-01T00:00:07Z"})))
    first = columns.annotations.times(KEY, 1).tolist(), np.isnan(columns.annotations.floats(KEY, 1)).tolist()
    loop.take(NodeSeen(a_node("a", annotations={KEY: "7"})))
    second = np.isnan(columns.annotations.times(KEY, 1)).tolist(), columns.annotations.floats(KEY, 1).tolist()

    assert (([7.0], [True]), ([True], [7.0])) == (first, second)


def test_a_column_follows_the_nodes() -> None:
    loop = Loop(lambda _: {}, lambda _: 0)
    columns = loop.cluster.columns

    def said() -> list[str]:
        return [f"{value:g}" for value in everything(columns).floats(KEY)]

    loop.take(NodeSeen(a_node("a", annotations={KEY: "1"})), NodeSeen(a_node("b")))
    first = said()
    loop.take(NodeSeen(a_node("b", annotations={KEY: "2"})), NodeSeen(a_node("c", annotations={KEY: "3"})))
    second = said()
    loop.take(NodeGone("a"), NodeSeen(a_node("d", annotations={KEY: "4"})))

    assert (["1", "nan"], ["1", "2", "3"], ["4", "2", "3"]) == (first, second, said())


def test_many_nodes_may_join_one_by_one_after_the_first_question() -> None:
    loop = Loop(lambda _: {}, lambda _: 0)
    for count in range(200):
        loop.take(NodeSeen(a_node(f"n{count}", annotations={KEY: str(count)})))
        assert float(count) == everything(loop.cluster.columns).floats(KEY)[-1]


def test_texts_can_be_asked_for_too() -> None:
    loop = Loop(lambda _: {}, lambda _: 0)
    loop.take(NodeSeen(a_node("a", annotations={"zone": "x"})), NodeSeen(a_node("b")), NodeSeen(a_node("c")))
    columns = loop.cluster.columns

    assert ["x", None, None] == everything(columns).annotations("zone")
    assert [None, "x"] == only(columns, [2, 0]).annotations("zone")
    assert ("x", None) == (NodeRow(columns, 0).annotation("zone"), NodeRow(columns, 1).annotation("zone"))


def test_a_change_of_annotations_is_noted_and_nothing_else() -> None:
    loop = Loop(lambda _: {}, lambda _: 0)
    loop.take(NodeSeen(a_node("a")))
    before = [log.position for log in loop.cluster.columns.logs]
    loop.take(NodeSeen(a_node("a", annotations={KEY: "5"})))
    changed = [
        Facet(index).name for index, log in enumerate(loop.cluster.columns.logs) if log.position != before[index]
    ]

    assert ["ANNOTATIONS"] == changed


def test_what_plugins_ask_for_and_cannot_read_is_listed() -> None:
    """A key that no plugin asked for may say anything; one that is asked for in two ways is readable if one way works."""
    loop = Loop(lambda _: {}, lambda _: 0)
    nodes = loop.cluster.columns
    loop.take(
        NodeSeen(a_node("a", annotations={KEY: "much", "zone": "x", "at": "7"})),
        NodeSeen(a_node("b", annotations={KEY: "7", "at": "never"})),
        NodeSeen(a_node("c")),
    )
    before = list(nodes.annotations.unreadable())
    nodes.annotations.floats(KEY, 3)
    nodes.annotations.floats("at", 3)
    nodes.annotations.times("at", 3)

    assert [] == before
    assert [("a", KEY, "much"), ("b", "at", "never")] == list(nodes.annotations.unreadable())

    loop.take(NodeSeen(a_node("a", annotations={KEY: "1"})), NodeGone("b"))
    assert [] == list(nodes.annotations.unreadable())
