"""SafeOverload as it is by default: measured use, a hundred points, and no verdict about what is not known."""

from itertools import pairwise

import msgspec
import pytest

from lamina.model.node import Node
from lamina.model.node_usage import NodeUsage, ResourceUsage
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.plugins.agents.safe import OverloadArgs, SafeOverload
from lamina.scheduling.plugins.agents.safe.utilization import STAMP
from lamina.scheduling.runtime.shape_evaluation import ShapeEvaluation
from lamina.scheduling.state.cluster_usage import ANNOTATED_WITHIN
from lamina.services.annotator import annotation_plan, usage_values
from lamina.testing import a_node, a_pod, a_profile
from tests.unit.scheduling.bench import Bench, refused
from tests.unit.scheduling.plugins.agents.safe.usage import annotated, measured, plain, points

FINE = (0.425, 0.10)  # risk 8.51e-9: 100
FAIR = (0.70, 0.15)  # risk 0.073385: 50.5
POOR = (0.85, 0.10)  # risk 0.371595: 0, and refused


def a_bench(*names: str, **measurements: tuple[float, float]) -> Bench:
    bench = Bench(*(plain(name) for name in (*measurements, *names)))
    bench.context.usage.report(tuple(measured(name, cpu) for name, cpu in measurements.items()))
    return bench


def plugin(bench: Bench, **args) -> SafeOverload:
    return SafeOverload(bench.context, OverloadArgs(**args))


# --------------------------------------------------------------------------------------------------------------- scores


@pytest.mark.parametrize(
    ("use", "want"),
    [
        # 100 · (1 - √(risk / 0.3))
        (FINE, 100),
        (FAIR, 51),
        ((0.80, 0.10), 27),
        (POOR, 0),
        ((0.85, 0.05), 28),
        ((0.30, 0.30), 59),
        ((0.60, 0.30), 15),
        ((0.95, 0.0), 0),
        ((0.90, 0.0), 100),
        # Largest deviation at a low mean: no more than the mean can be at the top. 100 · (1 - √(0.0489 / 0.3))
        ((0.05, 0.9), 60),
    ],
    ids=str,
)
def test_points_are_rounded_and_a_large_deviation_is_no_verdict(use, want):
    bench = a_bench(n1=use)

    assert {"n1": want} == points(plugin(bench), bench)


def test_the_worse_of_cpu_and_memory_decides():
    bench = Bench(plain("cpu"), plain("memory"), plain("only cpu"))
    bench.context.usage.report(
        (measured("cpu", FAIR, FINE), measured("memory", FINE, FAIR), measured("only cpu", cpu=FINE))
    )

    assert {"cpu": 51, "memory": 51, "only cpu": 100} == points(plugin(bench), bench)


@pytest.mark.parametrize(
    ("feasible", "want"),
    [
        # (99.98 + 50.54) / 2 = 75.3, and (99.98 + 50.54 + 0) / 3 = 50.2
        pytest.param(("fine", "fair", "silent"), 75, id="of two"),
        pytest.param(("fine", "fair", "poor", "silent"), 50, id="of three"),
        pytest.param(("silent",), 50, id="of none: in the middle"),
    ],
)
def test_a_node_nobody_knows_is_the_mean_of_the_feasible_ones_that_are_known(feasible, want):
    bench = a_bench("silent", fine=FINE, fair=FAIR, poor=POOR)

    assert want == points(plugin(bench), bench, feasible=feasible)["silent"]


def test_where_nothing_is_known_all_are_equal():
    bench = a_bench("n1", "n2", "n3")

    assert 1 == len(set(points(plugin(bench), bench).values()))


def test_a_measurement_that_grows_old_drifts_to_the_mean():
    """Due after 60 s: believed until 120 s, then half as much every minute and from 360 s on not at all."""
    bench = Bench(plain("old"), plain("fine"))
    bench.context.usage.report((measured("old", POOR, renews=60), measured("fine", FINE)))
    judge = plugin(bench)
    seen = []

    for now in (100, 180, 240, 300, 400):
        bench.context.usage.pass_time(float(now))
        seen.append(points(judge, bench)["old"])

    # The mean counts what is known less as well: with trust t it is 100 / (1 + t), and t · 0 + (1 - t) · that is left.
    assert [0, 33, 60, 78, 100] == seen


# -------------------------------------------------------------------------------------------------------------- sources


