"""
Laws of preemption with extenders, on random histories.

No pod is evicted that the last answer about its preemptor did not allow, none of the preemptor's priority or above, none
twice, and none on a node that left. When the extender agrees to everything, every pod that room can be made for is bound in
the end. A loop made from a snapshot goes on as the first.
"""

import random
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lamina.model.events import (
    BindDone,
    Event,
    EvictFailed,
    ExtendersAnswered,
    NodeGone,
    NodeSeen,
    PodGone,
    PodSeen,
    TimePassed,
)
from lamina.model.extender_answer import AllowedVictims, ExtenderAnswer
from lamina.model.pod import Pod, PodUid
from lamina.scheduling.contract.commands import AskExtenders, Bind, Command, Evict, Nominate
from lamina.scheduling.contract.extender_chain import CalledExtender
from lamina.scheduling.loop.loop_state import LoopSettings
from lamina.testing import a_loop, a_node, a_pod
from tests.property.twin_loops import Twins

pytestmark = pytest.mark.slow

PLUGINS = ("PrioritySort", "NodeResourcesFit", "DefaultPreemption", "DefaultBinder")
CHAIN = (CalledExtender(name="strict", preempts=True),)
NODES = {"n1": 2, "n2": 3, "n3": 4}
"""Cores of the nodes."""
ANSWERS = ["all", "all", "first", "last", "none", "error", "more", "more", "more", "strange", "old"]

pods = st.tuples(st.just("pod"), st.integers(1, 3), st.integers(0, 3))
answers = st.tuples(st.just("answer"), st.integers(0, 5), st.sampled_from(ANSWERS))
crowds = st.lists(st.tuples(st.just("pod"), st.integers(1, 2), st.integers(0, 2)), min_size=4, max_size=8)
"""Pods that come first, and fill the nodes."""
steps = st.lists(
    st.one_of(
        pods,
        pods,
        answers,
        answers,
        st.tuples(st.just("evicted"), st.integers(0, 5), st.sampled_from(["gone", "gone", "leaves", "fails"])),
        st.tuples(st.sampled_from(["lose", "node"]), st.sampled_from(sorted(NODES)), st.none()),
        st.tuples(st.sampled_from(["delete", "update", "time", "cut"]), st.integers(0, 5), st.none()),
    ),
    min_size=15,
    max_size=50,
)


def millis(pod: Pod) -> int:
    return dict(pod.requests)["cpu"]


