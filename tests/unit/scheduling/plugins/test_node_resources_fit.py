"""NodeResourcesFit: what does not fit, and which of the nodes where it fits is best."""

import pytest

from lamina.model.decision import Refusal
from lamina.model.pod import Pod
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.plugins.upstream.node_resources_fit import (
    FitArgs,
    RequestedToCapacityRatio,
    ResourceWeight,
    ScoringStrategy,
    ShapePoint,
)
from lamina.scheduling.state.cluster_changes import ChangeKind, ClusterChange
from lamina.testing import a_node, a_pod
from tests.unit.scheduling.bench import Bench, refused, scored

GPU = "example.com/gpu"
HUGE = "hugepages-2Mi"
MOST = FitArgs(scoring_strategy=ScoringStrategy("MostAllocated"))


def no(*reasons: str, final: bool = False) -> Refusal:
    return Refusal("NodeResourcesFit", reasons, final=final)


def verdict(node, pod: Pod, on=(), args: FitArgs | None = None) -> Refusal | None:
    """Return what the plugin says of a single node with pods *on* it."""
    bench = Bench(node)
    bench.place(node.name, *on)
    return refused(bench, bench.make("NodeResourcesFit", args), pod).get(node.name)


def score(node, pod: Pod, on=(), args: FitArgs | None = None) -> int:
    """Return what the plugin gives a single node with pods *on* it."""
    bench = Bench(node)
    bench.place(node.name, *on)
    scores = scored(bench, bench.make("NodeResourcesFit", args), pod)
    assert scores is not None
    return scores[node.name]


# ----------------------------------------------------------------------------------------------------------- filtering


@pytest.mark.parametrize(
    ("pod", "on", "want"),
    [
        # The node has 4 cpu, 16Gi, 110 pods and two gpus.
        pytest.param(a_pod(cpu=4, memory="16Gi"), [], None, id="exactly the empty node"),
        pytest.param(a_pod(cpu="4001m"), [], no("Insufficient cpu", final=True), id="a thousandth of a cpu too much"),
        pytest.param(a_pod(memory="17179869185"), [], no("Insufficient memory", final=True), id="a byte too much"),
        pytest.param(a_pod(cpu=1), [a_pod(cpu=3)], None, id="exactly what is left"),
        pytest.param(a_pod(cpu=2), [a_pod(cpu=3)], no("Insufficient cpu"), id="more than is left"),
        pytest.param(a_pod(cpu=5), [a_pod(cpu=3)], no("Insufficient cpu", final=True), id="more than there is"),
        pytest.param(
            a_pod(cpu=2, memory="9Gi"),
            [a_pod(cpu=3, memory="8Gi")],
            no("Insufficient cpu", "Insufficient memory"),
            id="two short",
        ),
        pytest.param(
            a_pod(cpu=2, memory="17Gi"),
            [a_pod(cpu=3, memory="8Gi")],
            no("Insufficient cpu", "Insufficient memory", final=True),
            id="two short, one of them for good",
        ),
        pytest.param(
            a_pod(cpu=9, more={GPU: 3, "ephemeral-storage": 1, "a.example/x": 1}),
            [],
            no(
                "Insufficient cpu",
                "Insufficient ephemeral-storage",
                "Insufficient a.example/x",
                "Insufficient example.com/gpu",
                final=True,
            ),
            id="native ones first, extended ones by name",
        ),
        pytest.param(a_pod(more={GPU: 2}), [], None, id="both gpus"),
        pytest.param(a_pod(more={GPU: 2}), [a_pod(more={GPU: 1})], no(f"Insufficient {GPU}"), id="one gpu is taken"),
        pytest.param(a_pod(more={HUGE: "2Mi"}), [], no(f"Insufficient {HUGE}", final=True), id="what nobody offers"),
        pytest.param(a_pod(cpu=0, more={HUGE: 0}), [a_pod(cpu=4)], None, id="zero of what is not there"),
        pytest.param(a_pod(), [a_pod(cpu=4, memory="16Gi")], None, id="nothing, on a full node"),
        pytest.param(a_pod(), [a_pod(cpu=6)], None, id="nothing, on an overcommitted node"),
        pytest.param(a_pod(cpu="1m"), [a_pod(cpu=6)], no("Insufficient cpu"), id="little, on an overcommitted node"),
        pytest.param(a_pod(memory="1Gi"), [a_pod(cpu=6)], None, id="memory where only cpu is overcommitted"),
    ],
)
def test_a_node_is_refused_when_something_asked_for_is_not_free(pod, on, want):
    """In upstream's words and order; for good when even the empty node has too little."""
    assert want == verdict(a_node(more={GPU: 2}), pod, on)


