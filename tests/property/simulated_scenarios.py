"""
Small crowded scenarios to run laws on: few layers that images share, few nodes, pods that compete for them.

*Calm* ones end by themselves. *Wild* ones have runtimes that take their time, disks that fill up, controllers, pods and
nodes that fail.
"""

from dataclasses import dataclass

from hypothesis import strategies as st

from lamina.model.digest import digest_of
from lamina.model.image import Image, Layer
from lamina.model.pod import Container, Pod, PodUid, total_requests
from lamina.model.resources import amounts
from lamina.scheduling.config.named_profiles import NAMED, named
from lamina.scheduling.plugins.in_tree import registry
from lamina.simulator.cluster import Delays, VirtualCluster, VirtualNodeSpec
from lamina.simulator.cluster.pod_lifecycle import RUNS_FOREVER, LifecycleStage, PodLifecycle
from lamina.simulator.controllers import ControllerSpec
from lamina.simulator.pulls.runtime_spec import DiskSpec, RuntimeSpec
from lamina.simulator.run import FREE, Latency, SimulationResult, simulate
from lamina.simulator.run.latency import modelled
from lamina.simulator.workloads import PodArrival, Scenario, ScenarioEvent
from lamina.trace import trace_records
from lamina.trace.trace_records import TraceRecord
from lamina.trace.trace_writer import MemoryTrace

REGISTRY = registry(entry_points=False)


# ------------------------------------------------------------------------------------------------------------ scenarios

LAYERS = st.lists(st.integers(0, 500), min_size=1, max_size=6).map(
    lambda sizes: [Layer(digest_of(f"layer {number}".encode()), size) for number, size in enumerate(sizes)]
)


@st.composite
def catalogs(draw: st.DrawFn) -> tuple[Image, ...]:
    """A few images that share layers; some repeat a layer."""
    layers = draw(LAYERS)
    stacks = draw(st.lists(st.lists(st.sampled_from(layers), min_size=1, max_size=5), min_size=1, max_size=5))
    return tuple(
        Image(digest_of(f"image {number}".encode()), tuple(stack), (f"registry.example/i{number}:1",))
        for number, stack in enumerate(stacks)
    )


RUNTIMES = st.builds(
    RuntimeSpec,
    parallel_pulls=st.sampled_from([0, 1, 2]),
    pull_qps=st.sampled_from([0.0, 0.5]),
    pull_burst=st.sampled_from([1, 10]),
    slots=st.sampled_from([0, 1, 3]),
    slots_per=st.sampled_from(["image", "node"]),
    resolve=st.sampled_from([0.0, 0.25]),
    unpack_rate=st.sampled_from([0.0, 50.0, 500.0]),
    unpack_threads=st.sampled_from([1, 2]),
    disk_rate=st.sampled_from([0.0, 300.0]),
    layer_overhead=st.sampled_from([0.0, 0.125]),
    reuse=st.sampled_from(["set", "prefix"]),
    lazy=st.sampled_from([None, None, 0.25]),
    peers=st.booleans(),
)

# A whole catalog of drawn images takes up to 10 kB unpacked, what nodes hold at first up to 16 kB.
DISKS = st.none() | st.builds(
    DiskSpec,
    capacity=st.integers(17_000, 30_000),
    every=st.sampled_from([5.0, 300.0]),
    min_age=st.sampled_from([0.0, 20.0]),
    evict_every=st.sampled_from([1.0, 10.0]),
)


@st.composite
def node_specs(draw: st.DrawFn, images: tuple[Image, ...], *, wild: bool = False) -> tuple[VirtualNodeSpec, ...]:
    """One to four nodes with two to six cpu; the first can hold any pod that is drawn."""
    cpus = [6, *draw(st.lists(st.integers(2, 6), max_size=3))]
    return tuple(
        VirtualNodeSpec(
            name=f"n{number}",
            allocatable=amounts({"cpu": cpu, "memory": "8Gi", "pods": draw(st.integers(2, 4))}),
            bandwidth=float(draw(st.integers(1, 200))),
            holds=tuple(draw(st.lists(st.sampled_from(images), max_size=2))),
            runtime=draw(RUNTIMES) if wild else RuntimeSpec(),
            disk=draw(DISKS) if wild else None,
            uplink=draw(st.sampled_from(["", "edge"])) if wild else "",
        )
        for number, cpu in enumerate(cpus)
    )


