"""LayerLocality's story: what is there, what is coming, what is missing, and what a choice saved."""

from typing import Any

import msgspec
import numpy as np
import pytest

from lamina.model.image import Platform
from lamina.model.locality_explanation import LayerState, LocalityExplanation, Savings
from lamina.model.pod import Pod
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.plugins.locality.layer_locality import LayerLocalityArgs
from lamina.testing import a_digest, a_node, a_pod, an_image, held
from tests.unit.scheduling.bench import Bench

MB = 1_000_000
# A pull takes 1.15 s for each 100 MB, and 0.04 s.
RATES: dict[str, Any] = {"bandwidth": 100e6, "unpack_rate": 230e6}

BASE = an_image("base:1", {"os": 300 * MB})
APP = an_image("app:1", {"os": 300 * MB, "runtime": 500 * MB, "app": 200 * MB})
NEXT = an_image("app:2", {"os": 300 * MB, "runtime": 500 * MB, "app again": 200 * MB})
POD = a_pod(image="app:2")


def a_bench() -> Bench:
    """One node holds the base and pulls app:1, one holds app:1, one nothing, one is silent."""
    bench = Bench(*(a_node(name) for name in ("pulls", "has", "none", "silent")))
    bench.make("LayerLocality", LayerLocalityArgs(**RATES))
    bench.learn(BASE, APP, NEXT)
    bench.report(held("pulls", BASE), held("has", APP), held("none"))
    bench.expect("pulls", a_pod("x", image="app:1"))
    return bench


def facts(bench: Bench, pod: Pod = POD, **args: Any) -> dict[str, dict[str, int]]:
    """Let the plugin score first, as in a decision; all nodes are feasible."""
    plugin, state = bench.make("LayerLocality", LayerLocalityArgs(**RATES | args)), CycleState()
    if plugin.pre_score(state, pod, bench.view) is None:
        plugin.normalize(state, pod, plugin.score(state, pod, bench.view), bench.view.alive)
    return bench.by_name(plugin.facts(state, pod, bench.view))


def story(bench: Bench, chosen: str, runner_up: str = "", feasible: str = "pulls has none silent", **args: Any) -> Any:
    plugin = bench.make("LayerLocality", LayerLocalityArgs(**RATES | args))
    rows = bench.columns.rows
    inside = np.array([node is not None and node.name in feasible.split() for node in bench.columns.nodes])
    return plugin.explain(CycleState(), POD, bench.view, (rows[chosen], rows.get(runner_up, -1)), inside)


# ---------------------------------------------------------------------------------------------------------------- facts


def test_facts_tell_bytes_and_milliseconds_of_each_node():
    """And nothing about a silent one. 700 MB take 8.09 s; 200 MB of one's own 2.34 s."""
    assert {
        "pulls": _fact(present=300, arriving=500, missing=200, ready_ms=8090 + 2340),
        "has": _fact(present=800, arriving=0, missing=200, ready_ms=2340),
        "none": _fact(present=0, arriving=0, missing=1000, ready_ms=11_540),
        "silent": {},
    } == facts(a_bench())


def _fact(present: int, arriving: int, missing: int, ready_ms: int, crowding_ms: int = 0) -> dict[str, int]:
    return {
        "present": present * MB,
        "arriving": arriving * MB,
        "missing": missing * MB,
        "total": 1000 * MB,
        "ready_ms": ready_ms,
        "crowding_ms": crowding_ms,
    }


TINY = a_pod(cpu="1m", memory="1Mi", image="base:1")


def _crowded() -> Bench:
    """The mean is 0.24 of the cpu: one node is 0.06 ahead, which is 5·0.1/0.7 s; one 0.18, which is out of the question."""
    bench = Bench(*(a_node(name, cpu=100, memory="1Ti") for name in ("idle", "ahead", "out")))
    bench.learn(BASE)
    bench.report(*(held(name, BASE) for name in ("idle", "ahead", "out")))
    bench.place("ahead", a_pod("a", cpu=30, memory="1Mi"))
    bench.place("out", a_pod("b", cpu=42, memory="1Mi"))
    return bench


def test_facts_tell_what_crowding_costs():
    """-1 for a node that is out of the question."""
    found = facts(_crowded(), TINY)

    # 714 ms, and one for the thousandth of a cpu that the pod itself asks for.
    assert {"idle": 0, "ahead": 715, "out": -1} == {name: one["crowding_ms"] for name, one in found.items()}


@pytest.mark.parametrize(
    ("args", "want"),
    [
        pytest.param({"mode": "bytes"}, {"idle": 0, "ahead": 715, "out": -1}, id="bytes: guarded alike"),
        pytest.param({"mode": "original"}, {"idle": 0, "ahead": 0, "out": 0}, id="the original is not guarded"),
        pytest.param({"barrier": None}, {"idle": 0, "ahead": 0, "out": 0}, id="no barrier"),
    ],
)
def test_facts_tell_what_crowding_cost_in_this_decision(args, want):
    found = facts(_crowded(), TINY, **args)

    assert want == {name: one["crowding_ms"] for name, one in found.items()}


@pytest.mark.parametrize("mode", ["seconds", "bytes", "original"])
def test_facts_are_the_same_in_every_mode(mode):
    assert 2340 == facts(a_bench(), mode=mode)["has"]["ready_ms"]


def test_there_are_no_facts_about_images_nobody_knows():
    """The original formula scores them all the same."""
    assert [{}] * 4 == list(facts(a_bench(), a_pod(image="unknown:1"), mode="original").values())


# ---------------------------------------------------------------------------------------------------------------- story