@pytest.mark.parametrize(
    ("pods", "pod", "want"),
    [
        pytest.param(2, a_pod(), None, id="the last place"),
        pytest.param(3, a_pod(), no("Too many pods"), id="no place"),
        pytest.param(4, a_pod(), no("Too many pods"), id="more than there are places"),
        pytest.param(3, a_pod(cpu=2), no("Too many pods", "Insufficient cpu"), id="no place and no cpu"),
        pytest.param(3, a_pod(cpu=9), no("Too many pods", "Insufficient cpu", final=True), id="and never enough cpu"),
    ],
)
def test_a_pod_takes_a_place_of_the_node(pods, pod, want):
    """Three places and 4 cpu, one per pod; a place can always be freed, so its lack is never for good."""
    assert want == verdict(a_node(pods=3), pod, [a_pod(cpu=1)] * pods)


def test_a_node_that_takes_no_pods_could_still_be_freed():
    """Upstream never calls a lack of places unresolvable, not even with none at all."""
    assert no("Too many pods") == verdict(a_node(pods=0), a_pod())


@pytest.mark.parametrize(
    ("args", "want"),
    [
        pytest.param(FitArgs(), no("Insufficient example.com/gpu", final=True), id="none ignored"),
        pytest.param(FitArgs(ignored_resources=(GPU,)), None, id="by name"),
        pytest.param(FitArgs(ignored_resource_groups=("example.com",)), None, id="by group"),
        pytest.param(FitArgs(ignored_resources=("gpu",)), no("Insufficient example.com/gpu", final=True), id="by half"),
        pytest.param(
            FitArgs(ignored_resource_groups=("example",)),
            no("Insufficient example.com/gpu", final=True),
            id="by half a group",
        ),
    ],
)
def test_extended_resources_can_be_ignored(args, want):
    """Somebody else may look after them."""
    assert want == verdict(a_node(), a_pod(more={GPU: 1}), args=args)


@pytest.mark.parametrize(
    "resource",
    [
        pytest.param("cpu", id="cpu"),
        pytest.param("ephemeral-storage", id="ephemeral storage"),
        pytest.param(HUGE, id="huge pages"),
        pytest.param("attachable.kubernetes.io/disk", id="a resource of Kubernetes' own"),
    ],
)
def test_resources_that_are_not_extended_cannot_be_ignored(resource):
    """Upstream looks at the lists for extended resources only."""
    args = FitArgs(ignored_resources=(resource,), ignored_resource_groups=("attachable.kubernetes.io",))

    assert no(f"Insufficient {resource}", final=True) == verdict(a_node(cpu=1), a_pod(more={resource: 2}), args=args)


def test_every_node_is_judged_by_itself():
    """A cluster with one of each."""
    bench = Bench(a_node("fits"), a_node("small", cpu=1), a_node("busy"), a_node("places", pods=1))
    bench.place("busy", a_pod(cpu=3))
    bench.place("places", a_pod())

    assert {
        "small": no("Insufficient cpu", final=True),
        "busy": no("Insufficient cpu"),
        "places": no("Too many pods"),
    } == refused(bench, bench.make("NodeResourcesFit"), a_pod(cpu=2))


# ------------------------------------------------------------------------------------------------------------- ranking


@pytest.mark.parametrize(
    ("pod", "on", "want"),
    [
        # 4 cpu and 16Gi; a container that asks nothing counts as 100m and 200Mi.
        # cpu (4000-1000)·100/4000 = 75, memory (16-4)·100/16 = 75
        pytest.param(a_pod(cpu=1, memory="4Gi"), [], 75, id="a quarter of both"),
        # cpu 50, memory 75: 125/2 = 62
        pytest.param(a_pod(cpu=2, memory="4Gi"), [], 62, id="half of one, a quarter of the other"),
        # cpu 3900·100/4000 = 97, memory 16184·100/16384 = 98: 195/2 = 97
        pytest.param(a_pod(), [], 97, id="a pod that asks nothing"),
        # cpu 3800·100/4000 = 95, memory 15984·100/16384 = 97: 192/2 = 96
        pytest.param(a_pod(), [a_pod()], 96, id="beside another that asks nothing"),
        # cpu 0, memory 98: 98/2 = 49
        pytest.param(a_pod(cpu=4), [], 49, id="all the cpu"),
        # cpu would be 4100 of 4000: 0; memory (16384-16384)·100 = 0
        pytest.param(a_pod(memory="16184Mi"), [a_pod("full", cpu=4)], 0, id="counted beyond the node: nothing"),
        # requests fit the memory, but 200Mi more is counted for the other pod: over the node, 0; cpu 3800: 95; 95/2
        pytest.param(a_pod(memory="16Gi"), [a_pod()], 47, id="one beyond the node, the other not"),
    ],
)
def test_least_allocated_prefers_what_is_left(pod, on, want):
    """The mean over cpu and memory of the share that would be left, each cut to a whole percent."""
    assert want == score(a_node(), pod, on)


