"""Evaluation: all answers for one shape of pods. That kept ones stay right is a law of its own, in tests/property."""

import numpy as np
import pytest

from lamina.model.pod import Pod
from lamina.scheduling.runtime import evaluation_cache as room
from lamina.scheduling.runtime.evaluation_cache import EvaluationCache
from lamina.scheduling.runtime.plugin_results import PluginResultCache
from lamina.scheduling.runtime.profile import Profile
from lamina.scheduling.runtime.shape_evaluation import ShapeEvaluation
from lamina.testing import a_node, a_pod, a_profile
from tests.unit.scheduling.bench import Bench
from tests.unit.scheduling.zoo import AlsoNarrowing, Doorman, Haunted, Narrowing, Points, Relative, Zone

ENOUGH = ("PrioritySort", "DefaultBinder")


def profile(bench: Bench, *plugins, **weights: int) -> Profile:
    return a_profile(bench.context, [*ENOUGH, *plugins], weights=weights)


def totals(bench: Bench, evaluation: ShapeEvaluation) -> dict[str, int | None]:
    """Return each node's total; None where it did not pass."""
    return {
        name: int(evaluation.totals[row]) if evaluation.feasible[row] else None
        for name, row in bench.columns.rows.items()
    }


def asked(bench: Bench, pod: Pod, *plugins, **weights: int) -> dict[str, int | None]:
    return totals(bench, ShapeEvaluation(profile(bench, *plugins, **weights), bench.columns, pod))


def a_bench() -> Bench:
    return Bench(
        a_node("a", labels={"zone": "1", "points": "10"}),
        a_node("b", labels={"zone": "2", "points": "40"}),
        a_node("c", labels={"zone": "1", "points": "80"}),
    )


# ------------------------------------------------------------------------------------------------------------ building


@pytest.mark.parametrize(
    ("labels", "plugins", "weights", "want"),
    [
        pytest.param({}, [], {}, {"a": 0, "b": 0, "c": 0}, id="nobody asked"),
        pytest.param({}, [Points], {}, {"a": 10, "b": 40, "c": 80}, id="one scorer"),
        pytest.param({}, [Points], {"Points": 3}, {"a": 30, "b": 120, "c": 240}, id="its weight"),
        pytest.param({"zone": "1"}, [Zone, Points], {}, {"a": 10, "b": None, "c": 80}, id="a filter"),
        # Relative: 100 · 10 // 80 = 12, 100 · 40 // 80 = 50, 100
        pytest.param(
            {"ambitious": "yes"},
            [Points, Relative],
            {"Relative": 2},
            {"a": 10 + 24, "b": 40 + 100, "c": 80 + 200},
            id="two scorers",
        ),
        # Only b is feasible, so it is the best there is.
        pytest.param(
            {"ambitious": "yes", "zone": "2"}, [Zone, Relative], {}, {"a": None, "b": 100, "c": None}, id="relative"
        ),
        pytest.param({}, [Points, Relative], {}, {"a": 10, "b": 40, "c": 80}, id="a scorer that skips adds nothing"),
        pytest.param({"door": "open"}, [Doorman], {}, {"a": 0, "b": 0, "c": 0}, id="a filter that is left out"),
        pytest.param({"door": "ajar"}, [Doorman], {}, {"a": None, "b": None, "c": None}, id="and one that is not"),
        pytest.param({"nodes": "b-c"}, [Narrowing, Points], {}, {"a": None, "b": 40, "c": 80}, id="narrowed down"),
        pytest.param(
            {"nodes": "b-c", "also": "a-c"},
            [Narrowing, AlsoNarrowing, Points],
            {},
            {"a": None, "b": None, "c": 80},
            id="narrowed down by two",
        ),
        pytest.param({"nodes": "z"}, [Narrowing], {}, {"a": None, "b": None, "c": None}, id="to a node not there"),
    ],
)
def test_a_total_is_the_weighted_sum_where_every_filter_passed(labels, plugins, weights, want):
    """And nothing where one did not."""
    assert want == asked(a_bench(), a_pod(labels=labels), *plugins, **weights)


