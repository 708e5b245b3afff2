"""LayerLocality: nodes where a pod's images would be ready soonest."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.model.image import Image, Platform
from lamina.model.node import Node
from lamina.model.pod import Container, Pod
from lamina.scheduling.plugins.locality.layer_locality import LayerLocalityArgs
from lamina.testing import a_digest, a_node, a_pod, an_image, held
from tests.unit.scheduling.bench import Bench, final

MB = 1_000_000
# 100 MB are downloaded in 1 s, and their 230 MB unpacked in as long: a pull takes 1.15 s for each 100 MB, and 0.04 s.
RATES: dict[str, Any] = {"bandwidth": 100e6, "unpack_rate": 230e6}

BASE = an_image("base:1", {"os": 300 * MB})
APP = an_image("app:1", {"os": 300 * MB, "runtime": 500 * MB, "app": 200 * MB})
NEXT = an_image("app:2", {"os": 300 * MB, "runtime": 500 * MB, "app again": 200 * MB})
TOOL = an_image("tool:1", {"os": 300 * MB, "tool": 700 * MB})
EMPTY = an_image("scratch:1", {})
ALL = (BASE, APP, NEXT, TOOL, EMPTY)


def a_bench(*known: Image) -> Bench:
    """Three nodes: one holds app:1, one the base only, one reported that it holds nothing."""
    bench = Bench(a_node("full"), a_node("some"), a_node("none"))
    bench.learn(*(known or ALL))
    bench.report(held("full", APP), held("some", BASE), held("none"))
    return bench


def a_cold_node(lacking: int, **report: Any) -> Bench:
    """One node that lacks all of wanted:1, which has so many bytes."""
    bench = Bench(a_node("n"))
    bench.learn(an_image("wanted:1", {"all": lacking}))
    bench.report(msgspec.structs.replace(held("n"), **report))
    return bench


def scores(bench: Bench, pod: Pod, **args: Any) -> dict[str, int] | None:
    return final(bench, bench.make("LayerLocality", LayerLocalityArgs(**RATES | args)), pod)


# -------------------------------------------------------------------------------------------------------------- seconds


@pytest.mark.parametrize(
    ("images", "want"),
    [
        # E = 0; 7·1.15 + 0.04 and 0.25·7: 9.84; 10·1.15 + 0.04 and 0.25·10: 14.04.   500/14.84 = 33.7, 500/19.04 = 26.3
        pytest.param(["app:1"], {"full": 100, "some": 33, "none": 26}, id="the image itself: lacks 0, 700, 1000 MB"),
        # E = 2.34 + 0.5 = 2.84: 500/7.84 = 63.8
        pytest.param(["app:2"], {"full": 64, "some": 33, "none": 26}, id="its successor: lacks 200, 700, 1000 MB"),
        # Where all its layers are and it is not, resolving it takes 0.04 s. E = 3.49 + 0.75 = 4.24: 500/9.24 = 54.1
        pytest.param(["base:1"], {"full": 100, "some": 100, "none": 54}, id="the base: lacks 0, 0, 300 MB"),
        # E = 8.09 + 1.75 = 9.84; 16.14 + 3.5 = 19.64; 19.59 + 4.25 = 23.84.   500/24.64 = 20.3, 500/28.84 = 17.3
        pytest.param(["app:1", "tool:1"], {"full": 33, "some": 20, "none": 17}, id="shared layers count once"),
        pytest.param(["app:1", "app:1"], {"full": 100, "some": 33, "none": 26}, id="the same image twice is one image"),
        pytest.param(["app:1", "scratch:1"], {"full": 100, "some": 33, "none": 26}, id="an image without layers"),
        pytest.param(["scratch:1"], {"full": 100, "some": 100, "none": 100}, id="nothing to download"),
    ],
)
def test_a_node_scores_by_the_seconds_until_the_images_are_ready(images, want):
    """
    100·5/(5 + E), every distinct layer counted once over all images of the pod.

    Rounded down where more than half a second's worth has to be downloaded, and up where not.
    """
    assert want == scores(a_bench(), a_pod(images=images))


def test_init_containers_sidecars_and_image_volumes_count_as_much_as_containers():
    """A kubelet pulls them all: os, runtime, app and tool, each once."""
    pod = msgspec.structs.replace(
        a_pod(image="base:1"),
        init_containers=(Container("base:1"), Container("app:1", sidecar=True)),
        image_volumes=("tool:1",),
    )

    assert {"full": 33, "some": 20, "none": 17} == scores(a_bench(), pod)


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"init_containers": (Container("tool:1"),)}, id="init container"),
        pytest.param({"init_containers": (Container("tool:1", sidecar=True),)}, id="sidecar"),
        pytest.param({"image_volumes": ("tool:1",)}, id="image volume"),
    ],
)
def test_each_kind_of_image_can_decide_alone(more):
    """The container's own image is on both nodes. E = 8.05 + 0.04 + 1.75 = 9.84 where 700 MB are missing."""
    bench = Bench(a_node("has"), a_node("lacks"))
    bench.learn(*ALL)
    bench.report(held("has", BASE, TOOL), held("lacks", BASE))

    assert {"has": 100, "lacks": 33} == scores(bench, msgspec.structs.replace(a_pod(image="base:1"), **more))