@pytest.mark.parametrize(
    ("pod", "on", "want"),
    [
        # cpu 1000·100/4000 = 25, memory 25
        pytest.param(a_pod(cpu=1, memory="4Gi"), [], 25, id="a quarter of both"),
        # cpu 100·100/4000 = 2, memory 200·100/16384 = 1: 3/2 = 1
        pytest.param(a_pod(), [], 1, id="a pod that asks nothing"),
        # cpu (2000+1000)·100/4000 = 75, memory (8+4)·100/16 = 75
        pytest.param(a_pod(cpu=1, memory="4Gi"), [a_pod(cpu=2, memory="8Gi")], 75, id="beside another"),
        # cpu 4000 of 4000 = 100, memory 16 of 16 = 100
        pytest.param(a_pod(cpu=4, memory="16Gi"), [], 100, id="the whole node"),
        # cpu 4100 of 4000 counts as 4000 = 100, memory (4096+200)·100/16384 = 26: 126/2 = 63
        pytest.param(
            a_pod(cpu=4, memory="4Gi"),
            [a_pod()],
            63,
            id="counted beyond the node: all of it",
        ),
    ],
)
def test_most_allocated_prefers_what_is_used(pod, on, want):
    """The mean over cpu and memory of the share that would be used; more than there is counts as all."""
    assert want == score(a_node(), pod, on, MOST)


def weighted(**weights: int) -> FitArgs:
    names = {"cpu": "cpu", "memory": "memory", "disk": "ephemeral-storage", "gpu": GPU}
    return FitArgs(
        scoring_strategy=ScoringStrategy(
            resources=tuple(ResourceWeight(names[name], weight) for name, weight in weights.items())
        )
    )


@pytest.mark.parametrize(
    ("args", "pod", "want"),
    [
        # 4 cpu, 16Gi, 100 of disk, 4 gpus. cpu 2 of 4: 50, memory 4 of 16: 75
        pytest.param(weighted(cpu=1, memory=1), a_pod(cpu=2, memory="4Gi"), 62, id="alike: 125/2"),
        pytest.param(weighted(cpu=3, memory=1), a_pod(cpu=2, memory="4Gi"), 56, id="cpu thrice: (150+75)/4"),
        pytest.param(weighted(memory=1), a_pod(cpu=2, memory="4Gi"), 75, id="memory alone"),
        # disk: nothing asked counts as nothing: 100
        pytest.param(weighted(cpu=1, disk=1), a_pod(cpu=2), 75, id="disk nobody asks for is free: (50+100)/2"),
        pytest.param(weighted(disk=1), a_pod(more={"ephemeral-storage": 25}), 75, id="disk alone"),
        # An extended resource the pod does not ask for is left out altogether.
        pytest.param(weighted(cpu=1, gpu=9), a_pod(cpu=2), 50, id="gpus nobody asks for do not count"),
        pytest.param(weighted(cpu=1, gpu=9), a_pod(cpu=2, more={GPU: 3}), 27, id="gpus asked for: (50+9*25)/10"),
        pytest.param(weighted(gpu=1), a_pod(cpu=2), 0, id="nothing to rank by"),
    ],
)
def test_resources_count_by_their_weights(args, pod, want):
    """A weighted mean, cut to a whole number."""
    node = a_node(more={"ephemeral-storage": 100, GPU: 4})

    assert want == score(node, pod, args=args)


def test_a_resource_a_node_does_not_have_is_left_out_of_its_mean():
    """Upstream skips a capacity of zero: only memory ranks the first node, neither the last."""
    bench = Bench(a_node("no-cpu", cpu=0), a_node("both"), a_node("neither", cpu=0, memory="0"))

    # both: cpu 3900 of 4000 = 97, memory 12 of 16 = 75: 172/2 = 86
    assert {"no-cpu": 75, "both": 86, "neither": 0} == scored(
        bench, bench.make("NodeResourcesFit"), a_pod(memory="4Gi")
    )


