"""ImagePresence: nodes that have a pod's images as a whole, or will have them."""

import msgspec
import pytest

from lamina.model.image import Platform
from lamina.model.pod import Container
from lamina.testing import a_digest, a_node, a_pod, an_image, held
from tests.unit.scheduling.bench import Bench, scored

BASE = an_image("base:1", {"os": 300})
APP = an_image("app:1", {"os": 300, "app": 700})
TOOL = an_image("tool:1", {"os": 300, "tool": 700})
EMPTY = an_image("scratch:1", {})
ARM = Platform("linux", "arm64")
APP_FOR_ARM = msgspec.structs.replace(an_image("app:1", {"arm": 500}, ARM), digest=a_digest("app:1 for arm"))


def a_bench() -> Bench:
    bench = Bench(*(a_node(name) for name in ("both", "app", "base", "none", "silent")))
    bench.learn(BASE, APP, TOOL, EMPTY)
    bench.report(held("both", APP, TOOL), held("app", APP), held("base", BASE), held("none"))
    return bench


def present(bench: Bench, pod) -> list[str] | None:
    """Return the nodes that get everything; the others get nothing."""
    found = scored(bench, bench.make("ImagePresence"), pod)
    if found is None:
        return None
    assert set(found.values()) <= {0, 100}
    return [name for name, score in found.items() if score]


@pytest.mark.parametrize(
    ("images", "want"),
    [
        pytest.param(["app:1"], ["both", "app"], id="one image"),
        pytest.param(["app:1", "tool:1"], ["both"], id="two images: who has both"),
        pytest.param(["tool:1", "tool:1"], ["both"], id="the same one twice"),
        pytest.param(["base:1"], ["base"], id="all its layers are no image"),
        pytest.param(["scratch:1"], [], id="an image without layers has to be there, too"),
        pytest.param(["docker.io/library/app:1"], ["both", "app"], id="another spelling"),
        pytest.param(["unknown:1"], None, id="nothing to say"),
        pytest.param(["app:1", "unknown:1"], None, id="nothing to say if one of them is not known"),
    ],
)
def test_it_is_all_or_nothing(images, want):
    """Undamped, uncapped, and nothing for parts."""
    assert want == present(a_bench(), a_pod(images=images))


def test_init_containers_and_image_volumes_have_to_be_there_as_well():
    pod = a_pod(image="app:1", init=["tool:1"])
    volume = msgspec.structs.replace(a_pod(image="app:1"), image_volumes=("tool:1",))
    sidecar = msgspec.structs.replace(a_pod(image="app:1"), init_containers=(Container("tool:1", sidecar=True),))

    assert [["both"]] * 3 == [present(a_bench(), one) for one in (pod, volume, sidecar)]


def test_an_image_on_its_way_is_as_good_as_there():
    """Also on a node that reported nothing, until its pod is gone."""
    bench = a_bench()
    bench.expect("none", a_pod("x", image="tool:1"))
    bench.expect("silent", a_pod("y", image="tool:1"))
    assert ["both", "none", "silent"] == present(bench, a_pod(image="tool:1"))

    bench.inventory.gone("x")
    assert ["both", "silent"] == present(bench, a_pod(image="tool:1"))


def test_an_image_is_what_it_is_on_the_platform_of_the_node():
    """Having the image for another platform helps nobody."""
    bench = Bench(
        a_node("amd"),
        msgspec.structs.replace(a_node("arm"), platform=ARM),
        a_node("amd with arm's"),
        msgspec.structs.replace(a_node("arm with amd's"), platform=ARM),
    )
    bench.learn(APP, APP_FOR_ARM)
    bench.report(
        held("amd", APP), held("arm", APP_FOR_ARM), held("amd with arm's", APP_FOR_ARM), held("arm with amd's", APP)
    )

    assert ["amd", "arm"] == present(bench, a_pod(image="app:1"))


def test_where_an_image_is_not_known_for_a_platform_it_is_nowhere_there():
    bench = Bench(a_node("amd"), msgspec.structs.replace(a_node("arm"), platform=ARM))
    bench.learn(APP)
    bench.report(held("amd", APP), held("arm", APP))

    assert ["amd"] == present(bench, a_pod(image="app:1"))


def test_pods_are_told_apart_by_their_images():
    """And by nothing else."""
    plugin = Bench().make("ImagePresence")

    assert plugin.sign(a_pod("a", cpu=1)) == plugin.sign(a_pod("b", cpu=2))
    assert plugin.sign(a_pod("a", image="app:1")) != plugin.sign(a_pod("b", image="app:2"))
