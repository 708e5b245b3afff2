"""What owners are told about their pods: the newest, once, and nothing old about a pod that has a node."""

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from lamina.clients.kube.recorder import Recorder
from lamina.services.scheduler import telling
from lamina.services.scheduler.telling import WORKERS, ApiTeller
from lamina.services.scheduler.throttle import Throttle
from lamina.testing import a_pod
from tests.unit.services.fakes import LOST, ScriptedClient, StillClock, a_decision, breathe, leaping, refused
from tests.work import steps


class Desk:
    """A teller and what it writes."""

    def __init__(self, client: ScriptedClient, rate: float = 0.0, may_act: Callable[[], bool] = lambda: True) -> None:
        self.client = client
        self.recorder = Recorder(ScriptedClient(), "lamina", "lamina-here")
        self.teller = ApiTeller(client, self.recorder, Throttle(rate, 1), may_act, StillClock())

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

    assert [("p2", "two"), ("p1", "new")] == desk.told


def test_a_pod_that_was_bound_before_it_was_told_is_told_nothing():
    desk = Desk(ScriptedClient())
    at_once(desk, lambda: desk.pending("p1"), lambda: desk.teller.bound(a_pod("p1"), "n1"), lambda: desk.pending("p2"))

    assert [("p2", "no room")] == desk.told


def test_a_pod_that_is_bound_while_its_news_wait_for_the_throttle_is_told_nothing():
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


@pytest.mark.parametrize("trouble", [LOST, refused(500), refused(403)], ids=["lost", "in trouble", "forbidden"])
def test_a_condition_that_cannot_be_written_is_said_and_the_next_one_is_written(trouble, caplog):
    desk = Desk(ScriptedClient(trouble))
    with caplog.at_level(logging.WARNING):
        at_once(desk, lambda: desk.pending("p1"), lambda: desk.pending("p2"))

    assert ["p1", "p2"] == [pod for pod, _ in desk.told]
    assert any("cannot write the condition of default/p1" in line for line in caplog.messages)


def test_a_pod_that_is_gone_is_no_trouble(caplog):
    desk = Desk(ScriptedClient(refused(404)))
    at_once(desk, lambda: desk.pending("p1"))

    assert [] == [line for line in caplog.messages if "cannot write" in line]


def test_no_more_are_written_at_once_than_there_are_workers():
    desk = Desk(ScriptedClient(pause=0.5))
    at_once(desk, *(lambda number=number: desk.pending(f"p{number}") for number in range(40)))

    assert WORKERS == desk.client.most_underway
    assert 40 == len(desk.told)


def test_beyond_what_may_wait_the_oldest_are_given_up(monkeypatch):
    monkeypatch.setattr(telling, "MOST_WAITING", 10)
    desk = Desk(ScriptedClient())
    at_once(desk, *(lambda number=number: desk.pending(f"p{number}") for number in range(25)))

    assert 15 == desk.teller.given_up
    assert [f"p{number}" for number in range(15, 25)] == [pod for pod, _ in desk.told]


def test_the_bell_never_falls_behind_whatever_happens_in_between(monkeypatch):
    """Given up, bound, told again, in every order: what is left at the end is told, and nobody waits for ever."""
    monkeypatch.setattr(telling, "MOST_WAITING", 3)
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


def test_a_bell_that_rang_for_many_who_were_bound_costs_next_to_nothing():
    pod, decision = a_pod(), a_decision(outcome="unschedulable")

    def cost(times: int) -> int:
        desk = Desk(ScriptedClient())

        async def story() -> None:
            for _ in range(times):
                desk.teller.pending(pod, decision)
                desk.teller.bound(pod, "n1")

        counted = steps(lambda: desk.work(story))
        assert [] == desk.told
        return counted

    assert cost(1_000) < 11 * cost(100)


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


def test_a_condition_that_stays_false_began_when_it_began():
    desk = Desk(ScriptedClient())

    async def story() -> None:
        desk.pending("p1", "first")
        await asyncio.sleep(1.0)
        desk.pending("p1", "second")

    desk.work(story)
    first, second = (json.loads(asked.body)["status"]["conditions"][0] for asked in desk.client.asked)
    assert ("lastTransitionTime" in first, "lastTransitionTime" in second) == (True, False)
