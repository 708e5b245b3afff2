"""LayerLocality where little is known: absence of data is never data."""

from math import inf
from typing import Any

import msgspec
import numpy as np
import pytest

from lamina.model.image import Image
from lamina.model.layer_report import LayerReport
from lamina.model.pod import Owner, Pod
from lamina.scheduling.plugins.locality.layer_locality import LayerLocalityArgs
from lamina.scheduling.runtime.shape_evaluation import ShapeEvaluation
from lamina.testing import a_node, a_pod, a_profile, an_image, held
from tests.unit.scheduling.bench import Bench, final, scored

MB = 1_000_000
# A pull takes 1.15 s for each 100 MB, and 0.04 s.
RATES: dict[str, Any] = {"bandwidth": 100e6, "unpack_rate": 230e6, "byte_price": 0.0}

BASE = an_image("base:1", {"os": 300 * MB})
APP = an_image("app:1", {"os": 300 * MB, "app": 700 * MB})
TOOL = an_image("tool:1", {"os": 300 * MB, "tool": 700 * MB})
ALL = (BASE, APP, TOOL)
POD = a_pod(image="app:1")


def a_bench(*silent: str) -> Bench:
    """
    Three nodes that spoke, and some that did not.

    app:1 is ready in 0 s, 8.09 s and 11.54 s: 100, 500/13.09 = 38.2 and 500/16.54 = 30.2 points.
    """
    bench = Bench(*(a_node(name) for name in ("full", "some", "none", *silent)))
    bench.learn(*ALL)
    bench.report(held("full", APP), held("some", BASE), held("none"))
    return bench


def plugin(bench: Bench, **args: Any) -> Any:
    return bench.make("LayerLocality", LayerLocalityArgs(**RATES | args))


def scores(bench: Bench, pod: Pod = POD, feasible: tuple[str, ...] | None = None, **args: Any) -> dict[str, int] | None:
    return final(bench, plugin(bench, **args), pod, feasible)


# --------------------------------------------------------------------------------------------------------------- images


@pytest.mark.parametrize("mode", ["seconds", "bytes"])
@pytest.mark.parametrize(
    ("known", "images"),
    [
        pytest.param([BASE], ["app:1"], id="the image is not known"),
        pytest.param([BASE, APP], ["app:1", "tool:1"], id="one of two is not known"),
        pytest.param(ALL, ["no reference at all"], id="no image can have this name"),
    ],
)
def test_with_an_image_nobody_knows_it_has_nothing_to_say(mode, known, images):
    """It abstains instead of guessing."""
    bench = Bench(a_node("full"), a_node("none"))
    bench.learn(*known)
    bench.report(held("full", *known), held("none"))

    assert scores(bench, a_pod(images=images), mode=mode) is None


def test_a_pod_without_images_is_none_of_its_business():
    bench = a_bench()

    assert scores(bench, msgspec.structs.replace(POD, containers=())) is None


# --------------------------------------------------------------------------------------------------------- silent nodes


def test_nothing_is_scored_before_it_is_clear_who_is_feasible():
    """-1 says that it takes all of them to know, whoever spoke."""
    bench = a_bench("silent")

    assert {"full": -1, "some": -1, "none": -1, "silent": -1} == scored(bench, plugin(bench), POD)


@pytest.mark.parametrize(
    ("feasible", "want"),
    [
        pytest.param(["full", "some", "none", "silent"], 56, id="the mean of three: (100 + 38.2 + 30.2)/3"),
        pytest.param(["some", "none", "silent"], 34, id="who is not feasible does not count: (38.2 + 30.2)/2"),
        pytest.param(["full", "silent"], 100, id="the only one that spoke"),
        pytest.param(["none", "silent", "mute"], 30, id="another silent one does not count"),
        pytest.param(["silent", "mute"], 100, id="nobody who is feasible spoke: all alike"),
        pytest.param(["silent"], 100, id="nobody else"),
    ],
)
def test_a_silent_node_counts_as_the_mean_of_the_feasible_ones_that_spoke(feasible, want):
    """It is neither punished nor preferred."""
    found = scores(a_bench("silent", "mute"), feasible=feasible) or {}

    assert {name: {"full": 100, "some": 38, "none": 30}.get(name, want) for name in feasible} == found


def test_in_bytes_it_is_the_mean_of_the_shares():
    """(100 + 30 + 0)/3 = 43.3."""
    assert {"full": 100, "some": 30, "none": 0, "silent": 43} == scores(a_bench("silent"), mode="bytes")