def test_extended_resources_in_use_count_as_requested():
    """Two of four gpus are taken and one is asked for: one is left."""
    assert 25 == score(a_node(more={GPU: 4}), a_pod(more={GPU: 1}), [a_pod(more={GPU: 2})], weighted(gpu=1))


def shaped(*points: tuple[int, int], **weights: int) -> FitArgs:
    """Rank by a line through points of use and score."""
    ratio = RequestedToCapacityRatio(tuple(ShapePoint(use, score) for use, score in points))
    resources = weighted(**weights).scoring_strategy.resources
    return FitArgs(scoring_strategy=ScoringStrategy("RequestedToCapacityRatio", resources, ratio))


@pytest.mark.parametrize(
    ("points", "want"),
    [
        # Points count tenfold: 10 is 100.
        pytest.param([(10, 1), (90, 9)], {0: 10, 10: 10, 15: 15, 19: 19, 20: 20, 89: 89, 90: 90, 100: 90}, id="rising"),
        pytest.param(
            [(0, 2), (40, 10), (100, 0)], {0: 20, 20: 60, 30: 80, 40: 100, 70: 50, 100: 0}, id="rising, then falling"
        ),
        pytest.param([(0, 2), (40, 2), (100, 2)], {0: 20, 20: 20, 40: 20, 70: 20, 100: 20}, id="level"),
        pytest.param([(50, 7)], {0: 70, 50: 70, 100: 70}, id="a single point"),
        # 100 - 100·1/3 = 66.7, 100·2/3: what is added is cut towards zero, so falling lines are cut upwards.
        pytest.param([(0, 10), (3, 0)], {0: 100, 1: 67, 2: 34, 3: 0}, id="falling in thirds"),
        pytest.param([(0, 0), (3, 10)], {0: 0, 1: 33, 2: 66, 3: 100}, id="rising in thirds"),
    ],
)
def test_a_shape_is_straight_between_its_points(points, want):
    """In whole numbers, as upstream counts; level before the first and after the last point."""
    plugin = Bench().make("NodeResourcesFit", shaped(*points))

    assert want == {used: plugin._shape[used] for used in want}


@pytest.mark.parametrize(
    ("args", "pod", "on", "want"),
    [
        # 4 cpu, 16Gi, 4 gpus.
        # cpu 3 of 4: 75 used, 25 points; memory 8 of 16: 50; 75/2 = 37.5
        pytest.param(shaped((0, 10), (100, 0)), a_pod(cpu=3, memory="8Gi"), [], 38, id="a half is rounded up"),
        # cpu 1 of 4: 75; memory 8 of 16: 50; 125/2 = 62.5
        pytest.param(shaped((0, 10), (100, 0)), a_pod(cpu=1, memory="8Gi"), [], 63, id="also above 50"),
        # The pod on the node asks nothing and counts as 100m and 200Mi: cpu 4100 of 4000, memory 8392 of 16384 = 51.
        pytest.param(
            shaped((0, 0), (100, 10)), a_pod(cpu=4, memory="8Gi"), [a_pod("q")], 76, id="beyond the node counts as full"
        ),
        # cpu 2 of 4: 50, thrice; memory 4 of 16: 25; 175/4 = 43.75
        pytest.param(shaped((0, 0), (100, 10), cpu=3, memory=1), a_pod(cpu=2, memory="4Gi"), [], 44, id="by weight"),
        # cpu 4 of 4 scores 0 and is left out; memory 4 of 16: 75 points
        pytest.param(shaped((0, 10), (100, 0)), a_pod(cpu=4, memory="4Gi"), [], 75, id="what scores 0 is left out"),
        pytest.param(shaped((0, 10), (100, 0)), a_pod(cpu=4, memory="16Gi"), [], 0, id="all score 0"),
        # gpus: 2 in use, 1 wanted, of 4: 75
        pytest.param(
            shaped((0, 0), (100, 10), gpu=1), a_pod(more={GPU: 1}), [a_pod("q", more={GPU: 2})], 75, id="gpus"
        ),
        pytest.param(shaped((0, 5), (100, 10), gpu=1), a_pod(cpu=1), [], 0, id="gpus nobody asks for do not count"),
    ],
)
def test_a_ranking_of_ones_own_goes_by_use(args, pod, on, want):
    """The weighted mean of what the shape makes of each resource's use, rounded to the nearest."""
    assert want == score(a_node(more={GPU: 4}), pod, on, args)


