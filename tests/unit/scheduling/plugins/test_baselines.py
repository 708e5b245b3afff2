"""HotEdge and LRScheduler: published formulas to compare with."""

from typing import Any

import pytest

from lamina.model.image import Image
from lamina.scheduling.plugins.baselines.hot_edge import HotEdgeArgs
from lamina.testing import a_node, a_pod, an_image, held
from tests.unit.scheduling.bench import Bench, scored

MB = 1_000_000
# Parts of one image of 2 GB, as images of their own.
SIZES = {"23 MB": 23 * MB, "100 MB": 100 * MB, "500 MB": 500 * MB, "1000 MB": 1000 * MB}
REST = 2000 * MB - sum(SIZES.values())
WANTED = an_image("wanted:1", {**SIZES, "rest": REST})
PARTS = {name: an_image(f"part-{number}:1", {name: size}) for number, (name, size) in enumerate(SIZES.items())}
TWIN = an_image("twin:1", {**SIZES, "more": 0})
POD = a_pod(cpu=1, memory="1Gi", image="wanted:1")


def a_bench(holdings: dict[str, list[Image]], used: dict[str, tuple[Any, str]] | None = None) -> Bench:
    """Nodes of 10 cpu and 10 GiB with these images, and so much cpu and memory in use."""
    bench = Bench(*(a_node(name, cpu=10, memory="10Gi") for name in holdings))
    bench.learn(WANTED, TWIN, *PARTS.values())
    bench.report(*(held(name, *images) for name, images in holdings.items()))
    for name, (cpu, memory) in (used or {}).items():
        bench.place(name, a_pod(f"on {name}", cpu=cpu, memory=memory))
    return bench


# -------------------------------------------------------------------------------------------------------------- HotEdge


@pytest.mark.parametrize(
    ("images", "want"),
    [
        # 100·(0.2·0.9 + 0.8·locality): the pod takes a tenth of an idle node.
        pytest.param([], 18, id="nothing there"),
        pytest.param([PARTS["23 MB"]], 18, id="23 MB are nothing"),
        # (100 - 23)/977 = 0.0788: 18 + 6.3
        pytest.param([PARTS["100 MB"]], 24, id="100 MB"),
        # (600 - 23)/977 = 0.5906: 18 + 47.2
        pytest.param([PARTS["100 MB"], PARTS["500 MB"]], 65, id="600 MB, wherever they lie"),
        pytest.param([PARTS["1000 MB"]], 98, id="1 GB is everything"),
        pytest.param([WANTED], 98, id="so is more"),
    ],
)
def test_hotedge_mixes_bytes_between_two_bounds_with_free_room(images, want):
    bench = a_bench({"n": images})

    assert {"n": want} == scored(bench, bench.make("HotEdge"), POD)


@pytest.mark.parametrize(
    ("share", "used", "want"),
    [
        # The image is there: 100·(share·free + 1 - share), rounded down.
        pytest.param(0.2, ("3975m", "1Gi"), 90, id="50.25 % of the cpu left: 80 + 0.2·50.25"),
        pytest.param(0.2, (1, "5837Mi"), 86, id="33 % of the memory left: 80 + 0.2·33"),
        pytest.param(0.2, (20, "1Gi"), 80, id="more counted than there is"),
        pytest.param(0.5, ("3975m", "1Gi"), 75, id="half of it is load: 50 + 0.5·50.25"),
        pytest.param(1.0, ("3975m", "1Gi"), 50, id="all of it"),
        pytest.param(0.0, ("3975m", "1Gi"), 100, id="none of it"),
    ],
)
def test_hotedge_counts_the_scarcer_of_cpu_and_memory(share, used, want):
    """With the pod on the node."""
    bench = a_bench({"n": [WANTED]}, {"n": used})

    assert {"n": want} == scored(bench, bench.make("HotEdge", HotEdgeArgs(load_share=share)), POD)


def test_to_hotedge_an_image_that_is_not_known_is_nowhere():
    bench = a_bench({"n": [WANTED]})

    assert {"n": 18} == scored(bench, bench.make("HotEdge"), a_pod(cpu=1, memory="1Gi", image="unknown:1"))


