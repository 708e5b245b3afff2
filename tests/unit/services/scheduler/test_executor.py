"""Bindings against an API server in every mood: done once, found out when in doubt, never after leadership ended."""

import asyncio
import json
import logging
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from lamina.clients.rate_limit import RateLimit
from lamina.model.events import BindDone, BindFailed, Event, EvictFailed, WorkFailed
from lamina.model.pod import Pod
from lamina.scheduling.contract.commands import (
    Bind,
    Command,
    DoWork,
    Evict,
    Nominate,
    ReportUnschedulable,
    WakeAt,
)
from lamina.services.scheduler import executor as module
from lamina.services.scheduler.executor import BIND_TIMEOUT, MOST_WAITING, NOT_LEADING, WORKERS, Executor
from lamina.testing import a_pod
from lamina.wire.decision_note import DECISION_ANNOTATION, decode_note
from tests.unit.services.fakes import LOST, ScriptedClient, StillClock, a_decision, breathe, leaping, refused


class Ear:
    """Whoever is told anything: teller, notes, and the loop's inbox."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, ...]] = []
        self.events: list[Event] = []

    def pending(self, pod: Pod, decision: object) -> None:
        self.heard.append(("pending", pod.name))

    def bound(self, *what: Any) -> None:
        self.heard.append(("bound",) if isinstance(what[0], Bind) else ("told bound", what[0].name, what[1]))

    def preempted(self, pod: Pod, preemptor: Pod, node: str) -> None:
        self.heard.append(("preempted", pod.name, preemptor.name, node))

    def not_bound(self, command: Bind, reason: str) -> None:
        self.heard.append(("not bound", reason))


def served(pod: str = "p1", uid: str = "p1", node: str = "") -> bytes:
    """A pod as the API server tells it."""
    return json.dumps(
        {"kind": "Pod", "metadata": {"name": pod, "namespace": "default", "uid": uid}, "spec": {"nodeName": node}}
    ).encode()


class Bench:
    """An executor at work until everything asked for is done."""

    def __init__(self, client: ScriptedClient, may_act: Callable[[], bool] = lambda: True) -> None:
        self.client, self.ear, self.may_act = client, Ear(), may_act
        self.took = 0.0

    def do(self, *commands: Command, **options: Any) -> "Bench":
        leaping(self._do(commands, options))
        return self

    async def _do(self, commands: tuple[Command, ...], options: dict[str, Any]) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        performer = Executor(
            self.client,
            self.ear.events.append,
            self.ear,
            self.ear,
            may_act=self.may_act,
            clock=StillClock(),
            **options,
        )
        for command in commands:
            performer.perform(command)
        task = asyncio.create_task(performer.run())
        while (performer.in_flight or performer.unknown) and not task.done() and loop.time() - began < 600.0:
            await asyncio.sleep(0.01)
        self.took = loop.time() - began
        if task.done():
            task.result()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    @property
    def answer(self) -> Event:
        assert 1 == len(self.ear.events)
        return self.ear.events[0]


def a_bind(name: str = "p1", node: str = "n1") -> Bind:
    return Bind(a_pod(name), node, a_decision(f"default/{name}", node))


# ------------------------------------------------------------------------------------------------------------- bindings


def test_a_binding_is_sent_with_its_note_and_answered_and_told():
    bench = Bench(ScriptedClient()).do(a_bind())

    (asked,) = bench.client.asked
    sent = json.loads(asked.body)
    assert ("POST", "/api/v1/namespaces/default/pods/p1/binding") == (asked.method, asked.path)
    assert ("p1", "n1") == (sent["metadata"]["uid"], sent["target"]["name"])
    assert "n1" == decode_note(sent["metadata"]["annotations"][DECISION_ANNOTATION]).node
    assert BindDone("p1") == bench.answer
    assert [("bound",), ("told bound", "p1", "n1")] == bench.ear.heard


def test_without_a_decision_there_is_no_note():
    bench = Bench(ScriptedClient()).do(Bind(a_pod(), "n1"))

    assert "annotations" not in json.loads(bench.client.asked[0].body)["metadata"]
    assert BindDone("p1") == bench.answer


@pytest.mark.parametrize(
    ("script", "asked", "done"),
    [
        pytest.param([LOST, b"{}"], ["POST binding"] * 2, True, id="lost, and not done: done by the second"),
        pytest.param(
            [LOST, refused(409), served(node="n1")],
            ["POST binding"] * 2 + ["GET p1"],
            True,
            id="lost, but done: looked up",
        ),
        pytest.param(
            [LOST, refused(409), served(node="n2")],
            ["POST binding"] * 2 + ["GET p1"],
            False,
            id="lost, and somebody else was faster",
        ),
        pytest.param([refused(409), served(node="n1")], ["POST binding", "GET p1"], True, id="conflict, on our node"),
        pytest.param([refused(409), served(node="n2")], ["POST binding", "GET p1"], False, id="conflict, on another"),
        pytest.param([refused(409), served(node="")], ["POST binding", "GET p1"], False, id="conflict, on none"),
        pytest.param(
            [refused(409), served(uid="later", node="n1")],
            ["POST binding", "GET p1"],
            False,
            id="conflict, a later pod of that name on our node",
        ),
        pytest.param([refused(409), refused(404)], ["POST binding", "GET p1"], False, id="conflict, then gone"),
        pytest.param(
            [refused(409), b"not a pod", served(node="n1")],
            ["POST binding", "GET p1", "GET p1"],
            True,
            id="conflict, then nonsense, then our node",
        ),
        pytest.param(
            [refused(409), b"{}", served(node="n2")],
            ["POST binding", "GET p1", "GET p1"],
            False,
            id="conflict, then nothing that tells, then another",
        ),
        pytest.param([refused(404)], ["POST binding"], False, id="gone"),
        pytest.param([refused(403)], ["POST binding"], False, id="forbidden"),
        pytest.param([refused(422)], ["POST binding"], False, id="not a binding"),
        pytest.param([refused(429), b"{}"], ["POST binding"] * 2, True, id="too many requests, then done"),
        pytest.param([refused(500), refused(503), b"{}"], ["POST binding"] * 3, True, id="in trouble, then done"),
    ],
)
def test_whatever_the_api_server_says_the_loop_gets_one_true_answer(script, asked, done):
    bench = Bench(ScriptedClient(*script)).do(a_bind())

    assert asked == bench.client.short
    assert (BindDone if done else BindFailed) is type(bench.answer)
    assert ["bound" if done else "not bound"] == [one[0] for one in bench.ear.heard if one[0] in ("bound", "not bound")]
    assert done == (("told bound", "p1", "n1") in bench.ear.heard)


def test_a_refusal_is_answered_with_the_servers_words():
    bench = Bench(ScriptedClient(refused(422, "target is required"))).do(a_bind())

    assert "target is required" in bench.answer.reason
    assert [("not bound", bench.answer.reason)] == bench.ear.heard


def test_the_server_is_given_the_time_it_asks_for():
    bench = Bench(ScriptedClient(refused(429, retry_after=7.0), b"{}")).do(a_bind())

    first, second = (one.at for one in bench.client.asked)
    assert 7.0 == pytest.approx(second - first)


def test_pauses_grow_so_that_an_outage_is_no_storm():
    bench = Bench(ScriptedClient(*(40 * [LOST]), then=served(node=""))).do(a_bind())

    times = [one.at for one in bench.client.asked if one.method == "POST"]
    assert BIND_TIMEOUT >= times[-1] - times[0]
    assert 20 >= len(times)
    assert BindFailed is type(bench.answer)
    assert "(tried for" in bench.answer.reason


def test_a_server_that_wants_to_be_left_alone_for_an_hour_is_asked_again_sooner():
    bench = Bench(ScriptedClient(then=refused(429, retry_after=3600.0))).do(a_bind())

    assert 4 == len(bench.client.asked)
    assert BindFailed is type(bench.answer)


@pytest.mark.parametrize("trouble", [LOST, refused(503)], ids=["lost", "in trouble"])
def test_the_look_up_after_a_conflict_is_as_patient_as_the_binding(trouble):
    bench = Bench(ScriptedClient(LOST, refused(409), trouble, served(node="n1"))).do(a_bind())

    assert BindDone("p1") == bench.answer


@pytest.mark.parametrize(
    "trouble", [LOST, refused(403), refused(503), b"not a pod"], ids=["lost", "forbidden", "in trouble", "unreadable"]
)
class TestAnOutcomeThatIsNotKnown:
    """The server was asked to bind and does not tell what came of it."""

    def story(self, trouble: Any, then: Callable[["Doubt"], Any]) -> None:
        leaping(Doubt(trouble).play(then))

    def test_frees_the_worker_and_is_never_reported_as_not_bound(self, trouble):
        async def then(doubt: Doubt) -> None:
            await asyncio.sleep(3600.0)
            assert [] == doubt.ear.events
            assert [] == doubt.ear.heard
            assert (0, 1) == (doubt.performer.in_flight, doubt.performer.unknown)

        self.story(trouble, then)

    def test_is_reported_by_a_later_look_up(self, trouble):
        async def then(doubt: Doubt) -> None:
            await asyncio.sleep(600.0)
            doubt.client.then = served(node="n1")
            await asyncio.sleep(600.0)
            assert [BindDone("p1")] == doubt.ear.events
            assert 0 == doubt.performer.unknown

        self.story(trouble, then)

    def test_is_looked_up_no_more_once_the_watch_told_the_loop(self, trouble):
        async def then(doubt: Doubt) -> None:
            await asyncio.sleep(600.0)
            doubt.settled = True
            await asyncio.sleep(60.0)
            asked = len(doubt.client.asked)
            await asyncio.sleep(600.0)
            assert asked == len(doubt.client.asked)
            assert [] == doubt.ear.events
            assert 0 == doubt.performer.unknown

        self.story(trouble, then)

    def test_is_asked_for_with_pauses(self, trouble):
        async def then(doubt: Doubt) -> None:
            await asyncio.sleep(600.0)
            assert 80 > len(doubt.client.asked)

        self.story(trouble, then)


class Doubt:
    """A binding that was answered with a conflict, and look-ups that end in trouble."""

    def __init__(self, trouble: Any) -> None:
        self.client = ScriptedClient(refused(409), then=trouble)
        self.ear, self.settled = Ear(), False
        self.performer = Executor(
            self.client,
            self.ear.events.append,
            self.ear,
            self.ear,
            clock=StillClock(),
            settled=lambda _: self.settled,
        )

    async def play(self, then: Callable[["Doubt"], Any]) -> None:
        self.performer.perform(a_bind())
        task = asyncio.create_task(self.performer.run())
        await then(self)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_other_pods_are_bound_while_the_outcome_of_many_is_not_known():
    """Twice as many as there are workers: a worker that asks without end binds nothing else."""
    client = ScriptedClient()

    def answer(asked: Any) -> None:
        lost = asked.method == "GET" or "/doubtful" in asked.path
        client.script = [(refused(403) if asked.method == "GET" else refused(409)) if lost else b"{}"]

    client.before = answer
    doubtful = [a_bind(f"doubtful{number}") for number in range(2 * WORKERS)]
    bench = Bench(client).do(*doubtful, a_bind("p1"))

    assert BindDone("p1") == bench.answer


def test_deciding_waits_while_too_many_outcomes_are_not_known(monkeypatch):
    monkeypatch.setattr(module, "MOST_UNKNOWN", 1)

    async def then(doubt: Doubt) -> None:
        await asyncio.sleep(60.0)
        assert doubt.performer.busy
        doubt.client.then = served(node="n1")
        await asyncio.sleep(60.0)
        assert [False] == [doubt.performer.busy]

    leaping(Doubt(refused(403)).play(then))


# ----------------------------------------------------------------------------------------------------------- leadership


def test_nothing_is_sent_by_who_does_not_lead():
    commands = (a_bind(), Evict(a_pod("victim"), a_pod(), "n1"), Nominate(a_pod(), "n1"))
    bench = Bench(ScriptedClient(), may_act=lambda: False).do(*commands)

    assert [] == bench.client.asked
    assert [
        BindFailed("p1", NOT_LEADING),
        EvictFailed("victim", "p1", NOT_LEADING),
    ] == bench.ear.events


def test_leadership_that_ends_between_two_tries_ends_the_tries():
    leads = [True]
    client = ScriptedClient(then=LOST)
    client.before = lambda _: leads.__setitem__(0, False)
    client.then = served(node="")
    client.script = [LOST]
    bench = Bench(client, may_act=lambda: leads[0]).do(a_bind())

    assert ["POST binding", "GET p1"] == client.short
    assert BindFailed("p1", NOT_LEADING) == bench.answer


def test_leadership_is_asked_for_after_the_wait_for_the_rate_limit():
    asked: list[float] = []

    def may_act() -> bool:
        asked.append(asyncio.get_running_loop().time())
        return True

    Bench(ScriptedClient(), may_act=may_act).do(a_bind("p1"), a_bind("p2"), rate_limit=RateLimit(0.1, 1))

    assert [0.0, 10.0] == pytest.approx([at - 1000.0 for at in asked])


def test_a_victim_is_not_deleted_by_who_has_stopped_leading_after_saying_why():
    leads = [True]
    client = ScriptedClient()
    client.before = lambda _: leads.__setitem__(0, False)
    bench = Bench(client, may_act=lambda: leads[0]).do(Evict(a_pod("victim"), a_pod(), "n1"))

    assert ["PATCH status"] == client.short
    assert EvictFailed("victim", "p1", NOT_LEADING) == bench.answer


# -------------------------------------------------------------------------------------------------------- other commands


def test_an_eviction_says_why_and_deletes():
    bench = Bench(ScriptedClient()).do(Evict(a_pod("victim"), a_pod(scheduler="lamina"), "n1"))

    assert ["PATCH status", "DELETE victim"] == bench.client.short
    assert b"lamina: preempting to accommodate a higher priority pod" in bench.client.asked[0].body
    assert "victim" == json.loads(bench.client.asked[1].body)["preconditions"]["uid"]
    assert [] == bench.ear.events
    assert [("preempted", "victim", "p1", "n1")] == bench.ear.heard


@pytest.mark.parametrize(("node", "written"), [("n1", "n1"), ("", None)], ids=["made", "taken back"])
def test_a_nomination_is_written(node, written):
    bench = Bench(ScriptedClient()).do(Nominate(a_pod(), node))

    assert ["PATCH status"] == bench.client.short
    assert written == json.loads(bench.client.asked[0].body)["status"]["nominatedNodeName"]


@pytest.mark.parametrize("trouble", [refused(403), refused(400)], ids=["forbidden", "rejected"])
@pytest.mark.parametrize(
    ("command", "word"),
    [(Evict(a_pod("victim"), a_pod(), "n1"), "evict failed"), (Nominate(a_pod("victim"), "n1"), "nominate failed")],
    ids=["eviction", "nomination"],
)
def test_an_eviction_or_nomination_that_fails_is_said_and_ends_nothing(command, word, trouble, caplog):
    with caplog.at_level(logging.WARNING):
        bench = Bench(ScriptedClient(trouble)).do(command, a_bind())

    assert any(f"{word}: default/victim" in line for line in caplog.messages)
    assert BindDone("p1") in bench.ear.events


def test_news_for_people_goes_to_the_teller_at_once():
    bench = Bench(ScriptedClient()).do(ReportUnschedulable(a_pod(), a_decision(outcome="unschedulable")))

    assert [("pending", "p1")] == bench.ear.heard
    assert [] == bench.client.asked


def test_work_nobody_does_here_fails_in_words():
    bench = Bench(ScriptedClient()).do(DoWork(a_pod(), "n1", "VolumeBinding", 3, None))

    assert WorkFailed("p1", "VolumeBinding", 3, module.NO_WORKER.format("VolumeBinding")) == bench.answer


def test_time_is_the_hosts_affair():
    with pytest.raises(AssertionError, match="host"):
        Bench(ScriptedClient()).do(WakeAt(1.0))


# -------------------------------------------------------------------------------------------------------------- workers


def test_no_more_are_on_their_way_at_once_than_there_are_workers():
    client = ScriptedClient(pause=0.05)
    bench = Bench(client).do(*(a_bind(f"p{number}") for number in range(5 * WORKERS)))

    assert WORKERS == client.most_underway
    assert {BindDone(f"p{number}") for number in range(5 * WORKERS)} == set(bench.ear.events)


def test_deciding_waits_when_many_wait_and_goes_on_when_they_are_sent():
    async def story() -> list[bool]:
        performer = Executor(ScriptedClient(), lambda _: None, Ear(), Ear(), clock=StillClock())
        seen = [performer.busy]
        for number in range(MOST_WAITING):
            performer.perform(a_bind(f"p{number}"))
        seen.append(performer.busy)
        assert MOST_WAITING == performer.in_flight
        task = asyncio.create_task(performer.run())
        while performer.in_flight:
            await asyncio.sleep(0.01)
        seen.append(performer.busy)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return seen

    assert [False, True, False] == leaping(story())


def test_a_mistake_of_ours_in_a_worker_is_heard_of(caplog):
    """Whether it may end the process is the next test."""
    heard = ""
    try:
        Bench(ScriptedClient(ValueError("a mistake of ours"))).do(a_bind())
    except ExceptionGroup as group:
        heard = "".join(traceback.format_exception(group))

    assert "a mistake of ours" in heard + caplog.text


@pytest.mark.parametrize(
    "poison",
    [
        pytest.param(Bind(a_pod("p0"), "n1", a_decision(plugins=["odd \ud800"])), id="a note that cannot be written"),
        pytest.param(Bind(a_pod("p0"), "n1", a_decision(outcome="failed")), id="a decision without a node"),
    ],
)
def test_what_goes_wrong_with_one_pod_costs_that_pod_the_attempt_and_nobody_else(poison):
    bench = Bench(ScriptedClient()).do(poison, a_bind())

    assert {"p0": BindFailed, "p1": BindDone} == {one.uid: type(one) for one in bench.ear.events}


async def test_cancelled_workers_leave_nothing_behind():
    performer = Executor(ScriptedClient(), lambda _: None, Ear(), Ear())
    task = asyncio.create_task(performer.run())
    await breathe()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
