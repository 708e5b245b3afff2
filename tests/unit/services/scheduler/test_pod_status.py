"""What owners are told about their pods: the newest, once, and nothing old about a pod that has a node."""

import asyncio
import itertools
import json
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from lamina.clients.kube.event_recorder import EventRecorder
from lamina.clients.rate_limit import RateLimit
from lamina.model.events import Event, NodeSeen, PodSeen, ReportUnschedulableFailed, TimePassed
from lamina.scheduling.contract.commands import ReportUnschedulable
from lamina.services.scheduler import pod_status
from lamina.services.scheduler.pod_status import (
    LONGEST_ASKED,
    PAUSES,
    TRIES,
    WORKERS,
    WRITE_TIMEOUT,
    PodQueueState,
    PodStatusWriter,
)
from lamina.testing import a_loop, a_node, a_pod
from tests.unit.services.fakes import LOST, ScriptedClient, StillClock, a_decision, breathe, leaping, refused


class Desk:
    """A teller and what it writes."""

    def __init__(self, client: ScriptedClient, rate: float = 0.0, may_act: Callable[[], bool] = lambda: True) -> None:
        self.client = client
        self.recorder = EventRecorder(ScriptedClient(), "lamina", "lamina-here")
        self.answers: list[Event] = []
        self.standings: dict[str, PodQueueState] = {}
        self.teller = PodStatusWriter(
            client,
            self.recorder,
            RateLimit(rate, 1),
            may_act,
            StillClock(),
            answer=self.answers.append,
            standing=lambda uid: self.standings.get(uid, "waiting"),
        )

    def pending(self, name: str, message: str = "no room", outcome: str = "unschedulable") -> None:
        self.teller.pending(a_pod(name), a_decision(f"default/{name}", outcome=outcome, message=message))

    def work(self, story: Callable[[], Coroutine[Any, Any, object]]) -> "Desk":
        """Let the workers work while *story* happens, and until nothing is left."""

        async def whole() -> None:
            task = asyncio.create_task(self.teller.run())
            await breathe()
            await story()
            await asyncio.sleep(1000.0)
            if task.done():
                task.result()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        leaping(whole())
        return self

    @property
    def told(self) -> list[tuple[str, str]]:
        """Pod and message of each condition that was written."""
        found = []
        for asked in self.client.asked:
            (condition,) = json.loads(asked.body)["status"]["conditions"]
            found.append((asked.path.split("/")[-2], condition["message"]))
        return found


def at_once(desk: Desk, *what: Callable[[], object]) -> Desk:
    async def story() -> None:
        for one in what:
            one()

    return desk.work(story)


@pytest.mark.parametrize(
    ("outcome", "reason"), [("unschedulable", "Unschedulable"), ("failed", "SchedulerError")], ids=["refused", "broke"]
)
def test_a_condition_is_written_in_kube_schedulers_words(outcome, reason):
    desk = Desk(ScriptedClient())
    at_once(desk, lambda: desk.pending("p1", "0/3 nodes are available", outcome))

    (asked,) = desk.client.asked
    assert ("PATCH", "/api/v1/namespaces/default/pods/p1/status") == (asked.method, asked.path)
    assert "p1" == json.loads(asked.body)["metadata"]["uid"]
    (condition,) = json.loads(asked.body)["status"]["conditions"]
    assert {"type": "PodScheduled", "status": "False", "reason": reason, "message": "0/3 nodes are available"} == {
        name: value for name, value in condition.items() if name != "lastTransitionTime"
    }


def test_only_the_newest_news_of_a_pod_is_told():
    desk = Desk(ScriptedClient())
    at_once(
        desk, lambda: desk.pending("p1", "old"), lambda: desk.pending("p2", "two"), lambda: desk.pending("p1", "new")
    )

    assert [("p1", "new"), ("p2", "two")] == desk.told


def test_a_pod_whose_message_keeps_changing_keeps_its_place_among_those_that_wait():
    desk = Desk(ScriptedClient(), rate=1.0)

    async def story() -> None:
        for number in range(10):
            desk.pending(f"p{number}")
        for number in range(5):
            desk.pending("p3", f"news {number}")
            await asyncio.sleep(1.0)

    desk.work(story)
    assert [f"p{number}" for number in range(10)] == [pod for pod, _ in desk.told[:10]]


def test_a_pod_that_was_bound_before_it_was_told_is_told_nothing():
    desk = Desk(ScriptedClient())
    at_once(desk, lambda: desk.pending("p1"), lambda: desk.teller.bound(a_pod("p1"), "n1"), lambda: desk.pending("p2"))

    assert [("p2", "no room")] == desk.told