def test_a_story_tells_of_each_layer_whether_it_is_there_coming_or_missing():
    """runtime comes with app:1, in 8.09 s; the top of app:2 is nowhere."""
    assert (
        LayerState(a_digest("os"), 300 * MB, "present"),
        LayerState(a_digest("runtime"), 500 * MB, "arriving", pytest.approx(8.09)),
        LayerState(a_digest("app again"), 200 * MB, "missing"),
    ) == story(a_bench(), "pulls").layers


def test_what_is_on_its_way_is_there_sooner_as_time_passes():
    bench = a_bench()
    bench.at(5)
    assert pytest.approx(3.09) == story(bench, "pulls").layers[1].seconds

    bench.at(9)
    assert 0 == story(bench, "pulls").layers[1].seconds


def test_a_layer_that_two_images_bring_is_there_with_the_first():
    """app:1 in 8.09 s, and app:2 later; os and runtime come with app:1."""
    bench = a_bench()
    bench.expect("pulls", a_pod("y", image="app:2"))

    told = {layer.digest: layer.seconds for layer in story(bench, "pulls").layers}

    assert {a_digest("os"): 0, a_digest("runtime"): 8.09, a_digest("app again"): 10.43} == pytest.approx(told)


@pytest.mark.parametrize(
    ("chosen", "runner_up", "feasible", "mean", "other"),
    [
        # Ready in 10.43, 2.34 and 11.54 s, a mean of 8.10; downloads 200, 200 and 1000 MB, a mean of 466.67.
        pytest.param(
            "has", "pulls", "pulls has none silent", (5.763, 266_666_667), (8.09, 0), id="the best one, all feasible"
        ),
        pytest.param("has", "none", "has none", (4.6, 400 * MB), (9.2, 800 * MB), id="the mean is of feasible nodes"),
        pytest.param("none", "has", "has none", (-4.6, -400 * MB), (-9.2, -800 * MB), id="a choice that saved nothing"),
        pytest.param("has", "silent", "has silent", (0, 0), None, id="nobody knows what the runner-up has"),
        pytest.param("has", "", "has", (0, 0), None, id="no runner-up"),
    ],
)
def test_a_story_tells_what_was_saved(chosen, runner_up, feasible, mean, other):
    """Against the mean of the feasible nodes of which anything is known, and against the runner-up."""
    told = story(a_bench(), chosen, runner_up, feasible)

    assert mean == (pytest.approx(told.against_mean.seconds, abs=0.001), told.against_mean.bytes)
    if other is None:
        assert told.against_runner_up is None
    else:
        assert other == (pytest.approx(told.against_runner_up.seconds), told.against_runner_up.bytes)


def test_a_story_tells_what_it_will_take_on_the_chosen_node():
    told = story(a_bench(), "has")

    assert (pytest.approx(2.34), 200 * MB) == (told.seconds, told.download)


def test_there_is_no_story_about_a_silent_node():
    assert story(a_bench(), "silent") is None


def test_in_a_story_every_distinct_layer_is_told_once():
    """Bottom first, image by image; os belongs to both."""
    bench = a_bench()
    plugin = bench.make("LayerLocality", LayerLocalityArgs(**RATES))
    inside = np.ones(4, dtype=np.bool_)

    told = plugin.explain(CycleState(), a_pod(images=["app:1", "app:2"]), bench.view, (1, -1), inside)

    assert [a_digest(name) for name in ("os", "runtime", "app", "app again")] == [one.digest for one in told.layers]


@pytest.mark.parametrize(
    ("reuse", "want"),
    [
        pytest.param("prefix", ["missing", "missing", "missing"], id="by prefix: what lies on another base is no help"),
        pytest.param("set", ["missing", "present", "missing"], id="as a set: any blob is"),
    ],
)
def test_what_is_there_goes_by_how_the_runtime_reuses_it(reuse, want):
    bench = a_bench()
    other = an_image("other:1", {"other os": 10 * MB, "runtime": 500 * MB})
    bench.learn(other)
    bench.report(msgspec.structs.replace(held("none", other, sequence=2), reuse=reuse))

    assert want == [one.state for one in story(bench, "none").layers]


def test_a_story_goes_by_the_platform_of_the_chosen_node():
    arm = Platform("linux", "arm64")
    bench = Bench(a_node("amd"), msgspec.structs.replace(a_node("arm"), platform=arm))
    small = msgspec.structs.replace(an_image("app:2", {"arm os": 100 * MB}, arm), digest=a_digest("app:2 for arm"))
    bench.make("LayerLocality", LayerLocalityArgs(**RATES))
    bench.learn(NEXT, small)
    bench.report(held("amd", NEXT), held("arm", small))

    assert LocalityExplanation(
        layers=(LayerState(a_digest("arm os"), 100 * MB, "present"),),
        seconds=0.0,
        download=0,
        against_mean=Savings(0.0, 0),
        against_runner_up=Savings(0.0, 0),
    ) == story(bench, "arm", "amd", "amd arm")


@pytest.mark.parametrize(("reuse", "total"), [("prefix", 1100), ("set", 900)])
def test_what_is_there_coming_and_missing_adds_up_to_everything(reuse, total):
    """A blob of 200 MB that two images have on top of different layers comes twice where blobs are not kept."""
    bench = Bench(a_node("n"))
    one = an_image("one:1", {"os": 300 * MB, "shared": 200 * MB})
    two = an_image("two:1", {"other os": 400 * MB, "shared": 200 * MB})
    bench.learn(one, two)
    bench.report(msgspec.structs.replace(held("n"), reuse=reuse))

    found = facts(bench, a_pod(images=["one:1", "two:1"]))["n"]

    assert (0, 0, total * MB, total * MB) == (found["present"], found["arriving"], found["missing"], found["total"])