@st.composite
def lives(draw: st.DrawFn) -> PodLifecycle:
    """A life that comes to an end by itself or not, well or not."""
    stage = st.builds(
        LifecycleStage, st.sampled_from([1.0, 7.5]), st.sampled_from([(), amounts({"cpu": 2, "memory": "12Gi"})])
    )
    return PodLifecycle(
        seconds=draw(st.none() | st.integers(0, 60).map(float)),
        stages=draw(st.just(()) | st.lists(stage, min_size=1, max_size=3).map(tuple)),
        failures=draw(st.sampled_from([0, 0, 1, -1])),
        restart=draw(st.sampled_from(["Never", "Never", "OnFailure"])),
        deadline=draw(st.none() | st.integers(1, 60).map(float)),
        grace=draw(st.sampled_from([0.0, 5.0])),
        stopping=draw(st.sampled_from([0.0, 2.0, 20.0])),
    )


@st.composite
def arrivals(
    draw: st.DrawFn, images: tuple[Image, ...], *, ending: bool = False, wild: bool = False
) -> tuple[PodArrival, ...]:
    """Up to a dozen pods with one to six cpu and one or two images."""
    ends = st.integers(0, 60).map(lambda seconds: PodLifecycle(seconds=float(seconds)))
    life = lives() if wild else ends if ending else st.just(RUNS_FOREVER) | ends
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
        pods.append(PodArrival(at, pod, draw(life)))
    return tuple(sorted(pods, key=lambda arrival: arrival.at))


DELAYS = st.builds(
    Delays,
    report=st.sampled_from([0.0, 1.0]),
    status=st.sampled_from([0.0, 10.0]),
    start=st.sampled_from([0.0, 0.5]),
    bind=st.sampled_from([0.0, 0.25]),
)

WILD_DELAYS = st.builds(
    Delays,
    report=st.sampled_from([0.0, (0.5, 2.0)]),
    report_gap=st.sampled_from([0.0, 10.0]),
    status=st.just((1.0, 10.0)),
    start=st.sampled_from([0.5, (0.25, 1.0, 3.0)]),
    stop=st.sampled_from([0.0, (0.5, 1.5)]),
    bind=st.sampled_from([0.0, 0.25]),
    notice=st.just(5.0),
    evict_after=st.just(10.0),
)

TIMES = st.integers(0, 160).map(lambda quarters: quarters / 4)


@st.composite
def scenarios(draw: st.DrawFn, *, calm: bool = False) -> Scenario:
    """A scenario; in a *calm* one all pods end by themselves and nothing is done from outside."""
    images = draw(catalogs())
    nodes = draw(node_specs(images))
    pods = draw(arrivals(images, ending=calm))
    names = st.sampled_from([spec.name for spec in nodes])
    events = st.lists(
        st.builds(ScenarioEvent, TIMES, st.just("remove"), st.sampled_from([arrival.pod.name for arrival in pods]))
        | st.builds(ScenarioEvent, TIMES, st.sampled_from(["drop", "cordon"]), names),
        max_size=3,
    )
    return Scenario(
        name="drawn",
        images=images,
        nodes=nodes,
        arrivals=pods,
        events=() if calm else tuple(sorted(draw(events), key=lambda one: one.at)),
        delays=draw(DELAYS),
        until=None if calm else draw(st.none() | st.integers(1, 60).map(float)),
    )