def test_a_pod_that_is_bound_while_its_news_wait_for_the_rate_limit_is_told_nothing():
    desk = Desk(ScriptedClient(), rate=1.0)

    async def story() -> None:
        desk.pending("p1")
        desk.pending("p2")
        await asyncio.sleep(0.5)
        desk.teller.bound(a_pod("p2"), "n1")

    desk.work(story)
    assert [("p1", "no room")] == desk.told


def test_news_that_are_replaced_while_older_ones_are_written_are_written_too():
    desk = Desk(ScriptedClient(pause=1.0))

    async def story() -> None:
        desk.pending("p1", "old")
        await asyncio.sleep(0.5)
        desk.pending("p1", "new")

    desk.work(story)
    assert [("p1", "old"), ("p1", "new")] == desk.told


def test_who_does_not_lead_writes_no_conditions():
    desk = Desk(ScriptedClient(), may_act=lambda: False)
    at_once(desk, lambda: desk.pending("p1"))

    assert [] == desk.told


@pytest.mark.parametrize(
    ("trouble", "pods", "answers"),
    [
        pytest.param(LOST, ["p1", "p2", "p1"], [], id="lost"),
        pytest.param(refused(500), ["p1", "p2", "p1"], [], id="in trouble"),
        pytest.param(refused(429), ["p1", "p2", "p1"], [], id="too many requests"),
        pytest.param(refused(409), ["p1", "p2", "p1"], [], id="conflict"),
        pytest.param(refused(401), ["p1", "p2"], [ReportUnschedulableFailed("p1")], id="not known"),
        pytest.param(refused(403), ["p1", "p2"], [ReportUnschedulableFailed("p1")], id="forbidden"),
        pytest.param(refused(422), ["p1", "p2"], [ReportUnschedulableFailed("p1")], id="not valid"),
        pytest.param(ZeroDivisionError("odd"), ["p1", "p2"], [ReportUnschedulableFailed("p1")], id="unexpected"),
    ],
)
def test_a_condition_that_cannot_be_written_is_logged_and_retried_or_answered(trouble, pods, answers, caplog):
    desk = Desk(ScriptedClient(trouble))
    with caplog.at_level(logging.WARNING):
        at_once(desk, lambda: desk.pending("p1"), lambda: desk.pending("p2"))

    assert pods == [pod for pod, _ in desk.told]
    assert any(line.startswith("pod condition write failed") and "default/p1" in line for line in caplog.messages)
    assert not desk.teller._news
    assert answers == desk.answers


def test_newer_news_is_written_although_the_server_refused_the_older():
    desk = Desk(ScriptedClient(refused(422), pause=1.0))

    async def story() -> None:
        desk.pending("p1", "odd")
        await asyncio.sleep(0.5)
        desk.pending("p1", "plain")

    desk.work(story)
    assert [("p1", "odd"), ("p1", "plain")] == desk.told
    assert [] == desk.answers


def test_a_pod_that_is_gone_is_no_trouble(caplog):
    desk = Desk(ScriptedClient(refused(404)))
    at_once(desk, lambda: desk.pending("p1"))

    assert [] == [line for line in caplog.messages if "cannot write" in line]
    assert [] == desk.answers
    assert not desk.teller._news


def test_no_more_are_written_at_once_than_there_are_workers():
    desk = Desk(ScriptedClient(pause=0.5))
    at_once(desk, *(lambda number=number: desk.pending(f"p{number}") for number in range(40)))

    assert WORKERS == desk.client.most_underway
    assert 40 == len(desk.told)


def test_beyond_what_may_wait_the_oldest_are_given_up(monkeypatch):
    monkeypatch.setattr(pod_status, "MOST_WAITING", 10)
    desk = Desk(ScriptedClient())
    at_once(desk, *(lambda number=number: desk.pending(f"p{number}") for number in range(25)))

    assert 15 == desk.teller.given_up
    assert [ReportUnschedulableFailed(f"p{number}") for number in range(15)] == desk.answers, (
        "the loop reports them again"
    )
    assert [f"p{number}" for number in range(15, 25)] == [pod for pod, _ in desk.told]


def test_the_bell_never_falls_behind_whatever_happens_in_between(monkeypatch):
    """Given up, bound, told again, in every order: what is left at the end is told, and nobody waits for ever."""
    monkeypatch.setattr(pod_status, "MOST_WAITING", 3)
    desk = Desk(ScriptedClient(pause=0.01))

    async def story() -> None:
        for number in range(60):
            desk.pending(f"p{number % 7}", f"news {number}")
            if number % 3 == 0:
                desk.teller.bound(a_pod(f"p{number % 5}"), "n1")
            if number % 4 == 0:
                await asyncio.sleep(0.001 * (number % 11))
        for name in ("p1", "p2", "p3"):
            desk.pending(name, "the last word")

    desk.work(story)
    last = dict(desk.told)
    assert {"the last word"} == {last[name] for name in ("p1", "p2", "p3")}
    assert not desk.teller._news


