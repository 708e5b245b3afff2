"""NodeResourcesBalancedAllocation: nodes that the pod makes more even are better, in upstream's numbers."""

import pytest

from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.plugins.upstream.node_resources_balanced_allocation import (
    BalancedAllocationArgs,
    BalancedResource,
)
from lamina.scheduling.state.view import NodeRow, only
from lamina.testing import a_node, a_pod
from tests.unit.scheduling.bench import Bench, scored

NAME = "NodeResourcesBalancedAllocation"
GPU = "example.com/gpu"
DISK = "ephemeral-storage"


def by(*resources: str) -> BalancedAllocationArgs:
    return BalancedAllocationArgs(resources=tuple(BalancedResource(name) for name in resources))


def score(node, pod, on=(), args: BalancedAllocationArgs | None = None) -> int | None:
    """Return what the plugin gives a single node with pods *on* it; None when it is not ranked."""
    bench = Bench(node)
    bench.place(node.name, *on)
    scores = scored(bench, bench.make(NAME, args), pod)
    return None if scores is None else scores[node.name]


@pytest.mark.parametrize(
    ("node", "pod", "on", "want"),
    [
        # Balance 100 - |cpu - memory| / 2 in percent, cut; score 50 + (50 + with - without) / 2, cut.
        # 0, 0 -> 75, 50: 100 -> 87; 50 + 37/2
        pytest.param(a_node(cpu=4, memory="10000"), a_pod(cpu=3, memory="5000"), [], 68, id="empty, becomes uneven"),
        # 0, 0 -> 50, 50: 100 -> 100; 50 + 50/2
        pytest.param(a_node(cpu=6, memory="10000"), a_pod(cpu=3, memory="5000"), [], 75, id="empty, stays even"),
        # 30, 0 -> 60, 25: 85 -> 82; 50 + 47/2
        pytest.param(
            a_node(cpu=10, memory="20000"),
            a_pod(cpu=3, memory="5000"),
            [a_pod("q", cpu=3)],
            73,
            id="a little less even",
        ),
        # 30, 25 -> 60, 50: 97 -> 95; 50 + 48/2
        pytest.param(
            a_node(cpu=10, memory="20000"),
            a_pod(cpu=3, memory="5000"),
            [a_pod("q", cpu=3, memory="5000")],
            74,
            id="beside a pod like it",
        ),
        # 30, 10 -> 60, 20: 90 -> 80; 50 + 40/2
        pytest.param(
            a_node(cpu=10, memory="50000"),
            a_pod(cpu=3, memory="5000"),
            [a_pod("q", cpu=3, memory="5000")],
            70,
            id="with more memory",
        ),
        # 100, 0 -> 100, 100: 50 -> 100; 50 + 100/2
        pytest.param(a_node(cpu=3, memory="5000"), a_pod(memory="5000"), [a_pod("q", cpu=3)], 100, id="the best"),
        # 0, 0 -> 0, 100: 100 -> 50; 50 + 0/2
        pytest.param(a_node(cpu=3, memory="5000"), a_pod(memory="5000"), [], 50, id="the worst"),
        # 50, 0 -> 100, 0: 75 -> 50; 50 + 25/2
        pytest.param(a_node(cpu=6, memory="10000"), a_pod(cpu=3), [a_pod("q", cpu=3)], 62, id="up to the brim"),
        # 100, 0 -> 100 (not 200), 0: 50 -> 50
        pytest.param(a_node(cpu=3, memory="10000"), a_pod(cpu=3), [a_pod("q", cpu=3)], 75, id="beyond it: as full"),
        # Of one resource the share is always even.
        pytest.param(a_node(cpu=0, memory="10000"), a_pod(memory="5000"), [], 75, id="a node without cpu"),
        pytest.param(a_node(cpu=4, memory="0"), a_pod(cpu=4), [], 75, id="a node without memory"),
        pytest.param(a_node(cpu=0, memory="0"), a_pod(cpu=4), [], 75, id="a node without either"),
    ],
)
def test_a_node_scores_by_how_its_balance_changes(node, pod, on, want):
    assert want == score(node, pod, on)


def test_what_is_assumed_for_pods_that_ask_nothing_does_not_count_here():
    """Other rankings count 100m and 200Mi for the pod on the node; this one counts what was asked: 0, 0 -> 25, 25."""
    assert 75 == score(a_node(cpu=4, memory="16Gi"), a_pod(cpu=1, memory="4Gi"), [a_pod("asks nothing")])


@pytest.mark.parametrize(
    ("pod", "args", "want"),
    [
        pytest.param(a_pod(), None, None, id="nothing at all"),
        pytest.param(a_pod(cpu=0, memory="0"), None, None, id="zero of both"),
        pytest.param(a_pod(more={GPU: 1}), None, None, id="something else"),
        pytest.param(a_pod(cpu=1), by("memory"), None, id="what is not looked at"),
        # 0, 0 -> 50, 0: 100 -> 75; 50 + 25/2
        pytest.param(a_pod(cpu=1), None, 62, id="one of them"),
        pytest.param(a_pod(more={DISK: "1"}), by("cpu", DISK), 75, id="one of them, which the node does not have"),
    ],
)
def test_a_pod_that_asks_for_none_of_the_resources_is_not_ranked(pod, args, want):
    """It would change nothing, and all such pods would go to one node."""
    assert want == score(a_node(cpu=2), pod, args=args)


