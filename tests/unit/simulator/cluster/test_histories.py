"""Laws of a cluster to which anything may happen in any order: nothing is lost, counted twice or left behind."""

from collections import Counter

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.model import events
from lamina.model.digest import Digest
from lamina.model.pod import PodUid
from lamina.model.resources import amounts
from lamina.simulator.cluster import ENDED
from lamina.simulator.cluster.pod_lifecycle import LifecycleStage, PodLifecycle
from lamina.simulator.pulls import DiskSpec, RuntimeSpec
from lamina.testing import a_pod
from lamina.trace import trace_records
from tests.unit.simulator.cluster.world import WEB, World

NODES = ("n1", "n2")
IMAGES = ("web:1", "api:1", "tool:1")
END_RECORDS = (
    trace_records.PodFinished,
    trace_records.PodFailed,
    trace_records.PodEvicted,
    trace_records.PodRemoved,
    trace_records.PodRejected,
)
RUNTIME = RuntimeSpec(unpack_rate=400.0, ratio=1.0, resolve=0.3)
ROOMY = DiskSpec(capacity=2600, high=0.7, low=0.4, every=20.0, min_age=1.0, evict_below=0.2, evict_every=5.0)
TIGHT = msgspec.structs.replace(ROOMY, capacity=1850)

seconds = st.sampled_from((0.0, 0.5, 3.0, 20.0))
use = st.builds(lambda size: amounts({"cpu": 1, "memory": f"{size}Gi"}), st.integers(0, 6))
lives = st.builds(
    PodLifecycle,
    seconds=st.one_of(st.none(), seconds),
    stages=st.one_of(st.just(()), st.lists(st.builds(LifecycleStage, seconds, use), min_size=1, max_size=3).map(tuple)),
    failures=st.integers(0, 3),
    restart=st.sampled_from(("Never", "Never", "OnFailure")),
    deadline=st.one_of(st.none(), seconds.map(lambda one: one + 0.1)),
    stopping=seconds,
    grace=st.sampled_from((0.0, 2.0, 30.0)),
    unreachable=st.one_of(st.none(), seconds),
)
pods = st.tuples(st.just("run"), st.sampled_from(IMAGES), st.sampled_from(NODES), st.integers(0, 3), lives)
removals = st.tuples(st.just("remove"), st.integers(0, 12), st.sampled_from((0.0, 1.0, None)))
upheavals = st.tuples(
    st.sampled_from(("cordon", "uncordon", "drain", "fail", "fail", "recover", "drop")), st.sampled_from(NODES)
)
histories = st.lists(
    st.tuples(st.sampled_from((0.0, 0.2, 1.0, 4.0, 30.0)), st.one_of(pods, pods, removals, upheavals)), max_size=25
)


def play(history) -> World:
    """Let it all happen, and then let everything come to an end."""
    world = World(start=0.5, stop=(0.0, 0.4), notice=5.0, evict_after=10.0, report=0.3, report_gap=2.0, status=3.0)
    world.node("n1", WEB, runtime=RUNTIME, disk=ROOMY)
    world.node("n2", runtime=RUNTIME, disk=TIGHT)
    submitted = 0
    for wait, (what, *args) in history:
        world.env.run(until=world.env.now + wait)
        check_rooms(world)
        if what == "run":
            image, node, cpu, life = args
            world.cluster.submit(a_pod(f"p{submitted}", cpu, f"{cpu}Gi", image=image), life)
            world.cluster.bind(PodUid(f"p{submitted}"), node)
            submitted += 1
        elif what == "remove":
            world.cluster.remove(PodUid(f"p{args[0]}"), args[1])
        else:
            getattr(world.cluster, what)(*args)
        check_rooms(world)
    world.env.run()
    check_rooms(world)
    return world


def check_rooms(world: World) -> None:
    """What a node counts is what its pods ask for and hold, and nothing that cannot be."""
    for name, node in world.cluster.nodes.items():
        there = list(node.pods.values())
        asked = Counter({"pods": len(there)})
        held: Counter[Digest] = Counter()
        for pod in there:
            assert (name, False) == (pod.node, pod.phase in ENDED)
            asked.update(dict(pod.pod.requests))
            held.update(image.digest for image in pod.images[: pod.ready_images])
        assert asked == Counter(node.used)
        assert all(node.used[key] <= node.allocatable[key] for key in node.used)
        assert len(node.store.images) - node.store.idle == len(held)
        memory = node.usage(world.env.now).get("memory", 0)
        assert node.failed or memory <= node.allocatable["memory"]


@settings(max_examples=60)
@given(histories)
def test_every_pod_ends_at_most_once_and_as_its_phase_says(history):
    world = play(history)
    ends = Counter(one.pod for one in world.records if isinstance(one, END_RECORDS))

    assert {pod.key: 1 for pod in world.cluster.pods.values() if pod.phase in ENDED} == ends
    for pod in world.cluster.pods.values():
        times = [one for one in (pod.arrived, pod.bound, pod.accepted, pod.started, pod.ended) if one is not None]
        assert sorted(times) == times


@settings(max_examples=60)
@given(histories)
def test_the_last_that_was_told_of_a_pod_and_a_node_is_how_it_is(history):
    """Unless the node has failed, of which nobody can tell."""
    world = play(history)
    seen = {event.pod.uid: event.pod for _, event in world.told if isinstance(event, events.PodSeen)}
    gone = {event.uid for _, event in world.told if isinstance(event, events.PodGone)}
    for uid, pod in world.cluster.pods.items():
        assert (pod.phase == "removed") is (uid in gone)
        assert pod.pod is seen[uid]
        assert seen[uid].finished is (pod.phase in ("finished", "failed", "rejected"))
        assert seen[uid].failed is (pod.phase in ("failed", "rejected"))
        assert seen[uid].bound_at == (pod.bound or 0.0)
        assert seen[uid].ended_at == (pod.ended if seen[uid].finished else 0.0)
    nodes = {event.node.name: event.node for _, event in world.told if isinstance(event, events.NodeSeen)}
    reports = {event.report.node: event.report for _, event in world.told if isinstance(event, events.LayersReported)}
    for name, node in world.cluster.nodes.items():
        assert node.taints == nodes[name].taints
        assert node.unschedulable is nodes[name].unschedulable
        if not node.failed:
            assert list(node.store.images) == [image.digest for image in reports[name].images]
            assert node.images_to_list() == nodes[name].images


@settings(max_examples=30)
@given(histories)
def test_the_same_history_is_written_down_in_the_same_words(history):
    assert msgspec.json.encode(play(history).records) == msgspec.json.encode(play(history).records)


@settings(max_examples=30)
@given(histories)
def test_when_all_pods_are_removed_nothing_is_left_to_happen(history):
    world = play(history)
    for name in NODES:
        world.cluster.recover(name)
    for uid in world.cluster.pods:
        world.cluster.remove(uid, None)
    world.env.run()

    for node in world.cluster.nodes.values():
        assert {0} >= set(node.used.values())
        assert len(node.store.images) == node.store.idle
    assert all(pod.phase in ENDED for pod in world.cluster.pods.values())
