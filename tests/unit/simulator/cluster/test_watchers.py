"""Watchers of a cluster: called when something has happened and was written down, and free to act on it."""

import pytest

from lamina.model.pod import PodUid
from lamina.simulator.cluster import VirtualNode, VirtualPod
from lamina.testing import a_pod
from tests.unit.simulator.cluster.world import WEB, World


class Diary:
    """Notes what it is told, how far the trace was then, and which nodes there were."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.lines: list[tuple[float, str, str, str]] = []

    def _write(self, what: str, who: str) -> None:
        last = type(self.world.records[-1]).__name__
        self.lines.append((self.world.env.now, what, who, last))

    def pod_started(self, pod: VirtualPod) -> None:
        self._write("started", pod.pod.name)

    def pod_ended(self, pod: VirtualPod) -> None:
        self._write(pod.phase, pod.pod.name)

    def node_joined(self, node: VirtualNode) -> None:
        self._write("joined", node.name)

    def node_left(self, node: VirtualNode) -> None:
        self._write("left", node.name)


@pytest.fixture
def world() -> World:
    return World(start=0.5)


@pytest.fixture
def diary(world) -> Diary:
    made = Diary(world)
    world.cluster.watchers.append(made)
    return made


def test_watchers_hear_of_everything_after_it_was_written_down(world, diary):
    world.node("n1", WEB)
    world.run_on("n1", "ends", seconds=5.0)
    world.run_on("n1", "fails", seconds=6.0, failures=1)
    world.run_on("n1", "large", cpu=9)
    world.run_on("n1", "stays")
    world.cluster.submit(a_pod("waits", image="web:1"))
    world.at(7.0, world.cluster.remove, PodUid("waits"))
    world.at(8.0, world.cluster.drop, "n1")
    world.env.run()

    assert [
        (0.0, "joined", "n1", "NodeJoined"),
        (0.0, "rejected", "large", "PodRejected"),
        (0.5, "started", "ends", "PodStarted"),
        (0.5, "started", "fails", "PodStarted"),
        (0.5, "started", "stays", "PodStarted"),
        (5.5, "finished", "ends", "PodFinished"),
        (6.5, "failed", "fails", "PodFailed"),
        (7.0, "removed", "waits", "PodRemoved"),
        (8.0, "removed", "stays", "PodRemoved"),
        (8.0, "left", "n1", "NodeLeft"),
    ] == diary.lines


def test_a_restart_is_no_start_and_no_end(world, diary):
    world.node("n1", WEB)
    world.run_on("n1", "p", seconds=5.0, failures=1, restart="OnFailure")
    world.env.run()

    assert ["joined", "started", "finished"] == [what for _, what, _, _ in diary.lines]


def test_a_pod_that_stops_has_ended_when_it_has_stopped(world, diary):
    world.node("n1", WEB)
    world.run_on("n1", "p", stopping=4.0)
    world.at(2.0, world.cluster.remove, PodUid("p"), None)
    world.env.run()

    assert (6.0, "removed", "p", "PodRemoved") == diary.lines[-1]


class Replacer(Diary):
    """Submits another pod for each that has ended, and binds it where there is a node."""

    def pod_ended(self, pod: VirtualPod) -> None:
        super().pod_ended(pod)
        name = pod.pod.name + "x"
        self.world.cluster.submit(a_pod(name, 1, image="web:1"))
        for node in self.world.cluster.nodes:
            self.world.cluster.bind(PodUid(name), node)


def test_a_watcher_may_replace_pods_of_a_node_that_leaves_and_finds_it_gone(world):
    world.cluster.watchers.append(Replacer(world))
    world.node("n1", WEB)
    world.node("n2", WEB)
    world.run_on("n1", "p")
    world.run_on("n1", "q")
    world.at(5.0, world.cluster.drop, "n1")
    world.env.run()

    assert {"p": "", "q": "", "px": "n2", "qx": "n2"} == {
        name: pod.node if pod.phase == "running" else "" for name, pod in world.cluster.pods.items()
    }
    assert 2000 == world.cluster.nodes["n2"].used["cpu"]
