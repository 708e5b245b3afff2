"""
Whole runs: scenario in, trace and result out. Stories end in exact logs of (when, what, who).

Nodes load 100 MB a second unless a test says otherwise, so that 100 MB take one second.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import pytest

from lamina.model.pod import Pod
from lamina.model.resources import amounts
from lamina.model.taints import Taint
from lamina.scheduling.config.loader import Configuration, load
from lamina.scheduling.config.named_profiles import named
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import NoArgs, PluginRegistry
from lamina.scheduling.contract.points import PostFilterResult, Work
from lamina.scheduling.plugins.in_tree import registry
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.simulator.cluster import Delays, VirtualCluster, VirtualNodeSpec
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.run import SimulationResult, simulate, summary
from lamina.simulator.run.run_summary import NEVER_STARTED
from lamina.simulator.workloads import PodArrival, Scenario, ScenarioEvent
from lamina.testing import a_pod, an_image
from lamina.trace import trace_records
from lamina.trace.trace_records import TraceRecord, type_of
from lamina.trace.trace_writer import MemoryTrace

MB = 1_000_000
WEB = an_image("registry.example/web:1", {"base": 300 * MB, "web": 100 * MB})
API = an_image("registry.example/api:1", {"base": 300 * MB, "api": 50 * MB})
IMAGES = {"web": WEB, "api": API}

IN_VAIN = "preemption: 0/{0} nodes are available: {0} Preemption is not helpful for scheduling."
WAITS = f"0/2 nodes are available: 2 Insufficient cpu. {IN_VAIN.format(2)}"

Line = tuple[float, str, str]


def a_node_spec(name: str, cpu: int = 4, *, holds: Sequence[str] = (), **more) -> VirtualNodeSpec:
    return VirtualNodeSpec(
        name=name,
        allocatable=amounts({"cpu": cpu, "memory": "16Gi", "pods": 110}),
        bandwidth=100.0 * MB,
        holds=tuple(IMAGES[one] for one in holds),
        **more,
    )


def arriving(at: float, name: str, image: str = "web", cpu: int = 4, *, duration=None, **more) -> PodArrival:
    """A pod; its scheduler is whichever profile there is."""
    pod = a_pod(name, cpu, image=IMAGES[image].names[0], **{"scheduler": "", **more})
    return PodArrival(at, pod, PodLifecycle(seconds=duration))


def a_scenario(nodes: Sequence[VirtualNodeSpec], arrivals: Sequence[PodArrival], **more) -> Scenario:
    return Scenario(
        name="story",
        images=(WEB, API),
        nodes=tuple(nodes),
        arrivals=tuple(arrivals),
        **{"profile": "lamina-balanced", **more},
    )


def run(
    scenario: Scenario, profile: str | Configuration = "lamina-balanced", seed: int = 0
) -> tuple[SimulationResult, list[TraceRecord]]:
    trace = MemoryTrace()
    configuration = named(profile, registry()) if isinstance(profile, str) else profile
    return simulate(scenario, configuration, seed=seed, trace=trace), trace.records


def log(trace: Sequence[TraceRecord], *kinds: type[TraceRecord]) -> list[Line]:
    """Say what happened when and to whom; without kinds, everything but nodes joining and single layers."""
    quiet = () if kinds else (trace_records.NodeJoined, trace_records.LayerPulled, trace_records.TraceHeader)
    lines = []
    for one in trace:
        if isinstance(one, quiet) or (kinds and not isinstance(one, kinds)):
            continue
        what = type_of(one)
        if isinstance(one, trace_records.PodDecided):
            lines.append((one.at, f"{what}: {one.decision.outcome}", one.decision.pod.removeprefix("default/")))
        else:
            whom = str(getattr(one, "pod", "") or getattr(one, "image", "") or getattr(one, "node", ""))
            lines.append((one.at, what, whom.removeprefix("default/").removeprefix("registry.example/")))
    return lines


def placed(result: SimulationResult) -> Mapping[str, str]:
    return {pod.pod.removeprefix("default/"): pod.node for pod in result.pods}


# --------------------------------------------------------------------------------------------------------- one pod's way


def test_a_pod_arrives_is_decided_bound_pulled_started_and_finishes():
    result, trace = run(a_scenario([a_node_spec("n1")], [arriving(2.0, "p", duration=60.0)]))

    assert [
        (2.0, "pod-arrived", "p"),
        (2.0, "decided: placed", "p"),
        (2.0, "pod-bound", "p"),
        (2.0, "pull-started", "web:1"),
        (6.0, "pull-done", "web:1"),  # 400 MB at 100 MB/s
        (6.5, "pod-started", "p"),
        (66.5, "pod-finished", "p"),
    ] == log(trace)
    pod = result.pods[0]
    assert (2.0, 2.0, 2.0, 2.0, 6.5, 66.5) == (
        pod.arrived,
        pod.decided,
        pod.bound,
        pod.pull_began,
        pod.started,
        pod.ended,
    )
    assert ("finished", "n1", 400 * MB, 400 * MB, 66.5) == (
        pod.phase,
        pod.node,
        pod.bytes_wanted,
        pod.bytes_pulled,
        result.seconds,
    )


def test_a_trace_begins_with_what_was_run():
    _, trace = run(a_scenario([a_node_spec("n1")], []), seed=7)

    assert [
        trace_records.TraceHeader(0.0, scenario="story", profile="lamina-balanced", seed=7),
        trace_records.NodeJoined(0.0, "n1", {"cpu": 4000, "memory": 16 * 1024**3, "pods": 110}, 100.0 * MB),
    ] == trace


def test_a_binding_takes_as_long_as_it_is_said_to():
    delays = Delays(bind=0.25)
    _, trace = run(a_scenario([a_node_spec("n1", holds=["web"])], [arriving(1.0, "p")], delays=delays))

    assert [(1.0, "decided: placed", "p"), (1.25, "pod-bound", "p"), (1.75, "pod-started", "p")] == log(
        trace, trace_records.PodDecided, trace_records.PodBound, trace_records.PodStarted
    )


def test_a_pod_that_is_removed_while_it_is_being_bound_stays_unbound():
    scenario = a_scenario(
        [a_node_spec("n1", holds=["web"])],
        [arriving(1.0, "p"), arriving(2.0, "q")],
        delays=Delays(bind=0.5),
        events=(ScenarioEvent(1.25, "remove", "p"),),
    )
    result, trace = run(scenario)

    assert [(2.5, "pod-bound", "q")] == log(trace, trace_records.PodBound)
    assert ["removed", "running"] == [pod.phase for pod in result.pods]


def test_a_node_that_leaves_while_a_pod_is_being_bound_to_it_costs_one_back_off():
    scenario = a_scenario(
        [a_node_spec("n1", holds=["web"]), a_node_spec("n2")],
        [arriving(1.0, "p")],
        delays=Delays(bind=0.5),
        events=(ScenarioEvent(1.25, "drop", "n1"),),
    )
    result, trace = run(scenario)

    assert [
        (1.0, "decided: placed", "p"),
        (1.25, "node-left", "n1"),
        (1.5, "decided: failed", "p"),
        (2.5, "decided: placed", "p"),  # the first back-off is a second
        (3.0, "pod-bound", "p"),
        (7.5, "pod-started", "p"),
    ] == log(trace, trace_records.PodDecided, trace_records.NodeLeft, trace_records.PodBound, trace_records.PodStarted)
    assert {"p": "n2"} == placed(result)


# -------------------------------------------------------------------------------------------------- many at one instant


def test_everything_of_one_instant_is_known_before_anything_is_decided():
    """The pod that arrives when another is removed gets its place at once, although it arrived first in the file."""
    scenario = a_scenario(
        [a_node_spec("n1", holds=["web"])],
        [arriving(0.0, "old"), arriving(10.0, "new")],
        events=(ScenarioEvent(10.0, "remove", "old"),),
    )
    _, trace = run(scenario)

    assert [(0.0, "decided: placed", "old"), (10.0, "decided: placed", "new")] == log(trace, trace_records.PodDecided)


def test_of_pods_that_arrive_together_the_more_important_one_is_decided_first():
    scenario = a_scenario(
        [a_node_spec("n1", holds=["web"])], [arriving(0.0, "low"), arriving(0.0, "high", priority=10)]
    )
    _, trace = run(scenario)

    assert [(0.0, "decided: placed", "high"), (0.0, "decided: unschedulable", "low")] == log(
        trace, trace_records.PodDecided
    )


# ---------------------------------------------------------------------------------------------------- waiting and pending


def test_a_pod_that_does_not_fit_waits_until_another_has_finished():
    scenario = a_scenario(
        [a_node_spec("n1", holds=["web"])],
        [arriving(0.0, "first", duration=30.0), arriving(1.0, "second", duration=30.0)],
    )
    result, trace = run(scenario)

    assert [
        (0.0, "decided: placed", "first"),
        (0.5, "pod-started", "first"),
        (1.0, "decided: unschedulable", "second"),
        (30.5, "pod-finished", "first"),
        (30.5, "decided: placed", "second"),
        (31.0, "pod-started", "second"),
        (61.0, "pod-finished", "second"),
    ] == log(trace, trace_records.PodDecided, trace_records.PodStarted, trace_records.PodFinished)
    assert 29.5 == result.pods[1].waiting


def test_a_pod_that_can_never_be_placed_stays_pending_and_the_run_ends():
    tainted = a_node_spec("n1", taints=(Taint("special"),))
    result, trace = run(a_scenario([tainted], [arriving(3.0, "p")]))

    assert [(3.0, "decided: unschedulable", "p")] == log(trace, trace_records.PodDecided)
    assert ("pending", None, 3.0) == (result.pods[0].phase, result.pods[0].decided, result.seconds)
    assert f"0/1 nodes are available: 1 node(s) had untolerated taint(s). {IN_VAIN.format(1)}" == result.pods[0].message


def test_a_cordoned_node_takes_no_more_pods():
    scenario = a_scenario(
        [a_node_spec("n1", 8, holds=["web"]), a_node_spec("n2", 8)],
        [arriving(0.0, "before"), arriving(10.0, "after")],
        events=(ScenarioEvent(5.0, "cordon", "n1"),),
    )

    assert {"before": "n1", "after": "n2"} == placed(run(scenario)[0])


def test_a_run_ends_where_the_scenario_says():
    scenario = a_scenario([a_node_spec("n1")], [arriving(0.0, "p"), arriving(9.0, "q")], until=3.5)
    result, trace = run(scenario)

    # Both layers are downloaded side by side; the smaller one of 100 MB is there after 2 seconds, written down with the last.
    assert [(0.0, "pod-bound", "p")] == log(trace, trace_records.PodBound, trace_records.LayerPulled)
    assert [("default/p", "pulling", 100 * MB)] == [(pod.pod, pod.phase, pod.bytes_pulled) for pod in result.pods]


def test_pods_may_name_the_profile_that_places_them():
    text = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: one
- schedulerName: two
"""
    scenario = a_scenario(
        [a_node_spec("n1", 16)],
        [arriving(0.0, "any"), arriving(0.0, "second", scheduler="two"), arriving(0.0, "lost", scheduler="three")],
    )
    result, trace = run(scenario, load(text, "test", registry()))

    assert [("default/any", "one"), ("default/second", "two")] == [
        (one.decision.pod, one.decision.profile) for one in trace if isinstance(one, trace_records.PodDecided)
    ]
    assert "no profile of this configuration is called 'three'" == result.pods[2].message