@pytest.mark.parametrize(
    ("neutral", "lacking", "want"),
    [
        pytest.param(0.5, 32, 100, id="32 bytes"),
        # 0.345 + 0.04 = 0.385 s of waiting do not count; 0.25·0.3 s for the download do: 500/5.075 = 98.5
        pytest.param(0.5, 30 * MB, 99, id="less than half a second: only the download counts"),
        # 0.575 + 0.04 = 0.615 s of waiting, and 0.125 s for the download: 500/5.74 = 87.1
        pytest.param(0.5, 50 * MB, 88, id="more than half a second"),
        # 500/5.46 = 91.6
        pytest.param(0.0, 30 * MB, 91, id="every moment is noticed"),
        # 500/5.125 = 97.6
        pytest.param(1.0, 50 * MB, 98, id="a second is not noticed"),
    ],
)
def test_waiting_that_nobody_would_notice_does_not_count(neutral, lacking, want):
    """As soon as it is noticed it counts as a whole."""
    assert {"n": want} == scores(a_cold_node(lacking), a_pod(image="wanted:1"), neutral=neutral)


@pytest.mark.parametrize(
    ("seconds", "want"),
    [
        pytest.param(5, 50, id="half of the score for the first 5 s"),
        pytest.param(10, 33, id="10 s"),
        pytest.param(20, 20, id="20 s: 13 points less"),
        pytest.param(200, 2, id="200 s"),
        pytest.param(210, 2, id="210 s: no less, and load decides"),
        pytest.param(3600, 0, id="an hour"),
    ],
)
def test_the_first_seconds_count_most(seconds, want):
    """An absolute scale that saturates: 100·5/(5 + E)."""
    lacking = round((seconds - 0.04) / 1.15 * 100 * MB)

    assert {"n": want} == scores(a_cold_node(lacking), a_pod(image="wanted:1"), byte_price=0.0)


@pytest.mark.parametrize(("half", "want"), [(1.0, 8), (20.0, 63)])
def test_where_half_of_the_score_is_gone_can_be_set(half, want):
    """100·1/(1 + 11.54) = 8.0, 100·20/(20 + 11.54) = 63.4."""
    assert {"n": want} == scores(a_cold_node(1000 * MB), a_pod(image="wanted:1"), half_score=half, byte_price=0.0)


