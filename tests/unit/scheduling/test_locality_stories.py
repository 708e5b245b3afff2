"""Stories of whole clusters under the profiles that come along: where pods go, and what is said about it."""

import statistics
from collections import Counter

import msgspec
import pytest

from lamina.model import events
from lamina.model.image import Image
from lamina.model.locality_explanation import LayerState, LocalityExplanation, Savings
from lamina.model.node import Node
from lamina.model.pod import DO_NOT_SCHEDULE, Owner, Pod, SpreadConstraint
from lamina.model.selectors import LabelSelector
from lamina.model.taints import NO_SCHEDULE, Taint
from lamina.scheduling.loop.loop_state import LoopSettings
from lamina.scheduling.plugins.locality.layer_locality import Barrier, LayerLocalityArgs
from lamina.scheduling.runtime.explanation import Detail
from lamina.testing import LoopHarness, a_digest, a_loop, a_node, a_pod, an_image, held
from tests.unit.scheduling.named_profile_harness import a_harness

MB = 1_000_000
GB = 1000 * MB
LAMINA = ["lamina-balanced", "lamina-even", "lamina-roomy", "lamina-local"]


def a_cluster(
    profile: str, *nodes: Node, images: tuple[Image, ...], seed: int = 0, detail: Detail = "full"
) -> LoopHarness:
    """Nodes that reported to hold nothing."""
    desk = a_harness(profile, seed=seed, detail=detail)
    desk.tell(events.ImagesLearned(images))
    desk.tell(*(events.NodeSeen(node) for node in nodes))
    desk.tell(*(events.LayersReported(held(node.name)) for node in nodes))
    return desk


def runs(desk: LoopHarness, pod: Pod, *images: Image) -> None:
    """Let a pod start where it was bound, and its node report what it holds."""
    node = desk.bound[pod.name]
    desk.tell(events.PodSeen(msgspec.structs.replace(pod, node_name=node, started=True)))
    desk.tell(events.LayersReported(held(node, *images, sequence=2)))


def points(desk: LoopHarness, pod: str, plugin: str = "LayerLocality") -> dict[str, int]:
    """Return what a plugin gave each node that was feasible."""
    return {
        verdict.node: one.score
        for verdict in desk.decisions[pod].verdicts
        for one in verdict.scores
        if one.plugin == plugin
    }


# ------------------------------------------------------------------------------------------------ the founding scenario

FIRST = an_image("first:1", {"L1": 200 * MB, "L2": 200 * MB, "L3": 200 * MB})
SECOND = an_image("second:1", {"L1": 200 * MB, "L2": 200 * MB, "L4": 200 * MB})


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("profile", [*LAMINA, "ryax"])
def test_a_pod_returns_to_the_node_that_shares_most_of_its_layers(profile, seed):
    """
    Two images share two of three layers, a pod fills a node, and there are three equal nodes.

    P1 goes to one node and P2 to another; P2 leaves. A second P1 cannot go where the first is; where P2 was lie two
    thirds of its bytes, on the third node none.
    """
    nodes = [a_node(name, cpu=2, memory="8Gi") for name in ("N1", "N2", "N3")]
    desk = a_cluster(profile, *nodes, images=(FIRST, SECOND), seed=seed)
    first, second = (a_pod(f"P{number}", cpu=2, image=f"{image}:1") for number, image in [(1, "first"), (2, "second")])
    desk.see(first)
    runs(desk, first, FIRST)
    desk.see(second)
    runs(desk, second, SECOND)
    desk.tell(events.PodGone(second.uid))

    desk.see(a_pod("P3", cpu=2, image="first:1"))

    assert desk.bound["P1"] != desk.bound["P2"]
    assert desk.bound["P2"] == desk.bound["P3"]


# ------------------------------------------------------------------------------------------------------------ a new tag