@st.composite
def controllers(draw: st.DrawFn, images: tuple[Image, ...]) -> tuple[ControllerSpec, ...]:
    """Up to two controllers of different kinds."""
    kinds = draw(st.lists(st.sampled_from(["Deployment", "StatefulSet", "DaemonSet", "Job"]), max_size=2, unique=True))
    made = []
    for kind in kinds:
        containers = (Container(draw(st.sampled_from(images)).names[0], amounts({"cpu": 1, "memory": "1Gi"})),)
        requests, ranked = total_requests(containers)
        template = Pod(
            uid=PodUid("template"),
            name="template",
            containers=containers,
            requests=requests,
            scoring_requests=ranked,
            scheduler_name="",
        )
        life = PodLifecycle(seconds=5.0) if kind == "Job" else RUNS_FOREVER
        replicas = draw(st.integers(0, 3))
        made.append(
            ControllerSpec(
                kind=kind, name=kind.lower(), at=draw(TIMES), template=template, life=life, replicas=replicas
            )
        )
    return tuple(sorted(made, key=lambda spec: spec.at))


@st.composite
def wild(draw: st.DrawFn) -> Scenario:
    """A scenario with everything in it; it always has an end, because some pods never have."""
    images = draw(catalogs())
    nodes = draw(node_specs(images, wild=True))
    pods = draw(arrivals(images, wild=True))
    made = draw(controllers(images))
    names = st.sampled_from([spec.name for spec in nodes])
    does = ["drop", "cordon", "uncordon", "drain", "fail", "recover"]
    happening = st.builds(
        ScenarioEvent, TIMES, st.just("remove"), st.sampled_from([arrival.pod.name for arrival in pods])
    ) | st.builds(ScenarioEvent, TIMES, st.sampled_from(does), names)
    if changeable := [spec.name for spec in made if spec.kind != "DaemonSet"]:
        happening |= st.builds(ScenarioEvent, TIMES, st.just("scale"), st.sampled_from(changeable), st.integers(0, 4))
    if made:
        named_images = st.sampled_from([image.names[0] for image in images])
        whose = st.sampled_from([spec.name for spec in made if spec.kind != "Job"] or ["n0"])
        if any(spec.kind != "Job" for spec in made):
            happening |= st.builds(ScenarioEvent, TIMES, st.just("update"), whose, st.just(0), named_images)
    return Scenario(
        name="wild",
        images=images,
        nodes=nodes,
        arrivals=pods,
        controllers=made,
        events=tuple(sorted(draw(st.lists(happening, max_size=5)), key=lambda one: one.at)),
        delays=draw(WILD_DELAYS),
        registry=draw(st.sampled_from([0.0, 100.0])),
        uplinks={"edge": draw(st.sampled_from([20.0, 500.0]))},
        until=draw(st.integers(1, 400).map(float)),
    )


LATENCIES = st.sampled_from([FREE, FREE, modelled(0.125), modelled((0.01, 0.5))])


PROFILES = st.sampled_from(sorted(NAMED))


@dataclass
class Run:
    """A run, its trace, and what was true after every record."""

    result: SimulationResult
    trace: list[TraceRecord]
    cluster: VirtualCluster
    overfull: list[str]
    """Nodes, and their disks, that had more than fits; layers that were said to be there and were not."""
    clock: list[float]


def run(scenario: Scenario, profile: str, seed: int = 0, latency: Latency = FREE) -> Run:
    trace = MemoryTrace()
    seen: list[VirtualCluster] = []
    overfull: list[str] = []
    clock: list[float] = []

    def observe(now: float, what: TraceRecord, cluster: VirtualCluster) -> None:
        clock.append(now)
        seen[:] = [cluster]
        for node in cluster.nodes.values():
            for name, used in node.used.items():
                if not 0 <= used <= node.allocatable.get(name, 0):
                    overfull.append(f"{node.name} has {used} of {name} in use at {now}")
            store = node.store
            if not 0 <= store.held <= store.used <= store.capacity:
                overfull.append(f"{node.name} has {store.held} and {store.reserved} bytes on its disk at {now}")
        if (
            isinstance(what, trace_records.LayerPulled)
            and what.layer not in cluster.kubelets[what.node].node.store.blobs
        ):
            overfull.append(f"{what.node} does not have {what.layer} at {now}")

    config = named(profile, REGISTRY)
    result = simulate(scenario.under(profile), config, seed=seed, trace=trace, observer=observe, latency=latency)
    return Run(result, trace.records, seen[0], overfull, clock)
