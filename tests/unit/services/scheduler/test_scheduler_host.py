"""The host: feeds what was seen in portions, decides only when allowed, and sleeps when there is nothing to do."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from lamina.model.events import BindDone, BindFailed, Event, NodeSeen, PodGone, PodSeen
from lamina.model.pod import Pod
from lamina.scheduling.contract.commands import Bind, Command, Nominate, ReportUnschedulable
from lamina.scheduling.loop.loop import Loop
from lamina.services.informers.event_queue import EventQueue
from lamina.services.scheduler import executor
from lamina.services.scheduler import scheduler_host as module
from lamina.services.scheduler.executor import Executor
from lamina.services.scheduler.scheduler_host import PORTION, SLEEP_AT_MOST, SchedulerHost
from lamina.testing import a_loop, a_node, a_pod
from tests.unit.services.fakes import LoopClock, ScriptedClient, StillClock, leaping


@pytest.fixture(autouse=True)
def no_hurry(monkeypatch) -> None:
    """However slow the machine is, a slice is long enough; the test of slices sets its own."""
    monkeypatch.setattr(module, "SLICE", 10.0)


class Performer:
    """Writes down what it is asked to do, and when."""

    def __init__(self) -> None:
        self.busy = False
        self.done: list[Command] = []

    def perform(self, command: Command) -> None:
        self.done.append(command)

    @property
    def bound(self) -> list[str]:
        return [one.pod.name for one in self.done if isinstance(one, Bind)]

    @property
    def told(self) -> list[str]:
        return [one.pod.name for one in self.done if isinstance(one, ReportUnschedulable)]


class Watcher:
    def __init__(self) -> None:
        self.attempts: list[list[Command]] = []

    def attempted(self, seconds: float, commands: list[Command]) -> None:
        assert seconds >= 0
        self.attempts.append(commands)

    def unchanged(self, seconds: float, profile: str) -> None:
        assert seconds >= 0


class CountingInbox(EventQueue):
    """Counts how often somebody came to look."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0

    async def wait(self, timeout: float | None) -> None:
        self.looks += 1
        await super().wait(timeout)