OLD = an_image("shop:1", {"os": 300 * MB, "runtime": 500 * MB, "shop 1": 200 * MB})
NEW = an_image("shop:2", {"os": 300 * MB, "runtime": 500 * MB, "shop 2": 200 * MB})


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("profile", LAMINA)
def test_a_tag_that_was_never_pulled_goes_to_the_node_that_has_the_one_before(profile, seed):
    """What it consists of is known from its manifest, and four fifths of it are on one node of five."""
    desk = a_cluster(profile, *(a_node(f"n{number}") for number in range(5)), images=(OLD, NEW), seed=seed)
    desk.tell(events.LayersReported(held("n3", OLD, sequence=2)))

    desk.see(a_pod("p", cpu="100m", image="shop:2"))

    assert "n3" == desk.bound["p"]


@pytest.mark.parametrize(
    ("profile", "want"),
    [
        # 200 MB: 1.6 s, 4.6 s unpacked, 4.88 and 0.4 s: 500/10.28 = 48.6; 1 GB: 24.24 and 2 s: 500/31.24 = 16.0
        pytest.param("lamina-balanced", {"n0": 49, "n1": 16}, id="lamina-balanced"),
        pytest.param("lamina-images", {"n0": 16, "n1": 16}, id="knowing whole images only"),
        pytest.param("ryax", {"n0": 0, "n1": 0}, id="ryax: nothing is known of it before a node holds it"),
    ],
)
def test_what_a_new_tag_is_worth_differs(profile, want):
    desk = a_cluster(profile, a_node("n0"), a_node("n1"), images=(OLD, NEW))
    desk.tell(events.LayersReported(held("n0", OLD, sequence=2)))

    desk.see(a_pod("p", cpu="100m", image="shop:2"))

    assert want == points(desk, "p")


# -------------------------------------------------------------------------------------------------------------- a burst

BIG = an_image("big:1", {"base": GB, "top": GB})
PODS = 20


def burst(profile: str, pods: list[Pod], *, cpu: int = 16, slots: int = 8, seed: int = 0) -> Counter[str]:
    """Throw pods of one cold image at ten idle nodes, at one instant; count them by node."""
    nodes = [
        a_node(f"n{number}", cpu=cpu, memory="64Gi", pods=slots, labels={"kubernetes.io/hostname": f"n{number}"})
        for number in range(10)
    ]
    desk = a_cluster(profile, *nodes, images=(BIG,), seed=seed, detail="none")
    desk.see(*pods)
    assert {pod.name for pod in pods} == set(desk.bound)
    return Counter(desk.bound.values())


