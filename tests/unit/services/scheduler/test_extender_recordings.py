"""Recordings of a scheduler with extenders: answers are events, waiting pods are part of the snapshot, keys are not kept."""

import json

from lamina.model.events import BindDone, Event, ExtendersAnswered, NodeSeen, PodSeen, TimePassed
from lamina.model.extender_answer import AllowedVictims, ExtenderAnswer, ExtenderRefusal, ExtenderScores
from lamina.scheduling.config.loader import load
from lamina.scheduling.contract.commands import AskExtenders, Bind, Evict
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.loop.loop_snapshot import what_is_lost
from lamina.scheduling.loop.loop_state import LoopSettings
from lamina.services.scheduler.event_ring import EventRing, TiePicks
from lamina.services.scheduler.recordings import RecordingWriter, configuration_text
from lamina.services.scheduler.replayer import replay_recording
from lamina.testing import a_node, a_pod
from tests.unit.services.scheduler.recorded import REGISTRY, records_of

SECRET = "c2VjcmV0LWtleQ=="
CONFIGURATION = load(
    f"""\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
- urlPrefix: https://a
  filterVerb: filter
  prioritizeVerb: prioritize
  preemptVerb: preempt
  weight: 2
  tlsConfig: {{certData: {SECRET}, keyData: {SECRET}}}
  managedResources:
  - name: example.com/gpu
    ignoredByScheduler: true
""",
    "f",
    REGISTRY,
)
GPU = {"example.com/gpu": 1}


class ExtendedLife:
    """A loop that is fed through a ring, with an extender that refuses n1 and prefers n3."""

    def __init__(self) -> None:
        picks = TiePicks(lambda count: count - 1)
        settings = LoopSettings(CONFIGURATION.backoff, "savings", extenders=CONFIGURATION.extenders)
        self.loop = Loop(CONFIGURATION.profiles, picks, settings)
        self.ring = EventRing(self.loop, picks, lambda: 1000.0)
        self.writer = RecordingWriter(CONFIGURATION, "savings", what_is_lost(self.loop.profiles))
        self.bound: dict[str, str] = {}
        self.evicted: list[str] = []
        self.feed(*(NodeSeen(a_node(f"n{number}")) for number in range(1, 5)))

    def feed(self, *happened: Event) -> list[AskExtenders]:
        """Feed events; bind at once, and return the questions."""
        asked: list[AskExtenders] = []
        self.ring.take(*happened)
        while commands := self.ring.decide(1):
            asked += [one for one in commands if isinstance(one, AskExtenders)]
            for one in commands:
                if isinstance(one, Evict):
                    self.evicted.append(one.pod.name)
                if isinstance(one, Bind):
                    self.bound[one.pod.name] = one.node
                    self.ring.take(BindDone(one.pod.uid))
        return asked

    def answer(self, command: AskExtenders) -> Event:
        given = ExtenderAnswer(
            refusals=(ExtenderRefusal(("n1",), ("no",)),), scores=(ExtenderScores("https://a", 20, {"n3": 9}),)
        )
        return ExtendersAnswered(command.pod.uid, command.number, given)


def test_a_replay_uses_the_recorded_answers_also_those_to_questions_before_the_recording(tmp_path):
    life = ExtendedLife()
    (early,) = life.feed(TimePassed(1.0), PodSeen(a_pod("early", more=GPU)))
    (kept,) = life.feed(PodSeen(a_pod("kept", more=GPU)))
    life.ring.take(life.answer(kept))
    life.ring._segments = [life.ring._begin()]

    life.feed(TimePassed(2.0), life.answer(early))
    (late,) = life.feed(PodSeen(a_pod("late", more=GPU)))
    life.feed(TimePassed(3.0), life.answer(late))

    assert {"early": "n3", "kept": "n3", "late": "n3"} == life.bound
    records = records_of(b"".join(life.writer.encode(life.ring.recording())), tmp_path)
    found = replay_recording("file", records, REGISTRY)
    assert found.equal, found.difference
    assert 4 == found.decisions


def test_a_replay_uses_the_recorded_answers_about_victims(tmp_path):
    life = ExtendedLife()
    life.feed(*(NodeSeen(a_node(f"n{number}", cpu=4)) for number in range(1, 5)))
    life.feed(*(PodSeen(a_pod(f"low-{number}", cpu=4, on=f"n{number}")) for number in range(1, 5)))
    (early,) = life.feed(TimePassed(1.0), PodSeen(a_pod("early", cpu=4, priority=9, more=GPU)))
    life.ring._segments = [life.ring._begin()]
    (late,) = life.feed(PodSeen(a_pod("late", cpu=4, priority=9, more=GPU)))

    for command, victim in ((early, "low-3"), (late, "low-2")):
        (allowed,) = [one for one in command.proposed if one.victims[0].name == victim]
        answer = ExtenderAnswer(victims=(AllowedVictims(allowed.node, (allowed.victims[0].uid,)),))
        life.feed(TimePassed(2.0), ExtendersAnswered(command.pod.uid, command.number, answer))

    assert ["low-3", "low-2"] == life.evicted
    records = records_of(b"".join(life.writer.encode(life.ring.recording())), tmp_path)
    found = replay_recording("file", records, REGISTRY)
    assert found.equal, found.difference


def test_keys_and_certificates_of_extenders_are_not_recorded():
    text = configuration_text(CONFIGURATION)

    assert SECRET not in text
    assert CONFIGURATION.extenders == load(json.dumps(json.loads(text)), "f", REGISTRY).extenders
