"""Nodes that are short of memory or disk: which pods go, when, and what a scheduler sees of it."""

import pytest

from lamina.model import events
from lamina.model.resources import amounts
from lamina.model.taints import NO_SCHEDULE, Taint
from lamina.simulator.cluster.pod_lifecycle import LifecycleStage
from lamina.simulator.pulls import DiskSpec, RuntimeSpec
from lamina.testing import an_image
from lamina.trace import trace_records
from tests.unit.simulator.cluster.world import WEB, World

LOW_ON_MEMORY = "The node was low on resource: memory."
LOW_ON_DISK = "The node was low on resource: ephemeral-storage."
PRESSURE = (Taint("node.kubernetes.io/disk-pressure", effect=NO_SCHEDULE),)


def stages(*memory: str, seconds: float = 10.0) -> tuple[LifecycleStage, ...]:
    return tuple(LifecycleStage(seconds, amounts({"memory": one})) for one in memory)


def evicted(world: World) -> list[tuple[float, str]]:
    return [(one.at, one.pod.partition("/")[2]) for one in world.records if isinstance(one, trace_records.PodEvicted)]


@pytest.fixture
def world() -> World:
    made = World(start=0.5)
    made.node("n1", WEB)  # 8Gi of memory.
    return made


# ----------------------------------------------------------------------------------------------------------------- memory


def test_pods_use_what_their_stages_say_and_others_what_they_ask_for(world):
    world.run_on("n1", "steady", memory="1Gi")
    world.run_on(
        "n1", "changing", memory="1Gi", stages=(LifecycleStage(10.0, amounts({"cpu": "50m", "memory": "3Gi"})),)
    )
    node = world.cluster.nodes["n1"]
    world.env.run(until=5.0)

    assert dict(amounts({"cpu": "1050m", "memory": "4Gi"})) == node.usage(5.0)
    assert dict(amounts({"cpu": 2, "memory": "2Gi", "pods": 0})) | {"pods": 2} == node.used


@pytest.mark.parametrize(
    ("pods", "gone"),
    [
        pytest.param(
            {"a": ("2Gi", stages("2Gi", "6Gi")), "b": ("2Gi", stages("2Gi", "2Gi"))},
            [],
            id="8Gi of 8Gi: just enough",
        ),
        pytest.param(
            {"a": ("2Gi", stages("2Gi", "7Gi")), "b": ("2Gi", stages("2Gi", "2Gi"))},
            [(10.5, "a")],
            id="the one that uses more than it asked for, when it does",
        ),
        pytest.param(
            {"a": ("2Gi", stages("3Gi", "5Gi")), "b": ("1Gi", stages("1Gi", "4500Mi"))},
            [(10.5, "b")],
            id="the one that exceeds its request by more",
        ),
        pytest.param(
            {"a": ("1Gi", stages("5Gi")), "b": ("1Gi", stages("5Gi")), "c": ("1Gi", stages("5Gi"))},
            [(0.5, "b"), (0.5, "c")],
            id="one after the other, as they start; of equals the one that came last",
        ),
        pytest.param({"a": ("1Gi", stages("1Gi")), "b": ("7Gi", ())}, [], id="nobody exceeds anything"),
    ],
)
def test_when_memory_is_short_the_pod_goes_that_most_exceeds_its_request(world, pods, gone):
    for name, (memory, course) in pods.items():
        world.run_on("n1", name, memory=memory, stages=course)
    world.env.run()

    assert gone == evicted(world)


def test_a_pod_of_lower_priority_goes_first_and_a_critical_one_never(world):
    world.run_on("n1", "low", memory="1Gi", stages=stages("3Gi"), priority=-1)
    world.run_on("n1", "high", memory="1Gi", stages=stages("4Gi"), priority=5)
    world.run_on("n1", "critical", memory="1Gi", stages=stages("9Gi"), priority=2_000_000_000)
    world.env.run()

    # All start at 0.5, one after the other: 3Gi + 4Gi fit, and then nothing fits.
    assert [(0.5, "low"), (0.5, "high")] == evicted(world)


def test_an_evicted_pod_has_failed_and_its_room_is_free(world):
    world.run_on("n1", "p", memory="1Gi", stages=stages("2Gi", "9Gi", "2Gi"))
    world.env.run()
    node = world.cluster.nodes["n1"]

    assert trace_records.PodEvicted(10.5, "default/p", "n1", LOW_ON_MEMORY) == world.records[-1]
    assert ("failed", "Evicted", 10.5) == (world.pod("p").phase, world.pod("p").reason, world.pod("p").ended)
    assert world.heard(events.PodSeen)[-1][1].pod.finished
    assert ({"cpu": 0, "memory": 0, "pods": 0}, {}) == (node.used, node.usage(11.0))