# ------------------------------------------------------------------------------------------------------- where pods go


def test_layers_draw_a_pod_to_the_node_that_has_them_and_whole_images_do_not():
    """The other image's base is on n2. ImageLocality sees no such thing and takes the emptier node."""
    nodes = [a_node_spec("n1", 9), a_node_spec("n2", 8, holds=["api"])]

    assert {"p": "n2"} == placed(run(a_scenario(nodes, [arriving(5.0, "p")]))[0])
    assert {"p": "n1"} == placed(run(a_scenario(nodes, [arriving(5.0, "p")]), "kube-default")[0])


@pytest.mark.parametrize(
    ("second_at", "node"),
    [
        # The first pod's image is on n1 at 4.0 (400 MB), and reported a second later.
        pytest.param(4.9, "n2", id="before the report: the emptier node"),
        pytest.param(5.0, "n1", id="with the report: where the layers are"),
    ],
)
def test_the_scheduler_knows_of_layers_when_they_are_reported(second_at, node):
    scenario = a_scenario(
        [a_node_spec("n1", 9), a_node_spec("n2", 8)], [arriving(0.0, "p", cpu=2), arriving(second_at, "q", cpu=2)]
    )

    assert {"p": "n1", "q": node} == placed(run(scenario, "ryax")[0])


