"""Topology: domains of rows and rows that pods select, as node labels come, change and go."""

import pytest

from lamina.model.selectors import NodeSelector, NodeSelectorTerm, Requirement
from lamina.scheduling.state import topology
from lamina.scheduling.state.columns import FIRST_ROWS, NodeColumns
from lamina.scheduling.state.topology import EMPTY, MISSING, Topology
from lamina.scheduling.state.view import everything, only
from lamina.testing import a_node

SSD = ((("disk", "ssd"),), None)


def zoned(name: str, zone: str | None, **more: str):
    return a_node(name, labels={**({} if zone is None else {"zone": zone}), **more})


def named(*names: str) -> NodeSelectorTerm:
    return NodeSelectorTerm((), (Requirement("metadata.name", "In", names),))


def columns(*zones: str | None) -> NodeColumns:
    made = NodeColumns()
    for number, zone in enumerate(zones):
        made.put(zoned(f"n{number}", zone))
    return made


def zones(of: NodeColumns) -> list[int]:
    return [int(number) for number in everything(of).domains("zone")]


def test_each_value_is_a_domain():
    """Numbered as they are met; no label is no domain, and an empty value has its number from the start."""
    made = columns("a", "b", None, "a", "")

    assert [2, 3, MISSING, 2, EMPTY] == zones(made)
    assert 4 == everything(made).domain_count("zone")


def test_a_label_nobody_has_makes_no_domain():
    view = everything(columns("a", "b"))

    assert [MISSING, MISSING] == view.domains("rack").tolist()
    assert (2, 0) == (view.domain_count("rack"), view.labelled("rack"))


def test_domains_follow_nodes_that_come_change_and_go():
    """As they were asked for before, so that they have to be patched."""
    made = columns("a", "b")
    zones(made)
    made.put(zoned("n1", "c"))
    made.put(zoned("n2", "b"))
    assert ([2, 4, 3], 3) == (zones(made), everything(made).labelled("zone"))

    made.remove("n0")
    assert ([MISSING, 4, 3], 2) == (zones(made), everything(made).labelled("zone"))

    # The row is given to another node.
    made.put(zoned("new", "b"))
    assert [3, 4, 3] == zones(made)


def test_domains_grow_with_the_rows():
    made = columns("a")
    zones(made)
    for number in range(1, FIRST_ROWS + 2):
        made.put(zoned(f"n{number}", "b"))

    assert [2] + [3] * (FIRST_ROWS + 1) == zones(made)


def test_a_view_shows_the_domains_of_its_rows():
    made = columns("a", "b", "c")

    assert [4, 2] == only(made, [2, 0]).domains("zone").tolist()
    assert [False, True] == only(columns("a", "b"), [0, 1]).selected(((("zone", "b"),), None)).tolist()


def test_values_no_node_has_any_more_are_given_up_when_they_are_many(monkeypatch):
    """Nodes that come and go with a name of their own would otherwise make the numbers grow for ever."""
    monkeypatch.setattr(topology, "SPARE", 2)
    made = columns("a")
    zones(made)
    for number in range(6):
        made.put(zoned("n0", f"z{number}"))

    assert [2] == zones(made)
    assert 3 == everything(made).domain_count("zone")


@pytest.mark.parametrize(
    ("wanted", "want"),
    [
        pytest.param(((), None), [True, True, True], id="nothing in particular"),
        pytest.param(SSD, [True, False, True], id="a label"),
        pytest.param(((("disk", "ssd"), ("zone", "a")), None), [True, False, False], id="two labels"),
        pytest.param(
            ((), NodeSelector((NodeSelectorTerm((Requirement("zone", "In", ("b",)),)),))),
            [False, True, True],
            id="affinity",
        ),
        pytest.param(
            ((("disk", "ssd"),), NodeSelector((NodeSelectorTerm((Requirement("zone", "In", ("b",)),)),))),
            [False, False, True],
            id="both",
        ),
        pytest.param(
            ((), NodeSelector((NodeSelectorTerm((), (Requirement("metadata.name", "In", ("n1",)),)),))),
            [False, True, False],
            id="a name",
        ),
        pytest.param(
            ((("disk", "ssd"),), NodeSelector((named("n1"), named("n2"), named("n9")))),
            [False, False, True],
            id="names",
        ),
        pytest.param(
            ((), NodeSelector((named("n1"), NodeSelectorTerm((Requirement("disk", "Exists"),))))),
            [True, True, True],
            id="a name, or a label",
        ),
        pytest.param(((), NodeSelector((named("n1", "n2"),))), [False, False, False], id="two names at once"),
        pytest.param(((), NodeSelector()), [False, False, False], id="affinity to nothing"),
    ],
)
def test_nodes_are_selected_by_labels_and_affinity(wanted, want):
    """Both must match."""
    made = NodeColumns()
    made.put(zoned("n0", "a", disk="ssd"))
    made.put(zoned("n1", "b"))
    made.put(zoned("n2", "b", disk="ssd"))

    assert want == everything(made).selected(wanted).tolist()


def test_selections_follow_nodes_that_come_change_and_go():
    made = NodeColumns()
    made.put(zoned("n0", "a", disk="ssd"))
    made.put(zoned("n1", "a"))
    assert [True, False] == everything(made).selected(SSD).tolist()

    made.put(zoned("n1", "a", disk="ssd"))
    made.put(zoned("n2", "a", disk="hdd"))
    made.remove("n0")

    assert [False, True, False] == everything(made).selected(SSD).tolist()


def test_a_selection_by_name_follows_nodes_that_come_and_go():
    """The name decides, whatever row it is in."""
    wanted = ((), NodeSelector((named("n1"), named("n3"))))
    made = NodeColumns()
    made.put(zoned("n0", "a"))
    made.put(zoned("n1", "a"))
    assert [False, True] == everything(made).selected(wanted).tolist()

    made.remove("n1")
    made.put(zoned("n2", "a"))
    made.put(zoned("n3", "a"))

    assert [False, False, True] == everything(made).selected(wanted).tolist()


def test_what_nobody_asked_for_lately_is_let_go(monkeypatch):
    monkeypatch.setattr(topology, "MOST", 2)
    made = Topology([], {})
    for key in ("a", "b", "a", "c"):
        made.domains(key)
        made.selected((((key, ""),), None))

    assert ["a", "c"] == list(made._domains)
    assert ["a", "c"] == [wanted[0][0][0] for wanted in made._selections]