@pytest.mark.parametrize(
    ("report", "want"),
    [
        # max(10, 10) + 0.15·10 + 0.04 = 11.54, 0.25·10 = 2.5: 500/19.04
        pytest.param({}, 26, id="as assumed"),
        # max(20, 10) + 0.15·10 + 0.04 = 21.54, 0.25·20 = 5: 500/31.54 = 15.9
        pytest.param({"download_rate": 50e6}, 15, id="a slow link"),
        # max(10, 20) + 0.15·10 + 0.04 = 21.54, 0.25·10 = 2.5: 500/29.04 = 17.2
        pytest.param({"unpack_rate": 115e6}, 17, id="a slow disk"),
        # disk 10 GB, 7.5 GB of it used; with 3.3 GB more 2.3 GB above 8.5 GB have to go: 2.3 G/(3.3·100 MB/s) = 6.97 s
        # 11.54 + 2.5 + 6.97 = 21.01: 500/26.01 = 19.2
        pytest.param({"disk": 10_000 * MB, "disk_free": 2500 * MB, "reuse": "set"}, 19, id="something must make room"),
        # keeps no blobs: 7.5 + 2.3 - 8.5 = 1.3 GB, 1.3 G/(2.3·100 MB/s) = 5.65 s: 500/24.69 = 20.2
        pytest.param({"disk": 10_000 * MB, "disk_free": 2500 * MB}, 20, id="less so where no blobs are kept"),
        pytest.param({"disk": 10_000 * MB, "disk_free": 9000 * MB}, 26, id="there is room"),
    ],
)
def test_a_node_is_as_quick_as_it_says(report, want):
    """Rates and disk as its agent observed them."""
    assert {"n": want} == scores(a_cold_node(1000 * MB, **report), a_pod(image="wanted:1"))


@pytest.mark.parametrize("reuse", ["prefix", "set"])
def test_layers_without_what_lies_below_them_help_as_the_runtime_reuses_them(reuse):
    """
    The node holds runtime and app, on another base. By prefix it lacks all of app:1; by blob only the 300 MB of os.

    As a set: downloads 3 s, unpacks 10 s of everything: 10 + 0.15·3 + 0.04 + 0.75 = 11.24, 500/16.24 = 30.8.
    """
    bench = Bench(a_node("n"))
    other = an_image("other:1", {"other os": 100 * MB, "runtime": 500 * MB, "app": 200 * MB})
    bench.learn(APP, other)
    bench.report(msgspec.structs.replace(held("n", other), reuse=reuse))

    assert {"n": 30 if reuse == "set" else 26} == scores(bench, a_pod(image="app:1"))


def test_tiny_shared_layers_do_not_move_a_pod():
    """Two images that share nothing but an empty layer of 32 bytes are strangers."""
    bench = Bench(a_node("stranger"), a_node("empty"))
    stranger = an_image("stranger:1", {"nothing": 32, "other": 800 * MB})
    bench.learn(stranger, an_image("wanted:1", {"nothing": 32, "own": 800 * MB}))
    bench.report(held("stranger", stranger), held("empty"))

    found = scores(bench, a_pod(image="wanted:1")) or {}

    assert found["empty"] == found["stranger"]


@pytest.mark.parametrize("name", ["app:1", "docker.io/library/app:1", "index.docker.io/library/app:1", "library/app:1"])
def test_an_image_is_known_by_all_its_spellings(name):
    """Unlike ImageLocality, which compares text."""
    assert {"full": 100, "some": 33, "none": 26} == scores(a_bench(), a_pod(image=name))


def test_knowing_whole_images_only_is_as_if_they_shared_nothing():
    """The successor is as far away everywhere, and so is what all layers of are there: E = 14.04, and 3.49 + 0.75."""
    bench = a_bench()

    assert {"full": 26, "some": 26, "none": 26} == scores(bench, a_pod(image="app:2"), knowledge="images")
    assert {"full": 100, "some": 26, "none": 26} == scores(bench, a_pod(image="app:1"), knowledge="images")
    assert {"full": 54, "some": 100, "none": 54} == scores(bench, a_pod(image="base:1"), knowledge="images")


# ------------------------------------------------------------------------------------------------------------- arriving