def test_a_resource_a_node_does_not_have_is_left_out_of_a_shape_too():
    """Only memory ranks a node without cpu: 4 of 16."""
    bench = Bench(a_node("no-cpu", cpu=0), a_node("neither", cpu=0, memory="0"))

    assert {"no-cpu": 25, "neither": 0} == scored(
        bench, bench.make("NodeResourcesFit", shaped((0, 0), (100, 10))), a_pod(memory="4Gi")
    )


@pytest.mark.parametrize(
    ("strategy", "ratio", "said"),
    [
        pytest.param("RequestedToCapacityRatio", None, "needs requestedToCapacityRatio", id="no shape"),
        pytest.param("MostAllocated", RequestedToCapacityRatio((ShapePoint(),)), "requires type", id="no use for one"),
    ],
)
def test_a_shape_and_its_strategy_come_together(strategy, ratio, said):
    with pytest.raises(ValueError, match=said):
        ScoringStrategy(strategy, (), ratio)


@pytest.mark.parametrize("exponent", [31, 44, 45, 46, 52, 53])
def test_percentages_are_exact_for_huge_nodes(exponent):
    """One byte less than 99 percent left is 98, with any capacity up to 2**53."""
    capacity = 2**exponent
    ask = capacity // 100 + 1
    left = (capacity - ask) * 100 // capacity

    assert 98 == left
    assert 98 == score(a_node(memory=str(capacity)), a_pod(memory=str(ask)), args=weighted(memory=1))


# --------------------------------------------------------------------------------------------------------- trying again


@pytest.mark.parametrize(
    ("pod", "row", "want"),
    [
        pytest.param(a_pod(cpu=1), 0, True, id="fits the node that changed"),
        pytest.param(a_pod(cpu=2), 0, False, id="does not fit it"),
        pytest.param(a_pod(cpu=2), -1, True, id="no node in particular: in doubt yes"),
        pytest.param(a_pod(cpu=2), 1, True, id="another node"),
    ],
)
def test_a_refused_pod_is_tried_again_when_the_changed_node_has_room(pod, row, want):
    """By what is free on it now."""
    bench = Bench(a_node("n0"), a_node("n1"))
    bench.place("n0", a_pod(cpu=3))

    assert want == bench.make("NodeResourcesFit").worth_retrying(pod, ClusterChange(ChangeKind.POD_REMOVED, row))


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(a_pod(), {"pods": 1}, id="nothing but a place"),
        pytest.param(a_pod(cpu=2, memory="1Gi"), {"pods": 1, "cpu": 2000, "memory": 2**30}, id="cpu and memory"),
        pytest.param(a_pod(more={"example.com/gpu": 3}), {"pods": 1, "example.com/gpu": 3}, id="something else"),
    ],
)
def test_a_refused_pod_needs_what_it_requests(pod, want):
    """What a node must have free before another look makes sense."""
    assert want == Bench(a_node("n0")).make("NodeResourcesFit").needs(pod)


def test_a_node_offers_what_is_free_on_it_of_what_it_has():
    """And nothing of what only other nodes have."""
    bench = Bench(a_node("n0", cpu=4, memory="1Gi", pods=10), a_node("n1", more={"example.com/gpu": 3}))
    bench.place("n0", a_pod(cpu=3))

    assert {"cpu": 1000, "memory": 2**30, "pods": 9} == bench.make("NodeResourcesFit").offers(0)


def test_what_frees_room_or_adds_some_is_worth_a_look():
    """Upstream's events: a pod left, a node came or grew."""
    assert frozenset({ChangeKind.NODE_ADDED, ChangeKind.NODE_ALLOCATABLE, ChangeKind.POD_REMOVED}) == (
        Bench().make("NodeResourcesFit").retry_on
    )


def test_pods_are_told_apart_by_what_they_request_and_what_they_count_for():
    """Two pods that request the same may count differently where nodes are ranked."""
    plugin = Bench().make("NodeResourcesFit")
    one, two = a_pod(images=["a:1"]), a_pod(images=["a:1", "b:1"])

    assert plugin.sign(a_pod("a", cpu=1)) == plugin.sign(a_pod("b", cpu="1000m"))
    assert plugin.sign(a_pod("a", cpu=1)) != plugin.sign(a_pod("b", cpu=2))
    assert one.requests == two.requests
    assert plugin.sign(one) != plugin.sign(two)


def test_a_cluster_where_everything_fits_gets_no_codes():
    """None stands for all nodes passing."""
    bench = Bench(a_node("n1"), a_node("n2"))
    plugin, state = bench.make("NodeResourcesFit"), CycleState()
    plugin.pre_filter(state, a_pod(cpu=1), bench.view)

    assert plugin.filter(state, a_pod(cpu=1), bench.view) is None
