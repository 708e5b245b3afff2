"""From the body of a question to the body of an answer."""

import json
from typing import Any

import pytest

from lamina.model.events import NodeSeen
from lamina.scheduling.loop.extender_core import AgentError, ExtenderCore
from lamina.scheduling.plugins.in_tree import AGENTS
from lamina.services.extender import handlers as module
from lamina.services.extender.bypass_detector import BypassDetector
from lamina.services.extender.configuration import ReplyMode as How
from lamina.services.extender.handlers import MOST_NAMED, Handlers
from lamina.services.extender.metrics import ExtenderMetrics
from lamina.services.log_lines import Verbosity
from lamina.serving.response import HttpResponse
from lamina.testing.builders import a_node

POD: dict[str, Any] = {
    "metadata": {"name": "p", "namespace": "default", "uid": "u"},
    "spec": {"containers": [{"image": "app:1"}]},
}
CONGESTED = {"congestion-factor": "80"}
FULL = {"mean-free-cpu": "100", "std-free-cpu": "10", "mean-free-memory": "100000", "std-free-memory": "10"}


class Desk:
    """An answering on a desk, with two nodes of which one is congested and full."""

    def __init__(self, *, ready: bool = True, how: How = "sparse", from_bodies: bool = False) -> None:
        self.metrics = ExtenderMetrics()
        self.panel = ExtenderCore(AGENTS)
        if not from_bodies:
            self.panel.take(
                NodeSeen(a_node("calm", annotations={"congestion-factor": "0"})),
                NodeSeen(a_node("busy", annotations=CONGESTED | FULL)),
            )
        attendance = BypassDetector(self.metrics)
        self.answering = Handlers(
            self.panel, self.metrics, attendance, lambda: ready, reply=how, from_bodies=from_bodies
        )
        self.routes = self.answering.routes({})

    def ask(self, path: str, body: Any) -> Any:
        reply = self.reply(path, json.dumps(body).encode())
        assert 200 == reply.status
        return json.loads(b"".join(reply.pieces))

    def reply(self, path: str, body: bytes) -> HttpResponse:
        reply = self.routes.posts[f"/scheduler/{path}"](body)
        assert isinstance(reply, HttpResponse)
        return reply

    def counted(self, verb: str, result: str) -> float:
        labels = {"verb": verb, "result": result}
        return self.metrics.registry.get_sample_value("lamina_extender_answers_total", labels) or 0.0


def names(*given: str) -> dict[str, Any]:
    return {"Pod": POD, "Nodes": None, "NodeNames": list(given)}


def whole(*given: dict[str, Any]) -> dict[str, Any]:
    return {"Pod": POD, "Nodes": {"items": list(given)}, "NodeNames": None}


def test_every_verb_of_every_agent_has_its_addresses() -> None:
    posts = Desk().routes.posts

    assert {
        "/scheduler/bind",
        "/scheduler/predicates/safe-overload",
        "/scheduler/predicates/foo",
        "/scheduler/priorities/layers",
        "/scheduler/priorities/safe-overload",
        "/scheduler/priorities/safe-balance",
        "/scheduler/priorities/pigeon-holing",
        "/scheduler/priorities/congestion",
        "/scheduler/priorities/foo",
        "/scheduler/preemption/safe-overload",
        "/scheduler/preemption/layers",
    } <= set(posts)


def test_levels_are_told_sparsely_or_in_full() -> None:
    question = names("calm", "busy")

    assert [{"Host": "calm", "Score": 8}] == Desk().ask("priorities/congestion", question)
    assert [{"Host": "calm", "Score": 10}, {"Host": "busy", "Score": 2}] == Desk(how="full").ask(
        "priorities/congestion", question
    )


def test_only_the_best_are_named_if_that_is_wanted_and_not_the_same_for_every_pod() -> None:
    desk = Desk(how="best")
    every = [f"idle-{number:03}" for number in range(3 * MOST_NAMED)]
    desk.panel.take(*[NodeSeen(a_node(name, annotations={"congestion-factor": "0"})) for name in every])
    question = names("busy", *every)

    def told(uid: str) -> set[str]:
        pod = POD | {"metadata": {**POD["metadata"], "uid": uid}}
        return {one["Host"] for one in desk.ask("priorities/congestion", question | {"Pod": pod})}

    assert [MOST_NAMED] * 3 == [len(told(uid)) for uid in ("u1", "u2", "u3")]
    assert told("u1") == told("u1")
    assert len(told("u1") | told("u2") | told("u3")) > MOST_NAMED


def test_a_refused_node_comes_with_its_reason() -> None:
    desk = Desk()
    answer = desk.ask("predicates/safe-overload", names("calm", "busy", "stranger"))

    assert ["calm", "stranger"] == answer["NodeNames"]
    assert ["busy"] == list(answer["FailedNodes"])
    assert answer["FailedNodes"]["busy"]
    assert 1.0 == desk.counted("predicates/safe-overload", "answered")
    assert 1.0 == desk.metrics.registry.get_sample_value("lamina_extender_unknown_nodes_total")


