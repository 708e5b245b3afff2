"""
Laws of everything that goes by layers, over random histories of a cluster under the profiles that come along.

A whole loop places pods while nodes join, leave, are replaced and change, reports come early, late, twice, about other
machines or not at all any more, bindings fail or hang, pods start, finish and are deleted by others, names expire and time
passes in small and large steps. Whatever happens:

- every score is within 0..100, and no plugin raises, also not while it explains itself;
- an evaluation that was kept says what a new one says, also one for which nothing about images was kept;
- what is told about a node adds up;
- the same history leads to the same decisions and the same words, whether somebody looks in between or not.

LAMINA_HISTORIES says how many histories each profile has to live through.
"""

import os
import random
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.model import events
from lamina.model.decision import Decision
from lamina.model.events import Event
from lamina.model.image import Image, Platform
from lamina.model.node import Node
from lamina.model.pod import Owner, Pod, PodUid
from lamina.model.taints import NO_SCHEDULE, Taint
from lamina.scheduling.config.named_profiles import named
from lamina.scheduling.contract.commands import Bind, Command, ReportUnschedulable
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.loop.loop_state import LoopSettings
from lamina.scheduling.plugins.in_tree import registry
from lamina.scheduling.runtime.evaluation_cache import EvaluationCache
from lamina.scheduling.runtime.shape_evaluation import ShapeEvaluation
from lamina.testing import a_digest, a_node, a_pod, an_image, held

HISTORIES = int(os.environ.get("LAMINA_HISTORIES", "45"))
# One takes a seventh of a second on a busy machine.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(max(300, HISTORIES))]
STEPS = 30
KNOWN = registry(entry_points=False)

MB = 1_000_000
ARM = Platform("linux", "arm64")
NAMES = [f"n{number}" for number in range(6)]
PODS = [f"pod-{number}" for number in range(12)]
ANNOTATION = "lamina.dev/layer-locality"

LAYERS = {"os": 100 * MB, "python": 200 * MB, "torch": 4000 * MB, "app": 30 * MB, "tiny": 32, "empty": 0}


def _image(name: str, *layers: str, platform: Platform | None = None, version: str = "") -> Image:
    image = an_image(name, {layer: LAYERS.get(layer, 50 * MB) for layer in layers}, platform)
    return msgspec.structs.replace(image, digest=a_digest(f"{name}{version}{platform}"))


IMAGES = [
    _image("base:1", "os"),
    _image("app:1", "os", "python", "app", "tiny"),
    _image("app:2", "os", "python", "app again"),
    _image("app:2", "os", "python", "app once more", version="moved"),
    _image("torch:1", "os", "python", "torch"),
    _image("odd:1", "python", "os", "empty"),
    _image("scratch:1"),
    _image("app:1", "arm os", "arm app", platform=ARM),
    _image("base:1", "arm os", platform=ARM),
]
ASKED = [("app:1",), ("app:2",), ("base:1",), ("torch:1", "app:1"), ("odd:1", "base:1"), ("scratch:1",), ("new:1",)]
OWNERS = [None, Owner("ReplicaSet", "web", "u1"), Owner("Job", "night")]
WISHES: list[dict[str, str]] = [{}, {}, {}, {ANNOTATION: "off"}, {ANNOTATION: "40"}, {ANNOTATION: "huh"}]
SIZES = [("100m", "128Mi"), (1, "1Gi"), (2, "500Mi"), (None, None), (0, "0")]

PROBES = [
    a_pod("probe-0", cpu="100m", image="app:1"),
    a_pod("probe-1", cpu=1, memory="1Gi", images=["torch:1", "app:1"], owner=OWNERS[1]),
    a_pod("probe-2", images=["odd:1", "base:1"]),
    a_pod("probe-3", cpu=2, image="app:2", owner=OWNERS[2]),
    msgspec.structs.replace(a_pod("probe-4", image="app:1"), annotations={ANNOTATION: "40"}, namespace="kitchen"),
    a_pod("probe-5", image="new:1"),
]


class Dice:
    """One number, from which every choice of a step is read; it shrinks towards the first of each."""

    def __init__(self, number: int) -> None:
        self.number = number

    def pick(self, choices: Sequence[Any]) -> Any:
        """Take one."""
        self.number, index = divmod(self.number, len(choices))
        return choices[index]