def two_nodes(before_it: int, elsewhere: int) -> Bench:
    """
    One node pulls app:1, after something of *before_it* bytes; on the other *elsewhere* bytes are pulled.

    app:1 takes 11.54 s anywhere, and what is pulled before it 0.0115 s for each MB and 0.04 s.
    """
    bench = Bench(a_node("arriving"), a_node("cold"))
    bench.make("LayerLocality", LayerLocalityArgs(**RATES))
    bench.learn(APP, an_image("x:1", {"x": before_it}), an_image("y:1", {"y": elsewhere}))
    bench.report(held("arriving"), held("cold"))
    if before_it:
        bench.expect("arriving", a_pod("x", image="x:1"))
    if elsewhere:
        bench.expect("cold", a_pod("y", image="y:1"))
    bench.expect("arriving", a_pod("z", image="app:1"))
    return bench


@pytest.mark.parametrize(
    ("before_it", "elsewhere", "now", "want"),
    [
        # 500/16.54 = 30.2
        pytest.param(0, 0, 0, {"arriving": 30, "cold": 30}, id="just begun: as long as a pull of one's own"),
        # 11.54 - 4 = 7.54: 500/12.54 = 39.9
        pytest.param(0, 0, 4, {"arriving": 40, "cold": 30}, id="a third of it done"),
        pytest.param(0, 0, 11.5, {"arriving": 100, "cold": 30}, id="as good as there"),
        pytest.param(0, 0, 20, {"arriving": 100, "cold": 30}, id="should be there by now"),
        # 4.64 + 11.54 = 16.18: 500/21.18 = 23.6
        pytest.param(400 * MB, 0, 0, {"arriving": 24, "cold": 30}, id="has to wait for its turn"),
        pytest.param(400 * MB, 400 * MB, 0, {"arriving": 24, "cold": 24}, id="so would the other one"),
        # 9.24 + 11.54 = 20.78: 500/25.78 = 19.4
        pytest.param(400 * MB, 800 * MB, 0, {"arriving": 24, "cold": 19}, id="the other one longer"),
    ],
)
def test_an_image_on_its_way_beats_a_cold_node_if_it_is_there_sooner(before_it, elsewhere, now, want):
    """Not because it is on its way: the pod waits for its turn, there as elsewhere."""
    bench = two_nodes(before_it, elsewhere)
    bench.at(now)

    assert want == scores(bench, a_pod(image="app:1"), byte_price=0.0)


@given(st.integers(0, 3000), st.integers(0, 3000), st.floats(0, 60))
def test_the_sooner_one_never_scores_less(before_it, elsewhere, now):
    """What is on its way wins only if it is there before the other node's queue is empty and its pull done."""
    bench = two_nodes(before_it * MB, elsewhere * MB)
    bench.at(now)
    clock = bench.inventory.arrivals.clock
    first = 0.0115 * before_it + 0.04 if before_it else 0.0
    other = 0.0115 * elsewhere + 0.04 if elsewhere else 0.0
    eta, pull = max(first + 11.54 - clock, 0.0), max(other - clock, 0.0) + 11.54

    found = scores(bench, a_pod(image="app:1"), byte_price=0.0) or {}

    assert (found["arriving"] >= found["cold"]) if eta <= pull + 1e-6 else (found["arriving"] <= found["cold"])


@pytest.mark.parametrize(
    ("price", "want"),
    [
        # The one that pulls app:1 now has it in 11.54 s, the other in 4.64 + 11.54 = 16.18 s.
        pytest.param(0.0, {"arriving": 24, "cold": 30}, id="free: who is ready sooner wins"),
        # 11.54 + 0.5·10 = 16.54: 500/21.54 = 23.2
        pytest.param(0.5, {"arriving": 24, "cold": 23}, id="half a second for each: who need not download wins"),
    ],
)
def test_a_second_of_download_has_its_price_beside_the_waiting(price, want):
    """What is downloaded anyway costs nothing more."""
    assert want == scores(two_nodes(400 * MB, 0), a_pod(image="app:1"), byte_price=price)


