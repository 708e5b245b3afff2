"""The log of node annotations that cannot be read: one line for each node and annotation, and never without end."""

import pytest

from lamina.model.node import Node
from lamina.scheduling.state.node_annotations import NodeAnnotations
from lamina.services.informers import annotation_log
from lamina.services.informers.annotation_log import AnnotationLog
from lamina.testing import a_node

KEY = "congestion-factor"


def annotated(*texts: str) -> list[Node]:
    return [a_node(f"n{number}", annotations={KEY: text}) for number, text in enumerate(texts)]


@pytest.fixture
def nodes() -> list[Node]:
    return annotated("much", "1.5", "more\x1b[2J")


@pytest.fixture
def watched(nodes) -> AnnotationLog:
    annotations = NodeAnnotations(nodes)
    annotations.floats(KEY, len(nodes))
    return AnnotationLog(annotations)


def logged(caplog) -> list[tuple[str, str, str]]:
    records = [one for one in caplog.records if one.message == "node annotation cannot be read"]
    return [tuple(vars(one)["fields"].values()) for one in records]


def test_each_node_and_annotation_is_logged_once(watched, nodes, caplog):
    for text in ("much", "very much", "even more"):
        nodes[0] = a_node("n0", annotations={KEY: text})
        watched.look()

    assert [("n0", KEY, "much"), ("n2", KEY, "more\x1b[2J")] == logged(caplog)


def test_no_more_than_so_many_are_remembered_or_logged(watched, nodes, caplog, monkeypatch):
    monkeypatch.setattr(annotation_log, "MOST", 2)
    nodes[:] = annotated(*"abcde")
    watched.look()
    watched.look()

    assert ["n0", "n1"] == [node for node, _, _ in logged(caplog)]


def test_what_can_be_read_again_makes_room_for_others(watched, nodes, caplog, monkeypatch):
    monkeypatch.setattr(annotation_log, "MOST", 2)
    watched.look()
    nodes[:] = annotated("1", "2", "c", "d")
    watched.look()

    assert ["n0", "n2", "n3"] == [node for node, _, _ in logged(caplog)]