@dataclass
class World:
    """A cluster with an extender that decides about victims."""

    twins: Twins
    pods: dict[str, Pod] = field(default_factory=dict)
    """All pods, with their nodes."""
    nodes: set[str] = field(default_factory=set)
    asked: dict[str, AskExtenders] = field(default_factory=dict)
    """The newest question about each pod that was not answered."""
    allowed: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    """Node and uid of the victims that the last answer about a pod allowed."""
    evictions: dict[str, Evict] = field(default_factory=dict)
    nominated: dict[str, str] = field(default_factory=dict)
    now: float = 0.0
    serial: int = 0

    def feed(self, *happened: Event) -> None:
        todo: list[Event] = list(happened)
        while todo:
            commands = self.twins.feed(*todo)
            todo = [answer for command in commands if (answer := self.perform(command)) is not None]

    def perform(self, command: Command) -> Event | None:
        match command:
            case AskExtenders(pod, _, _, _, _, proposed):
                assert proposed
                for one in proposed:
                    assert one.node in self.nodes
                    assert one.victims
                    assert all(victim.priority < pod.priority for victim in one.victims)
                self.asked[pod.uid] = command
                self.allowed.pop(pod.uid, None)
            case Nominate(pod, node):
                self.nominated[pod.uid] = node
            case Evict(pod, preemptor, node):
                assert (node, pod.uid) in self.allowed.get(preemptor.uid, ()), "evicted without the extender"
                assert node in self.nodes
                assert pod.priority < preemptor.priority
                assert pod.uid not in self.evictions, "evicted twice"
                assert not self.pods[pod.uid].deleting
                assert node == self.nominated[preemptor.uid]
                self.evictions[pod.uid] = command
            case Bind(pod, node):
                self.pods[pod.uid] = replace(self.pods[pod.uid], node_name=node)
                self.asked.pop(pod.uid, None)
                assert sum(millis(one) for one in self.on(node)) <= 1000 * NODES[node]
                return BindDone(pod.uid)
        return None

    def on(self, node: str) -> list[Pod]:
        return [pod for pod in self.pods.values() if pod.node_name == node]

    def answer(self, command: AskExtenders, how: str) -> Event:
        number = command.number - (how == "old")
        proposed = list(command.proposed)
        if how in {"first", "last", "none"}:
            proposed = {"first": proposed[:1], "last": proposed[-1:], "none": []}[how]
        victims = [AllowedVictims(one.node, tuple(pod.uid for pod in one.victims)) for one in proposed]
        if how == "more":
            # All pods of the nodes, also those of high priority, and twice.
            victims = [AllowedVictims(one.node, tuple(pod.uid for pod in self.on(one.node)) * 2) for one in proposed]
        elif how == "strange":
            victims = [AllowedVictims("nowhere", (PodUid("p1"),)), AllowedVictims(proposed[0].node, (PodUid("none"),))]
        if how != "old":
            self.allowed[command.pod.uid] = {(one.node, uid) for one in victims for uid in one.uids}
        error = "out of order" if how == "error" else ""
        given = ExtenderAnswer(error=error) if error else ExtenderAnswer(victims=tuple(victims))
        if error:
            self.allowed[command.pod.uid] = set()
        return ExtendersAnswered(command.pod.uid, number, given)

    def answer_one(self, place: int, how: str) -> None:
        if self.asked:
            uid = sorted(self.asked)[place % len(self.asked)]
            command = self.asked[uid] if how == "old" else self.asked.pop(uid)
            self.feed(self.answer(command, how))

    def end_eviction(self, place: int, how: str) -> None:
        if not self.evictions:
            return
        uid = sorted(self.evictions)[place % len(self.evictions)]
        command = self.evictions.pop(uid)
        if how == "fails":
            self.feed(EvictFailed(PodUid(uid), command.preemptor.uid, "no"))
        elif how == "leaves":
            self.pods[uid] = replace(self.pods[uid], deleting=True, preempted=True)
            self.feed(PodSeen(self.pods[uid]))
        else:
            self.remove(uid)

    def remove(self, uid: str) -> None:
        for each in (self.pods, self.asked, self.evictions, self.allowed):
            each.pop(uid, None)
        self.feed(PodGone(PodUid(uid)))

    def step(self, kind: str, first, second) -> None:
        uids = sorted(self.pods)
        uid = uids[first % len(uids)] if isinstance(first, int) and uids else ""
        match kind:
            case "pod":
                self.serial += 1
                pod = a_pod(f"p{self.serial}", cpu=first, priority=second)
                self.pods[pod.uid] = pod
                self.feed(PodSeen(pod))
            case "answer":
                self.answer_one(first, second)
            case "evicted":
                self.end_eviction(first, second)
            case "node":
                self.nodes.add(first)
                self.feed(NodeSeen(a_node(first, cpu=NODES[first])))
            case "lose" if first in self.nodes:
                self.nodes.discard(first)
                self.feed(NodeGone(first))
                for pod in self.on(first):
                    self.remove(pod.uid)
            case "delete" if uid:
                self.remove(uid)
            case "update" if uid and not self.pods[uid].node_name:
                self.pods[uid] = replace(self.pods[uid], labels={"serial": str(self.now)})
                self.feed(PodSeen(self.pods[uid]))
            case "time":
                self.now += 0.7 * (first + 1)
                self.feed(TimePassed(self.now))
            case "cut":
                self.twins.cut()

    def settle(self) -> None:
        """Let the extender agree to everything, and let time pass until nothing is asked or evicted any more."""
        for _ in range(30):
            self.now += 61.0
            self.feed(TimePassed(self.now))
            while self.asked or self.evictions:
                self.answer_one(0, "all")
                self.end_eviction(0, "gone")
            for uid in [uid for uid, pod in self.pods.items() if pod.deleting]:
                self.remove(uid)


@given(crowds, steps, st.integers(0, 3))
def test_nothing_is_evicted_that_the_extender_did_not_allow(crowd, history, seed):
    settings = LoopSettings(extenders=CHAIN)
    world = World(Twins(lambda pick: a_loop(PLUGINS, settings=settings, pick=pick), random.Random(seed)))
    for kind, first, second in [*(("node", name, None) for name in sorted(NODES)), *crowd, *history]:
        world.step(kind, first, second)

    world.settle()

    assert 0 == len(world.twins.loop.waits)
    for pod in world.pods.values():
        if not pod.node_name:
            for node in world.nodes:
                kept = sum(millis(one) for one in world.on(node) if one.priority >= pod.priority)
                assert kept + millis(pod) > 1000 * NODES[node], f"room for {pod.name} could be made on {node}"
    world.twins.finish()
