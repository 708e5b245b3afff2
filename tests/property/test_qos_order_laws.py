"""Laws of QosAware in the loop: the queue is in a fresh order, protected pods stay, evictions are bounded, replays equal."""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.model import events
from lamina.model.pod import Pod
from lamina.scheduling.contract.commands import Bind, Evict, WakeAt
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.loop.loop_snapshot import assemble, pieces
from lamina.scheduling.plugins.qos_aware.args import QosAwareArgs
from lamina.testing import a_loop, a_node, a_pod

PLUGINS = ("QosAware", "NodeResourcesFit", "DefaultBinder")
MINIMUM = 20.0
SLOTS = 2
SLOS = (0.5, 0.8, 0.9, 1.0)
STEPS = st.lists(
    st.tuples(st.floats(min_value=0.1, max_value=40.0), st.integers(0, 4), st.booleans()), min_size=1, max_size=25
)


def promising(number: int, serial: int, at: float) -> Pod:
    pod = a_pod(
        f"c{number}-{serial}",
        cpu=1,
        annotations={"slo": f"{SLOS[number % 4]:g}", "controller": f"c{number}", "qosMeasuring": "average"},
    )
    return msgspec.structs.replace(pod, created_at=at)


def loop_of(mode: str) -> Loop:
    args: Any = QosAwareArgs(mode=mode, safety_margin=5, minimum_running_time=MINIMUM, cycle=60)
    loop = a_loop(PLUGINS, args={"QosAware": args})
    loop.feed(events.NodeSeen(a_node("n1", cpu=SLOTS)), events.TimePassed(1.0))
    return loop


class Story:
    """A cluster of controllers with one pod each: victims come back at once."""

    def __init__(self, mode: str) -> None:
        self.loop, self.now, self.serial = loop_of(mode), 1.0, 0
        self.on: dict[int, tuple[str, float]] = {}
        self.evicted: list[tuple[float, int, float, int]] = []
        self.known: set[int] = set()

    def feed(self, *happened: events.Event) -> list[Any]:
        todo, commands = list(happened), []
        for _ in range(50):
            if not todo:
                break
            told = self.loop.feed(*todo)
            commands += told
            todo = [answer for command in told for answer in self.answers(command)]
        assert not todo, "an eviction storm"
        return commands

    def answers(self, command: Any) -> list[events.Event]:
        if isinstance(command, Bind):
            number = int(command.pod.name[1:].split("-")[0])
            self.on[number] = (command.pod.uid, self.now)
            return [events.PodSeen(msgspec.structs.replace(command.pod, node_name="n1", bound_at=self.now))]
        if isinstance(command, Evict):
            number = int(command.pod.name[1:].split("-")[0])
            uid, since = self.on.pop(number)
            assert uid == command.pod.uid
            self.evicted.append((self.now, number, self.now - since, int(command.preemptor.name[1:].split("-")[0])))
            return [events.PodGone(uid), self.created(number)]
        return []

    def created(self, number: int) -> events.Event:
        self.serial += 1
        self.known.add(number)
        return events.PodSeen(promising(number, self.serial, self.now))

    def step(self, seconds: float, number: int, *, new: bool) -> None:
        self.now += seconds
        happened: list[events.Event] = [events.TimePassed(self.now)]
        if new and number not in self.known:
            happened.append(self.created(number))
        self.feed(*happened)


@settings(max_examples=25, deadline=None)
@given(STEPS, st.sampled_from(["original", "lamina"]))
def test_protected_pods_stay_and_evictions_are_bounded(steps, mode):
    """A pod goes after the minimum running time, or for a more important one; so each slot changes that seldom."""
    story = Story(mode)
    for seconds, number, new in steps:
        story.step(seconds, number, new=new)
    for _, victim, ran, preemptor in story.evicted:
        more = SLOS[preemptor % 4] > SLOS[victim % 4]
        assert ran >= MINIMUM - 1e-6 or more
        assert victim != preemptor
    equal = sum(1 for _, victim, _, preemptor in story.evicted if SLOS[preemptor % 4] <= SLOS[victim % 4])
    assert equal <= SLOTS * (story.now / MINIMUM + 1)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.floats(0.1, 30.0), st.integers(0, 4), st.booleans()), min_size=1, max_size=20))
def test_the_queue_is_in_the_order_of_a_fresh_computation(steps):
    """Pods leave an active queue in the order in which the engine sorts them at that moment."""
    loop = a_loop(("QosAware", "DefaultBinder"), args={"QosAware": QosAwareArgs(safety_margin=5)})
    profile = loop.profiles["default-scheduler"]
    now, serial = 1.0, 0
    for seconds, number, bound in steps:
        now, serial = now + seconds, serial + 1
        pod = promising(number, serial, now)
        loop.take(events.TimePassed(now), events.PodSeen(pod))
        if bound:
            loop.take(events.PodSeen(msgspec.structs.replace(pod, node_name="n1", bound_at=now)))
    waiting = list(loop.queue)
    fresh = sorted(waiting, key=lambda queued: (profile.queue_sort.sort_key(queued, now), queued.serial))
    left = []
    while (queued := loop.queue.pop()) is not None:
        left.append(queued.pod.name)
    assert left == [queued.pod.name for queued in fresh]


@settings(max_examples=15, deadline=None)
@given(STEPS, st.integers(0, 24), st.sampled_from(["original", "lamina"]))
def test_a_restored_loop_decides_the_same(steps, cut, mode):
    """Replay equals online: from a snapshot on, the same events lead to the same commands."""
    story = Story(mode)
    for seconds, number, new in steps[:cut]:
        story.step(seconds, number, new=new)
    twin = a_loop(
        PLUGINS, args={"QosAware": QosAwareArgs(mode=mode, safety_margin=5, minimum_running_time=MINIMUM, cycle=60)}
    )
    twin.restore(assemble(pieces(story.loop.snapshot())))
    for seconds, number, new in steps[cut:]:
        story.now += seconds
        happened: list[events.Event] = [events.TimePassed(story.now)]
        if new and number not in story.known:
            happened.append(story.created(number))
        one, other = story.loop.feed(*happened), twin.feed(*happened)
        assert [command for command in one if not isinstance(command, WakeAt)] == [
            command for command in other if not isinstance(command, WakeAt)
        ]