class Life:
    """A loop, and what has happened to it so far."""

    def __init__(self, profile: str) -> None:
        self.loop = Loop(named(profile, KNOWN).profiles, random.Random(7).randrange, LoopSettings(detail="full"))
        self.now = 0.0
        self.sequence = 0
        self.pods: dict[str, Pod] = {}
        self.log: list[Command] = []

    # -- what happens ------------------------------------------------------------------------------------------------

    def step(self, number: int) -> None:
        """Let one thing happen, perform what comes back, and look at every decision."""
        dice = Dice(number)
        outcome = dice.pick(["confirmed", "confirmed", "confirmed", "done", "failed", "hangs"])
        kind = dice.pick(
            [
                *(self.arrival, self.arrival, self.arrival, self.foreign, self.start, self.start, self.gone),
                *(self.report, self.report, self.report, self.time, self.time),
                *(self.node, self.leaves, self.learned, self.namespace),
            ]
        )
        todo: list[Event] = list(kind(dice))
        for _ in range(5):
            commands = self.loop.feed(*todo)
            self.log.extend(commands)
            todo = [answer for command in commands for answer in self.perform(command, outcome)]
            if not todo:
                return

    def perform(self, command: Command, outcome: str) -> list[Event]:
        """Bind or do not; look at what was decided."""
        match command:
            case Bind(pod, node, decision):
                assert decision is not None
                judge(decision)
                if outcome == "failed":
                    return [events.BindFailed(pod.uid, "no luck")]
                self.pods[pod.name] = msgspec.structs.replace(pod, node_name=node)
                if outcome == "confirmed":
                    return [events.PodSeen(self.pods[pod.name])]
                return [events.BindDone(pod.uid)] if outcome == "done" else []
            case ReportUnschedulable(_, decision):
                judge(decision)
        return []

    def arrival(self, dice: Dice) -> tuple[Event, ...]:
        """Pods to be placed, up to three alike."""
        count, images, size, owner = (dice.pick(one) for one in ([1, 2, 3], ASKED, SIZES, OWNERS))
        more = {"annotations": dice.pick(WISHES), "namespace": dice.pick(["default", "kitchen"])}
        names = [dice.pick(PODS) for _ in range(count)]
        pods = [a_pod(name, size[0], size[1], images=images, owner=owner) for name in names]
        return tuple(events.PodSeen(msgspec.structs.replace(pod, **more)) for pod in pods)

    def foreign(self, dice: Dice) -> tuple[Event, ...]:
        """Somebody else bound a pod, perhaps to a node that is not there."""
        size = dice.pick(SIZES)
        pod = a_pod(dice.pick(PODS), size[0], size[1], images=dice.pick(ASKED), owner=dice.pick(OWNERS))
        pod = msgspec.structs.replace(pod, node_name=dice.pick(NAMES), started=dice.pick([False, False, True]))
        self.pods[pod.name] = pod
        return (events.PodSeen(pod),)

    def start(self, dice: Dice) -> tuple[Event, ...]:
        """A pod that has a node runs, ends, or is about to."""
        if not self.pods:
            return ()
        pod = self.pods[dice.pick(sorted(self.pods))]
        how = dice.pick(["started", "started", "started", "finished", "deleting"])
        return (events.PodSeen(msgspec.structs.replace(pod, **{how: True})),)

    def gone(self, dice: Dice) -> tuple[Event, ...]:
        """A pod is deleted."""
        name = dice.pick(PODS)
        self.pods.pop(name, None)
        return (events.PodGone(PodUid(name)),)

    def node(self, dice: Dice) -> tuple[Event, ...]:
        """A node joins, changes, or is replaced by another of its name."""
        return (events.NodeSeen(a_drawn_node(dice)),)

    def leaves(self, dice: Dice) -> tuple[Event, ...]:
        """A node leaves, and perhaps another comes in its place at once."""
        gone = events.NodeGone(dice.pick(NAMES))
        return (gone, events.NodeSeen(a_drawn_node(dice))) if dice.pick([False, True]) else (gone,)

    def report(self, dice: Dice) -> tuple[Event, ...]:
        """A report: new, late, stale, about another machine, or nonsense."""
        self.sequence += 1
        name, count = dice.pick(NAMES), dice.pick([1, 2, 0, 3])
        told = held(
            name, *(dice.pick(IMAGES) for _ in range(count)), sequence=dice.pick([self.sequence, self.sequence, 1])
        )
        return (
            events.LayersReported(
                msgspec.structs.replace(
                    told,
                    observed_at=max(self.now - dice.pick([0.0, 0.0, 20.0, 500.0, -1000.0]), 0.0),
                    renews_within=dice.pick([0.0, 30.0, 1.0]),
                    node_uid=dice.pick(["", "", "a", "b"]),
                    reuse=dice.pick(["prefix", "set"]),
                    download_rate=dice.pick([0.0, 50e6, 1e12, float("nan")]),
                    unpack_rate=dice.pick([0.0, 20e6, 1.0]),
                    disk=dice.pick([0, 10_000 * MB, 1000 * MB]),
                    disk_free=dice.pick([0, 500 * MB, 20_000 * MB]),
                )
            ),
        )

    def learned(self, dice: Dice) -> tuple[Event, ...]:
        """What some images consist of, for ever or for a while."""
        images = tuple(dice.pick(IMAGES) for _ in range(dice.pick([1, 2, 4])))
        return (events.ImagesLearned(images, dice.pick([0.0, 20.0, 300.0])),)

    def namespace(self, dice: Dice) -> tuple[Event, ...]:
        """A namespace changes its mind."""
        return (events.NamespaceSeen(dice.pick(["default", "kitchen"]), dice.pick(WISHES)),)

    def time(self, dice: Dice) -> tuple[Event, ...]:
        """Time passes; sometimes the clock goes back."""
        self.now = max(self.now + dice.pick([0.1, 1.0, 7.0, 31.0, 100.0, 1000.0, -5.0]), 0.0)
        return (events.TimePassed(self.now),)