class Stage:
    """A host with a real loop and nobody behind it."""

    def __init__(
        self,
        *,
        clock: Any = None,
        allowed: Callable[[], bool] = lambda: True,
        loop: Loop | None = None,
        stopwatch: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.inbox, self.performer, self.watcher = CountingInbox(), Performer(), Watcher()
        self.clock = clock or StillClock()
        self.loop = loop or a_loop()
        self.synced = True
        self.host = SchedulerHost(
            self.loop,
            self.inbox,
            self.performer,
            self.watcher,
            self.clock,
            allowed=allowed,
            synced=lambda: self.synced,
            stopwatch=stopwatch,
        )

    def see(self, *events: Event) -> None:
        for event in events:
            self.inbox.put(event)

    def run(self, seconds: float, *happens: tuple[float, Callable[[], object]]) -> "Stage":
        """Let the host run for so long; *happens*: what happens when."""

        async def story() -> None:
            task = asyncio.create_task(self.host.run())
            left = seconds
            for after, act in happens:
                await asyncio.sleep(after)
                left -= after
                act()
            await asyncio.sleep(left)
            if task.done():
                task.result()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        leaping(story())
        return self


def small(name: str = "p1", **more: Any) -> PodSeen:
    return PodSeen(a_pod(name, cpu="10m", **more))


HUGE = PodSeen(a_pod("huge", cpu=64))


# ------------------------------------------------------------------------------------------------------------- deciding


def test_what_was_seen_is_taken_in_and_decided_in_order():
    stage = Stage(clock=LoopClock())
    stage.see(NodeSeen(a_node()), *(small(f"p{number}") for number in range(20)))
    stage.run(1.0)

    assert [f"p{number}" for number in range(20)] == stage.performer.bound
    assert 20 == len(stage.watcher.attempts)


def test_nobody_decides_before_it_is_allowed():
    stage = Stage(clock=LoopClock(), allowed=lambda: False)
    stage.see(NodeSeen(a_node()), small())
    stage.run(100.0)

    assert [] == stage.performer.done
    assert stage.host.caught_up, "what was seen is taken in all the same"


def test_nobody_decides_before_everything_that_was_seen_is_taken_in(monkeypatch):
    stage = Stage()
    monkeypatch.setattr(module, "TAKING", 0.0)
    stage.see(small(), *(NodeSeen(a_node(f"n{number}")) for number in range(2)))
    stage.host.step()
    stage.host.step()
    assert [] == stage.performer.done
    seen = [stage.host.caught_up]

    stage.host.step()
    assert [False, True] == [*seen, stage.host.caught_up]
    assert ["p1"] == stage.performer.bound


def test_once_allowed_a_ring_is_enough():
    allowed = [False]
    stage = Stage(clock=LoopClock(), allowed=lambda: allowed[0])
    stage.see(NodeSeen(a_node()), small())

    def allow() -> None:
        allowed[0] = True
        stage.inbox.wake()

    stage.run(10.0, (5.0, allow))
    assert ["p1"] == stage.performer.bound


def test_whoever_stops_leading_stops_deciding():
    leads = [True]
    stage = Stage(clock=LoopClock(), allowed=lambda: leads[0])
    stage.see(NodeSeen(a_node()), small("p1"))
    stage.run(10.0, (5.0, lambda: leads.__setitem__(0, False)), (1.0, lambda: stage.see(small("p2"))))

    assert ["p1"] == stage.performer.bound


class Ticking:
    """A stopwatch on which every look takes a millisecond: how quick the machine is makes no difference."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        self.at += 0.001
        return self.at


def test_others_get_their_turn_while_many_pods_are_decided(monkeypatch):
    monkeypatch.setattr(module, "SLICE", 0.005)
    stage = Stage(clock=LoopClock(), stopwatch=Ticking())
    stage.see(NodeSeen(a_node(pods=2000, cpu=1000)), *(small(f"p{number}") for number in range(400)))
    seen: list[int] = []

    async def story() -> None:
        task = asyncio.create_task(stage.host.run())
        while len(stage.performer.bound) < 400:
            seen.append(len(stage.performer.bound))
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    leaping(story())
    assert 3 < len(set(seen)), "in between, others came to look"


def test_150_000_events_are_taken_in_portions_and_nobody_starves():
    stage = Stage(clock=LoopClock(), stopwatch=Ticking())
    unplaced = [PodSeen(a_pod(f"other{number}", scheduler="somebody-else")) for number in range(1000)]
    stage.see(NodeSeen(a_node()), *(150 * unplaced), small("last"))
    turns = [0]

    async def story() -> None:
        task = asyncio.create_task(stage.host.run())
        while not stage.performer.bound:
            turns[0] += 1
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    leaping(story())
    assert ["last"] == stage.performer.bound
    assert 150_000 // round(module.TAKING / 0.001 + 1) <= turns[0]


def in_a_flood(stage: Stage, each: int, steps: int) -> list[int]:
    """Step while *each* further events come in before every step; return how many wait after each step."""
    left = []
    for step in range(steps):
        stage.see(*(PodGone(f"gone{step}-{number}") for number in range(each)))
        stage.host.step()
        left.append(stage.host.waiting)
    return left


def test_pods_are_decided_however_many_events_come_in(monkeypatch):
    """More come in than are taken in, for ever: after the first look every step decides for a slice."""
    monkeypatch.setattr(module, "SLICE", 0.005)
    stage = Stage(stopwatch=Ticking())
    stage.see(NodeSeen(a_node(pods=2000, cpu=1000)), *(small(f"p{number}") for number in range(100)))
    while not stage.host.caught_up:
        stage.host.step()
    before = len(stage.performer.bound)
    left = in_a_flood(stage, each=100, steps=10)

    assert sorted(left) == left, "it is a flood"
    assert left[-1] > 500
    # Two looks for each decision, in a slice of five looks.
    assert before + 10 * 2 <= len(stage.performer.bound)


def test_one_event_that_takes_long_leaves_a_fair_share_for_deciding(monkeypatch):
    """A second for each event (there were such): a slice of 5 ms would be nothing."""
    monkeypatch.setattr(module, "SLICE", 0.005)
    watch = Ticking()
    stage = Stage(stopwatch=watch)
    stage.see(NodeSeen(a_node(pods=2000, cpu=1000)), *(small(f"p{number}") for number in range(400)))
    while not stage.host.caught_up:
        stage.host.step()
    before, take = len(stage.performer.bound), stage.loop.take

    def slowly(*events: Event) -> None:
        watch.at += 1.0 * sum(isinstance(event, PodGone) for event in events)
        take(*events)

    monkeypatch.setattr(stage.loop, "take", slowly)
    left = in_a_flood(stage, each=10, steps=1)

    assert [9] == left, "one is enough for a slice"
    # A quarter of a second, two or three looks for each decision.
    assert before + 80 <= len(stage.performer.bound)


def test_the_first_look_ends_although_events_keep_coming():
    stage = Stage(stopwatch=Ticking())
    stage.synced = False
    stage.see(small(), *(NodeSeen(a_node(f"n{number}")) for number in range(100)))
    in_a_flood(stage, each=50, steps=2)
    assert [False, []] == [stage.host.caught_up, stage.performer.done]

    stage.synced = True
    # With those that come before the next step, and in whole portions.
    waiting = stage.host.waiting + 50 + PORTION
    steps = 0
    while not stage.host.caught_up:
        assert [] == stage.performer.done, "nothing is decided before"
        in_a_flood(stage, each=50, steps=1)
        steps += 1
    assert steps <= waiting / 19
    assert ["p1"] == stage.performer.bound


# ---------------------------------------------------------------------------------------------------------- waking up


def test_a_pod_whose_binding_failed_is_tried_again_when_its_back_off_is_over():
    stage = Stage(clock=LoopClock())
    stage.see(NodeSeen(a_node()), small())
    stage.run(5.0, (0.1, lambda: stage.see(BindFailed("p1", "refused"))))

    assert ["p1", "p1"] == stage.performer.bound
    assert 10 > stage.inbox.looks


def test_nothing_to_do_is_slept_through():
    stage = Stage(clock=LoopClock())
    stage.see(NodeSeen(a_node()), small())
    stage.run(300.0)

    assert 300.0 / SLEEP_AT_MOST + 5 > stage.inbox.looks


def test_a_pod_that_fits_nowhere_is_no_reason_to_stay_up():
    stage = Stage(clock=LoopClock())
    stage.see(NodeSeen(a_node()), HUGE)
    stage.run(1000.0)

    assert ["huge"] == stage.performer.told, "told once, tried again every five minutes"
    assert 1000.0 / SLEEP_AT_MOST + 12 > stage.inbox.looks


@pytest.mark.parametrize("state", ["busy", "not allowed"])
def test_a_time_to_wake_up_that_has_passed_is_no_reason_to_spin(state):
    allowed = [True]
    stage = Stage(clock=LoopClock(), allowed=lambda: allowed[0])
    stage.see(NodeSeen(a_node()), small("p1"), HUGE)

    def stop() -> None:
        if state == "busy":
            stage.performer.busy = True
        else:
            allowed[0] = False
        stage.see(BindFailed("p1", "refused"), small("p2"))

    stage.run(120.0, (0.1, stop))
    assert 120.0 / SLEEP_AT_MOST + 8 > stage.inbox.looks
    assert ["p1"] == stage.performer.bound


def test_when_the_world_is_no_longer_busy_its_answer_is_enough_to_go_on():
    stage = Stage(clock=LoopClock())
    stage.performer.busy = True
    stage.see(NodeSeen(a_node()), small("p1"), small("p2"))

    def end() -> None:
        stage.performer.busy = False
        stage.see(BindDone("p0"))

    stage.run(10.0, (5.0, end))
    assert ["p1", "p2"] == stage.performer.bound


def test_deciding_stops_as_soon_as_the_world_is_busy():
    stage = Stage()

    class Soon(Performer):
        def perform(self, command: Command) -> None:
            super().perform(command)
            self.busy = len(self.bound) >= 3

    stage.performer = stage.host._performer = Soon()
    stage.see(NodeSeen(a_node()), *(small(f"p{number}") for number in range(10)))
    stage.host.step()

    assert 3 == len(stage.performer.bound)


def test_deciding_goes_on_as_soon_as_nominations_are_sent():
    stage = Stage(clock=LoopClock())

    class Deaf:
        def __getattr__(self, _: str) -> Callable[..., None]:
            return lambda *_: None

    async def story() -> list[str]:
        client = ScriptedClient(pause=0.1)
        performer = Executor(client, stage.inbox.put, Deaf(), Deaf(), clock=stage.clock, wake=stage.inbox.wake)
        stage.host._performer = performer
        for number in range(2 * executor.MOST_WAITING):
            performer.perform(Nominate(a_pod(f"nominated-{number}"), "n1"))
        stage.see(NodeSeen(a_node()), small())
        tasks = [asyncio.create_task(one.run()) for one in (performer, stage.host)]
        await asyncio.sleep(5.0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return client.short

    assert "POST binding" in leaping(story())


# ----------------------------------------------------------------------------------------------------------- stale news


def test_news_from_before_leadership_was_lost_are_not_told_about_a_pod_that_has_a_node_now():
    leads = [True]
    stage = Stage(allowed=lambda: leads[0])
    stage.see(NodeSeen(a_node()), small())
    stage.host.step()
    assert ["p1"] == stage.performer.bound

    leads[0] = False
    stage.see(BindFailed("p1", "this instance does not lead any more"))
    stage.host.step()
    pod: Pod = a_pod("p1", cpu="10m")
    stage.see(PodSeen(msgspec.structs.replace(pod, node_name="n1")))
    stage.host.step()
    leads[0] = True
    stage.clock.at += 100.0
    stage.host.step()

    assert [] == stage.performer.told


def test_an_attempt_that_ends_in_the_same_words_is_not_told_again_and_the_next_pod_is_looked_at():
    stage = Stage()
    stage.see(NodeSeen(a_node()), HUGE)
    stage.host.step()
    stage.clock.at += 400.0
    stage.see(small())
    stage.host.step()

    assert ["huge"] == stage.performer.told
    assert ["p1"] == stage.performer.bound


def test_unfinished_says_whether_pods_may_be_ready_that_were_not_looked_at():
    loop = a_loop()
    loop.take(NodeSeen(a_node()), small("p1"), small("p2"))
    said = [loop.unfinished]
    for _ in range(3):
        loop.decide(1)
        said.append(loop.unfinished)

    assert [False, True, False, False] == said


def test_a_pod_that_fits_nowhere_leaves_nothing_unfinished_once_nobody_is_ready():
    loop = a_loop()
    loop.take(NodeSeen(a_node()), HUGE)
    said = []
    for _ in range(2):
        loop.decide(1)
        said.append(loop.unfinished)

    assert [True, False] == said, "the first may have left others; the second found nobody"
