"""TaintToleration: taints that refuse, and taints that only dissuade."""

import numpy as np
import pytest

from lamina.model.decision import Refusal
from lamina.model.taints import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, Taint, Toleration
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.testing import a_node, a_pod
from tests.unit.scheduling.bench import Bench, refused, scored

TAINTED = Refusal("TaintToleration", ("node(s) had untolerated taint(s)",), final=True)

GPU = Taint("gpu", "a100", NO_SCHEDULE)
DRAIN = Taint("drain", "", NO_EXECUTE)
BUSY = Taint("busy", "", PREFER_NO_SCHEDULE)
OLD = Taint("old", "yes", PREFER_NO_SCHEDULE)


@pytest.mark.parametrize(
    ("taints", "tolerations", "refuses"),
    [
        pytest.param([], [], False, id="no taint"),
        pytest.param([GPU], [], True, id="NoSchedule"),
        pytest.param([DRAIN], [], True, id="NoExecute"),
        pytest.param([BUSY], [], False, id="PreferNoSchedule refuses nobody"),
        pytest.param([GPU], [Toleration("gpu", "Equal", "a100", NO_SCHEDULE)], False, id="tolerated exactly"),
        pytest.param([GPU], [Toleration("gpu", "Exists")], False, id="tolerated by key"),
        pytest.param([GPU], [Toleration("gpu", "Equal", "h100")], True, id="another value"),
        pytest.param([GPU], [Toleration("gpu", "Exists", "", NO_EXECUTE)], True, id="another effect"),
        pytest.param([GPU, DRAIN], [Toleration("gpu", "Exists")], True, id="one of two tolerated"),
        pytest.param([GPU, DRAIN], [Toleration("", "Exists")], False, id="everything tolerated"),
        pytest.param([BUSY, GPU], [Toleration("busy", "Exists")], True, id="the soft one tolerated"),
    ],
)
def test_a_hard_taint_that_is_not_tolerated_refuses_the_node_for_good(taints, tolerations, refuses):
    """In upstream's words, which name no taint; evicting somebody would not help."""
    bench = Bench(a_node("clean"), a_node("tainted", taints=taints))

    found = refused(bench, bench.make("TaintToleration"), a_pod(tolerations=tolerations))

    assert ({"tainted": TAINTED} if refuses else {}) == found


@pytest.mark.parametrize(
    ("tolerations", "want"),
    [
        # Soft taints nobody tolerates: clean has none, one has BUSY, two has BUSY and OLD; GPU is no soft taint.
        pytest.param([], {"clean": 0, "one": 1, "two": 2, "hard": 0}, id="none"),
        pytest.param([Toleration("busy", "Exists")], {"clean": 0, "one": 0, "two": 1, "hard": 0}, id="one of them"),
        pytest.param(
            [Toleration("busy", "Exists", "", PREFER_NO_SCHEDULE)],
            {"clean": 0, "one": 0, "two": 1, "hard": 0},
            id="one of them, as soft",
        ),
        pytest.param(
            [Toleration("busy", "Exists", "", NO_SCHEDULE)],
            {"clean": 0, "one": 1, "two": 2, "hard": 0},
            id="one of them, as hard",
        ),
        pytest.param([Toleration("", "Exists")], {"clean": 0, "one": 0, "two": 0, "hard": 0}, id="everything"),
    ],
)
def test_nodes_are_ranked_by_the_soft_taints_the_pod_does_not_tolerate(tolerations, want):
    """Before normalising it is their number."""
    bench = Bench(
        a_node("clean"), a_node("one", taints=[BUSY]), a_node("two", taints=[BUSY, OLD]), a_node("hard", taints=[GPU])
    )

    assert want == scored(bench, bench.make("TaintToleration"), a_pod(tolerations=tolerations))


@pytest.mark.parametrize(
    ("counts", "feasible", "want"),
    [
        pytest.param([0, 0, 0], [1, 1, 1], [100, 100, 100], id="nobody has any"),
        pytest.param([0, 1, 2], [1, 1, 1], [100, 50, 0], id="evenly spread"),
        # 100 - 100·1//3 = 100 - 33, 100 - 100·2//3 = 100 - 66
        pytest.param([1, 2, 3], [1, 1, 1], [67, 34, 0], id="the share is cut, then subtracted"),
        pytest.param([4, 4], [1, 1], [0, 0], id="everybody has the same"),
        pytest.param([7], [1], [0], id="a single node"),
        pytest.param([0], [1], [100], id="a single node without"),
        pytest.param([1, 2, 8], [1, 1, 0], [50, 0, None], id="a node that is out is no measure"),
        pytest.param([0, 5, 0], [1, 0, 1], [100, None, 100], id="nobody who is in has any"),
    ],
)
def test_the_most_tainted_node_gets_nothing_and_an_untainted_one_everything(counts, feasible, want):
    """Upstream's shared normalisation, reversed, over the nodes that passed the filters."""
    plugin = Bench().make("TaintToleration")
    inside = np.array(feasible, dtype=np.bool_)

    final = plugin.normalize(CycleState(), a_pod(), np.array(counts, dtype=np.int64), inside)

    assert want == [int(score) if fits else None for score, fits in zip(final, inside, strict=True)]


def test_nodes_with_the_same_taints_are_judged_once():
    """Sets of taints are numbered; a node only has a number."""
    bench = Bench(*(a_node(f"n{number}", taints=[GPU] if number % 2 else []) for number in range(6)))

    assert [(), (GPU,)] == bench.view.taint_sets
    assert {"n1", "n3", "n5"} == set(refused(bench, bench.make("TaintToleration"), a_pod()))


def test_the_order_of_taints_on_a_node_does_not_matter():
    """Both orders are refused, and counted alike."""
    bench = Bench(a_node("n1", taints=[BUSY, GPU, OLD]), a_node("n2", taints=[OLD, BUSY, GPU]))
    plugin = bench.make("TaintToleration")

    assert {"n1": TAINTED, "n2": TAINTED} == refused(bench, plugin, a_pod())
    assert {"n1": 2, "n2": 2} == scored(bench, plugin, a_pod())


def test_pods_are_told_apart_by_what_they_tolerate():
    """And by nothing else."""
    plugin = Bench().make("TaintToleration")

    assert plugin.sign(a_pod("a", cpu=1)) == plugin.sign(a_pod("b", cpu=2))
    assert plugin.sign(a_pod("a")) != plugin.sign(a_pod("b", tolerations=[Toleration("gpu", "Exists")]))
