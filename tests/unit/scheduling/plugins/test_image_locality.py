"""ImageLocality: upstream's formula, with what it rewards and what it is blind to."""

import msgspec
import pytest

from lamina.scheduling.contract.cycle_state import CycleState
from lamina.testing import a_digest, a_node, a_pod
from tests.unit.scheduling.bench import Bench, scored

MIB = 1024 * 1024


def a_cluster(size: int, have: int, nodes: int, name: str = "app:1") -> Bench:
    """Build so many nodes, of which the first few list an image."""
    return Bench(*(a_node(f"n{number}", images={name: size} if number < have else {}) for number in range(nodes)))


def score(bench: Bench, pod, node: str = "n0") -> int:
    scores = scored(bench, bench.make("ImageLocality"), pod)
    assert scores is not None
    return scores[node]


@pytest.mark.parametrize(
    ("mib", "have", "nodes", "want"),
    [
        # 100 · (clamp(size · have / nodes, 23, 1000) - 23) // 977, in MiB
        pytest.param(0.8, 2, 3, 0, id="0.8 MiB on 2 of 3: 0.5, under the floor"),
        pytest.param(100, 1, 10, 0, id="100 MiB on 1 of 10: 10, under the floor"),
        pytest.param(500, 1, 10, 2, id="500 MiB on 1 of 10: 100 * 27 // 977"),
        pytest.param(1000, 1, 10, 7, id="1000 MiB on 1 of 10: 100 * 77 // 977"),
        pytest.param(1000, 1, 43, 0, id="1000 MiB on 1 of 43: 100 * 0.26 // 977"),
        pytest.param(5000, 1, 100, 2, id="5000 MiB on 1 of 100: 100 * 27 // 977"),
        pytest.param(5000, 10, 100, 48, id="5000 MiB on 10 of 100: 100 * 477 // 977"),
        pytest.param(10000, 1, 1000, 0, id="10000 MiB on 1 of 1000: 10, under the floor"),
        pytest.param(300, 50, 100, 12, id="300 MiB on 50 of 100: 100 * 127 // 977"),
        pytest.param(300, 100, 100, 28, id="300 MiB on all of 100: 100 * 277 // 977"),
    ],
)
def test_an_image_counts_by_its_size_and_by_how_many_nodes_have_it(mib, have, nodes, want):
    """One container; the damping by the share of nodes switches the plugin off in a cold cluster."""
    bench = a_cluster(int(mib * MIB), have, nodes)

    assert want == score(bench, a_pod(image="app:1"))