@pytest.mark.parametrize(
    ("door", "want"),
    [
        pytest.param("shut", "Unschedulable: the door is shut, and locked (Doorman)", id="refused"),
        pytest.param("walled", "UnschedulableAndUnresolvable: there is no door (Doorman)", id="refused for good"),
        pytest.param("broken", "Error: the door fell on somebody (Doorman)", id="broken"),
    ],
)
def test_a_pod_refused_before_any_node_fits_nowhere(door, want):
    """The evaluation stops and says why."""
    bench = a_bench()
    evaluation = ShapeEvaluation(profile(bench, Doorman, Points), bench.columns, a_pod(labels={"door": door}))
    stop = evaluation.stop

    assert stop is not None
    assert want == f"{stop.code.value}: {stop.message} ({stop.plugin})"
    assert {"a": None, "b": None, "c": None} == totals(bench, evaluation)


@pytest.mark.parametrize(
    ("points", "fine"),
    [
        pytest.param(0, True, id="0"),
        pytest.param(100, True, id="100"),
        pytest.param(101, False, id="101"),
        pytest.param(-1, False, id="less than nothing"),
    ],
)
def test_a_score_outside_0_to_100_stops_everything(points, fine):
    """As upstream, which fails the cycle: one plugin must not outweigh all others by mistake."""
    bench = Bench(a_node("a"), a_node("b", labels={"points": str(points)}))
    evaluation = ShapeEvaluation(profile(bench, Points), bench.columns, a_pod())
    stop = evaluation.stop

    if fine:
        assert stop is None
    else:
        assert stop is not None
        assert "Error: plugin 'Points' returned a score outside 0..100 (Points)" == (
            f"{stop.code.value}: {stop.message} ({stop.plugin})"
        )
        assert {"a": None, "b": None} == totals(bench, evaluation)


def test_what_is_answered_for_rows_without_a_node_is_ignored():
    """A plugin need not look at which rows are alive."""
    bench = a_bench()
    bench.remove("b")

    assert {"a": 50, "c": 50} == asked(bench, a_pod(), Haunted)


@pytest.mark.parametrize("plugins", [[], [Points], [Zone, Points, Relative], ["NodeResourcesFit", "LayerLocality"]])
def test_a_cluster_without_nodes_can_be_asked(plugins):
    """There is nothing to choose."""
    bench = Bench()
    evaluation = ShapeEvaluation(
        profile(bench, *plugins), bench.columns, a_pod(labels={"zone": "1", "ambitious": "yes"})
    )

    assert evaluation.stop is None
    assert (-1, 0) == evaluation.choose(lambda count: 0)


# ------------------------------------------------------------------------------------------------------------ choosing


def best(bench: Bench, pick=lambda count: 0, **labels: str) -> tuple[str, int]:
    evaluation = ShapeEvaluation(profile(bench, Zone, Points), bench.columns, a_pod(labels=labels))
    row, tied = evaluation.choose(pick)
    node = bench.columns.nodes[row] if row >= 0 else None
    return ("" if node is None else node.name), tied


def test_the_node_with_the_largest_total_is_chosen():
    """Among those that passed."""
    assert ("c", 1) == best(a_bench())
    assert ("b", 1) == best(a_bench(), zone="2")


def test_ties_are_broken_by_whoever_asks():
    """It is told how many there are and says which one, counted in row order."""
    bench = Bench(*(a_node(name, labels={"points": points}) for name, points in zip("abcd", "5353", strict=True)))
    heard: list[int] = []

    def last(count: int) -> int:
        heard.append(count)
        return count - 1

    assert [("a", 2), ("c", 2)] == [best(bench), best(bench, last)]
    assert [2] == heard


def test_nobody_is_asked_to_break_a_tie_of_one():
    """So a source of random numbers is used only where something is random."""

    def never(count: int) -> int:
        raise AssertionError(count)

    assert ("c", 1) == best(a_bench(), never)


def test_a_total_of_nothing_is_still_a_node():
    """A node that passed can be chosen with zero points."""
    assert ("a", 1) == best(Bench(a_node("a")))


def test_nothing_is_chosen_where_nothing_passed():
    """-1, tied by nobody."""
    assert ("", 0) == best(a_bench(), zone="7")


# ------------------------------------------------------------------------------------------------------------- keeping


def test_an_evaluation_is_kept_for_pods_of_one_shape():
    """And brought up to date instead of being made anew."""
    bench = a_bench()
    kept = EvaluationCache(profile(bench, Points), bench.columns)
    first = kept.of("shape", a_pod("p1"))
    bench.put(a_node("a", labels={"points": "99"}))
    second = kept.of("shape", a_pod("p2"))

    assert first is second
    assert {"a": 99, "b": 40, "c": 80} == totals(bench, second)


def test_without_a_shape_nothing_is_kept():
    """None stands for a pod nobody can sign."""
    bench = a_bench()
    kept = EvaluationCache(profile(bench, Points), bench.columns)

    assert kept.of(None, a_pod("p1")) is not kept.of(None, a_pod("p1"))