@pytest.mark.parametrize(
    ("source", "want"),
    [
        pytest.param("auto", {"both": 100, "said": 51, "seen": 100, "neither": 84}, id="annotations where need be"),
        # All others are the mean of two that are fine.
        pytest.param("measured", {"both": 100, "said": 100, "seen": 100, "neither": 100}, id="measured only"),
        # The mean of nothing and 50.54.
        pytest.param("annotations", {"both": 0, "said": 51, "seen": 25, "neither": 25}, id="annotations only"),
    ],
)
def test_what_was_measured_counts_more_than_what_was_annotated(source, want):
    bench = Bench(annotated("both", POOR), annotated("said", FAIR), plain("seen"), plain("neither"))
    bench.context.usage.report((measured("both", FINE), measured("seen", FINE)))

    assert want == points(plugin(bench, source=source), bench)


@pytest.mark.parametrize(
    ("weight", "want"),
    [
        pytest.param(0, 100, id="ignored: 0.9 of the capacity is used"),
        pytest.param(20, 0, id="0.8 · 900 + 0.2 · 950 = 910"),
        pytest.param(100, 0, id="believed: 0.95"),
    ],
)
def test_a_forecast_counts_as_much_as_is_set(weight, want):
    bench = Bench(plain())
    bench.context.usage.report((NodeUsage("n1", cpu=ResourceUsage(900.0, forecast=950.0)),))

    assert {"n1": want} == points(plugin(bench, forecast_weight=weight), bench)


def test_a_pod_that_came_since_is_in_the_use_already():
    """600 of 1000 measured; with 200 on the way and 101 asked for it is 901, which is beyond the threshold."""
    bench = Bench(plain())
    bench.context.usage.report((measured("n1", (0.6, 0.0)),))
    bench.context.usage.came("n1", a_pod("came", cpu="200m"))

    assert {"n1": 100} == points(plugin(bench), bench, a_pod(cpu="100m"))
    assert {"n1": 0} == points(plugin(bench), bench, a_pod(cpu="101m"))


def test_overhead_counts():
    bench = Bench(plain())
    bench.context.usage.report((measured("n1", (0.6, 0.0)),))
    heavy = msgspec.structs.replace(a_pod(cpu="300m"), requests=(("cpu", 301),))

    assert {"n1": 100} == points(plugin(bench), bench, a_pod(cpu="300m"))
    assert {"n1": 0} == points(plugin(bench), bench, heavy)


# ------------------------------------------------------------------------------------------------------------- refusals


def test_a_refusal_says_what_would_be_overloaded():
    bench = Bench(plain("cpu"), plain("memory"), plain("both"), plain("fine"), plain("silent"))
    bench.context.usage.report(
        (
            measured("cpu", POOR, FINE),
            measured("memory", FINE, POOR),
            measured("both", POOR, POOR),
            measured("fine", FINE, FINE),
        )
    )

    refusals = refused(bench, plugin(bench), a_pod())

    assert {
        "cpu": ("node(s) would risk cpu overload",),
        "memory": ("node(s) would risk memory overload",),
        "both": ("node(s) would risk cpu overload", "node(s) would risk memory overload"),
    } == {name: refusal.reasons for name, refusal in refusals.items()}


@pytest.mark.parametrize(
    ("cpu", "final"),
    [
        pytest.param("900m", False, id="with nobody else there the pod would do"),
        pytest.param("901m", True, id="the pod alone is too much"),
    ],
)
def test_making_room_helps_unless_the_pod_alone_is_too_much(cpu, final):
    bench = a_bench(n1=(0.5, 0.1))

    assert final == refused(bench, plugin(bench), a_pod(cpu=cpu))["n1"].final


def test_nobody_is_refused_for_what_was_known_once():
    bench = Bench(plain())
    bench.context.usage.report((measured("n1", POOR, renews=60),))
    judge = plugin(bench)

    assert ["n1"] == list(refused(bench, judge, a_pod()))
    bench.context.usage.pass_time(150.0)
    assert {} == refused(bench, judge, a_pod())


def test_nobody_is_refused_for_what_is_not_known():
    bench = Bench(plain(), a_node("no capacity", cpu=0, memory="0"))
    bench.context.usage.report((measured("no capacity", POOR, POOR),))

    assert {} == refused(bench, plugin(bench), a_pod(cpu=1, memory="1000"))


# ------------------------------------------------------------------------------------------------------------------ told


def test_what_a_verdict_was_made_of_is_told_in_percent():
    bench = a_bench("silent", n1=FAIR)
    told = plugin(bench).facts(CycleState(), a_pod(), bench.view)

    assert [{"cpu_mean_percent": 70, "cpu_deviation_percent": 15, "cpu_risk_percent": 7}, {}] == list(told)


# ----------------------------------------------------------------------------------------------------------- old annotations

NOON = 12 * 3600.0
"""Of the first day there is a date for."""


def stamped(name: str, use: tuple[float, float], at: str) -> Node:
    """A node whose annotations were written at a time of that day."""
    node = annotated(name, use)
    return msgspec.structs.replace(node, annotations={**node.annotations, STAMP: f"1970-01-01T{at}:00Z"})