@pytest.mark.parametrize("second_at", [0.5, 3.9, 4.9, 5.0])
def test_the_product_knows_of_layers_on_their_way_before_they_are_reported(second_at):
    """It has bound the pod that brings them, and has seen it start."""
    scenario = a_scenario(
        [a_node_spec("n1", 40), a_node_spec("n2", 40)], [arriving(0.0, "p", cpu=1), arriving(second_at, "q", cpu=1)]
    )

    found = placed(run(scenario)[0])

    assert found["p"] == found["q"]


@pytest.mark.parametrize(
    ("second_at", "node"),
    [pytest.param(13.9, "n2", id="before"), pytest.param(14.0, "n1", id="when the status lists the image")],
)
def test_image_locality_knows_of_images_when_the_status_lists_them(second_at, node):
    text = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: ImageLocality, weight: 10}]}}
"""
    scenario = a_scenario(
        [a_node_spec("n1", 9), a_node_spec("n2", 8)], [arriving(0.0, "p", cpu=2), arriving(second_at, "q", cpu=2)]
    )

    assert {"p": "n1", "q": node} == placed(run(scenario, load(text, "test", registry()))[0])


def test_the_seed_decides_between_equal_nodes():
    scenario = a_scenario([a_node_spec(f"n{number}") for number in range(8)], [arriving(0.0, "p")])
    chosen = [placed(run(scenario, seed=seed)[0])["p"] for seed in (1, 2, 3, 1)]

    assert len(set(chosen)) > 1
    assert chosen[0] == chosen[3]


# ------------------------------------------------------------------------------------------------- commands of plugins


class Tedious:
    """Wants work to be done before every binding."""

    name: ClassVar = "Tedious"

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        pass

    def pre_bind(self, state: CycleState, pod: Pod, node: str) -> Work:
        return Work("dig")


class Pushy:
    """Evicts the pods called victim for whoever finds no place."""

    name: ClassVar = "Pushy"

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        pass

    def post_filter(self, state, pod, nodes, resolvable) -> PostFilterResult:
        return PostFilterResult("n1", (a_pod("victim"),))


def with_plugin(plugin: type[Tedious] | type[Pushy], point: str) -> Configuration:
    known: PluginRegistry = registry(entry_points=False)
    known.register(plugin)
    text = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {{{point}: {{enabled: [{{name: {plugin.name}}}]}}}}
"""
    return load(text, "test", known)