def alike(count: int = PODS, cpu: str | int = "100m", **more) -> list[Pod]:
    return [a_pod(f"p{number}", cpu=cpu, memory="128Mi", image="big:1", **more) for number in range(count)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("profile", ["lamina-balanced", "lamina-roomy", "lamina-local", "lamina-images"])
def test_a_burst_of_small_pods_waits_for_few_pulls_of_a_cold_image(profile, seed):
    """Eight fit on a node: the image is pulled three times, and not by everybody."""
    assert [8, 8, 4] == sorted(burst(profile, alike(), seed=seed).values(), reverse=True)


@pytest.mark.parametrize("profile", ["kube-default", "ryax"])
def test_without_knowing_what_is_on_its_way_a_burst_is_pulled_by_nearly_everybody(profile):
    """Nobody reports an image before it is there: load decides, and chance among equals. As a rule, nine of ten nodes."""
    used = [len(burst(profile, alike(), seed=seed)) for seed in range(9)]

    assert statistics.median(used) >= 8


@pytest.mark.parametrize("profile", [*LAMINA, "kube-default"])
def test_a_spread_constraint_wins_over_layers(profile):
    """At most one pod more than on the emptiest node: two each, and ten pulls."""
    spread = SpreadConstraint(1, "kubernetes.io/hostname", DO_NOT_SCHEDULE, LabelSelector((("app", "web"),)))
    pods = [msgspec.structs.replace(pod, labels={"app": "web"}, spread=(spread,)) for pod in alike()]

    assert {f"n{number}": 2 for number in range(10)} == burst(profile, pods)


@pytest.mark.parametrize(
    ("profile", "want"),
    [
        pytest.param("lamina-balanced", 10, id="balanced: a pod ahead of the others is too much"),
        pytest.param("lamina-even", 10, id="even"),
        pytest.param("lamina-roomy", 10, id="roomy"),
        pytest.param("lamina-local", 3, id="local: may wait for what is on its way"),
        pytest.param("kube-default", 10, id="kube-default"),
    ],
)
def test_a_burst_of_large_pods_is_kept_apart_unless_told_otherwise(profile, want):
    """Each takes an eighth of a node's cpu."""
    assert want == len(burst(profile, alike(cpu=1), cpu=8, slots=110))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("profile", LAMINA)
def test_no_node_gets_more_than_a_fifth_of_a_controllers_pods(profile, seed):
    """Fifty replicas at one instant, and every node has room for all of them."""
    owner = Owner("ReplicaSet", "web-5d9", "u1")
    counts = burst(profile, alike(50, owner=owner), slots=110, seed=seed)

    assert max(counts.values()) <= 10
    assert 50 == counts.total()


# ---------------------------------------------------------------------------------------------------- who is compared

CONTROL_PLANE = Taint("node-role.kubernetes.io/control-plane", "", NO_SCHEDULE)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("profile", LAMINA)
def test_idle_nodes_a_pod_cannot_use_do_not_make_the_workers_look_crowded(profile, seed):
    """Four workers half full, one of which holds the image, and four idle nodes with a taint."""
    workers = [a_node(f"worker-{number}", cpu=16) for number in range(4)]
    tainted = [a_node(f"control-{number}", cpu=16, taints=[CONTROL_PLANE]) for number in range(4)]
    desk = a_cluster(profile, *tainted, *workers, images=(BIG,), seed=seed)
    desk.tell(events.LayersReported(held("worker-2", BIG, sequence=2)))
    desk.see(*(a_pod(f"old-{number}", cpu=1, memory="1Mi", on=f"worker-{number % 4}") for number in range(32)))

    desk.see(a_pod("p", cpu="100m", memory="1Mi", image="big:1"))

    found = points(desk, "p")
    assert {f"worker-{number}" for number in range(4)} == set(found)
    assert found["worker-2"] > 85
    assert max(found[f"worker-{number}"] for number in (0, 1, 3)) < 20
    assert "worker-2" == desk.bound["p"]


@pytest.mark.parametrize("cpu", ["100m", 1, 2])
@pytest.mark.parametrize("cores", [2, 8, 96])
def test_nor_do_idle_nodes_of_another_size(cores, cpu):
    """Four workers of 8 cpu, half full, beside two that the pod cannot use: they take nothing from the one that has its image."""
    workers = [a_node(f"worker-{number}", cpu=8) for number in range(4)]
    special = [a_node(f"special-{number}", cpu=cores, taints=[CONTROL_PLANE]) for number in range(2)]
    found = {}
    for others in ([], special):
        desk = a_cluster("lamina-balanced", *others, *workers, images=(BIG,))
        desk.tell(events.LayersReported(held("worker-2", BIG, sequence=2)))
        desk.see(*(a_pod(f"old-{number}", cpu=1, memory="1Mi", on=f"worker-{number % 4}") for number in range(16)))
        desk.see(a_pod("p", cpu=cpu, memory="1Mi", image="big:1"))
        found[bool(others)] = points(desk, "p")

    # Smaller ones make the pod look larger than it is on a worker, and the guard more lenient; nothing makes it stricter.
    assert found[True]["worker-2"] >= found[False]["worker-2"] > 60
    assert 20 > max(found[True][f"worker-{number}"] for number in (0, 1, 3))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("profile", "want"),
    [
        # It takes a quarter of a node and is three quarters of itself ahead: 5·0.25/0.55 = 2.27 s, 68.7
        pytest.param("lamina-balanced", 69, id="lamina-balanced"),
        # It pays from the mean on: 10·0.75/0.45 = 16.67 s, 23.1 and rounded up, as nothing has to be downloaded
        pytest.param("lamina-even", 24, id="lamina-even"),
        pytest.param("lamina-roomy", 100, id="lamina-roomy"),
        pytest.param("lamina-local", 100, id="lamina-local"),
    ],
)
def test_a_pod_five_times_as_large_as_usual_goes_to_its_image_if_that_node_is_no_fuller(profile, want, seed):
    """Four nodes with five pods of 1 of 20 cpu each; then one of 5."""
    desk = a_cluster(profile, *(a_node(f"n{number}", cpu=20) for number in range(4)), images=(BIG,), seed=seed)
    desk.tell(events.LayersReported(held("n1", BIG, sequence=2)))
    desk.see(*(a_pod(f"small-{number}", cpu=1, memory="1Mi", on=f"n{number % 4}") for number in range(20)))

    desk.see(a_pod("large", cpu=5, memory="1Mi", image="big:1"))

    found = points(desk, "large")
    assert want == found["n1"] > 2 * max(found[name] for name in ("n0", "n2", "n3"))
    assert "n1" == desk.bound["large"]


