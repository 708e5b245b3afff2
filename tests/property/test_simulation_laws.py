"""
Laws of simulated clusters: bytes are conserved, nodes are never overfull, time goes forward, nobody starves.

Scenarios are drawn small and crowded: few layers that images share, few nodes, pods that compete for them.
"""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.model.digest import digest_of
from lamina.model.image import Image, Layer
from lamina.model.pod import Container, Pod, PodUid, total_requests
from lamina.model.resources import amounts
from lamina.scheduling.config.named import NAMED, named
from lamina.scheduling.plugins.in_tree import registry
from lamina.simulator.cluster import Cluster, Delays, NodeSpec
from lamina.simulator.run import Result, simulate, summary
from lamina.simulator.workloads import Arrival, Happening, Scenario
from lamina.trace import records
from lamina.trace.records import Record
from lamina.trace.writer import ENCODER, MemoryTrace

REGISTRY = registry(entry_points=False)
# A run takes ten times as long as other examples; many remain under `make soak`.
FEWER = settings(max_examples=settings().max_examples * 2 // 5)


# ------------------------------------------------------------------------------------------------------------ scenarios

LAYERS = st.lists(st.integers(0, 500), min_size=1, max_size=6).map(
    lambda sizes: [Layer(digest_of(f"layer {number}".encode()), size) for number, size in enumerate(sizes)]
)


@st.composite
def catalogues(draw: st.DrawFn) -> tuple[Image, ...]:
    """A few images that share layers; some repeat a layer."""
    layers = draw(LAYERS)
    stacks = draw(st.lists(st.lists(st.sampled_from(layers), min_size=1, max_size=5), min_size=1, max_size=5))
    return tuple(
        Image(digest_of(f"image {number}".encode()), tuple(stack), (f"registry.example/i{number}:1",))
        for number, stack in enumerate(stacks)
    )


@st.composite
def node_specs(draw: st.DrawFn, images: tuple[Image, ...]) -> tuple[NodeSpec, ...]:
    """One to four nodes with two to six cpu; the first can hold any pod that is drawn."""
    cpus = [6, *draw(st.lists(st.integers(2, 6), max_size=3))]
    return tuple(
        NodeSpec(
            name=f"n{number}",
            allocatable=amounts({"cpu": cpu, "memory": "8Gi", "pods": draw(st.integers(2, 4))}),
            bandwidth=float(draw(st.integers(1, 200))),
            holds=tuple(draw(st.lists(st.sampled_from(images), max_size=2))),
        )
        for number, cpu in enumerate(cpus)
    )


@st.composite
def arrivals(draw: st.DrawFn, images: tuple[Image, ...], *, ending: bool = False) -> tuple[Arrival, ...]:
    """Up to a dozen pods with one to six cpu and one or two images."""
    durations = st.integers(0, 60).map(float)
    pods = []
    for number in range(draw(st.integers(1, 12))):
        names = [image.names[0] for image in draw(st.lists(st.sampled_from(images), min_size=1, max_size=2))]
        asked = amounts({"cpu": draw(st.integers(1, 6)), "memory": "1Gi"})
        containers = tuple(Container(name, asked if index == 0 else ()) for index, name in enumerate(names))
        requests, ranked = total_requests(containers)
        pod = Pod(
            uid=PodUid(f"p{number}"),
            name=f"p{number}",
            containers=containers,
            requests=requests,
            scoring_requests=ranked,
            priority=draw(st.integers(0, 2)),
            scheduler_name="",
        )
        # Quarters meet often, and what happens together is where order shows.
        at = draw(st.integers(0, 80)) / 4
        pods.append(Arrival(at, pod, draw(durations if ending else st.none() | durations)))
    return tuple(sorted(pods, key=lambda arrival: arrival.at))


DELAYS = st.builds(
    Delays,
    report=st.sampled_from([0.0, 1.0]),
    status=st.sampled_from([0.0, 10.0]),
    start=st.sampled_from([0.0, 0.5]),
    bind=st.sampled_from([0.0, 0.25]),
)


@st.composite
def scenarios(draw: st.DrawFn, *, calm: bool = False) -> Scenario:
    """A scenario; in a *calm* one all pods end by themselves and nothing is done from outside."""
    images = draw(catalogues())
    nodes = draw(node_specs(images))
    pods = draw(arrivals(images, ending=calm))
    times = st.integers(0, 160).map(lambda quarters: quarters / 4)
    names = st.sampled_from([spec.name for spec in nodes])
    happenings = st.lists(
        st.builds(Happening, times, st.just("remove"), st.sampled_from([arrival.pod.name for arrival in pods]))
        | st.builds(Happening, times, st.sampled_from(["drop", "cordon"]), names),
        max_size=3,
    )
    return Scenario(
        name="drawn",
        images=images,
        nodes=nodes,
        arrivals=pods,
        happenings=() if calm else tuple(sorted(draw(happenings), key=lambda one: one.at)),
        delays=draw(DELAYS),
        until=None if calm else draw(st.none() | st.integers(1, 60).map(float)),
    )


PROFILES = st.sampled_from(sorted(NAMED))


@dataclass
class Run:
    """A run, its trace, and what was true after every record."""

    result: Result
    trace: list[Record]
    cluster: Cluster
    overfull: list[str]
    clock: list[float]


def run(scenario: Scenario, profile: str, seed: int = 0) -> Run:
    trace = MemoryTrace()
    seen: list[Cluster] = []
    overfull: list[str] = []
    clock: list[float] = []

    def observe(now: float, what: Record, cluster: Cluster) -> None:
        clock.append(now)
        seen[:] = [cluster]
        for node in cluster.nodes.values():
            for name, used in node.used.items():
                if not 0 <= used <= node.allocatable.get(name, 0):
                    overfull.append(f"{node.name} has {used} of {name} in use at {now}")

    result = simulate(scenario.under(profile), named(profile, REGISTRY), seed=seed, trace=trace, observer=observe)
    return Run(result, trace.records, seen[0], overfull, clock)


# ----------------------------------------------------------------------------------------------------------------- laws


@FEWER
@given(scenarios(), PROFILES, st.integers(0, 3))
def test_bytes_pulled_are_bytes_that_became_present(scenario, profile, seed):
    """Counted four ways: by node, by pod, by layer in the trace, and by what lies on the nodes in the end."""
    drawn = run(scenario, profile, seed)
    by_node = {node.node: node.bytes_pulled for node in drawn.result.nodes}
    by_layer = dict.fromkeys(by_node, 0)
    for record in drawn.trace:
        if isinstance(record, records.LayerPulled):
            by_layer[record.node] += record.bytes
    came = {
        name: kubelet.node.store.size - sum({one.digest: one.size for one in _held(kubelet.node.spec)}.values())
        for name, kubelet in drawn.cluster.kubelets.items()
    }

    assert came == by_node
    assert came == by_layer
    assert sum(came.values()) == sum(pod.bytes_pulled for pod in drawn.result.pods)


def _held(spec: NodeSpec) -> list[Layer]:
    return [layer for image in spec.holds for layer in image.layers]


@FEWER
@given(scenarios(), PROFILES)
def test_no_node_is_ever_overfull_and_no_kubelet_has_to_refuse(scenario, profile):
    drawn = run(scenario, profile)

    assert [] == drawn.overfull
    assert [] == [record for record in drawn.trace if isinstance(record, records.PodRejected)]


@FEWER
@given(scenarios(), PROFILES)
def test_time_never_goes_back_and_each_pod_goes_its_way_in_order(scenario, profile):
    drawn = run(scenario, profile)
    times = [record.at for record in drawn.trace]

    assert sorted(times) == times
    assert times[1:] == drawn.clock
    for pod in drawn.result.pods:
        way = [pod.arrived, pod.decided, pod.bound, pod.pull_began, pod.started]
        reached = [moment for moment in way if moment is not None]
        assert sorted(reached) == reached
        assert 0 <= pod.bytes_pulled <= pod.bytes_wanted


@given(catalogues(), st.data())
def test_one_pod_on_an_idle_cluster_starts_after_the_bytes_it_misses(images, data):
    """Seconds from binding to running = missing bytes / bandwidth + start delay, whatever else is on the node."""
    nodes = data.draw(node_specs(images))
    arrival = data.draw(arrivals(images))[0]
    delays = data.draw(DELAYS)
    drawn = run(Scenario(name="one", images=images, nodes=nodes, arrivals=(arrival,), delays=delays), "lamina-balanced")
    pod = drawn.result.pods[0]
    spec = next(spec for spec in nodes if spec.name == pod.node)
    wanted = {
        layer.digest: layer.size for image in images if image.names[0] in arrival.pod.images for layer in image.layers
    }
    there = {layer.digest for layer in _held(spec)}
    missing = sum(size for digest, size in wanted.items() if digest not in there)

    assert missing == pod.bytes_pulled
    assert pytest.approx(missing / spec.bandwidth + delays.start) == pod.pulling
    assert delays.bind == pod.waiting


@FEWER
@given(scenarios(calm=True), PROFILES)
def test_every_pod_starts_and_finishes_when_all_of_them_end(scenario, profile):
    """Each fits on the first node when that is empty, so waiting is all it ever has to do."""
    drawn = run(scenario, profile)

    assert ["finished"] * len(scenario.arrivals) == [pod.phase for pod in drawn.result.pods]
    assert [] == summary(drawn.result)["pods"]["pending"]


@FEWER
@given(scenarios(), PROFILES, st.integers(0, 3))
def test_the_same_scenario_and_seed_give_the_same_trace(scenario, profile, seed):
    first, second = run(scenario, profile, seed), run(scenario, profile, seed)

    assert [ENCODER.encode(one) for one in first.trace] == [ENCODER.encode(one) for one in second.trace]
    assert summary(first.result) == summary(second.result)
