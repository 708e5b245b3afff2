"""NodeName: a pod that names its node."""

import pytest

from lamina.model.decision import Refusal
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.state.cluster_changes import ChangeKind
from lamina.scheduling.state.view import only
from lamina.testing import a_node, a_pod
from tests.unit.scheduling.bench import Bench, refused

OTHER = Refusal("NodeName", ("node(s) didn't match the requested node name",), final=True)


@pytest.mark.parametrize(
    ("named", "want"),
    [
        pytest.param("", {}, id="no node named"),
        pytest.param("n2", {"n1": OTHER, "n3": OTHER}, id="a node that is there"),
        pytest.param("n9", {"n1": OTHER, "n2": OTHER, "n3": OTHER}, id="a node that is not there"),
        pytest.param("N2", {"n1": OTHER, "n2": OTHER, "n3": OTHER}, id="names have no capitals"),
    ],
)
def test_every_node_but_the_one_named_is_refused_for_good(named, want):
    """In upstream's words; evicting somebody would not help."""
    bench = Bench(a_node("n1"), a_node("n2"), a_node("n3"))

    assert want == refused(bench, bench.make("NodeName"), a_pod(on=named))


def test_a_name_goes_with_its_node_when_the_row_is_used_again():
    """The row is only a place; the name decides."""
    bench = Bench(a_node("n1"), a_node("n2"))
    bench.remove("n1")
    bench.put(a_node("n3"))

    assert {"n2": OTHER} == refused(bench, bench.make("NodeName"), a_pod(on="n3"))


@pytest.mark.parametrize(
    ("rows", "want"),
    [
        pytest.param([1], [0], id="the named one alone"),
        pytest.param([2], [1], id="another one alone"),
        pytest.param([0, 2], [1, 1], id="some without it"),
        pytest.param([1, 2], [0, 1], id="some with it"),
    ],
)
def test_it_answers_for_the_rows_in_view(rows, want):
    """One code per row of the view, in its order."""
    bench = Bench(a_node("n1"), a_node("n2"), a_node("n3"))

    verdicts = bench.make("NodeName").filter(CycleState(), a_pod(on="n2"), only(bench.columns, rows))

    assert want == verdicts.codes.tolist()


def test_pods_are_told_apart_by_the_node_they_name():
    """Whatever else they ask for."""
    plugin = Bench().make("NodeName")

    assert plugin.sign(a_pod("a", cpu=1)) == plugin.sign(a_pod("b", cpu=2))
    assert plugin.sign(a_pod("a", on="n1")) != plugin.sign(a_pod("b", on="n2"))


def test_only_a_new_node_can_change_its_mind():
    """Nodes do not change their names."""
    assert frozenset({ChangeKind.NODE_ADDED}) == Bench().make("NodeName").retry_on
