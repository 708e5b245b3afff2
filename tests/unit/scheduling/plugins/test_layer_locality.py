"""LayerLocality: nodes that already hold a pod's layers."""

import msgspec
import numpy as np
import pytest

from lamina.model import events
from lamina.scheduling.framework.cycle_state import CycleState
from lamina.scheduling.framework.evaluation import Evaluation
from lamina.testing import Desk, a_loop, a_node, a_pod, a_profile, an_image, held
from tests.unit.scheduling.bench import Bench, scored

BASE = an_image("base:1", {"os": 300})
APP = an_image("app:1", {"os": 300, "runtime": 500, "app": 200})
NEXT = an_image("app:2", {"os": 300, "runtime": 500, "app again": 200})
TOOL = an_image("tool:1", {"os": 300, "tool": 700})
EMPTY = an_image("scratch:1", {})
ALL = (BASE, APP, NEXT, TOOL, EMPTY)


def a_bench(*known) -> Bench:
    """Three nodes: one holds app:1, one the base only, one reported that it holds nothing."""
    bench = Bench(a_node("full"), a_node("some"), a_node("none"))
    bench.learn(*(known or ALL))
    bench.report(held("full", APP), held("some", BASE), held("none"))
    return bench


def scores(bench: Bench, pod):
    return scored(bench, bench.make("LayerLocality"), pod)


@pytest.mark.parametrize(
    ("images", "want"),
    [
        # os 300 + runtime 500 + app 200 = 1000 bytes
        pytest.param(["app:1"], {"full": 100, "some": 30, "none": 0}, id="the image itself: 1000, 300, 0 of 1000"),
        pytest.param(["app:2"], {"full": 80, "some": 30, "none": 0}, id="its successor: 800, 300, 0 of 1000"),
        pytest.param(["base:1"], {"full": 100, "some": 100, "none": 0}, id="the base: 300, 300, 0 of 300"),
        # os, runtime, app, tool: 1700 bytes. full 1000/1700 = 58.8, some 300/1700 = 17.6
        pytest.param(["app:1", "tool:1"], {"full": 58, "some": 17, "none": 0}, id="shared layers count once"),
        pytest.param(["app:1", "app:1"], {"full": 100, "some": 30, "none": 0}, id="the same image twice is one image"),
        pytest.param(["app:1", "scratch:1"], {"full": 100, "some": 30, "none": 0}, id="an image without layers"),
    ],
)
def test_a_node_scores_by_the_share_of_bytes_it_holds(images, want):
    """Every distinct layer counts once, over all images of the pod."""
    assert want == scores(a_bench(), a_pod(images=images))


def test_init_containers_and_image_volumes_count_as_much_as_containers():
    """A kubelet pulls them all: 300 of 1700 bytes where the base is."""
    pod = msgspec.structs.replace(a_pod(images=["base:1"], init=["app:1"]), image_volumes=("tool:1",))

    assert {"full": 58, "some": 17, "none": 0} == scores(a_bench(), pod)


@pytest.mark.parametrize(
    ("known", "images"),
    [
        pytest.param([BASE], ["app:1"], id="the image is not known"),
        pytest.param([BASE, APP], ["app:1", "tool:1"], id="one of two is not known"),
        pytest.param(ALL, ["scratch:1"], id="nothing to download"),
        pytest.param(ALL, ["no reference at all"], id="no image can have this name"),
    ],
)
def test_without_knowing_all_layers_it_has_nothing_to_say(known, images):
    """Absence of data is never data: it abstains instead of guessing."""
    assert scores(a_bench(*known), a_pod(images=images)) is None


@pytest.mark.parametrize("name", ["app:1", "docker.io/library/app:1", "index.docker.io/library/app:1", "library/app:1"])
def test_an_image_is_known_by_all_its_spellings(name):
    """Unlike ImageLocality, which compares text."""
    assert {"full": 100, "some": 30, "none": 0} == scores(a_bench(), a_pod(image=name))


def test_a_node_that_reported_nothing_is_marked_unknown():
    """-1 before normalising; a report of nothing is 0."""
    bench = a_bench()
    bench.put(a_node("silent"))

    assert {"full": 100, "some": 30, "none": 0, "silent": -1} == scores(bench, a_pod(image="app:1"))


