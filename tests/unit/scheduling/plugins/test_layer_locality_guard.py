"""LayerLocality's guard: what keeps it from crowding nodes."""

import math
from collections.abc import Collection
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.model.pod import Owner, Pod
from lamina.scheduling.plugins.locality.layer_locality import Barrier, LayerLocalityArgs
from lamina.scheduling.plugins.locality.layer_locality.crowding_guard import barrier, read_crowding
from lamina.testing import a_node, a_pod, an_image, held
from tests.unit.scheduling.bench import Bench, final

MB = 1_000_000
APP = an_image("app:1", {"app": 1000 * MB})
OUT = math.inf


def a_bench(loads: dict[str, float]) -> Bench:
    """Nodes of 100 cpu that are so loaded; all of them hold app:1, so that crowding alone makes a difference."""
    bench = Bench(*(a_node(name, cpu=100, memory="1Ti", pods=500) for name in loads))
    bench.learn(APP)
    bench.report(*(held(name, APP) for name in loads))
    for name, load in loads.items():
        bench.place(name, a_pod(f"on {name}", cpu=f"{round(load * 100_000)}m", memory="1Mi"))
    return bench


def scores(bench: Bench, pod: Pod, feasible: Collection[str] | None = None, **args: Any) -> dict[str, int]:
    return final(bench, bench.make("LayerLocality", LayerLocalityArgs(**args)), pod, feasible) or {}


def seconds(bench: Bench, pod: Pod, price: Barrier, feasible: Collection[str] | None = None) -> dict[str, float]:
    """Return what crowding costs each node; OUT where it is out of the question."""
    load, names = bench.context.load, bench.columns.rows if feasible is None else feasible
    inside = np.array([node is not None and node.name in names for node in bench.columns.nodes])
    costs, out = barrier(price, load, pod, read_crowding(load, 1.0, pod, bench.view), inside)
    return {name: OUT if out[row] else float(costs[row]) for name, row in bench.columns.rows.items()}


# -------------------------------------------------------------------------------------------------------------- barrier

# Of a thousandth of a cpu, so that it counts for next to nothing itself.
SMALL = a_pod(cpu="1m", memory="1Mi")


def crowd(ahead: float) -> Bench:
    """Ten nodes of which one is ahead of the mean of all."""
    return a_bench({"n0": 0.2 + ahead * 10 / 9, **{f"n{number}": 0.2 for number in range(1, 10)}})


@pytest.mark.parametrize(
    ("ahead", "want"),
    [
        # x = ahead/0.1;  5·(x - 0.5)/(1.3 - x) s
        pytest.param(0.0, 100, id="as loaded as the others"),
        pytest.param(0.04, 100, id="x = 0.4: free"),
        pytest.param(0.07, 75, id="x = 0.7, a quarter of the way: 5·0.2/0.6 = 1.67 s"),
        pytest.param(0.09, 50, id="x = 0.9, half-way: 5 s"),
        pytest.param(0.11, 25, id="x = 1.1, three quarters: 5·0.6/0.2 = 15 s"),
        pytest.param(0.131, 0, id="x = 1.31: out of the question"),
        pytest.param(0.4, 0, id="far out"),
    ],
)
def test_a_node_ahead_of_the_mean_load_pays_in_seconds(ahead, want):
    """In units of a large pod, which is a tenth of a node at least; the others pay nothing."""
    found = scores(crowd(ahead), SMALL)

    assert (want, 100) == (found["n0"], found["n1"])