def test_shapes_are_kept_apart():
    """Each has its own evaluation."""
    bench = a_bench()
    kept = EvaluationCache(profile(bench, Zone, Points), bench.columns)
    one, two = (kept.of(zone, a_pod(labels={"zone": zone})) for zone in "12")

    assert {"a": 10, "b": None, "c": 80} == totals(bench, one)
    assert {"a": None, "b": 40, "c": None} == totals(bench, two)


def test_the_shapes_not_seen_for_longest_are_dropped(monkeypatch):
    """What is kept is bounded by memory, and by a smallest number however large the cluster."""
    monkeypatch.setattr(room, "KEPT_BYTES", 0)
    monkeypatch.setattr(room, "KEPT_AT_LEAST", 2)
    bench = a_bench()
    kept = EvaluationCache(profile(bench, Points), bench.columns)
    first, second = kept.of("first", a_pod()), kept.of("second", a_pod())
    kept.of("first", a_pod())
    kept.of("third", a_pod())

    assert first is kept.of("first", a_pod())
    assert second is not kept.of("second", a_pod())


def test_codes_that_other_shapes_look_at_are_copied_before_they_are_written_to():
    """Each is brought up to date when a pod of its shape comes, not before."""
    bench, pod = a_bench(), a_pod(labels={"zone": "1"})
    answers, plugins = PluginResultCache(bench.columns), profile(bench, Zone)
    one, other = (ShapeEvaluation(plugins, bench.columns, pod, answers) for _ in range(2))
    assert one.codes[0] is other.codes[0]
    bench.put(a_node("a", labels={"zone": "2"}))
    one.refresh(pod)

    assert [[3, 3, 0], [0, 3, 0]] == [evaluation.codes[0].tolist() for evaluation in (one, other)]


def test_how_many_shapes_are_kept_follows_from_what_one_takes(monkeypatch):
    """Two lines of four bytes (a scorer and the totals) and what is noted beside, for each of three nodes."""
    monkeypatch.setattr(room, "KEPT_BYTES", 4 * 3 * (2 * 4 + room.NOTED_BYTES))
    monkeypatch.setattr(room, "KEPT_AT_LEAST", 1)
    bench = a_bench()
    kept = EvaluationCache(profile(bench, Points), bench.columns)
    first = kept.of(0, a_pod())
    for shape in range(1, 4):
        kept.of(shape, a_pod())
    assert first is kept.of(0, a_pod())
    second = kept.of(1, a_pod())
    kept.of(2, a_pod())
    kept.of(3, a_pod())
    kept.of(4, a_pod())

    assert second is kept.of(1, a_pod())
    assert first is not kept.of(0, a_pod())


def test_a_plugin_that_leaves_the_range_later_stops_the_pod_then():
    """The row that changed is looked at like all were in the beginning."""
    bench = a_bench()
    kept = EvaluationCache(profile(bench, Points), bench.columns)
    kept.of("shape", a_pod())
    bench.put(a_node("b", labels={"points": "101"}))
    evaluation = kept.of("shape", a_pod())

    assert evaluation.stop is not None
    bench.put(a_node("b", labels={"points": "100"}))
    assert {"a": 10, "b": 100, "c": 80} == totals(bench, kept.of("shape", a_pod()))


def test_a_row_taken_over_by_another_node_is_narrowed_by_the_new_name():
    """Nodes are narrowed down by name; which row has the name is the framework's affair."""
    bench = Bench(*(a_node(name) for name in "abcdefgh"))
    kept = EvaluationCache(profile(bench, Narrowing), bench.columns)
    pod = a_pod(labels={"nodes": "a-z"})
    kept.of("shape", pod)
    bench.remove("a")
    bench.put(a_node("x"))
    after_x = totals(bench, kept.of("shape", pod))
    bench.remove("b")
    bench.put(a_node("z"))
    after_z = totals(bench, kept.of("shape", pod))

    assert after_x["x"] is None
    assert 0 == after_z["z"]


def test_feasible_and_totals_agree():
    """Where a node is out, its total is less than any sum."""
    bench = a_bench()
    evaluation = ShapeEvaluation(profile(bench, Zone, Points), bench.columns, a_pod(labels={"zone": "1"}))

    assert [True, False, True] == evaluation.feasible.tolist()
    assert [True, False, True] == (np.asarray(evaluation.totals) >= 0).tolist()