def test_a_silent_node_pays_for_being_crowded_like_any_other():
    """It is loaded three large pods ahead of the others, and out of the question."""
    bench = a_bench("silent")
    bench.place("silent", a_pod("x", cpu=2))

    assert 0 == (scores(bench) or {})["silent"]


def test_a_row_without_a_node_counts_for_nothing():
    """The node that held the image has left."""
    bench = a_bench("silent")
    bench.remove("full")

    assert {"some": 38, "none": 30, "silent": 34} == scores(bench)


def test_in_an_evaluation_the_mean_is_that_of_the_nodes_that_passed():
    """The full node is cordoned."""
    bench = a_bench("silent")
    bench.put(a_node("full", unschedulable=True))
    profile = a_profile(
        bench.context,
        ["PrioritySort", "NodeUnschedulable", "LayerLocality", "DefaultBinder"],
        args={"LayerLocality": LayerLocalityArgs(**RATES)},
    )

    evaluation = ShapeEvaluation(profile, bench.columns, POD)

    assert {"full": -inf, "some": 38, "none": 30, "silent": 34} == bench.by_name(evaluation.totals.tolist())


# -------------------------------------------------------------------------------------------------------- stale reports


def reported(bench: Bench, node: str, *images: Image, at: float, sequence: int = 2) -> LayerReport:
    return msgspec.structs.replace(held(node, *images, sequence=sequence), observed_at=at, renews_within=30.0)


@pytest.mark.parametrize(
    ("now", "full", "none"),
    [
        # Believed until 60 s. The mean of those that are: 500/13.09 = 38.2 points, 8.09 s.
        pytest.param(0, 100, 30, id="fresh"),
        pytest.param(60, 100, 30, id="overdue, and believed"),
        # Trust 0.5, 0.5, 1: mean (0.5·100 + 0.5·30.2 + 38.2)/2 = 51.7 points, 4.68 s
        # full 0.5·0 + 0.5·4.68 = 2.34 s: 68.1; none 0.5·11.54 + 2.34 = 8.11 s: 38.1
        pytest.param(90, 68, 38, id="half believed"),
        # Trust 0.25: (0.25·130.2 + 38.2)/1.5 = 47.2 points, 5.60 s; full 4.20 s: 54.3; none 2.885 + 4.20 = 7.08 s: 41.4
        pytest.param(120, 54, 41, id="a quarter believed"),
        pytest.param(180, 38, 38, id="not believed any more: the mean of the others"),
        pytest.param(100_000, 38, 38, id="long forgotten"),
    ],
)
def test_a_report_that_is_not_renewed_drifts_to_the_mean(now, full, none):
    """Two nodes promised another report within 30 s; a third promised nothing and holds its word."""
    bench = a_bench()
    bench.report(reported(bench, "full", APP, at=0.0), reported(bench, "none", at=0.0))
    bench.at(now)

    assert {"full": full, "some": 38, "none": none} == scores(bench)


def test_a_renewed_report_is_believed_again():
    bench = a_bench()
    bench.report(reported(bench, "full", APP, at=0.0))
    bench.at(180)
    drifted = scores(bench)
    bench.report(reported(bench, "full", APP, at=180.0, sequence=3))

    # (38.2 + 30.2)/2 = 34.2
    assert {"full": 34, "some": 38, "none": 30} == drifted
    assert {"full": 100, "some": 38, "none": 30} == scores(bench)


def test_where_nobody_is_believed_all_are_alike():
    bench = a_bench()
    bench.report(
        *(reported(bench, name, *one, at=0.0) for name, one in (("full", [APP]), ("some", [BASE]), ("none", [])))
    )
    bench.at(1000)

    assert {"full": 100, "some": 100, "none": 100} == scores(bench)


@pytest.mark.parametrize(
    ("nodes", "want"),
    [
        pytest.param([], None, id="no nodes: nothing to say"),
        pytest.param(["n0", "n1"], {}, id="none that is feasible"),
    ],
)
def test_where_no_node_is_feasible_there_is_no_mean_and_no_share(nodes, want):
    """Nothing is divided by their number, also for a pod of a controller that has one on a node."""
    bench = Bench(*(a_node(name) for name in nodes))
    bench.learn(*ALL)
    owner = Owner("ReplicaSet", "web", "u1")
    for name in nodes[:1]:
        bench.place(name, a_pod("first", owner=owner))

    with np.errstate(all="raise"):
        assert want == scores(bench, msgspec.structs.replace(POD, owner=owner), feasible=())