@pytest.mark.parametrize(
    ("pod", "on", "want"),
    [
        # cpu 85.7, memory 12.5, gpu 37.5 -> 50: mean 45.2 -> 49.4, deviation 30.4 -> 29.9; 69 -> 70; 50 + 51/2
        pytest.param(a_pod(more={GPU: 1}), a_pod("q", cpu=3, memory="5000", more={GPU: 3}), 75, id="gpus in use"),
        # gpu 0 -> 12.5: deviation 37.8 -> 34.5; 62 -> 65; 50 + 53/2
        pytest.param(a_pod(more={GPU: 1}), a_pod("q", cpu=3, memory="5000"), 76, id="gpus idle"),
    ],
)
def test_of_more_than_two_resources_the_standard_deviation_counts(pod, on, want):
    node = a_node(cpu="3500m", memory="40000", more={GPU: 8})

    assert want == score(node, pod, [on], by("cpu", "memory", GPU))


@pytest.mark.parametrize(
    "node",
    [
        pytest.param(a_node(cpu="3500m", memory="40000", more={GPU: 8}), id="a node that has some"),
        pytest.param(a_node(cpu="3500m", memory="40000"), id="a node that has none"),
    ],
)
def test_an_extended_resource_the_pod_does_not_want_is_left_out(node):
    """0, 0 -> 85.7, 12.5: 100 -> 63; 50 + 13/2."""
    assert 56 == score(node, a_pod(cpu=3, memory="5000"), args=by("cpu", "memory", GPU))


def test_disk_counts_whether_or_not_it_is_asked_for():
    """0, 0, 0 -> 100, 0, 0: the deviation becomes 47.1, the balance 52; 50 + 2/2."""
    node = a_node(cpu=1, memory="100", more={DISK: 100})

    assert 51 == score(node, a_pod(cpu=1), args=by("cpu", "memory", DISK))


def test_the_number_of_pods_is_no_resource_to_balance():
    """Upstream does not find it among the others: cpu is left alone."""
    assert 75 == score(a_node(cpu=4), a_pod(cpu=4), args=by("cpu", "pods"))


def test_what_is_kept_about_nodes_follows_them():
    """Pods, sizes and nodes that come and go between two pods of the same kind."""
    bench = Bench(a_node("n0", cpu=10, memory="100"), a_node("n1", cpu=10, memory="100"), a_node("n2", cpu=0))
    plugin, pod = bench.make(NAME), a_pod(cpu=5)
    # 0, 0 -> 50, 0: 100 -> 75; 50 + 25/2
    assert {"n0": 62, "n1": 62, "n2": 75} == scored(bench, plugin, pod)

    bench.place("n1", a_pod("q", memory="50"))
    bench.put(a_node("n0", cpu=5, memory="100"), a_node("n2", cpu=10, memory="100"))
    # n0: 0, 0 -> 100, 0: 50; n1: 0, 50 -> 50, 50: 75 -> 100: 50 + 75/2; n2 has cpu now
    assert {"n0": 50, "n1": 87, "n2": 62} == scored(bench, plugin, pod)

    bench.remove("n0")
    bench.put(a_node("new", cpu=0, memory="100"), a_node("more", cpu=10, memory="100"))
    assert {"n1": 87, "n2": 62, "new": 75, "more": 62} == scored(bench, plugin, pod)


def test_some_nodes_get_what_all_would():
    bench = Bench(*(a_node(f"n{number}", cpu=number, memory="1000") for number in range(6)))
    bench.place("n3", a_pod("q", cpu=1, memory="900"))
    plugin, pod, state = bench.make(NAME), a_pod(cpu=1, memory="30"), CycleState()
    assert plugin.pre_score(state, pod, bench.view) is None
    whole = plugin.score(state, pod, bench.view).tolist()

    assert [whole[5], whole[0], whole[3]] == plugin.score(state, pod, only(bench.columns, [5, 0, 3])).tolist()
    assert whole[::-1] == plugin.score(state, pod, only(bench.columns, [5, 4, 3, 2, 1, 0])).tolist()
    assert whole == [plugin.score_node(state, pod, NodeRow(bench.columns, row)) for row in range(6)]


def test_pods_are_told_apart_by_what_they_request():
    """What they count for in other rankings is no matter here."""
    plugin = Bench().make(NAME)

    assert plugin.sign(a_pod("a", cpu=1)) == plugin.sign(a_pod("b", cpu="1000m"))
    assert plugin.sign(a_pod("a", cpu=1)) != plugin.sign(a_pod("b", cpu=2))
    assert plugin.sign(a_pod(images=["a:1"])) == plugin.sign(a_pod(images=["a:1", "b:1"]))


def test_a_resource_is_named_once():
    with pytest.raises(ValueError, match="resource 'cpu' is listed twice"):
        by("cpu", "memory", "cpu")