def a_drawn_node(dice: Dice) -> Node:
    node = a_node(
        dice.pick(NAMES),
        cpu=dice.pick([4, 16, 2, 0]),
        memory=dice.pick(["16Gi", "2Gi"]),
        pods=dice.pick([110, 3]),
        uid=dice.pick(["a", "", "b"]),
        unschedulable=dice.pick([False, False, False, True]),
        taints=dice.pick([(), (), (Taint("gpu", "", NO_SCHEDULE),)]),
    )
    return msgspec.structs.replace(node, platform=dice.pick([Platform(), Platform(), ARM]))


BEGINNING = (
    events.ImagesLearned(tuple(IMAGES[:3] + IMAGES[4:])),
    *(events.NodeSeen(a_node(name, uid="a")) for name in NAMES[:4]),
    *(events.LayersReported(held(name, image)) for name, image in zip(NAMES[:3], IMAGES[1:], strict=False)),
)


# --------------------------------------------------------------------------------------------------------------- judging


def judge(decision: Decision) -> None:
    """Look whether a decision makes sense, whatever it was."""
    assert "raised" not in decision.message
    assert "returned" not in decision.message
    for verdict in decision.verdicts:
        for one in verdict.scores:
            assert 0 <= one.score <= 100
            if "total" in one.facts:
                parts = [one.facts[name] for name in ("present", "arriving", "missing")]
                assert (one.facts["total"], True) == (sum(parts), min(parts) >= 0)
                assert one.facts["ready_ms"] >= 0
                assert one.facts["crowding_ms"] >= -1
    story = decision.locality
    if story is not None:
        assert story.seconds >= 0
        assert story.download >= 0
        assert all((layer.seconds > 0) <= (layer.state == "arriving") for layer in story.layers)
        assert len({layer.digest for layer in story.layers}) == len(story.layers)


class Watcher:
    """Keeps evaluations for the probes and compares them with new ones."""

    def __init__(self, life: Life) -> None:
        self.cluster = life.loop.cluster
        self.profile = life.loop.profiles["default-scheduler"]
        self.kept = EvaluationCache(self.profile, self.cluster.columns)

    def look(self, *, from_scratch: bool = False) -> None:
        """Compare; *from_scratch* also forgets everything that was worked out about images."""
        kept = [self.kept.of(self.profile.shape(pod), pod) for pod in PROBES]
        if from_scratch:
            self.cluster.inventory.readiness_cache.clear()
        for pod, one in zip(PROBES, kept, strict=True):
            new = ShapeEvaluation(self.profile, self.cluster.columns, pod)
            assert new.stop == one.stop
            assert new.feasible.tolist() == one.feasible.tolist()
            assert new.totals.tolist() == one.totals.tolist()
            assert new.scores[:, new.feasible].tolist() == one.scores[:, one.feasible].tolist()
            assert np.isfinite(new.scores).all()


# ------------------------------------------------------------------------------------------------------------------ laws

histories = st.lists(st.integers(0, 2**64 - 1), min_size=STEPS // 2, max_size=STEPS)


def live_through(profile: str, history: Sequence[int]) -> None:
    """Let one loop be watched all the time and another one live alone: they decide the same, word for word."""
    watched, alone = Life(profile), Life(profile)
    watcher = Watcher(watched)
    for life in (watched, alone):
        life.loop.feed(*BEGINNING)
    watcher.look()
    for number in history:
        watched.step(number)
        alone.step(number)
        watcher.look(from_scratch=number % 5 == 0)
    watcher.look(from_scratch=True)

    assert alone.log == watched.log


@pytest.mark.parametrize("profile", ["lamina-balanced", "lamina-local", "ryax", "hotedge", "lrscheduler"])
@settings(max_examples=HISTORIES)
@given(histories)
def test_whatever_happens_decisions_make_sense_and_are_the_same_again(profile, history):
    """The laws above, for every profile that goes by layers."""
    live_through(profile, history)


def test_histories_are_worth_looking_at():
    """Pods are placed, refused and explained, and what is told of layers is not always the same."""
    dice = random.Random(1)
    placed, states, refused = 0, set[str](), 0
    for _ in range(10):
        life = Life("lamina-balanced")
        life.loop.feed(*BEGINNING)
        for _ in range(STEPS):
            life.step(dice.getrandbits(64))
        decisions = [command.decision for command in life.log if isinstance(command, Bind)]
        placed += len(decisions)
        refused += sum(isinstance(command, ReportUnschedulable) for command in life.log)
        states |= {layer.state for one in decisions if one and one.locality for layer in one.locality.layers}

    assert {"present", "arriving", "missing"} == states
    assert placed > 50
    assert refused > 10
