"""
Laws of simulated clusters: bytes are conserved, nodes and disks are never overfull, time goes forward, nobody starves.

On the small crowded scenarios of `simulated_scenarios`.
"""

import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.model.image import Image, Layer
from lamina.model.pod import Container
from lamina.simulator.cluster import Delays, VirtualNodeSpec
from lamina.simulator.pulls.runtime_spec import RuntimeSpec
from lamina.simulator.run import summary
from lamina.simulator.run.run_summary import PARTS
from lamina.simulator.workloads import Scenario
from lamina.trace import trace_records
from lamina.trace.trace_writer import ENCODER
from tests.property.simulated_scenarios import (
    DELAYS,
    LATENCIES,
    PROFILES,
    arrivals,
    catalogs,
    node_specs,
    run,
    scenarios,
    wild,
)

# A run takes ten times as long as other examples; many remain under `make soak`.
FEWER = settings(max_examples=settings().max_examples * 2 // 5)


@FEWER
@given(scenarios(), PROFILES, st.integers(0, 3))
def test_bytes_pulled_are_bytes_that_became_present(scenario, profile, seed):
    """
    Counted four ways: by node, by pod, by layer in the trace, and by what lies on the nodes in the end.

    A run that ends in the middle of a pull has layers that arrived and are not recorded yet: a whole-image download
    records its layers when it is complete.
    """
    drawn = run(scenario, profile, seed)
    by_node = {node.node: node.bytes_pulled for node in drawn.result.nodes}
    unrecorded = {
        name: sum(layer.size for pull in kubelet.puller._active for layer in pull.arrived)
        for name, kubelet in drawn.cluster.kubelets.items()
    }
    by_layer = dict(unrecorded)
    for record in drawn.trace:
        if isinstance(record, trace_records.LayerPulled):
            by_layer[record.node] += record.bytes
    came = {
        name: kubelet.node.store.size
        + unrecorded[name]
        - sum({one.digest: one.size for one in _held(kubelet.node.spec)}.values())
        for name, kubelet in drawn.cluster.kubelets.items()
    }

    assert came == by_node
    assert came == by_layer
    assert sum(came.values()) == sum(pod.bytes_pulled for pod in drawn.result.pods)


def _held(spec: VirtualNodeSpec) -> list[Layer]:
    return [layer for image in spec.holds for layer in image.layers]


@FEWER
@given(wild(), PROFILES, st.integers(0, 3), LATENCIES)
def test_wherever_bytes_are_counted_they_are_the_same(scenario, profile, seed, latency):
    """By node, by layer in the trace and by pull, also where images come and go; and whatever arrives is there."""
    drawn = run(scenario, profile, seed, latency)
    by_node = {node.node: node.bytes_pulled for node in drawn.result.nodes}
    by_layer = dict.fromkeys(by_node, 0)
    for record in drawn.trace:
        if isinstance(record, trace_records.LayerPulled):
            by_layer[record.node] += record.bytes

    assert by_node == by_layer
    assert sum(by_node.values()) == sum(pod.bytes_pulled for pod in drawn.result.pods)
    assert [] == drawn.overfull


@FEWER
@given(scenarios(), PROFILES, LATENCIES)
def test_no_node_is_ever_overfull_and_no_kubelet_has_to_refuse(scenario, profile, latency):
    drawn = run(scenario, profile, latency=latency)

    assert [] == drawn.overfull
    assert [] == [record for record in drawn.trace if isinstance(record, trace_records.PodRejected)]


@FEWER
@given(scenarios() | wild(), PROFILES, LATENCIES)
def test_time_never_goes_back_and_each_pod_goes_its_way_in_order(scenario, profile, latency):
    drawn = run(scenario, profile, latency=latency)
    times = [record.at for record in drawn.trace]

    assert sorted(times) == times
    assert times[1:] == drawn.clock
    for pod in drawn.result.pods:
        way = [pod.arrived, pod.decided if pod.bound is not None else None, pod.bound, pod.started, pod.ended]
        reached = [moment for moment in way if moment is not None]
        assert sorted(reached) == reached


@FEWER
@given(scenarios() | wild(), PROFILES, st.integers(0, 3), LATENCIES)
def test_the_six_parts_of_a_start_add_up(scenario, profile, seed, latency):
    """And none is negative: no second of a pod's start is counted twice, and none is left out."""
    drawn = run(scenario, profile, seed, latency)
    for pod in drawn.result.pods:
        parts = [getattr(pod, part) for part in PARTS]
        if pod.started is None:
            assert [None] * 4 == parts[2:]
            continue
        assert min(parts) >= 0.0
        assert pytest.approx(pod.total, abs=1e-9) == math.fsum(parts)
        assert pytest.approx(pod.waiting, abs=1e-9) == parts[0] + parts[1]
        assert pytest.approx(pod.pulling, abs=1e-9) == math.fsum(parts[2:])


@FEWER
@given(wild(), PROFILES)
def test_every_pod_ends_once_and_what_ended_is_counted(scenario, profile):
    drawn = run(scenario, profile)
    ends = [
        one.pod
        for one in drawn.trace
        if isinstance(
            one,
            trace_records.PodFinished
            | trace_records.PodFailed
            | trace_records.PodEvicted
            | trace_records.PodRemoved
            | trace_records.PodRejected,
        )
    ]
    figures = summary(drawn.result)

    assert len(ends) == sum(pod.ended is not None for pod in drawn.result.pods)
    for kind, key in (
        (trace_records.PodEvicted, "evictions"),
        (trace_records.PodFailed, "failures"),
        (trace_records.PodRestarted, "restarts"),
        (trace_records.PullFailed, "pull_failures"),
    ):
        assert sum(isinstance(one, kind) for one in drawn.trace) == figures[key]
    assert figures["utilisation"]["requested"] is None or 0.0 <= figures["utilisation"]["requested"] <= 1.0 + 1e-9
    assert figures["hits"] is None or 0.0 <= figures["hits"] <= 1.0


@given(catalogs(), st.data())
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


def pull_seconds(image: Image, spec: VirtualNodeSpec, rate: float) -> tuple[float, float]:
    """
    Seconds until the last byte of an image is on an idle node, and until it is unpacked, by the formula.

    Layers come one at a time, bottom first, and one thread unpacks them in that order while others come. Unpacked are
    already the layers that some image has with the same ones below them; downloaded is what no image has.
    """
    runtime = spec.runtime
    stacks = [[layer.digest for layer in one.layers] for one in spec.holds]
    wanted = [layer.digest for layer in image.layers]
    first = max([_common(stack, wanted) for stack in stacks], default=0)
    there = {layer.digest for layer in _held(spec)}
    arrived = unpacked = runtime.resolve
    for layer in image.layers[first:]:
        if layer.digest not in there:
            arrived += layer.size / rate
            there.add(layer.digest)
        size = round(runtime.ratio * layer.size)
        unpacked = max(unpacked, arrived) + runtime.layer_overhead + size / runtime.unpack_rate
    return arrived, unpacked


def _common(one: list[str], other: list[str]) -> int:
    count = 0
    for mine, yours in zip(one, other, strict=False):
        if mine != yours:
            break
        count += 1
    return count


@given(catalogs(), st.data())
def test_one_pod_on_an_idle_cluster_takes_as_long_as_the_formula_says(images, data):
    """With an honest runtime: the manifest, the slowest link on the way, one thread that unpacks, the start."""
    runtime = RuntimeSpec(slots=1, resolve=0.25, unpack_rate=200.0, layer_overhead=0.125)
    nodes = tuple(
        msgspec.structs.replace(spec, runtime=runtime, uplink="edge") for spec in data.draw(node_specs(images))
    )
    arrival = data.draw(arrivals(images))[0]
    image = data.draw(st.sampled_from(images))
    pod = msgspec.structs.replace(arrival.pod, containers=(Container(image.names[0], arrival.pod.requests),))
    registry_rate, uplink = data.draw(st.sampled_from([(0.0, 1000.0), (80.0, 100.0), (100.0, 30.0)]))
    scenario = Scenario(
        name="one",
        images=images,
        nodes=nodes,
        arrivals=(msgspec.structs.replace(arrival, pod=pod),),
        delays=Delays(start=0.5),
        registry=registry_rate,
        uplinks={"edge": uplink},
    )
    outcome = run(scenario, "lamina-balanced").result.pods[0]
    spec = next(spec for spec in nodes if spec.name == outcome.node)
    if image.digest in {one.digest for one in spec.holds}:
        assert (0.0, 0.0, 0.0, 0.5) == (outcome.pull_queue, outcome.download, outcome.unpack, outcome.start)
        return
    fetched, done = pull_seconds(image, spec, min(spec.bandwidth, registry_rate or math.inf, uplink))

    assert pytest.approx((0.0, fetched, done - fetched, 0.5), abs=1e-9) == (
        outcome.pull_queue,
        outcome.download,
        outcome.unpack,
        outcome.start,
    )


@FEWER
@given(scenarios(calm=True), PROFILES, LATENCIES)
def test_every_pod_starts_and_finishes_when_all_of_them_end(scenario, profile, latency):
    """Each fits on the first node when that is empty, so it waits at most; only pods of lower priority are preempted."""
    drawn = run(scenario, profile, latency=latency)
    priorities = {arrival.pod.key: arrival.pod.priority for arrival in scenario.arrivals}
    preempted = [pod for pod in drawn.result.pods if pod.phase == "removed"]

    assert {"finished"} == {pod.phase for pod in drawn.result.pods if pod not in preempted}
    assert drawn.result.preemptions == len(preempted)
    assert all(priorities[pod.pod] < max(priorities.values()) for pod in preempted)
    assert [] == summary(drawn.result)["pods"]["pending"]


@FEWER
@given(scenarios() | wild(), PROFILES, st.integers(0, 3), LATENCIES)
def test_the_same_scenario_and_seed_give_the_same_trace(scenario, profile, seed, latency):
    first, second = run(scenario, profile, seed, latency), run(scenario, profile, seed, latency)

    assert [ENCODER.encode(one) for one in first.trace] == [ENCODER.encode(one) for one in second.trace]
    assert summary(first.result) == summary(second.result)