@pytest.mark.parametrize(
    ("price", "want"),
    [
        pytest.param(Barrier(), 0.71, id="by default: 5·0.1/0.7"),
        pytest.param(Barrier(begin=0.0), 15.0, id="from the mean on: 5·0.6/0.2"),
        pytest.param(Barrier(begin=0.7), 0.0, id="free up to x = 0.7"),
        pytest.param(Barrier(width=0.2), 5.0, id="x = 0.6 is half of the way"),
        pytest.param(Barrier(width=0.2, seconds=20), 20.0, id="20 s half-way"),
        pytest.param(Barrier(width=0.09), OUT, id="x = 0.6 is beyond its end"),
        pytest.param(Barrier(floor=0.05), 35.0, id="a large pod is smaller, x = 1.2: 5·0.7/0.1"),
    ],
)
def test_begin_width_price_and_floor_can_be_set(price, want):
    """One node is 0.06 ahead of the mean."""
    assert want == pytest.approx(seconds(crowd(0.06), SMALL, price)["n0"], rel=0.01)


def test_without_a_barrier_nobody_pays():
    assert {100} == set(scores(crowd(0.4), SMALL, barrier=None).values())


loads = st.lists(st.integers(0, 100), min_size=2, max_size=8)
prices = st.builds(
    lambda begin, width, seconds, floor: Barrier(begin=begin, width=width, seconds=seconds, floor=floor),
    st.floats(0, 3),
    st.floats(0.01, 3),
    st.floats(0, 100),
    st.floats(0.01, 1),
)


@given(loads, prices, st.integers(1, 50), st.integers(1, 2**8 - 1))
def test_who_is_more_loaded_never_pays_less(drawn, price, size, feasible):
    """Nothing up to the beginning, out of the question from the end on, and ever more in between."""
    among = [number for number in range(len(drawn)) if feasible >> number & 1]
    bench = a_bench({f"n{number}": load / 100 for number, load in enumerate(drawn)})
    pod = a_pod(cpu=size, memory="1Mi")

    costs = seconds(bench, pod, price, [f"n{number}" for number in among])

    means = [(sum(some) + size) / len(some) for some in (drawn, [drawn[number] for number in among]) if some]
    mean = max(means)
    ahead = {f"n{number}": (load + size - mean) / 100 for number, load in enumerate(drawn)}
    unit = max(price.floor, bench.context.load.large(pod))
    for name, cost in costs.items():
        x = ahead[name] / unit
        if x < price.begin - 1e-6:
            assert 0 == cost
        elif x > price.begin + price.width + 1e-6:
            assert OUT == cost
    ranked = [costs[name] for name in sorted(costs, key=lambda name: ahead[name])]
    assert sorted(ranked) == ranked


def test_load_is_that_of_cpu_or_memory_whichever_is_larger():
    """Three nodes of 10 cpu and 10 GiB: one with half of its cpu in use, one with half of its memory, one with neither."""
    bench = Bench(*(a_node(name, cpu=10, memory="10Gi") for name in ("cpu", "memory", "idle")))
    bench.place("cpu", a_pod("c", cpu=5, memory="1Mi"))
    bench.place("memory", a_pod("m", cpu="1m", memory="5Gi"))

    costs = seconds(bench, SMALL, Barrier(begin=1.0, width=1.0))

    # The mean is 1/3, both are 1/6 ahead, x = 1.67: 5·0.67/0.33 = 10
    assert {"cpu": 10.0, "memory": 10.0, "idle": 0.0} == pytest.approx(costs, rel=0.02)


def usual(bench: Bench) -> Bench:
    """Let pods of one cpu be usual."""
    for number in range(20):
        bench.context.load.note(a_pod(f"usual {number}", cpu=1, memory="1Mi"))
    return bench