def test_work_that_nobody_does_fails_and_the_run_ends_all_the_same():
    result, trace = run(a_scenario([a_node_spec("n1")], [arriving(0.0, "p")]), with_plugin(Tedious, "preBind"))

    # Told once, tried again and again in vain, and given up.
    assert [(0.0, "decided: failed", "p")] == log(trace, trace_records.PodDecided)
    assert ("pending", "plugin Tedious requested background work, which a simulation does not perform") == (
        result.pods[0].phase,
        result.pods[0].message,
    )


def test_a_pod_is_evicted_when_a_plugin_makes_room():
    scenario = a_scenario(
        [a_node_spec("n1", holds=["web"])], [arriving(0.0, "victim"), arriving(10.0, "p", priority=10)]
    )
    result, trace = run(scenario, with_plugin(Pushy, "postFilter"))

    assert (10.0, "pod-removed", "victim") in log(trace, trace_records.PodRemoved)
    assert [("default/victim", "removed"), ("default/p", "running")] == [(pod.pod, pod.phase) for pod in result.pods]


# --------------------------------------------------------------------------------------------------- watching and figures


def test_an_observer_sees_every_record_with_the_cluster_as_it_is_then():
    seen: list[tuple[float, str, int]] = []

    def observe(now: float, what: TraceRecord, cluster: VirtualCluster) -> None:
        seen.append((now, type_of(what), len(cluster.nodes["n1"].pods)))

    scenario = a_scenario([a_node_spec("n1", holds=["web"])], [arriving(1.0, "p", duration=5.0)])
    simulate(scenario, named("lamina-balanced", registry()), observer=observe)

    assert [
        (0.0, "node-joined", 0),
        (1.0, "pod-arrived", 0),
        (1.0, "decided", 0),
        (1.0, "pod-bound", 0),
        (1.5, "pod-started", 1),
        (6.5, "pod-finished", 0),
    ] == seen