def test_news_of_many_pods_that_were_bound_meanwhile_costs_no_worker_anything():
    looks = itertools.count()
    desk = Desk(ScriptedClient(), may_act=lambda: next(looks) >= 0)
    pod, decision = a_pod(), a_decision(outcome="unschedulable")

    async def story() -> None:
        for _ in range(5_000):
            desk.teller.pending(pod, decision)
            desk.teller.bound(pod, "n1")

    desk.work(story)
    assert 0 == next(looks)
    assert [] == desk.told


def test_events_say_what_kube_scheduler_says():
    desk = Desk(ScriptedClient())
    client = ScriptedClient()
    desk.recorder._client = client

    async def story() -> None:
        desk.pending("p1", "0/1 nodes are available: 1 Insufficient cpu.")
        desk.teller.bound(a_pod("p1"), "n1")
        task = asyncio.create_task(desk.recorder.run())
        assert await desk.recorder.drain(5.0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    leaping(story())
    said = [json.loads(asked.body) for asked in client.asked]
    assert [
        ("FailedScheduling", "Scheduling", "0/1 nodes are available: 1 Insufficient cpu."),
        ("Scheduled", "Binding", "Successfully assigned default/p1 to n1"),
    ] == sorted((one["reason"], one["action"], one["note"]) for one in said)


def test_news_that_cannot_be_written_down_end_nothing():
    desk = Desk(ScriptedClient())
    at_once(desk, lambda: desk.pending("p1", "odd \ud800"), lambda: desk.pending("p2"))

    assert ("p2", "no room") in desk.told
    assert [ReportUnschedulableFailed("p1")] == desk.answers


def test_a_condition_that_stays_false_began_when_it_began():
    desk = Desk(ScriptedClient())

    async def story() -> None:
        desk.pending("p1", "first")
        await asyncio.sleep(1.0)
        desk.pending("p1", "second")

    desk.work(story)
    first, second = (json.loads(asked.body)["status"]["conditions"][0] for asked in desk.client.asked)
    assert ("lastTransitionTime" in first, "lastTransitionTime" in second) == (True, False)


# ----------------------------------------------------------------------------------------------------------- trying again


class Hanging(ScriptedClient):
    """Does not answer its first requests at all."""

    def __init__(self, hangs: int) -> None:
        super().__init__()
        self.hangs = hangs

    async def request(self, method: str, path: str, **more: Any) -> bytes:
        answer = await super().request(method, path, **more)
        if len(self.asked) <= self.hangs:
            await asyncio.sleep(3600.0)
        return answer


def test_attempts_are_spread_by_back_off_and_end_in_an_answer_to_the_loop():
    desk = Desk(ScriptedClient(then=refused(503)))
    at_once(desk, lambda: desk.pending("p1"))

    times = [asked.at for asked in desk.client.asked]
    assert TRIES == len(times)
    assert list(PAUSES) == pytest.approx([after - before for before, after in itertools.pairwise(times)])
    assert [ReportUnschedulableFailed("p1")] == desk.answers
    assert not desk.teller._news


@pytest.mark.parametrize(("asked", "waits"), [(7.0, 7.0), (3600.0, LONGEST_ASKED)], ids=["a while", "an hour"])
def test_the_server_is_given_the_time_it_asks_for_within_reason(asked, waits):
    desk = Desk(ScriptedClient(refused(429, retry_after=asked)))
    at_once(desk, lambda: desk.pending("p1"))

    first, second = (one.at for one in desk.client.asked)
    assert waits == pytest.approx(second - first)


def test_a_request_that_hangs_is_given_up_and_made_again():
    desk = Desk(Hanging(1))
    at_once(desk, lambda: desk.pending("p1"))

    first, second = (one.at for one in desk.client.asked)
    assert WRITE_TIMEOUT + PAUSES[0] == pytest.approx(second - first)
    assert not desk.teller._news


def test_news_that_comes_while_an_older_one_waits_for_its_next_attempt_replaces_it():
    desk = Desk(ScriptedClient(refused(500, retry_after=10.0)))

    async def story() -> None:
        desk.pending("p1", "old")
        await asyncio.sleep(1.0)
        desk.pending("p1", "new")
        await asyncio.sleep(1.0)
        assert 1 == len(desk.client.asked), "newer news does not end the back-off"

    desk.work(story)
    assert [("p1", "old"), ("p1", "new")] == desk.told


def test_two_conditions_of_one_pod_are_never_on_their_way_at_once():
    desk = Desk(ScriptedClient(pause=1.0))

    async def story() -> None:
        for number in range(5):
            desk.pending("p1", f"news {number}")
            await asyncio.sleep(0.1)

    desk.work(story)
    assert [("p1", "news 0"), ("p1", "news 4")] == desk.told
    assert 1 == desk.client.most_underway


def test_a_pod_that_is_bound_while_its_news_wait_for_the_next_attempt_is_told_nothing_more():
    desk = Desk(ScriptedClient(LOST))

    async def story() -> None:
        desk.pending("p1")
        await breathe()
        desk.teller.bound(a_pod("p1"), "n1")

    desk.work(story)
    assert 1 == len(desk.client.asked)
    assert [] == desk.answers


def test_a_pod_that_another_scheduler_placed_meanwhile_is_told_nothing_more():
    desk = Desk(ScriptedClient(LOST))

    async def story() -> None:
        desk.pending("p1")
        await breathe()
        desk.standings["p1"] = "gone"

    desk.work(story)
    assert 1 == len(desk.client.asked)
    assert not desk.teller._news


def test_while_a_pod_is_being_bound_its_news_waits():
    desk = Desk(ScriptedClient())
    desk.standings["p1"] = "binding"

    async def story() -> None:
        desk.pending("p1")
        await asyncio.sleep(60.0)
        assert [] == desk.told
        desk.standings["p1"] = "waiting"

    desk.work(story)
    assert [("p1", "no room")] == desk.told


def test_one_pod_that_cannot_be_written_holds_no_other_up():
    desk = Desk(ScriptedClient())
    desk.client.before = lambda asked: desk.client.script.append(refused(500) if "/p0/" in asked.path else b"{}")
    at_once(desk, *(lambda number=number: desk.pending(f"p{number}") for number in range(20)))

    others = [asked.at for asked in desk.client.asked if "/p0/" not in asked.path]
    assert 19 == len(others)
    assert {others[0]} == set(others), "nobody waited"
    assert [ReportUnschedulableFailed("p0")] == desk.answers


# ------------------------------------------------------------------------------------------------------------- leadership


@pytest.mark.parametrize("seconds", [0.05, 3600.0], ids=["a blink", "an hour"])
def test_news_that_came_while_another_instance_led_is_written_when_leadership_returns(seconds):
    leads = [False]
    desk = Desk(ScriptedClient(), may_act=lambda: leads[0])

    async def story() -> None:
        desk.pending("p1")
        desk.pending("p2")
        await asyncio.sleep(seconds)
        assert [] == desk.told
        leads[0] = True

    desk.work(story)
    assert [("p1", "no room"), ("p2", "no room")] == desk.told


def test_one_piece_of_news_takes_one_permission_however_many_workers_wait():
    desk = Desk(ScriptedClient(), rate=0.1)

    async def story() -> None:
        desk.pending("p1")
        await asyncio.sleep(100.0)
        desk.pending("p2")

    desk.work(story)
    first, second = (asked.at for asked in desk.client.asked)
    assert 100.0 == pytest.approx(second - first)


# ------------------------------------------------------------------------------------------------------- with a real loop


@pytest.mark.parametrize(
    ("script", "most"),
    [
        pytest.param([refused(429)], 20_000, id="too many requests"),
        pytest.param([LOST], 20_000, id="lost"),
        pytest.param([refused(500)] * TRIES, 20_000, id="in trouble until it is given up"),
        pytest.param([refused(401), refused(403)], 20_000, id="without permission for a while"),
        pytest.param([ZeroDivisionError("odd")], 20_000, id="unexpected"),
        pytest.param([], 1, id="more news than may wait"),
    ],
)
def test_every_pod_that_waits_gets_its_condition_in_the_end(script, most, monkeypatch):
    monkeypatch.setattr(pod_status, "MOST_WAITING", most)
    loop = a_loop()
    desk = Desk(ScriptedClient(*script))

    async def story() -> None:
        def feed(*events: Event) -> None:
            for command in loop.feed(*events):
                if isinstance(command, ReportUnschedulable):
                    desk.teller.pending(command.pod, command.decision)

        feed(TimePassed(0.0), NodeSeen(a_node("n", cpu=1)), *(PodSeen(a_pod(f"p{number}", cpu=2)) for number in (1, 2)))
        for minute in range(1, 60):
            await asyncio.sleep(60.0)
            heard, desk.answers[:] = list(desk.answers), []
            feed(TimePassed(60.0 * minute), *heard)

    desk.work(story)
    assert {"p1", "p2"} == set(desk.teller._told)
    assert len(script) + 2 == len(desk.client.asked), "each is written once"