@pytest.mark.parametrize(
    ("loads", "size", "want"),
    [
        # Alone on a node it is 1 - 1/4 of itself ahead of the mean of four, however large: 5·0.25/0.55 = 2.27 s, 68.7
        pytest.param([0.0] * 4, 60, [69] * 4, id="sixty times as large as usual"),
        pytest.param([0.2] * 4, 25, [69] * 4, id="all of them in use, evenly"),
        # Without the first: the mean is 0.05, so that is 0.15 = 0.25 pods further ahead, the others 0.05 = 0.083 behind.
        # x = 1.0: 5·0.5/0.3 = 8.33 s, 37.5; x = 0.667: 5·0.167/0.633 = 1.32 s, 79.2
        pytest.param([0.2, 0.0, 0.0, 0.0], 60, [38, 80, 80, 80], id="one is a third of it fuller"),
        # The mean is 0.1: 0.3 = 0.5 pods further ahead, x = 1.25: 5·0.75/0.05 = 75 s; x = 0.583: 5·0.083/0.717 = 0.58 s
        pytest.param([0.4, 0.0, 0.0, 0.0], 60, [7, 90, 90, 90], id="two thirds"),
        # The mean is 0.125: x = 0.75 + 0.625 = 1.375; the others x = 0.542: 5·0.042/0.758 = 0.27 s, 94.8
        pytest.param([0.5, 0.0, 0.0, 0.0], 60, [0, 95, 95, 95], id="most of it: out of the question"),
    ],
)
def test_a_pod_that_is_larger_than_usual_is_measured_by_itself(loads, size, want):
    """However large it is: nodes that are no fuller than others stay in question."""
    bench = usual(a_bench({f"n{number}": load for number, load in enumerate(loads)}))

    assert want == list(scores(bench, a_pod(cpu=size)).values())


def test_a_pod_that_is_larger_than_usual_still_goes_by_its_image():
    """n1 is the only one without: 20 s of download alone. All of them pay 2.27 s."""
    bench = usual(a_bench({f"n{number}": 0.0 for number in range(4)}))
    bench.report(held("n1", sequence=2))

    found = scores(bench, a_pod(cpu=60))

    assert (69, 69, 69) == (found["n0"], found["n2"], found["n3"])
    assert found["n1"] < 20


def test_where_every_node_is_out_of_the_question_all_get_nothing():
    """A narrow barrier: whoever gets the pod is 0.75 of it ahead. The other plugins decide, whatever a node holds."""
    bench = a_bench({f"n{number}": 0.0 for number in range(4)})
    bench.report(held("n1", sequence=2))

    found = scores(bench, a_pod(cpu=60), barrier=Barrier(begin=0.5, width=0.2))

    assert {"n0": 0, "n1": 0, "n2": 0, "n3": 0} == found


def test_nodes_that_take_no_pods_do_not_make_the_others_look_crowded():
    """Four nodes half full, four idle ones that are cordoned: nobody is ahead of those that count."""
    bench = a_bench({f"n{number}": 0.5 for number in range(4)})
    bench.put(*(a_node(f"cordoned {number}", cpu=100, memory="1Ti", unschedulable=True) for number in range(4)))

    found = scores(bench, SMALL)

    assert [100] * 4 == [found[f"n{number}"] for number in range(4)]


@pytest.mark.parametrize(
    ("feasible", "want"),
    [
        pytest.param(range(8), [0] * 4 + [100] * 4, id="all: the mean is 0.25"),
        pytest.param(range(4), [100] * 4, id="the half full ones: none is ahead of 0.5"),
        # The mean of five is 0.4, and the four are x = 1.0 ahead of it: 5·0.5/0.3 = 8.33 s, 37.5
        pytest.param(range(5), [38] * 4 + [100], id="and one idle one"),
        # The mean of five is 0.1, that of all 0.25.
        pytest.param(range(3, 8), [0] + [100] * 4, id="one half full one and all idle ones"),
        pytest.param(range(4, 8), [100] * 4, id="the idle ones"),
    ],
)
def test_nodes_that_cannot_have_the_pod_do_not_make_the_others_look_crowded(feasible, want):
    """Four nodes half full, four idle ones."""
    bench = a_bench({f"n{number}": 0.5 if number < 4 else 0.0 for number in range(8)})

    assert want == list(scores(bench, SMALL, [f"n{number}" for number in feasible]).values())


# --------------------------------------------------------------------------------------------------------- replica guard

SET = Owner("ReplicaSet", "web-5d9", "set-1")
OTHER = Owner("ReplicaSet", "web-6e0", "set-2")