def test_the_stamp_is_the_one_that_is_written_and_renewed_as_often():
    assert usage_values.STAMP == STAMP
    assert annotation_plan.REFRESH == ANNOTATED_WITHIN


@pytest.mark.parametrize("source", ["auto", "annotations"])
@pytest.mark.parametrize(
    ("at", "want", "refuses"),
    [
        pytest.param("11:45", 0, True, id="a quarter of an hour: believed"),
        # Of 0 and 100 points: 100 / (1 + t) is the mean, and (1 - t) of that is left.
        pytest.param("11:30", 33, False, id="half an hour: half"),
        pytest.param("11:20", 60, False, id="ten minutes more: a quarter"),
        pytest.param("10:00", 100, False, id="two hours: not at all"),
    ],
)
def test_annotations_that_say_when_they_were_written_grow_old(at, want, refuses, source):
    bench = Bench(stamped("n1", POOR, at), annotated("undated", FINE))
    bench.context.usage.pass_time(NOON)
    judge = plugin(bench, source=source)

    assert {"n1": want, "undated": 100} == points(judge, bench)
    assert refuses == bool(refused(bench, judge, a_pod()))


def test_annotations_that_do_not_say_when_hold():
    bench = Bench(annotated("n1", POOR))
    bench.context.usage.pass_time(NOON)

    assert ["n1"] == list(refused(bench, plugin(bench), a_pod()))


def test_as_the_original_has_it_no_annotation_grows_old():
    bench = Bench(stamped("n1", POOR, "00:00"))
    bench.context.usage.pass_time(NOON)

    assert ["n1"] == list(refused(bench, plugin(bench, compatible=True), a_pod()))


@pytest.mark.parametrize(
    ("at", "want"),
    [
        pytest.param("06:00", [100, 100, 100], id="an old one says nothing"),
        pytest.param("11:59", [100, 100, 0], id="a fresh one takes over"),
    ],
)
def test_what_was_measured_long_ago_gives_way_to_annotations_as_far_as_those_are_believed(at, want):
    bench = Bench(stamped("n1", POOR, at), plain("fine"))
    bench.context.usage.pass_time(NOON)
    bench.context.usage.report((measured("n1", FINE, until=NOON, renews=60), measured("fine", FINE)))
    judge = plugin(bench)
    seen = []

    for later in (100.0, 300.0, 600.0):
        bench.context.usage.pass_time(NOON + later)
        seen.append(points(judge, bench)["n1"])

    assert want == seen


# ---------------------------------------------------------------------------------------------------------- in a profile


def test_a_kept_evaluation_follows_what_is_measured():
    """What is kept for a shape is brought up to date row by row, and is then what one asked anew would say."""
    bench = a_bench("silent", **{f"n{number}": (0.5, number / 100) for number in range(20)})
    profile = a_profile(bench.context, ["PrioritySort", "DefaultBinder", "SafeOverload"])
    pod = a_pod(cpu="100m")
    kept = ShapeEvaluation(profile, bench.columns, pod)
    for name, use in (("n3", POOR), ("n5", FINE), ("silent", FAIR)):
        bench.context.usage.report((measured(name, use),))
        assert kept.refresh(pod)
        assert told_by(ShapeEvaluation(profile, bench.columns, pod)) == told_by(kept)


def told_by(evaluation: ShapeEvaluation) -> tuple[list[float], list[bool]]:
    return evaluation.totals.tolist(), evaluation.feasible.tolist()


def test_a_kept_evaluation_follows_what_is_annotated_and_how_old_that_is():
    bench = Bench(*(stamped(f"n{number}", (0.5, number / 100), "11:45") for number in range(20)), plain("silent"))
    bench.context.usage.pass_time(NOON)
    profile = a_profile(bench.context, ["PrioritySort", "DefaultBinder", "SafeOverload"])
    pod = a_pod(cpu="100m")
    kept = ShapeEvaluation(profile, bench.columns, pod)
    seen = [told_by(kept)]
    for node in (stamped("n3", POOR, "11:45"), stamped("n5", POOR, "11:59"), annotated("silent", FAIR)):
        bench.put(node)
        assert kept.refresh(pod)
        assert told_by(ShapeEvaluation(profile, bench.columns, pod)) == told_by(kept)
        seen.append(told_by(kept))
    for later in (600.0, 1200.0, 7200.0):
        bench.context.usage.pass_time(NOON + later)
        assert kept.refresh(pod)
        assert told_by(ShapeEvaluation(profile, bench.columns, pod)) == told_by(kept)
        seen.append(told_by(kept))

    assert all(before != after for before, after in pairwise(seen))