def test_a_pod_that_is_stopping_anyway_is_removed_the_sooner(world):
    world.run_on("n1", "p", memory="1Gi", stages=stages("2Gi", "9Gi"), stopping=20.0)
    world.at(5.0, world.cluster.remove, world.pod("p").pod.uid, None)
    world.env.run()

    assert (10.5, "pod-removed", "default/p") == world.log()[-1]


def test_a_node_whose_pods_have_no_stages_is_never_looked_at(world):
    """Nothing is scheduled but the pod's own end."""
    world.run_on("n1", "p", memory="1Gi", seconds=60.0)
    world.env.run(until=1.0)

    assert 60.5 == world.env.peek()
    world.env.step()
    assert float("inf") == world.env.peek()


def test_a_failed_kubelet_evicts_nobody_until_it_is_back(world):
    world.run_on("n1", "p", memory="1Gi", stages=stages("2Gi", "9Gi"))
    world.at(5.0, world.cluster.fail, "n1")
    world.at(15.0, world.cluster.recover, "n1")
    world.env.run()

    assert [(15.0, "p")] == evicted(world)


# ------------------------------------------------------------------------------------------------------------------- disk

PLAIN = RuntimeSpec(ratio=0.0, slots=1)  # Nothing but the compressed layers takes room.
SMALL = DiskSpec(capacity=1000, high=0.9, low=0.8, evict_below=0.15, evict_every=10.0, min_age=0.0)
BIG = an_image("big:1", {"big": 500})
OTHER = an_image("other:1", {"other": 400})


@pytest.fixture
def small() -> World:
    made = World(BIG, OTHER, start=0.5)
    made.node("n1", runtime=PLAIN, disk=SMALL)
    return made


def test_a_node_short_of_disk_is_tainted_and_evicts_the_last_pod_that_uses_an_image(small):
    small.run_on("n1", "first", "big:1")
    small.run_on("n1", "second", "other:1")  # 900 of 1000 bytes used, less than 15 % free.
    small.env.run()

    ((when, reason),) = [(one.at, one.reason) for one in small.records if isinstance(one, trace_records.PodEvicted)]
    assert LOW_ON_DISK == reason
    assert ("running", "failed") == (small.pod("first").phase, small.pod("second").phase)
    seen = [(at, event.node.taints) for at, event in small.heard(events.NodeSeen, since=0.1)]
    assert (when, PRESSURE) in seen
    assert () == seen[-1][1]
    removed = [one for one in small.records if isinstance(one, trace_records.ImagesRemoved)]
    assert [("other:1",)] == [one.images for one in removed]
    # The taint stays for five minutes after the look at which there was room again.
    assert [0.0] == [seen[-1][0] - removed[0].at - 300.0]


def test_a_node_short_of_disk_refuses_pods(small):
    small.run_on("n1", "first", "big:1")
    small.run_on("n1", "second", "other:1")
    small.at(60.0, small.run_on, "n1", "third", "big:1")
    small.env.run()

    assert [(60.0, "Evicted")] == [
        (one.at, one.reason) for one in small.records if isinstance(one, trace_records.PodRejected)
    ]


def test_a_node_that_leaves_while_it_is_short_of_disk_leaves_nothing_to_be_done(small):
    small.run_on("n1", "first", "big:1")
    small.run_on("n1", "second", "other:1")
    small.at(40.0, small.cluster.drop, "n1")
    small.env.run()

    assert 40.0 == small.env.now


# ---------------------------------------------------------------------------------------------------- images and their use


def test_images_are_in_use_from_the_moment_they_are_there_until_the_pod_has_gone(world):
    store = world.cluster.nodes["n1"].store
    world.run_on("n1", "p", images=["web:1", "tool:1"], seconds=10.0)
    idle = []
    for time in (0.2, 5.0, 11.2):
        world.at(time, lambda: idle.append(store.idle))
    world.env.run()

    # web:1 is used at once and tool:1 when it has come; at the end (0.5 + 0.5 + 10) neither is.
    assert [0, 0, 2] == idle


@pytest.mark.parametrize("grace", [0.0, None])
def test_a_removed_pod_uses_no_images(world, grace):
    world.run_on("n1", "p")
    world.at(3.0, world.cluster.remove, world.pod("p").pod.uid, grace)
    world.env.run()

    assert 1 == world.cluster.nodes["n1"].store.idle