@pytest.mark.parametrize(
    ("detail", "kept"),
    [pytest.param("none", [], id="none"), pytest.param("brief", [], id="brief"), pytest.param("full", [2], id="full")],
)
def test_decisions_are_kept_in_full_detail_only(detail, kept):
    """They weigh more than all the rest; a trace has them anyway."""
    scenario = a_scenario([a_node_spec("n1"), a_node_spec("n2")], [arriving(0.0, "p")])
    result = simulate(scenario, named("lamina-balanced", registry()), detail=detail)

    assert kept == [len(decision.verdicts) for decision in result.decisions]
    assert (1, 0.0) == (result.attempts, result.pods[0].decided)


def test_a_summary_has_all_figures_of_a_run():
    scenario = a_scenario(
        [a_node_spec("n1", 9, holds=["api"]), a_node_spec("n2", 8)],
        [
            arriving(0.0, "a", "api", 8, duration=10.0),
            arriving(0.0, "b", "web", 8, duration=10.0),
            arriving(2.0, "c", "web", 8),
            arriving(5.0, "d", "web", 20),
        ],
    )
    result, _ = run(scenario)
    assert {
        "scenario": "story",
        "profile": "lamina-balanced",
        "seed": 0,
        "latency": "free",
        "virtual_seconds": 14.5,
        "decisions": 5,
        "pods": {
            "total": 4,
            "started": 3,
            "finished": 2,
            "failed": 0,
            "removed": 0,
            "rejected": 0,
            "not_started": dict.fromkeys(NEVER_STARTED, 0) | {"total": 1, "pending": 1},
            "pending": [{"pod": "default/d", "message": WAITS}],
        },
        "bytes_wanted": (350 + 400 + 400) * MB,
        # b pulls 400 MB on n2; c finds the base on n1, when a has finished there, and pulls 100 MB.
        "bytes_pulled": 500 * MB,
        "bytes_hit": (350 + 0 + 300) * MB,
        "hits": 650 / 1150,
        "pulls": 2,
        "pull_failures": 0,
        "gc": {"images": 0, "bytes": 0, "pressure_images": 0},
        "evictions": 0,
        "restarts": 0,
        "failures": 0,
        # Until the last arrival, d's, a has 8 of 9 cpu and b 8 of 8: mean 17/18, largest 1, deviation 1/18.
        "peak_load": pytest.approx(18 / 17),
        "imbalance": pytest.approx(1 / 17),
        "heating": pytest.approx(18 / 17),
        "balance": pytest.approx(1 / 17),
        # 16 of 17 cpu are asked for all of these five seconds; a runs for 4.5 of them, b for half a second.
        "utilisation": {"requested": pytest.approx(16 / 17), "used": pytest.approx(8 * (4.5 + 0.5) / (17 * 5))},
        "startup_seconds": {
            "queue": {"p50": 0.0, "p95": 8.5, "p99": 8.5, "mean": 8.5 / 3, "max": 8.5},
            "decision": {"p50": 0.0, "p95": 0.0, "p99": 0.0, "mean": 0.0, "max": 0.0},
            "pull_queue": {"p50": 0.0, "p95": 0.0, "p99": 0.0, "mean": 0.0, "max": 0.0},
            "download": {"p50": 1.0, "p95": 4.0, "p99": 4.0, "mean": 5 / 3, "max": 4.0},
            "unpack": {"p50": 0.0, "p95": 0.0, "p99": 0.0, "mean": 0.0, "max": 0.0},
            "start": {"p50": 0.5, "p95": 0.5, "p99": 0.5, "mean": 0.5, "max": 0.5},
            "waiting": {"p50": 0.0, "p95": 8.5, "p99": 8.5, "mean": 8.5 / 3, "max": 8.5},
            "pulling": {"p50": 1.5, "p95": 4.5, "p99": 4.5, "mean": 6.5 / 3, "max": 4.5},
            "total": {"p50": 4.5, "p95": 10.0, "p99": 10.0, "mean": 5.0, "max": 10.0},
        },
        # a was there for 10.5 seconds and ran for 10 of them, b for 14.5.
        "slowdown": {"p50": 1.05, "p95": 1.45, "p99": 1.45, "mean": 1.25, "max": 1.45},
        "nodes": [
            {"node": "n1", "bytes_pulled": 100 * MB, "pulls": 1, "bytes_held": 450 * MB, "pods": 2},
            {"node": "n2", "bytes_pulled": 400 * MB, "pulls": 1, "bytes_held": 400 * MB, "pods": 1},
        ],
    } == summary(result)
