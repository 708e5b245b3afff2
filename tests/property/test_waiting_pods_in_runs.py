"""
No waiting pod of a simulation fits anywhere for longer than its back-off, whatever volumes, budgets and affinity say.

A run ends when time alone changes nothing: every back-off is over. A new loop that sees the same cluster then places no
waiting pod. The periodic retry of all pods is off, because it would hide a missed wake-up.
"""

import os
from collections.abc import Collection, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lamina.model.cluster_objects import ObjectKey, key_of
from lamina.model.events import (
    Event,
    ImagesLearned,
    NodeGone,
    NodeSeen,
    ObjectGone,
    ObjectSeen,
    PodGone,
    PodSeen,
    TimePassed,
)
from lamina.model.pod import PodTerm
from lamina.model.pod_volumes import CLAIM, PodVolume
from lamina.model.selectors import LabelSelector
from lamina.model.volumes import READ_WRITE_ONCE_POD, CSINode, DriverLimit
from lamina.scheduling.config.named_profiles import named
from lamina.scheduling.contract.commands import Bind, Command, DoWork
from lamina.scheduling.loop import scheduling_queue
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.loop.loop_state import LoopSettings
from lamina.scheduling.plugins.in_tree import registry
from lamina.simulator.cluster import Delays
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.controllers import ControllerSpec
from lamina.simulator.controllers.controller_spec import ClaimTemplate
from lamina.simulator.decider import LoopDecider
from lamina.simulator.run import simulate
from lamina.simulator.workloads import PodArrival, Scenario, ScenarioEvent, ScenarioObject
from lamina.simulator.workloads.object_entries import manifest_object
from lamina.testing import a_pod, an_image
from lamina.testing.volume_builders import GIB, a_claim, a_class, a_volume
from tests.unit.simulator.test_run import a_node_spec

EXAMPLES = int(os.environ.get("LAMINA_WAITING_EXAMPLES", "60"))
CONFIGURATION = named("kube-default", registry(entry_points=False))
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
WEB = LabelSelector((("app", "web"),))
TERMS = [(), (), (), (PodTerm(ZONE, WEB),), (PodTerm(HOSTNAME, WEB),)]
CLAIMS = ("c0", "c1", "c2", "c3")
TIMES = st.integers(0, 40).map(float)


class WatchedLoop:
    """The loop of a run, and the last state of everything that it was told."""

    def __init__(self) -> None:
        self._decider = LoopDecider(new_loop())
        self.names: Collection[str] = self._decider.names
        self.now = 0.0
        self.images: list[ImagesLearned] = []
        self.nodes: dict[str, NodeSeen] = {}
        self.pods: dict[str, PodSeen] = {}
        self.objects: dict[ObjectKey, ObjectSeen] = {}

    @property
    def attempts(self) -> int:
        return self._decider.attempts

    @property
    def trying(self) -> bool:
        return self._decider.trying

    @property
    def asked_until(self) -> float | None:
        return self._decider.asked_until

    def feed(self, *events: Event) -> Sequence[Command]:
        for event in events:
            match event:
                case TimePassed(now):
                    self.now = now
                case ImagesLearned():
                    self.images.append(event)
                case NodeSeen(node):
                    self.nodes[node.name] = event
                case NodeGone(name):
                    self.nodes.pop(name, None)
                case PodSeen(pod):
                    self.pods[pod.uid] = event
                case PodGone(uid):
                    self.pods.pop(uid, None)
                case ObjectSeen(found):
                    self.objects[key_of(found)] = event
                case ObjectGone(key):
                    self.objects.pop(key, None)
        return self._decider.feed(*events)

    def placeable(self) -> list[str]:
        """Return the waiting pods that a new loop would place."""
        waiting = [event for event in self.pods.values() if not event.pod.node_name]
        held = [event for event in self.pods.values() if event.pod.node_name]
        found = []
        for one in waiting:
            nominated = [event for event in waiting if event is not one and event.pod.nominated_node]
            loop = new_loop()
            # Nominated pods of another scheduler name hold their room and are not tried.
            others = [PodSeen(replace(event.pod, scheduler_name="another")) for event in nominated]
            loop.feed(*self.images, *self.objects.values(), *self.nodes.values(), *held, *others)
            commands = loop.feed(TimePassed(self.now), one)
            found += [command.pod.name for command in commands if isinstance(command, Bind | DoWork)]
        return found


def new_loop() -> Loop:
    return Loop(CONFIGURATION.profiles, lambda count: 0, LoopSettings(backoff=CONFIGURATION.backoff, detail="none"))


@st.composite
def pods(draw: st.DrawFn, number: int) -> PodArrival:
    claims = draw(st.lists(st.sampled_from(CLAIMS), max_size=2, unique=True))
    pod = replace(
        a_pod(
            f"p{number}",
            cpu=draw(st.integers(0, 3)) or None,
            image="web",
            priority=draw(st.sampled_from([0, 0, 1, 2])),
            labels={"app": draw(st.sampled_from(["web", "db"]))},
            scheduler="",
        ),
        repels=draw(st.sampled_from(TERMS)),
        required_pods=draw(st.sampled_from(TERMS)),
        volumes=tuple(PodVolume(CLAIM, name) for name in claims),
    )
    seconds = draw(st.sampled_from([None, 3.0, 17.0]))
    life = PodLifecycle(seconds=seconds, grace=4.0, stopping=draw(st.sampled_from([0.0, 2.0])))
    return PodArrival(draw(TIMES), pod, life)