@pytest.mark.parametrize("name", ["HotEdge", "LRScheduler"])
def test_what_is_on_its_way_does_not_count(name):
    bench = a_bench({"n": [], "m": []})
    bench.expect("n", a_pod("x", image="wanted:1"))

    found = scored(bench, bench.make(name), POD) or {}

    assert found["m"] == found["n"]


# ---------------------------------------------------------------------------------------------------------- LRScheduler


@pytest.mark.parametrize(
    ("images", "used", "want"),
    [
        pytest.param([], (1, "1Gi"), 0, id="nothing there"),
        # int(100·1000/2000/2) = 25
        pytest.param([PARTS["1000 MB"]], (1, "1Gi"), 50, id="half of it, idle and balanced: 25·2"),
        pytest.param([WANTED], (1, "1Gi"), 100, id="all of it: 50·2"),
        # int(100·23/2000/2) = 0
        pytest.param([PARTS["23 MB"]], (1, "1Gi"), 0, id="23 of 2000 MB are half a point, rounded down"),
        # int(100·100/2000/2) = 2
        pytest.param([PARTS["100 MB"]], (1, "1Gi"), 4, id="100 MB: 2·2"),
        # (0.5 - 0.1)/2 = 0.2
        pytest.param([WANTED], ("4900m", "1Gi"), 25, id="not balanced: 50·0.5"),
        pytest.param([WANTED], (1, "5Gi"), 25, id="not balanced the other way round"),
        # (0.4 - 0.1)/2 = 0.15
        pytest.param([WANTED], (1, "4Gi"), 100, id="balanced enough"),
        pytest.param([WANTED], ("4900m", "5Gi"), 100, id="59 % of the cpu with the pod"),
        pytest.param([WANTED], (5, "5Gi"), 25, id="60 % of the cpu with the pod"),
        # int(100·1100/2000/2) = 27; int(27·0.5) = 13
        pytest.param([PARTS["1000 MB"], PARTS["100 MB"]], (6, "6Gi"), 13, id="rounded down twice"),
    ],
)
def test_lrscheduler_weighs_matching_bytes_by_idleness_and_balance(images, used, want):
    """On nodes of 10 cpu and 10 GiB; what is balanced goes by what is in use before the pod comes."""
    bench = a_bench({"n": images}, {"n": used})

    assert {"n": want} == scored(bench, bench.make("LRScheduler"), POD)


def test_to_lrscheduler_ten_megabytes_have_to_match():
    """10 of 20 MB match exactly and are not more than 10: int(100·10/20/2)·0.5 = 12; one byte more, and it is 50."""
    bench = Bench(a_node("ten"), a_node("more"))
    ten, more = an_image("ten:1", {"a": 10 * MB}), an_image("more:1", {"a": 10 * MB, "b": 1})
    bench.learn(ten, more, an_image("small:1", {"a": 10 * MB, "b": 1, "c": 10 * MB - 1}))
    bench.report(held("ten", ten), held("more", more))

    assert {"ten": 12, "more": 50} == scored(bench, bench.make("LRScheduler"), a_pod(image="small:1"))


@pytest.mark.parametrize(
    "image", [pytest.param("unknown:1", id="not known"), pytest.param("scratch:1", id="nothing to match")]
)
def test_lrscheduler_has_nothing_to_say_about_some_images(image):
    bench = a_bench({"n": [WANTED]})
    bench.learn(an_image("scratch:1", {}))

    assert scored(bench, bench.make("LRScheduler"), a_pod(image=image)) is None


# ----------------------------------------------------------------------------------------------------------------- both


@pytest.mark.parametrize("name", ["HotEdge", "LRScheduler"])
def test_pods_are_told_apart_by_images_and_size(name):
    plugin = Bench().make(name)

    assert plugin.sign(a_pod("a", cpu=1)) == plugin.sign(a_pod("b", cpu=1, priority=3))
    assert plugin.sign(a_pod("a", cpu=1)) != plugin.sign(a_pod("a", cpu=2))
    assert plugin.sign(a_pod("a", image="app:1")) != plugin.sign(a_pod("a", image="app:2"))