@pytest.mark.parametrize("size", [200 * MB, 2000 * MB, 20_000 * MB, 200_000 * MB], ids=lambda size: f"{size // MB} MB")
@pytest.mark.parametrize("silent", [False, True], ids=["all spoke", "with a silent node"])
def test_where_waiting_is_equal_whoever_downloads_less_wins_at_any_size(size, silent):
    """A second is worth nothing far out on the scale; that something is on its way already is worth a point there, too."""
    bench = Bench(a_node("arriving"), a_node("cold"), *([a_node("silent")] if silent else []))
    bench.make("LayerLocality", LayerLocalityArgs(**RATES))
    bench.learn(an_image("big:1", {"all": size}))
    bench.report(held("arriving"), held("cold"))
    bench.expect("arriving", a_pod("x", image="big:1"))

    found = scores(bench, a_pod(image="big:1")) or {}

    assert found["arriving"] > found["cold"]


@given(st.integers(1, 10**12), st.floats(0, 3600), st.booleans())
def test_rounding_is_worth_less_than_a_point(size, seconds, arriving):
    """Whatever a node lacks, however long its queue."""
    bench = Bench(a_node("n"))
    bench.make("LayerLocality", LayerLocalityArgs(**RATES))
    bench.learn(an_image("big:1", {"all": size}), an_image("x:1", {"x": round(seconds / 1.15 * 100 * MB)}))
    bench.report(held("n"))
    bench.expect("n", a_pod("x", image="x:1"))
    if arriving:
        bench.expect("n", a_pod("y", image="big:1"))
    queue, pull, transfer = 1.15 * round(seconds / 1.15 * 100 * MB) / 1e8 + 0.04, 1.15 * size / 1e8 + 0.04, size / 1e8
    waits = queue + pull + (0 if arriving else 0.25 * transfer)

    found = (scores(bench, a_pod(image="big:1")) or {})["n"]

    if queue + pull > 0.5:
        assert abs(500 / (5 + waits) - found) <= 1


def test_only_the_image_that_is_missing_is_waited_for():
    """other:1 is there, app:1 arrives in 11.54 s: 500/16.54 = 30.2."""
    bench = two_nodes(0, 0)
    other = an_image("other:1", {"other": 100 * MB})
    bench.learn(other)
    bench.report(held("arriving", other, sequence=2))

    assert 31 == (scores(bench, a_pod(images=["app:1", "other:1"])) or {})["arriving"]


def test_layers_on_their_way_shorten_the_next_pull():
    """os and runtime come with app:1 in 11.54 s, then 200 MB more take 2.34 s: 13.88 + 0.5, 500/19.38 = 25.8."""
    bench = two_nodes(0, 0)
    bench.learn(NEXT)

    assert {"arriving": 26, "cold": 26} == scores(bench, a_pod(image="app:2"))
    bench.at(6)
    # 7.88 + 0.5: 500/13.38 = 37.4
    assert {"arriving": 38, "cold": 26} == scores(bench, a_pod(image="app:2"))


# ---------------------------------------------------------------------------------------------------------------- bytes


@pytest.mark.parametrize(
    ("images", "want"),
    [
        pytest.param(["app:1"], {"full": 100, "some": 30, "none": 0}, id="the image itself: 1000, 300, 0 of 1000 MB"),
        pytest.param(["app:2"], {"full": 80, "some": 30, "none": 0}, id="its successor: 800, 300, 0 of 1000 MB"),
        pytest.param(["base:1"], {"full": 100, "some": 100, "none": 0}, id="the base: 300, 300, 0 of 300 MB"),
        # 1000/1700 = 58.8, 300/1700 = 17.6
        pytest.param(["app:1", "tool:1"], {"full": 59, "some": 18, "none": 0}, id="shared layers count once"),
        pytest.param(["app:1", "scratch:1"], {"full": 100, "some": 30, "none": 0}, id="an image without layers"),
        pytest.param(["scratch:1"], {"full": 100, "some": 100, "none": 100}, id="nothing to download"),
    ],
)
def test_in_bytes_a_node_scores_by_the_share_it_need_not_download(images, want):
    assert want == scores(a_bench(), a_pod(images=images), mode="bytes")


def test_in_bytes_what_is_on_its_way_is_not_downloaded_again():
    """However long it takes."""
    assert {"arriving": 100, "cold": 0} == scores(two_nodes(3000 * MB, 0), a_pod(image="app:1"), mode="bytes")


# -------------------------------------------------------------------------------------------------- what it depends on


