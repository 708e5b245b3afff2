"""
Laws of pods with extenders, on random histories.

A pod is never bound to a node that an extender refused, that the extenders were not asked about, or where it does not fit.
Every pod that fits somewhere is bound in the end. A loop made from a snapshot goes on as the first.
"""

import random
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.model.events import BindDone, Event, ExtendersAnswered, NodeGone, NodeSeen, PodGone, PodSeen, TimePassed
from lamina.model.extender_answer import ExtenderAnswer, ExtenderRefusal, ExtenderScores
from lamina.model.pod import Pod
from lamina.scheduling.contract.commands import AskExtenders, Bind, Command
from lamina.scheduling.contract.extender_chain import CalledExtender
from lamina.scheduling.loop.loop_state import LoopSettings
from lamina.testing import a_loop, a_node, a_pod
from tests.property.twin_loops import Twins

pytestmark = pytest.mark.slow

CORE = ("PrioritySort", "NodeUnschedulable", "NodeName", "NodeResourcesFit", "DefaultBinder")
CHAIN = (
    CalledExtender(name="strict", filters=True, managed=frozenset({"cpu"})),
    CalledExtender(name="scores", prioritizes=True, weight=3),
)
NODES = {f"n{number}": number + 1 for number in range(4)}
"""Cores of the nodes."""

steps = st.lists(
    st.one_of(
        st.tuples(st.just("pod"), st.integers(1, 3), st.frozensets(st.sampled_from(sorted(NODES)))),
        st.tuples(st.just("answer"), st.integers(0, 5), st.sampled_from(["plain", "plain", "error", "late"])),
        st.tuples(st.sampled_from(["node", "lose"]), st.sampled_from(sorted(NODES)), st.none()),
        st.tuples(
            st.sampled_from(["delete", "foreign", "update", "time", "cut", "take"]), st.integers(0, 5), st.none()
        ),
    ),
    min_size=5,
    max_size=50,
)


@dataclass
class World:
    """A cluster with extenders that refuse for each pod the same nodes."""

    twins: Twins
    refused: dict[str, frozenset[str]] = field(default_factory=dict)
    cores: dict[str, int] = field(default_factory=dict)
    nodes: set[str] = field(default_factory=set)
    placed: dict[str, str] = field(default_factory=dict)
    asked: dict[str, AskExtenders] = field(default_factory=dict)
    """The newest command for each pod that was not answered."""
    questions: dict[str, set[str]] = field(default_factory=dict)
    """Nodes that the extenders were asked about in the newest command."""
    now: float = 0.0
    serial: int = 0

    def pod(self, name: str, on: str = "", **more) -> Pod:
        return a_pod(name, cpu=self.cores[name], on=on, **more)

    def feed(self, *happened: Event) -> None:
        todo: list[Event] = list(happened)
        while todo:
            commands = self.twins.feed(*todo)
            todo = [answer for command in commands if (answer := self.perform(command)) is not None]

    def perform(self, command: Command) -> Event | None:
        if isinstance(command, AskExtenders):
            assert ("strict", "scores") == command.extenders
            assert set(command.nodes) <= self.nodes
            self.asked[command.pod.name] = command
            self.questions[command.pod.name] = set(command.nodes)
        elif isinstance(command, Bind):
            self.check(command)
            self.placed[command.pod.name] = command.node
            return BindDone(command.pod.uid)
        return None

    def check(self, command: Bind) -> None:
        name, node = command.pod.name, command.node
        assert node not in self.refused[name]
        assert node in self.questions[name]
        assert node in self.nodes
        assert name not in self.placed
        used = sum(self.cores[other] for other, where in self.placed.items() if where == node)
        assert used + self.cores[name] <= NODES[node]

    def answer(self, command: AskExtenders, how: str = "plain") -> Event:
        if how == "error":
            return ExtendersAnswered(command.pod.uid, command.number, ExtenderAnswer(error="out of order"))
        number = command.number - (how == "late")
        no = tuple(node for node in command.nodes if node in self.refused[command.pod.name])
        scores = {node: len(node + command.pod.name) * index - 5 for index, node in enumerate(command.nodes)}
        given = ExtenderAnswer(
            refusals=(ExtenderRefusal(no, ("refused",)),) if no else (), scores=(ExtenderScores("scores", 30, scores),)
        )
        return ExtendersAnswered(command.pod.uid, number, given)

    def answer_one(self, place: int, how: str) -> None:
        if self.asked:
            name = sorted(self.asked)[place % len(self.asked)]
            command = self.asked[name]
            if how != "late":
                del self.asked[name]
            self.feed(self.answer(command, how))

    def step(self, kind: str, first, second) -> None:
        waiting = sorted(self.refused.keys() - self.placed.keys())
        name = waiting[first % len(waiting)] if isinstance(first, int) and waiting else ""
        match kind:
            case "pod":
                self.serial += 1
                new = f"p{self.serial}"
                self.cores[new], self.refused[new] = first, second
                self.feed(PodSeen(self.pod(new)))
            case "answer":
                self.answer_one(first, second)
            case "node":
                self.nodes.add(first)
                self.feed(NodeSeen(a_node(first, cpu=NODES[first])))
            case "lose" if first in self.nodes:
                self.nodes.discard(first)
                gone = [pod for pod, where in self.placed.items() if where == first]
                for pod in gone:
                    del self.placed[pod], self.refused[pod]
                self.feed(NodeGone(first), *(PodGone(self.pod(pod).uid) for pod in gone))
            case "delete" if name:
                self.forget(name)
                self.feed(PodGone(self.pod(name).uid))
            case "foreign" if name and self.nodes:
                free = [node for node in sorted(self.nodes) if self.free(node) >= self.cores[name]]
                if free:
                    self.placed[name] = free[0]
                    self.asked.pop(name, None)
                    self.feed(PodSeen(self.pod(name, on=free[0])))
            case "update" if name:
                self.feed(PodSeen(self.pod(name, labels={"serial": str(self.now)})))
            case "time":
                self.now += 0.7 * (first + 1)
                self.feed(TimePassed(self.now))
            case "cut":
                self.twins.cut()
            case "take" if self.asked:
                # An instance that does not lead: the answer arrives and is not used.
                asked = sorted(self.asked)[first % len(self.asked)]
                self.twins.take(self.answer(self.asked.pop(asked)))

    def free(self, node: str) -> int:
        return NODES[node] - sum(self.cores[pod] for pod, where in self.placed.items() if where == node)

    def forget(self, name: str) -> None:
        for each in (self.refused, self.asked, self.questions):
            each.pop(name, None)

    def settle(self) -> None:
        """Answer everything and let time pass until nothing is asked any more."""
        for _ in range(12):
            self.now += 61.0
            self.feed(TimePassed(self.now))
            while self.asked:
                self.answer_one(0, "plain")


@given(steps, st.integers(0, 3))
def test_no_pod_is_bound_to_a_node_that_an_extender_refused_or_that_does_not_fit(history, seed):
    settings = LoopSettings(extenders=CHAIN)
    world = World(Twins(lambda pick: a_loop(CORE, settings=settings, pick=pick), random.Random(seed)))
    for kind, first, second in history:
        world.step(kind, first, second)

    world.settle()

    assert 0 == len(world.twins.loop.waits)
    for name in world.refused.keys() - world.placed.keys():
        left = world.nodes - world.refused[name]
        assert all(world.free(node) < world.cores[name] for node in left), f"{name} fits and is not bound"
    world.twins.finish()
