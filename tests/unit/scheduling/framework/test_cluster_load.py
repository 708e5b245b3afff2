"""ClusterLoad: how loaded the cluster is, and how large a usual pod is."""

import pytest

from lamina.scheduling.framework.load import RECENT, ClusterLoad
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


TINY = a_pod("tiny", cpu=0, memory="0")


# ----------------------------------------------------------------------------------------------------------------- loads


def test_a_nodes_load_is_that_of_cpu_or_memory_whichever_is_larger():
    """With the pod on it: 2 cpu and 1 GiB."""
    bench = a_bench((0, "0"), (5, "1Gi"), (1, "7Gi"), (9, "0"))

    # 2/10; 7/10 against 2/10; 3/10 against 8/10; 11/10
    assert [0.2, 0.7, 0.8, 1.1] == pytest.approx(load(bench).after(a_pod(cpu=2, memory="1Gi"), bench.view).tolist())


def test_what_asks_for_nothing_counts_as_rankings_count_it():
    """100m and 200 MiB: 200/10240 of the memory is more than 100/10000 of the cpu."""
    bench = a_bench((0, "0"))

    assert 200 / 10240 == pytest.approx(load(bench).after(a_pod(), bench.view)[0])


def test_the_clusters_load_is_the_mean_of_its_nodes():
    """(0.5 + 0.7 + 0)/3, and with a pod of 3 cpu, wherever it goes, a third of 0.3 more."""
    bench = a_bench((5, "1Gi"), (1, "7Gi"), (0, "0"))

    assert pytest.approx(0.4) == load(bench).mean()
    assert pytest.approx(0.5) == load(bench).mean_with(a_pod(cpu=3, memory="1Gi"))


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

    assert (0.0, 0.0, 0.0) == (load(bench).mean(), load(bench).mean_with(a_pod(cpu=3)), load(bench).large(TINY))


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


def test_before_much_was_placed_the_pod_itself_says_what_is_usual():
    """Nothing was placed yet: a pod of 4 of 10 cpu is a large one. After ten small ones it is no measure any more."""
    assert pytest.approx(0.4) == noted().large(a_pod(cpu=4, memory="1Mi"))
    assert pytest.approx(0.4) == noted(*[1] * 9).large(a_pod(cpu=4, memory="1Mi"))
    assert pytest.approx(0.1) == noted(*[1] * 10).large(a_pod(cpu=4, memory="1Mi"))
