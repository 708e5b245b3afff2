"""What-if views: what they never pretend, and that asking leaves no trace."""

import msgspec

from lamina.model.pod import HostPort
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.hypothesis import as_if
from lamina.testing import a_node, a_pod
from tests.unit.scheduling.bench import Bench, refused, scored


def test_a_question_is_asked_about_all_rows_some_or_one():
    """The same pods are gone and there in each."""
    bench = Bench(a_node("a", cpu=4), a_node("b", cpu=4), a_node("c", cpu=4))
    victim = a_pod("victim", cpu=3)
    bench.place("b", victim)
    supposed = as_if(bench.columns, gone=[(1, victim)], there=[(2, a_pod("new", cpu=1))])

    assert [4000, 4000, 3000] == supposed.view().free("cpu").tolist()
    assert [3000, 4000] == supposed.view([2, 1]).free("cpu").tolist()
    assert [4000] == supposed.view([1]).free("cpu").tolist()
    assert (4000, 3000) == (supposed.row(1).free("cpu"), supposed.row(2).free("cpu"))
    assert [4000, 1000, 4000] == bench.view.free("cpu").tolist()


def test_what_is_worked_out_from_it_is_not_taken_for_how_things_are():
    """It is never whole and cannot tell what changed: a plugin that keeps something keeps nothing of it."""
    bench = Bench(a_node("a", cpu=4), a_node("b", cpu=4))
    victim = a_pod("victim", cpu=3)
    bench.place("b", victim)
    plugin = bench.make("NodeResourcesBalancedAllocation")
    nodes = as_if(bench.columns, gone=[(1, victim)]).view()
    asker, state = a_pod("asker", cpu=1), CycleState()
    plugin.pre_score(state, asker, nodes)

    supposed = plugin.score(state, asker, nodes).tolist()

    assert supposed[0] == supposed[1]
    assert (False, None) == (nodes.whole, nodes.changed_since(Facet.RESOURCES, 0))
    assert bench.view.changed_since(Facet.RESOURCES, nodes.noted(Facet.RESOURCES)) is None
    real = scored(bench, plugin, asker)
    assert real is not None
    assert real["a"] != real["b"]


def test_facts_of_plugins_answer_the_same_question():
    """A port is free where the pod that holds it would be gone, and taken where one would come."""
    bench = Bench(a_node("a"), a_node("b"))
    plugin = bench.make("NodePorts")
    holder, wanting = (
        msgspec.structs.replace(a_pod(name), host_ports=(HostPort(80),)) for name in ("holder", "wanting")
    )
    bench.place("a", holder)
    supposed = as_if(bench.columns, gone=[(0, holder)], there=[(1, wanting)])

    verdicts = plugin.filter(CycleState(), wanting, supposed.view())

    assert [False, True] == verdicts.codes.tolist()
    assert [0, 1] == [plugin.filter_node(CycleState(), wanting, supposed.row(row)) for row in (0, 1)]
    assert {"a"} == set(refused(bench, plugin, wanting))


def test_a_question_costs_what_its_pods_cost():
    """However many nodes there are: nothing of the columns is looked at before a plugin asks."""
    bench = Bench(a_node("a"))
    columns = bench.columns
    columns.size = 10**9  # anything that walked all rows would not come back

    supposed = as_if(columns, gone=[], there=[(0, a_pod("new", cpu=1))])

    assert 3000 == supposed.row(0).free("cpu")
    assert [3000] == supposed.view([0]).free("cpu").tolist()