def test_a_large_pod_does_not_go_to_its_image_where_that_node_is_much_fuller():
    """n0 has 9 of 20 cpu in use, the others none: 0.9 against a mean of 0.3 is 1.33 times the pod's 0.45, and out."""
    desk = a_cluster("lamina-balanced", *(a_node(f"n{number}", cpu=20) for number in range(3)), images=(BIG,))
    desk.tell(events.LayersReported(held("n0", BIG, sequence=2)))
    desk.see(*(a_pod(f"small-{number}", cpu=1, memory="1Mi", on="n0") for number in range(9)))

    desk.see(a_pod("large", cpu=9, memory="1Mi", image="big:1"))

    assert 0 == points(desk, "large")["n0"]
    assert desk.bound["large"] in {"n1", "n2"}


@pytest.mark.parametrize("profile", LAMINA)
def test_replicas_go_by_their_image_where_all_nodes_but_those_that_have_one_are_full(profile):
    """Two of four nodes have room, and a replica each, which is their share. One of them holds the image."""
    owner = Owner("ReplicaSet", "web-5d9", "u1")
    nodes = [a_node(f"n{number}", cpu=8, pods=1 if number < 2 else 110) for number in range(4)]
    desk = a_cluster(profile, *nodes, images=(BIG,))
    desk.tell(events.LayersReported(held("n3", BIG, sequence=2)))
    desk.see(*(a_pod(f"other-{number}", cpu="10m", memory="1Mi", on=f"n{number}") for number in range(2)))
    desk.see(*(a_pod(f"web-{number}", cpu="10m", memory="1Mi", on=f"n{number}", owner=owner) for number in (2, 3)))

    desk.see(a_pod("web", cpu="10m", memory="1Mi", image="big:1", owner=owner))

    found = points(desk, "web")
    assert {"n2", "n3"} == set(found)
    assert found["n3"] > 90
    assert 20 > found["n2"] > 0
    assert "n3" == desk.bound["web"]


def test_a_replica_goes_to_a_node_without_one_as_soon_as_that_has_room():
    """The same with room on a third node, which holds nothing: those that have their share are out."""
    owner = Owner("ReplicaSet", "web-5d9", "u1")
    desk = a_cluster("lamina-balanced", *(a_node(f"n{number}", cpu=8) for number in range(3)), images=(BIG,))
    desk.tell(events.LayersReported(held("n0", BIG, sequence=2)))
    desk.see(*(a_pod(f"web-{number}", cpu="10m", memory="1Mi", on=f"n{number}", owner=owner) for number in (0, 1)))

    desk.see(a_pod("web", cpu="10m", memory="1Mi", image="big:1", owner=owner))

    found = points(desk, "web")
    assert (0, 0) == (found["n0"], found["n1"])
    assert found["n2"] > 0
    assert "n2" == desk.bound["web"]


def test_where_layers_have_no_say_the_other_plugins_decide():
    """A barrier that begins at the mean and ends soon: every node is out of the question, and the emptiest gets it."""
    plugins = ["PrioritySort", "NodeResourcesFit", "LayerLocality", "DefaultBinder"]
    args = {"LayerLocality": LayerLocalityArgs(barrier=Barrier(begin=0.0, width=0.1))}
    desk = LoopHarness(a_loop(plugins, weights={"LayerLocality": 5}, args=args, settings=LoopSettings(detail="full")))
    nodes = [a_node(f"n{number}", cpu=20) for number in range(3)]
    desk.tell(events.ImagesLearned((BIG,)), *(events.NodeSeen(node) for node in nodes))
    desk.tell(*(events.LayersReported(held(node.name)) for node in nodes[1:]), events.LayersReported(held("n0", BIG)))
    desk.see(*(a_pod(f"small-{number}", cpu=1, memory="1Mi", on=f"n{number % 2}") for number in range(10)))

    desk.see(a_pod("large", cpu=12, memory="1Mi", image="big:1"))

    assert {"n0": 0, "n1": 0, "n2": 0} == points(desk, "large")
    assert "n2" == desk.bound["large"]