def test_until_everything_was_seen_answers_change_nothing() -> None:
    desk = Desk(ready=False)

    assert [] == desk.ask("priorities/congestion", names("calm", "busy"))
    assert ["calm", "busy"] == desk.ask("predicates/safe-overload", names("calm", "busy"))["NodeNames"]
    meta = {"busy": {"Pods": [{"UID": "v"}], "NumPDBViolations": 0}}
    kept = desk.ask("preemption/safe-overload", {"Pod": POD, "NodeNameToMetaVictims": meta})

    assert ["busy"] == list(kept["NodeNameToMetaVictims"])
    assert 1.0 == desk.counted("priorities/congestion", "neutral")


def test_an_agent_that_breaks_changes_nothing_and_is_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk()

    def broken(*_: object) -> None:
        raise AgentError("priority 'foo' raised ValueError: broken")

    monkeypatch.setattr(desk.panel, "filter", broken)
    monkeypatch.setattr(desk.panel, "prioritize", broken)

    assert [] == desk.ask("priorities/foo", names("calm"))
    assert ["calm"] == desk.ask("predicates/foo", names("calm"))["NodeNames"]
    assert (1.0, 1.0) == (desk.counted("priorities/foo", "failed"), desk.counted("predicates/foo", "failed"))
    assert "raised ValueError: broken; the answer is neutral" in caplog.text


def test_where_an_agent_breaks_is_told_once_until_it_works_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk()
    whole = desk.panel.prioritize

    def broken(*_: object) -> list[int]:
        try:
            raise ValueError("broken")
        except ValueError as error:
            raise AgentError("priority 'foo' raised ValueError: broken") from error

    for mood in (broken, broken, whole, broken):
        monkeypatch.setattr(desk.panel, "prioritize", mood)
        desk.ask("priorities/foo", names("calm"))

    assert [True, False, True] == [record.exc_info is not None for record in caplog.records]


@pytest.mark.parametrize("path", ["predicates/foo", "priorities/foo", "preemption/foo"])
@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"Pod":{}}', b"\xff"], ids=repr)
def test_what_cannot_be_understood_is_answered_with_what_is_wrong(path: str, body: bytes) -> None:
    desk = Desk()
    reply = desk.reply(path, body)

    assert 400 == reply.status
    assert len(b"".join(reply.pieces)) > 20
    assert 1.0 == desk.counted(path, "malformed")


def test_binding_is_refused_with_what_to_do() -> None:
    assert "remove bindVerb" in Desk().ask("bind", {"PodName": "p"})["Error"]


def test_whole_nodes_are_answered_with_whole_nodes_and_said_to_be_too_much_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk = Desk()
    calm, busy = {"metadata": {"name": "calm", "x": 1}}, {"metadata": {"name": "busy"}}
    answers = [desk.ask("predicates/safe-overload", whole(calm, busy)) for _ in range(2)]

    assert [[calm], [calm]] == [answer["Nodes"]["items"] for answer in answers]
    assert 1 == caplog.text.count("nodeCacheCapable")
    assert 2.0 == desk.metrics.registry.get_sample_value("lamina_extender_full_node_requests_total")


def test_without_a_watch_nodes_are_known_from_the_questions() -> None:
    desk = Desk(from_bodies=True)
    calm = {"metadata": {"name": "calm", "annotations": {"congestion-factor": "0"}}}
    busy = {"metadata": {"name": "busy", "annotations": CONGESTED}}

    assert [{"Host": "calm", "Score": 8}] == desk.ask("priorities/congestion", whole(calm, busy))


@pytest.mark.parametrize("path", ["predicates/safe-overload", "priorities/congestion"])
@pytest.mark.parametrize(("ready", "said"), [(True, False), (False, True)], ids=["seen", "not everything was seen"])
def test_an_answer_without_an_opinion_is_told_as_one(
    path: str, ready: bool, said: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Verbosity, "level", 2)
    with caplog.at_level("INFO"):
        Desk(ready=ready).ask(path, names("calm", "busy"))

    assert said is (f"answered {path} neutral" in caplog.text)


def test_of_nodes_that_only_questions_tell_of_the_last_ones_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_NODES", 3)
    desk = Desk(from_bodies=True)
    for asked in (["n1", "n2"], ["n3", "n1"], ["n4"]):
        desk.ask("priorities/foo", whole(*({"metadata": {"name": name}} for name in asked)))

    assert {"n1", "n3", "n4"} == set(desk.panel.cluster.columns.rows)


def test_preemption_keeps_what_the_agent_would_accept() -> None:
    desk = Desk()
    victims = {
        name: {"Pods": [{"metadata": {"uid": "v", "name": "v"}}], "NumPDBViolations": 2} for name in ("calm", "busy")
    }
    answer = desk.ask("preemption/safe-overload", {"Pod": POD, "NodeNameToVictims": victims})

    assert {"NodeNameToMetaVictims": {"calm": {"Pods": [{"UID": "v"}], "NumPDBViolations": 2}}} == answer