def limited(node: str, count: int) -> ScenarioObject:
    return ScenarioObject(CSINode(name=node, drivers=(DriverLimit("disks.example", count, (ZONE,)),)))


def claimed(number: int, of_class: str, *, once: bool) -> ScenarioObject:
    modes = [READ_WRITE_ONCE_POD] if once else ["ReadWriteOnce"]
    return ScenarioObject(replace(a_claim(f"c{number}", of_class=of_class, modes=modes), uid=f"uid-{number}"))


def budget(least: int) -> ScenarioObject:
    spec = {"minAvailable": least, "selector": {"matchLabels": {"app": "web"}}}
    return manifest_object("PodDisruptionBudget", {"metadata": {"name": "web"}, "spec": spec})


@st.composite
def crowded(draw: st.DrawFn) -> Scenario:
    """Draw a small crowded cluster with volumes and budgets, most of which come or change during the run."""
    zones = draw(st.lists(st.sampled_from("ab"), min_size=1, max_size=3))
    nodes = [
        a_node_spec(f"n{number}", cpu=draw(st.integers(2, 4)), holds=["web"], labels={ZONE: zone})
        for number, zone in enumerate(zones)
    ]
    late: list[ScenarioObject] = [limited(node.name, draw(st.integers(0, 2))) for node in nodes if draw(st.booleans())]
    late += [
        claimed(number, draw(st.sampled_from(["waits", "waits", "now", "static"])), once=draw(st.booleans()))
        for number in range(len(CLAIMS))
    ]
    late += [
        ScenarioObject(
            a_volume(f"v{number}", of_class="static", on=[draw(st.sampled_from("ab"))], label=ZONE, phase="")
        )
        for number in range(draw(st.integers(0, 2)))
    ]
    late.append(budget(draw(st.integers(0, 3))))
    late += [
        ScenarioObject(a_class("waits")),
        ScenarioObject(a_class("now", waits=False)),
        ScenarioObject(a_class("static", provisioner="kubernetes.io/no-provisioner")),
    ]
    times = [draw(st.sampled_from([0, 0, 0, 10, 30])) for _ in late]
    events = [
        ScenarioEvent(float(at), "apply", key_of(one.found).name, object=one)
        for at, one in zip(times, late, strict=True)
        if at
    ]
    for _ in range(draw(st.integers(0, 4))):
        at, name = draw(TIMES) + 1.0, draw(st.sampled_from([node.name for node in nodes]))
        events.append(
            draw(
                st.sampled_from(
                    [
                        ScenarioEvent(at, "cordon", name),
                        ScenarioEvent(at, "uncordon", name),
                        ScenarioEvent(at, "drain", name),
                        ScenarioEvent(at, "apply", name, object=limited(name, 5)),
                        ScenarioEvent(at, "apply", "web", object=budget(0)),
                        ScenarioEvent(at, "delete", "web", key=ObjectKey("PodDisruptionBudget", "default", "web")),
                        ScenarioEvent(at, "delete", "c0", key=ObjectKey("PersistentVolumeClaim", "default", "c0")),
                    ]
                )
            )
        )
    controllers = [
        ControllerSpec(
            kind="StatefulSet",
            name="db",
            at=draw(TIMES),
            template=a_pod("db", cpu=1, image="web", labels={"app": "db"}, scheduler=""),
            replicas=draw(st.integers(0, 2)),
            claims=(ClaimTemplate("data", GIB, draw(st.sampled_from(["waits", "now"]))),),
        ),
        ControllerSpec(
            kind="Deployment",
            name="web",
            at=draw(TIMES),
            template=a_pod("web", cpu=1, image="web", labels={"app": "web"}, scheduler=""),
            replicas=draw(st.integers(0, 4)),
        ),
    ]
    return Scenario(
        name="crowded",
        images=(an_image("web", {"L": 1}),),
        nodes=tuple(nodes),
        arrivals=tuple(
            sorted((draw(pods(number)) for number in range(draw(st.integers(1, 6)))), key=lambda one: one.at)
        ),
        objects=tuple(one for at, one in zip(times, late, strict=True) if not at),
        controllers=tuple(controllers),
        events=tuple(sorted(events, key=lambda one: one.at)),
        delays=Delays(start=0.5, provision=draw(st.sampled_from([0.0, 3.0]))),
        # Later than every back-off after the last event.
        until=4000.0,
    )


@pytest.mark.hypothesis
@pytest.mark.timeout(0)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(crowded(), st.integers(0, 2))
def test_no_waiting_pod_fits_anywhere_when_a_run_has_ended(scenario: Scenario, seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduling_queue, "FLUSH_AFTER", 1e9)
        watched = WatchedLoop()
        decider: Any = watched
        simulate(scenario, seed=seed, decider=decider)

    assert [] == watched.placeable()
