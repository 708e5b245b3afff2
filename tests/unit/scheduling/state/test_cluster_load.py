"""ClusterLoad: how loaded the cluster is, and how large a usual pod is."""

from collections.abc import Collection

import numpy as np
import pytest

from lamina.model.pod import Pod
from lamina.scheduling.state.cluster_load import RECENT, ClusterLoad
from lamina.testing import a_node, a_pod
from tests.unit.scheduling.bench import Bench


def a_bench(*used: tuple[int, str]) -> Bench:
    """Nodes of 10 cpu and 10 GiB with so much cpu and memory in use."""
    bench = Bench(*(a_node(f"n{number}", cpu=10, memory="10Gi") for number in range(len(used))))
    for number, (cpu, memory) in enumerate(used):
        bench.place(f"n{number}", a_pod(f"on n{number}", cpu=cpu, memory=memory))
    return bench


def load(bench: Bench) -> ClusterLoad:
    return bench.context.load


def mean_with(bench: Bench, pod: Pod, among: Collection[str]) -> float:
    """Return the mean load with one more pod that goes to one of some nodes."""
    inside = np.array([node is not None and node.name in among for node in bench.columns.nodes], dtype=np.bool_)
    return load(bench).mean_with(pod, load(bench).of(bench.view), inside)


TINY = a_pod("tiny", cpu=0, memory="0")


# ----------------------------------------------------------------------------------------------------------------- loads


def test_a_nodes_load_is_that_of_cpu_or_memory_whichever_is_larger():
    """As it is, and with a pod of 2 cpu and 1 GiB on it."""
    bench = a_bench((0, "0"), (5, "1Gi"), (1, "7Gi"), (9, "0"))

    assert [0.0, 0.5, 0.7, 0.9] == pytest.approx(load(bench).of(bench.view).tolist())
    # 2/10; 7/10 against 2/10; 3/10 against 8/10; 11/10
    assert [0.2, 0.7, 0.8, 1.1] == pytest.approx(load(bench).of(bench.view, a_pod(cpu=2, memory="1Gi")).tolist())


def test_what_asks_for_nothing_counts_as_rankings_count_it():
    """100m and 200 MiB: 200/10240 of the memory is more than 100/10000 of the cpu."""
    bench = a_bench((0, "0"))

    assert 200 / 10240 == pytest.approx(load(bench).of(bench.view, a_pod())[0])


def test_the_clusters_load_is_the_mean_of_its_nodes():
    """(0.5 + 0.7 + 0)/3, and with a pod of 3 cpu, wherever it goes, a third of 0.3 more."""
    bench = a_bench((5, "1Gi"), (1, "7Gi"), (0, "0"))

    assert pytest.approx(0.4) == load(bench).mean()
    assert pytest.approx(0.5) == mean_with(bench, a_pod(cpu=3, memory="1Gi"), ["n0", "n1", "n2"])


@pytest.mark.parametrize(
    ("among", "want"),
    [
        # 0.8, 0.6, 0.1 and 0.1 are 0.4 on average; the pod is 0.4 of a node.
        pytest.param(["n0", "n1", "n2", "n3"], 0.5, id="all of them: (1.6 + 0.4)/4"),
        pytest.param(["n0", "n1"], 0.9, id="the full ones: (1.4 + 0.4)/2"),
        pytest.param(["n0", "n1", "n2"], 1.9 / 3, id="one idle node is out of reach: (1.5 + 0.4)/3"),
        pytest.param(["n2", "n3"], 0.5, id="the idle ones: their 0.3 is less than the mean of all"),
        pytest.param(["n1"], 1.0, id="the only one"),
        pytest.param([], 0.5, id="none: all of them"),
    ],
)
def test_nodes_a_pod_cannot_go_to_do_not_make_the_others_look_crowded(among, want):
    """The mean of those it can go to counts, if that is the higher one."""
    bench = a_bench((8, "0"), (6, "0"), (1, "0"), (1, "0"))

    assert pytest.approx(want) == mean_with(bench, a_pod(cpu=4, memory="1Mi"), among)


def test_what_is_left_of_a_node_that_is_gone_is_in_no_mean():
    """Two of three are left, at 0.5 and 0.1; the one that left was full."""
    bench = a_bench((9, "0"), (5, "0"), (1, "0"))
    bench.remove("n0")

    assert pytest.approx(0.6) == mean_with(bench, a_pod(cpu=1, memory="1Mi"), ["n0", "n1"])
    assert pytest.approx(0.35) == mean_with(bench, a_pod(cpu=1, memory="1Mi"), ["n1", "n2"])