# ---------------------------------------------------------------------------------------------------------- explanations


def test_an_explanation_names_what_is_there_what_is_coming_and_what_is_missing():
    """
    The runner-up and the chosen node both hold the base; the chosen one pulls its sister since 2 s.

    The sister's 500 MB take 11.5 s unpacked, 0.15·4 s and 0.04 s: 12.14 s, of which 10.14 are left. Then 200 MB more of
    the new tag take 4.6 + 0.15·1.6 + 0.04 = 4.88 s: 15.02 s. The runner-up needs 700 MB: 16.1 + 0.15·5.6 + 0.04 = 16.98 s;
    the third node 1 GB: 23 + 0.15·8 + 0.04 = 24.24 s. The mean of the three is 18.75 s and 633.3 MB.
    """
    base = an_image("base:1", {"os": 300 * MB})
    desk = a_cluster("lamina-balanced", *(a_node(name) for name in ("n1", "n2", "n3")), images=(base, OLD, NEW))
    desk.tell(*(events.LayersReported(held(name, base, sequence=2)) for name in ("n1", "n2")))
    sister = an_image("sister:1", {"os": 300 * MB, "runtime": 500 * MB})
    desk.tell(events.ImagesLearned((sister,)), events.PodSeen(a_pod("sister", cpu="10m", image="sister:1", on="n1")))
    desk.at(2.0)

    desk.see(a_pod("p", cpu="10m", image="shop:2"))

    decision = desk.decisions["p"]
    assert ("n1", "n2") == (decision.chosen.node, decision.runner_up.node)
    assert (
        LocalityExplanation(
            layers=(
                LayerState(a_digest("os"), 300 * MB, "present"),
                LayerState(a_digest("runtime"), 500 * MB, "arriving", pytest.approx(10.14)),
                LayerState(a_digest("shop 2"), 200 * MB, "missing"),
            ),
            seconds=pytest.approx(15.02),
            download=200 * MB,
            against_mean=Savings(pytest.approx(3.727, abs=0.001), 433_333_333),
            against_runner_up=Savings(pytest.approx(1.96), 500 * MB),
        )
        == decision.locality
    )
    facts = {
        verdict.node: one.facts
        for verdict in decision.verdicts
        for one in verdict.scores
        if one.plugin == "LayerLocality"
    }
    assert {
        "present": 300 * MB,
        "arriving": 500 * MB,
        "missing": 200 * MB,
        "total": GB,
        "ready_ms": 15_020,
        "crowding_ms": 0,
    } == facts["n1"]


@pytest.mark.parametrize(
    ("profile", "image"),
    [
        pytest.param("kube-default", "shop:2", id="nobody looks at layers"),
        pytest.param("lamina-balanced", "unknown:1", id="nobody knows the image"),
    ],
)
def test_there_is_no_story_where_layers_had_no_say(profile, image):
    desk = a_cluster(profile, a_node("n1"), a_node("n2"), images=(OLD, NEW))

    desk.see(a_pod("p", image=image))

    assert desk.decisions["p"].locality is None


@pytest.mark.parametrize("profile", [*LAMINA, "lamina-images", "ryax", "hotedge", "lrscheduler"])
def test_a_large_cluster_most_of_which_is_silent_is_no_trouble(profile):
    """Only the last of 600 nodes has reported: it holds the image."""
    desk = a_harness(profile, detail="full")
    desk.tell(events.ImagesLearned((BIG,)))
    desk.tell(*(events.NodeSeen(a_node(f"n{number}")) for number in range(600)))
    desk.see(a_pod("early", cpu="100m", image="big:1"))
    desk.tell(events.LayersReported(held("n599", BIG)))
    desk.see(a_pod("late", cpu="100m", image="big:1"))

    assert {} == desk.pending
    assert {"early", "late"} == set(desk.bound)