def test_two_clusters_in_one_process_never_mix():
    """It looks at the inventory of its context."""
    first, second = a_bench(), a_bench(BASE)

    assert scores(first, a_pod(image="app:1")) is not None
    assert scores(second, a_pod(image="app:1")) is None


@given(
    st.permutations([(), (BASE,), (APP,), (NEXT, TOOL)]), st.lists(st.sampled_from(["base:1", "tool:1"]), max_size=2)
)
def test_a_node_scores_the_same_whatever_the_others_hold(holdings, pulled):
    """Only how loaded they are could make a difference."""
    bench = Bench(a_node("n"), *(a_node(f"other {number}") for number in range(4)))
    bench.learn(*ALL)
    bench.report(held("n", BASE), *(held(f"other {number}", *one) for number, one in enumerate(holdings)))
    bench.expect("other 0", *(a_pod(f"p{number}", image=image) for number, image in enumerate(pulled)))

    assert 33 == (scores(bench, a_pod(image="app:1")) or {})["n"]


def test_without_a_barrier_it_scores_the_same_however_many_others_there_are():
    """And however loaded they are."""
    bench = a_bench()
    bench.put(*(a_node(f"other {number}") for number in range(20)))
    bench.place("other 3", *(a_pod(f"p{number}", cpu=1) for number in range(4)))
    bench.report(*(held(f"other {number}", BASE) for number in range(20)))

    found = scores(bench, a_pod(image="app:1"), barrier=None) or {}

    assert {"full": 100, "some": 33, "none": 26} == {name: found[name] for name in ("full", "some", "none")}


def arm(name: str) -> Node:
    return msgspec.structs.replace(a_node(name), platform=Platform("linux", "arm64"))


def test_an_image_is_what_it_is_on_the_platform_of_the_node():
    """The same name is 1000 MB here and 200 MB there: 11.54 + 2.5 s, and 2.34 + 0.5 s."""
    bench = Bench(a_node("amd"), arm("arm"), arm("arm with layers"), a_node("amd with arm's layers"))
    small = msgspec.structs.replace(
        an_image("app:1", {"arm os": 200 * MB}, Platform("linux", "arm64")), digest=a_digest("app:1 for arm")
    )
    bench.learn(APP, small)
    bench.report(held("amd"), held("arm"), held("arm with layers", small), held("amd with arm's layers", small))

    assert {"amd": 26, "arm": 64, "arm with layers": 100, "amd with arm's layers": 26} == scores(
        bench, a_pod(image="app:1")
    )


def test_a_node_whose_platform_an_image_is_not_known_for_counts_as_the_mean_of_the_others():
    """(100 + 26.3)/2 = 63.1."""
    bench = Bench(a_node("full"), a_node("none"), arm("arm"))
    bench.learn(APP)
    bench.report(held("full", APP), held("none"), held("arm"))

    assert {"full": 100, "none": 26, "arm": 63} == scores(bench, a_pod(image="app:1"))


@pytest.mark.parametrize(
    ("other", "same"),
    [
        pytest.param({"name": "another"}, True, id="name"),
        pytest.param({"priority": 7}, True, id="priority"),
        pytest.param({"labels": {"app": "web"}}, True, id="labels"),
        pytest.param({"annotations": {"note": "hello"}}, True, id="an annotation about something else"),
        pytest.param({"annotations": {"lamina.dev/layer-locality": "nonsense"}}, True, id="a wish that is ignored"),
        pytest.param({"annotations": {"lamina.dev/layer-locality": "50"}}, False, id="a wish"),
        pytest.param({"containers": (Container("app:2"),)}, False, id="image"),
        pytest.param({"scoring_requests": (("cpu", 2000),)}, False, id="size"),
        pytest.param({"namespace": "kitchen"}, False, id="namespace"),
    ],
)
def test_pods_are_told_apart_by_what_makes_a_difference(other, same):
    plugin = Bench().make("LayerLocality")
    pod = a_pod()

    assert same is (plugin.sign(pod) == plugin.sign(msgspec.structs.replace(pod, **other)))