def test_nodes_that_take_no_pods_do_not_count():
    """One is cordoned, one has no cpu, one has left."""
    bench = a_bench((5, "1Gi"), (9, "1Gi"), (0, "0"))
    bench.put(a_node("n1", cpu=10, memory="10Gi", unschedulable=True), a_node("odd", cpu=0))
    bench.remove("n2")

    assert pytest.approx(0.5) == load(bench).mean()


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda bench: bench.place("n0", a_pod("more", cpu=5)), id="a pod more"),
        pytest.param(lambda bench: bench.put(a_node("n0", cpu=5, memory="10Gi")), id="a smaller node"),
        pytest.param(lambda bench: bench.put(a_node("n1", cpu=10, memory="10Gi", unschedulable=True)), id="a cordon"),
        pytest.param(lambda bench: bench.remove("n1"), id="a node less"),
    ],
)
def test_it_notices_what_changes(change):
    """Two nodes, of which one is half full and one idle: every change brings the mean from 0.25 to 0.5."""
    bench = a_bench((5, "0"), (0, "0"))
    assert pytest.approx(0.25) == load(bench).mean()

    change(bench)

    assert pytest.approx(0.5) == load(bench).mean()


def test_it_notices_a_new_node():
    bench = a_bench((5, "0"))
    assert pytest.approx(0.5) == load(bench).mean()

    bench.put(a_node("new", cpu=10, memory="10Gi"))

    assert pytest.approx(0.25) == load(bench).mean()


def test_a_cluster_without_nodes_has_no_load():
    bench = Bench()
    load(bench).note(a_pod(cpu=1))

    assert (0.0, 0.0, 0.0) == (load(bench).mean(), mean_with(bench, a_pod(cpu=3), []), load(bench).large(TINY))


# ----------------------------------------------------------------------------------------------------------------- sizes


def noted(*cpus: int) -> ClusterLoad:
    """Note pods of so many cpu, on nodes of 10 cpu."""
    known = load(a_bench((0, "0"), (0, "0")))
    for cpu in cpus:
        known.note(a_pod(cpu=cpu, memory="1Mi"))
    return known


@pytest.mark.parametrize(
    ("cpus", "want"),
    [
        pytest.param([3], 0.3, id="one: that one"),
        pytest.param([1, 2, 3], 0.3, id="a few: the largest"),
        pytest.param([1] * 9 + [5], 0.1, id="ten: nine do not exceed the smaller size"),
        pytest.param([1] * 8 + [5] * 2, 0.5, id="ten: eight are not enough"),
        pytest.param([5, 1] * 10, 0.5, id="half of them"),
        pytest.param(list(range(1, 11)) * 10, 0.9, id="a hundred of all sizes"),
    ],
)
def test_nine_of_ten_pods_are_not_larger_than_a_large_one(cpus, want):
    assert pytest.approx(want) == noted(*cpus).large(TINY)


def test_size_is_that_of_cpu_or_memory_whichever_is_the_larger_share():
    known = load(a_bench((0, "0")))
    known.note(a_pod(cpu=1, memory="4Gi"))

    assert pytest.approx(0.4) == known.large(TINY)


def test_only_recent_pods_count():
    """Large ones were placed before the last 500."""
    assert pytest.approx(0.1) == noted(*[5] * 300, *[1] * RECENT).large(TINY)


def test_sizes_are_shares_of_a_mean_node():
    """Of 10 and 30 cpu: a pod of 2 is a tenth of 20; without the large one it is a fifth."""
    bench = Bench(a_node("small", cpu=10, memory="1Ti"), a_node("large", cpu=30, memory="1Ti"))
    load(bench).note(a_pod(cpu=2, memory="1Mi"))
    assert pytest.approx(0.1) == load(bench).large(TINY)

    bench.remove("large")

    assert pytest.approx(0.2) == load(bench).large(TINY)


@pytest.mark.parametrize(
    ("cpus", "want"),
    [
        pytest.param([], 0.4, id="nothing was placed yet"),
        pytest.param([1] * 500, 0.4, id="five hundred small ones"),
        pytest.param([4] * 20, 0.4, id="pods like it"),
        pytest.param([7] * 20, 0.7, id="larger ones: those are the measure"),
    ],
)
def test_a_pod_that_is_larger_than_usual_is_a_large_one(cpus, want):
    """It takes 4 of 10 cpu."""
    assert pytest.approx(want) == noted(*cpus).large(a_pod(cpu=4, memory="1Mi"))


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(a_pod(cpu=4, memory="1Gi"), 0.2, id="more of the cpu: 4/20"),
        pytest.param(a_pod(cpu=1, memory="5Gi"), 0.5, id="more of the memory: 5/10"),
        pytest.param(a_pod(), 200 / 10240, id="nothing said: 200 MiB, as rankings count it"),
        pytest.param(TINY, 0.0, id="nothing"),
    ],
)
def test_a_pods_share_is_that_of_a_mean_node(pod, want):
    """Of 10 and 30 cpu, and 10 GiB each."""
    bench = Bench(a_node("small", cpu=10, memory="10Gi"), a_node("large", cpu=30, memory="10Gi"))

    assert pytest.approx(want) == load(bench).share(pod)