@pytest.mark.parametrize(
    ("raw", "feasible", "want"),
    [
        pytest.param([100, 30, 0], [1, 1, 1], [100, 30, 0], id="all known"),
        pytest.param([100, 30, 0, -1], [1, 1, 1, 1], [100, 30, 0, 43], id="the mean of three: 130 / 3 = 43.3"),
        pytest.param([100, -1], [1, 1], [100, 100], id="the only one that is known"),
        pytest.param([0, -1, -1], [1, 1, 1], [0, 0, 0], id="the mean of nothing there"),
        pytest.param([-1, -1], [1, 1], [0, 0], id="nobody reported"),
        pytest.param([-1], [1], [0], id="a single silent node"),
        pytest.param([100, 30, 0, -1], [0, 1, 1, 1], [None, 30, 0, 15], id="a node that is out does not count"),
        pytest.param([100, -1], [0, 1], [None, 0], id="nobody who is in reported"),
    ],
)
def test_a_silent_node_counts_as_the_mean_of_the_others(raw, feasible, want):
    """It is neither punished nor preferred; only nodes that passed the filters are asked."""
    plugin = Bench().make("LayerLocality")
    inside = np.array(feasible, dtype=np.bool_)

    final = plugin.normalize(CycleState(), a_pod(), np.array(raw, dtype=np.int64), inside)

    assert want == [int(score) if fits else None for score, fits in zip(final, inside, strict=True)]


def test_only_feasible_nodes_enter_the_mean():
    """The full node is cordoned, so the silent one counts as the mean of 30 and 0, not of 100, 30 and 0."""
    bench = a_bench()
    bench.put(a_node("silent"), a_node("full", unschedulable=True))
    profile = a_profile(bench.context, ["PrioritySort", "NodeUnschedulable", "LayerLocality", "DefaultBinder"])

    evaluation = Evaluation(profile, bench.columns, a_pod(image="app:1"))

    assert {"full": -1, "some": 30, "none": 0, "silent": 15} == bench.by_name(evaluation.totals.tolist())


def test_it_tells_what_is_there_and_what_is_missing():
    """In bytes, and nothing about a silent node."""
    bench = a_bench()
    bench.put(a_node("silent"))
    plugin = bench.make("LayerLocality")
    state, pod = CycleState(), a_pod(image="app:2")
    plugin.pre_score(state, pod, bench.view)

    assert {
        "full": {"present": 800, "missing": 200, "total": 1000},
        "some": {"present": 300, "missing": 700, "total": 1000},
        "none": {"present": 0, "missing": 1000, "total": 1000},
        "silent": {},
    } == bench.by_name(plugin.facts(state, pod, bench.view))


def test_large_images_are_scored_exactly():
    """2**52 - 1 bytes of 2**52 are 99 percent and not 100."""
    whole = 2**52
    bench = Bench(a_node("n0"))
    bench.learn(an_image("big:1", {"most": whole - 1, "last": 1}), an_image("most:1", {"most": whole - 1}))
    bench.report(held("n0", an_image("most:1", {"most": whole - 1})))

    assert {"n0": 99} == scores(bench, a_pod(image="big:1"))


def test_pods_are_told_apart_by_their_images():
    """And by nothing else."""
    plugin = Bench().make("LayerLocality")

    assert plugin.sign(a_pod("a", cpu=1)) == plugin.sign(a_pod("b", cpu=2))
    assert plugin.sign(a_pod("a", image="app:1")) != plugin.sign(a_pod("b", image="app:2"))


def test_it_looks_at_the_inventory_of_its_context():
    """Two clusters in one process never mix."""
    first, second = a_bench(), a_bench(BASE)

    assert scores(first, a_pod(image="app:1")) is not None
    assert scores(second, a_pod(image="app:1")) is None


def test_a_pod_returns_to_the_node_that_shares_most_of_its_layers():
    """
    Two images share two of three layers and a pod fills a node.

    P1 runs on N1 and P2 on N2; P2 leaves. A second P1 cannot go where P1 is; N2 has two thirds of its bytes, N3 none.
    """
    first = an_image("first:1", {"L1": 100, "L2": 100, "L3": 100})
    second = an_image("second:1", {"L1": 100, "L2": 100, "L4": 100})
    desk = Desk(a_loop())
    desk.tell(*(events.NodeSeen(a_node(name, cpu=1)) for name in ("N3", "N2", "N1")))
    desk.tell(events.ImagesLearned((first, second)))
    desk.tell(events.LayersReported(held("N3")))
    desk.see(a_pod("P1", cpu=1, image="first:1", on="N1"), a_pod("P2", cpu=1, image="second:1", on="N2"))
    desk.tell(events.LayersReported(held("N1", first)), events.LayersReported(held("N2", second)))
    desk.tell(events.PodGone(a_pod("P2").uid))

    desk.see(a_pod("P3", cpu=1, image="first:1"))

    assert {"P3": "N2"} == desk.bound