def replicas(counts: dict[str, int], owner: Owner = SET) -> Bench:
    """Nodes with so many pods of one controller, all of them tiny."""
    bench = a_bench(dict.fromkeys(counts, 0.0))
    for name, count in counts.items():
        bench.place(name, *(a_pod(f"{name}-{number}", cpu="1m", memory="1Mi", owner=owner) for number in range(count)))
    return bench


A_REPLICA = a_pod(cpu="1m", memory="1Mi", owner=SET)


@pytest.mark.parametrize(
    ("counts", "share", "want"),
    [
        pytest.param([0, 0], 0.2, [100, 100], id="the first one"),
        pytest.param([1, 0], 0.2, [0, 100], id="the second one: one on each node"),
        pytest.param([1, 1], 0.2, [100, 100], id="every node has one: not applied"),
        pytest.param([2, 1, 1, 1, 1, 0], 0.2, [0, 100, 100, 100, 100, 100], id="of six, a fifth is two: one has them"),
        pytest.param([1, 1, 1, 1, 1, 0], 0.2, [0, 0, 0, 0, 0, 100], id="of five, a fifth is one"),
        pytest.param([3, 3, 2, 2, 1], 0.2, [0, 0, 100, 100, 100], id="of eleven, a fifth is three"),
        pytest.param([3, 3, 2, 2, 1], 0.1, [0, 0, 0, 0, 100], id="a tenth is two"),
        pytest.param([3, 3, 2, 2, 1], 0.0, [100] * 5, id="none: then one, and every node has one"),
        pytest.param([9, 0], 1.0, [100, 100], id="any share"),
    ],
)
def test_a_node_gets_no_more_than_its_share_of_a_controllers_pods(counts, share, want):
    """Rounded up, and one in any case; unless that leaves no node."""
    bench = replicas({f"n{number}": count for number, count in enumerate(counts)})

    assert want == list(scores(bench, A_REPLICA, replica_share=share).values())


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(a_pod(cpu="1m", memory="1Mi"), id="a pod without controller"),
        pytest.param(a_pod(cpu="1m", memory="1Mi", owner=OTHER), id="a pod of another one"),
    ],
)
def test_other_pods_go_where_they_like(pod):
    """Nine replicas on a node are no reason for others to stay away."""
    assert {"n0": 100, "n1": 100} == scores(replicas({"n0": 9, "n1": 0}), pod)


def test_a_controller_is_known_by_kind_and_name_where_its_uid_is_not():
    nameless = Owner("Job", "nightly")

    bench = replicas({"n0": 1, "n1": 0}, nameless)

    assert {"n0": 0, "n1": 100} == scores(bench, a_pod(cpu="1m", memory="1Mi", owner=nameless))
    assert {"n0": 100, "n1": 100} == scores(bench, a_pod(cpu="1m", memory="1Mi", owner=Owner("Job", "hourly")))


@pytest.mark.parametrize(
    ("feasible", "want"),
    [
        pytest.param(["n0", "n1", "n2"], [0, 0, 100], id="one without is feasible"),
        pytest.param(["n0", "n1"], [100, 100], id="every feasible one has its share: not applied"),
        pytest.param(["n0"], [100], id="the only one"),
        pytest.param(["n1", "n2"], [0, 100], id="one with and one without"),
    ],
)
def test_only_feasible_nodes_count_as_a_way_out(feasible, want):
    """Two have a replica each, which is the share of a node; the third has none."""
    bench = replicas({"n0": 1, "n1": 1, "n2": 0})

    assert want == list(scores(bench, A_REPLICA, feasible).values())


def test_both_guards_apply_at_once():
    """One node is out for its load, one for its replicas."""
    bench = replicas({"n0": 0, "n1": 1, "n2": 0, "n3": 0})
    bench.place("n0", a_pod("large", cpu=80, memory="1Mi"))

    assert {"n0": 0, "n1": 0, "n2": 100, "n3": 100} == scores(bench, A_REPLICA)