@pytest.mark.parametrize(
    ("size", "want"),
    [
        # One container, one node that has the image: 100 · (size - 23 MiB) // (1000 MiB - 23 MiB).
        pytest.param(23 * MIB, 0, id="the floor"),
        pytest.param(23 * MIB + 977 * MIB // 100, 0, id="a byte under the first point"),
        pytest.param(23 * MIB + 977 * MIB // 100 + 1, 1, id="the first point"),
        pytest.param(1000 * MIB - 1, 99, id="a byte under the ceiling"),
        pytest.param(1000 * MIB, 100, id="the ceiling"),
        pytest.param(50_000 * MIB, 100, id="far above the ceiling"),
    ],
)
def test_the_sum_is_clamped_between_23_and_1000_mib(size, want):
    """977 MiB is 1,024,458,752 bytes, so a point is 10,244,587.52 bytes."""
    assert want == score(a_cluster(size, 1, 1), a_pod(image="app:1"))


@pytest.mark.parametrize("have", [1, 2, 3])
def test_an_image_of_771_kb_scores_nothing_wherever_it_is(have):
    """It is under the floor of 23 MiB: node and non-node are alike, which has been mistaken for a missing feature."""
    bench = a_cluster(771_000, have, 3, "busybox:1.36")

    assert {"n0": 0, "n1": 0, "n2": 0} == scored(bench, bench.make("ImageLocality"), a_pod(image="busybox:1.36"))


def test_a_node_without_the_image_gets_nothing():
    """500 MiB on one of two nodes: 100 · (250 - 23) // 977 = 23 where it is."""
    bench = a_cluster(500 * MIB, 1, 2)

    assert {"n0": 23, "n1": 0} == scored(bench, bench.make("ImageLocality"), a_pod(image="app:1"))


@pytest.mark.parametrize(
    ("images", "init", "volumes", "want"),
    [
        # The node lists app:1, tool:1 and data:1 with 500 MiB each; the ceiling is 1000 MiB per (init) container.
        pytest.param(["app:1"], [], [], 48, id="one: 100 * (500-23) // (1000-23)"),
        pytest.param(["app:1", "tool:1"], [], [], 49, id="two: 100 * (1000-23) // (2000-23)"),
        pytest.param(["app:1", "app:1"], [], [], 49, id="the same twice counts twice, above and below"),
        pytest.param(["app:1", "no:1"], [], [], 24, id="one of two: 100 * (500-23) // (2000-23)"),
        pytest.param(["app:1"], ["tool:1"], [], 49, id="init containers count like others"),
        pytest.param(["no:1"], ["tool:1"], [], 24, id="only the init container's"),
        pytest.param(["no:1"], [], ["data:1"], 48, id="an image volume is summed, the ceiling stays at one"),
        pytest.param(["app:1"], [], ["data:1"], 100, id="so a volume can fill it: 100 * (1000-23) // (1000-23)"),
        pytest.param(["app:1"], [], ["data:1", "tool:1"], 100, id="and more is clamped"),
        pytest.param(["app:1"], [], ["app:1"], 100, id="a volume of the container's own image counts again"),
        pytest.param(["no:1"], [], [], 0, id="nothing there"),
    ],
)
def test_each_use_of_an_image_counts_and_containers_raise_the_ceiling(images, init, volumes, want):
    """Kubernetes 1.36 sums image volumes without counting them in the ceiling."""
    bench = Bench(a_node("n0", images=dict.fromkeys(("app:1", "tool:1", "data:1"), 500 * MIB)))
    pod = msgspec.structs.replace(a_pod(images=images, init=init), image_volumes=tuple(volumes))

    assert want == score(bench, pod)


def test_each_contribution_is_cut_to_whole_bytes_before_summing():
    """
    Three images of 86,549,465 bytes, each on one of three nodes, so each is worth 28,849,821.67, cut to ...821.

    With three containers the second point is at 23 MiB + 2 · 2977 MiB / 100 = 86,549,463.04 bytes, hence 86,549,464.
    Cut and summed it is 86,549,463, a byte short; summed and cut it would have been 86,549,465.
    """
    bench = Bench(a_node("n0", images={f"{name}:1": 86_549_465 for name in "abc"}), a_node("n1"), a_node("n2"))

    assert 1 == score(bench, a_pod(images=["a:1", "b:1", "c:1"]))


DIGEST = a_digest("app")


@pytest.mark.parametrize(
    ("listed", "asked", "found"),
    [
        pytest.param("nginx:1.27", "nginx:1.27", True, id="the same text"),
        pytest.param("nginx:latest", "nginx", True, id="a missing tag is latest"),
        pytest.param("nginx", "nginx", False, id="what a node lists is taken as it is"),
        pytest.param("nginx:1.27", "nginx:1.28", False, id="another tag"),
        pytest.param("localhost:5000/app:latest", "localhost:5000/app", True, id="a port is no tag"),
        pytest.param(
            "docker.io/library/nginx:1.27", "nginx:1.27", False, id="a short name does not match the full one"
        ),
        pytest.param(
            "nginx:1.27", "docker.io/library/nginx:1.27", False, id="a full name does not match the short one"
        ),
        pytest.param("library/nginx:1.27", "nginx:1.27", False, id="nor the half-short one"),
        pytest.param(f"app@{DIGEST}", f"app@{DIGEST}", True, id="a digest matches"),
        pytest.param(f"app@{DIGEST}", f"app:1@{DIGEST}", False, id="a tag before the digest does not"),
        pytest.param("app:1", f"app:1@{DIGEST}", False, id="nor a digest behind the tag"),
    ],
)
def test_names_are_compared_as_text(listed, asked, found):
    """Only a missing tag is filled in, as upstream does; 1000 MiB on the only node are worth 100."""
    assert (100 if found else 0) == score(a_cluster(1000 * MIB, 1, 1, listed), a_pod(image=asked))


def test_a_tag_with_a_digest_never_matches_even_where_a_node_lists_both():
    """Nodes list repo:tag and repo@digest separately."""
    bench = Bench(a_node("n0", images={"app:1": 1000 * MIB, f"app@{DIGEST}": 1000 * MIB}))

    assert [0, 100, 100] == [score(bench, a_pod(image=one)) for one in (f"app:1@{DIGEST}", "app:1", f"app@{DIGEST}")]


def test_all_nodes_of_the_cluster_count_in_the_share():
    """A node that joins makes the others' images rarer: 100 · (500-23) // 977 = 48, then 100 · (250-23) // 977 = 23."""
    bench = a_cluster(500 * MIB, 1, 1)
    before = score(bench, a_pod(image="app:1"))
    bench.put(a_node("n1"))

    assert [48, 23] == [before, score(bench, a_pod(image="app:1"))]


def test_a_node_that_left_counts_no_more():
    """Neither as one that has the image nor as one of the cluster."""
    bench = a_cluster(500 * MIB, 2, 3)
    bench.remove("n1")

    assert {"n0": 23, "n2": 0} == scored(bench, bench.make("ImageLocality"), a_pod(image="app:1"))


def test_pods_are_told_apart_by_their_listed_images_and_the_number_of_containers():
    """A volume of an image is not a container of it."""
    plugin = a_cluster(MIB, 1, 1).make("ImageLocality")
    container = a_pod("a", images=["app:1", "data:1"])
    volume = msgspec.structs.replace(a_pod("b", images=["app:1"]), image_volumes=("data:1",))

    assert plugin.sign(a_pod("a", cpu=1)) == plugin.sign(a_pod("b", cpu=2))
    assert container.images == volume.images
    assert plugin.sign(container) != plugin.sign(volume)


def test_pods_whose_images_no_node_lists_are_alike():
    """They score 0 everywhere, so they share one evaluation."""
    plugin = a_cluster(MIB, 1, 1).make("ImageLocality")
    strange = [a_pod(image="tool:1"), a_pod(image="tool:2"), a_pod(images=["tool:1", "tool:2"])]

    assert 1 == len({plugin.sign(pod) for pod in strange})
    assert plugin.sign(a_pod(image="app:1")) != plugin.sign(strange[0])


@pytest.mark.parametrize(
    ("images", "outdated"),
    [
        pytest.param({"app:1": MIB, "tool:1": MIB}, True, id="an image is listed for the first time"),
        pytest.param({}, True, id="no node lists an image any longer"),
        pytest.param({"app:1": MIB}, False, id="nothing changed"),
        pytest.param({"app:1": 2 * MIB}, False, id="an image has another size"),
    ],
)
def test_signatures_are_outdated_when_a_name_is_listed_first_or_no_longer(images, outdated):
    bench = a_cluster(MIB, 1, 1)
    plugin = bench.make("ImageLocality")
    before = plugin.edition
    bench.put(a_node("n0", images=images))

    assert outdated == (plugin.edition > before)


def test_signatures_stay_when_another_node_lists_a_known_name():
    bench = a_cluster(MIB, 1, 2)
    plugin = bench.make("ImageLocality")
    before = plugin.edition
    bench.put(a_node("n1", images={"app:1": MIB}))

    assert before == plugin.edition


def test_it_tells_what_the_score_was_made_of():
    """How many of the pod's images a node lists, and their bytes, each use counted."""
    bench = Bench(a_node("n0", images={"app:1": 500, "tool:1": 7}), a_node("n1", images={"tool:1": 7}), a_node("n2"))

    facts = bench.make("ImageLocality").facts(CycleState(), a_pod(images=["app:1", "tool:1", "tool:1"]), bench.view)

    assert [{"images": 3, "bytes": 514}, {"images": 2, "bytes": 14}, {"images": 0, "bytes": 0}] == facts
