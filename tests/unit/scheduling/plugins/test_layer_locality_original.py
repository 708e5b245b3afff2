"""LayerLocality's original formula, with everything about it that is worth comparing with."""

import msgspec
import pytest

from lamina.model.pod import Container, Pod
from lamina.scheduling.plugins.locality.layer_locality import LayerLocalityArgs
from lamina.testing import a_node, a_pod, an_image, held
from tests.unit.scheduling.bench import Bench, final

MB = 1_000_000
APP = an_image("app:1", {"os": 300 * MB, "runtime": 500 * MB, "app": 200 * MB})
NEXT = an_image("app:2", {"os": 300 * MB, "runtime": 500 * MB, "app again": 200 * MB})
REORDERED = an_image("app:3", {"other": 100 * MB, "runtime": 500 * MB})
SIDECAR = an_image("sidecar:1", {"sidecar": 2 * MB})
EMPTY = an_image("scratch:1", {})
ALL = (APP, NEXT, REORDERED, SIDECAR, EMPTY)


def a_bench() -> Bench:
    bench = Bench(a_node("app"), a_node("next"), a_node("sidecar"), a_node("none"), a_node("silent"))
    bench.learn(*ALL)
    bench.report(held("app", APP), held("next", NEXT), held("sidecar", SIDECAR, REORDERED), held("none"))
    return bench


def scores(bench: Bench, pod: Pod) -> list[int]:
    found = final(bench, bench.make("LayerLocality", LayerLocalityArgs(mode="original")), pod)
    assert found is not None
    return list(found.values())


@pytest.mark.parametrize(
    ("images", "want"),
    [
        # Blobs count wherever they lie: 500 of 1000 MB on the node that has runtime on another base.
        pytest.param(["app:1"], [100, 80, 50, 0, 0], id="the share of its bytes on the node"),
        pytest.param(["sidecar:1"], [0, 0, 100, 0, 0], id="a whole one of 2 MB is worth as much as one of 1 GB"),
        # Half of 100 %, of 80 %, and of 50 % and 100 %.
        pytest.param(["app:1", "sidecar:1"], [50, 40, 75, 0, 0], id="the unweighted mean of the containers"),
        # (1 + 1 + 0)/3 = 66.7, (0.8·2)/3 = 53.3, (0.5·2 + 1)/3 = 66.7
        pytest.param(
            ["app:1", "app:1", "sidecar:1"], [66, 53, 66, 0, 0], id="each use of an image counts, rounded down"
        ),
        pytest.param(["app:1", "unknown:1"], [50, 40, 25, 0, 0], id="what nobody knows is nowhere"),
        pytest.param(["unknown:1"], [0, 0, 0, 0, 0], id="nothing known"),
        pytest.param(["scratch:1"], [0, 0, 0, 0, 0], id="nothing to download"),
    ],
)
def test_it_is_the_mean_share_of_bytes_over_the_containers(images, want):
    """A node that reported nothing has nothing."""
    assert want == scores(a_bench(), a_pod(images=images))


def test_what_a_new_tag_consists_of_is_not_known_before_a_node_holds_it():
    """It shares 800 of 1000 MB with what is there, and scores 0 everywhere until it was pulled once."""
    bench = Bench(a_node("app"), a_node("none"))
    bench.learn(APP, NEXT)
    bench.report(held("app", APP), held("none"))
    new_tag = a_pod(image="app:2")

    assert [0, 0] == scores(bench, new_tag)
    bench.report(held("none", NEXT, sequence=2))
    assert [80, 100] == scores(bench, new_tag)
    bench.report(held("none", sequence=3))
    assert [0, 0] == scores(bench, new_tag)


def test_what_is_on_its_way_does_not_count():
    bench = a_bench()
    bench.expect("none", a_pod("x", image="app:1"))

    assert [100, 80, 50, 0, 0] == scores(bench, a_pod(image="app:1"))


def test_init_containers_and_image_volumes_do_not_count():
    pod = msgspec.structs.replace(
        a_pod(image="app:1"), init_containers=(Container("sidecar:1", sidecar=True),), image_volumes=("sidecar:1",)
    )

    assert [100, 80, 50, 0, 0] == scores(a_bench(), pod)


def test_crowded_nodes_are_not_spared():
    """It has no guard: three quarters of the node are in use, the others are idle."""
    bench = a_bench()
    bench.place("app", a_pod("x", cpu=3))

    assert [100, 80, 50, 0, 0] == scores(bench, a_pod(image="app:1", cpu=1))
