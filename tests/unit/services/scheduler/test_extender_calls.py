"""Calls of extenders by kube-scheduler's rules: order, what is sent, which failures count, and what the loop gets."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
import yaml

from lamina.clients.kube.errors import ApiError, UnreachableError
from lamina.model.errors import LaminaError
from lamina.model.events import Event, ExtendersAnswered
from lamina.model.extender_answer import ExtenderAnswer, ExtenderRefusal, ExtenderScores
from lamina.model.node import Node
from lamina.model.pod import Pod
from lamina.scheduling.config.loader import Configuration, load
from lamina.scheduling.contract.commands import AskExtenders, ProposedVictims
from lamina.scheduling.plugins.in_tree import registry
from lamina.services.scheduler.extender_calls import REPLACED, WORKERS, ExtenderCalls
from lamina.testing import a_node, a_pod
from tests.unit.clients.kube.loopback import Answer, Asked, Loopback
from tests.unit.services.fakes import ScriptedClient

REGISTRY = registry(entry_points=False)
NODES = {f"n{number}": a_node(f"n{number}", labels={"zone": f"z{number}"}) for number in range(1, 4)}
POD: dict[str, Any] = {
    "kind": "Pod",
    "metadata": {"name": "p1", "namespace": "default", "uid": "p1", "managedFields": [{"manager": "m"}]},
    "spec": {"volumes": [{"name": "v"}], "nodeName": ""},
}
PASS_ALL = {"NodeNames": list(NODES)}
Reply = Any
"""The JSON of a reply with status 200, or a status, or None for no reply."""


def configured(url: str, *entries: Mapping[str, Any]) -> Configuration:
    extenders = [{"urlPrefix": url, "nodeCacheCapable": True, **entry} for entry in entries]
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return load(yaml.safe_dump({**head, "extenders": extenders}), "test", REGISTRY)


def filters(verb: str, **more: Any) -> dict[str, Any]:
    return {"filterVerb": verb, **more}


def scores(verb: str, weight: int = 1, **more: Any) -> dict[str, Any]:
    return {"prioritizeVerb": verb, "weight": weight, **more}


class Stage:
    """Extenders at one server, which replies by verb."""

    def __init__(self, **replies: Reply) -> None:
        self.replies = replies
        self.server = Loopback(self._reply)
        self.client = ScriptedClient(then=json.dumps(POD).encode())
        self.counted: list[tuple[str, bool]] = []
        self.events: list[Event] = []
        self.url = ""
        self.placed: list[Pod] = []

    async def _reply(self, asked: Asked, answer: Answer) -> None:
        reply = self.replies[asked.path.lstrip("/")]
        if reply is None:
            answer.reset()
        elif isinstance(reply, int):
            await answer.reply(b"no", f"{reply} Reason", {"Location": "/other"})
        else:
            await answer.reply(reply if isinstance(reply, bytes) else json.dumps(reply).encode())

    def called(self, extender: str, verb: str, *, failed: bool) -> None:
        self.counted.append((verb, failed))

    def nodes(self) -> dict[str, Node]:
        return NODES

    def pods_on(self, node: str) -> list[Pod]:
        return [pod for pod in self.placed if pod.node_name == node]

    @property
    def order(self) -> list[str]:
        return [asked.path.lstrip("/") for asked in self.server.asked]

    def body(self, verb: str) -> Any:
        return json.loads(next(one.body for one in self.server.asked if one.path == f"/{verb}"))

    def calls(self, configuration: Configuration) -> ExtenderCalls:
        return ExtenderCalls(configuration, self.client, self.events.append, self, self)

    async def ask(
        self,
        *entries: Mapping[str, Any],
        nodes: tuple[str, ...] = tuple(NODES),
        proposed: tuple[ProposedVictims, ...] = (),
    ) -> ExtenderAnswer:
        async with self.server:
            self.url = self.server.url
            configuration = configured(self.url, *entries)
            calls = self.calls(configuration)
            names = tuple(one.name for one in configuration.extenders)
            # As the loop: extenders whose failures are ignored come last.
            order = tuple(sorted(names, key=lambda name: entries[names.index(name)].get("ignorable", False)))
            try:
                return await calls.answer_to(AskExtenders(a_pod(), 1, 1, nodes, order, proposed))
            finally:
                await calls.close()


async def test_each_extender_is_asked_about_the_nodes_that_the_previous_ones_left():
    stage = Stage(
        a={"NodeNames": ["n1", "n3"], "FailedNodes": {"n2": "too hot"}},
        b={"NodeNames": ["n3"], "FailedAndUnresolvableNodes": {"n1": "no disk"}},
    )

    answer = await stage.ask(filters("a"), filters("b"))

    assert ["n1", "n3"] == stage.body("b")["NodeNames"]
    assert (
        ExtenderRefusal(("n2",), ("too hot",)),
        ExtenderRefusal(("n1",), ("no disk",), final=True),
    ) == answer.refusals


async def test_no_further_extender_is_asked_when_no_node_is_left():
    stage = Stage(a={"NodeNames": []}, b=PASS_ALL, c=[])

    answer = await stage.ask(filters("a"), filters("b"), scores("c"))

    assert ["a"] == stage.order
    assert (ExtenderRefusal(tuple(NODES), (), final=True),) == answer.refusals


async def test_the_pod_is_sent_as_the_api_server_has_it_without_managed_fields():
    """Extenders read fields that Lamina does not keep, such as volumes."""
    stage = Stage(a=PASS_ALL)

    await stage.ask(filters("a"))

    sent = stage.body("a")
    assert {"name": "p1", "namespace": "default", "uid": "p1"} == sent["Pod"]["metadata"]
    assert [{"name": "v"}] == sent["Pod"]["spec"]["volumes"]
    assert None is sent["Nodes"]


async def test_whole_nodes_are_sent_to_an_extender_that_does_not_know_them():
    stage = Stage(a={"Nodes": {"items": [{"metadata": {"name": "n2"}}]}}, b=[])

    answer = await stage.ask(filters("a", nodeCacheCapable=False))

    sent = stage.body("a")
    assert None is sent["NodeNames"]
    assert {"n1": "z1", "n2": "z2", "n3": "z3"} == {
        one["metadata"]["name"]: one["metadata"]["labels"]["zone"] for one in sent["Nodes"]["items"]
    }
    assert {"n1", "n3"} == {name for one in answer.refusals for name in one.nodes}


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        pytest.param(500, "failed a with extender at URL {url}/a, code 500", id="an error status"),
        pytest.param(204, "failed a with extender at URL {url}/a, code 204", id="a success other than 200"),
        pytest.param(307, "failed a with extender at URL {url}/a, code 307", id="a redirect, which is not followed"),
        pytest.param({"Error": "out of licenses"}, "out of licenses", id="an error in the reply"),
        pytest.param({"error": "as ever"}, "as ever", id="an error in lower case"),
        pytest.param(
            {"NodeNames": ["n1", "n9"]},
            "extender '{url}': cannot read ExtenderFilterResult: it claims a filtered node 'n9' which is not found in "
            "the input node list",
            id="a node that was not asked about",
        ),
        pytest.param(
            b"<html>", "extender '{url}': cannot read ExtenderFilterResult: JSON is malformed: invalid character (byte 0)",
            id="no JSON",
        ),
        pytest.param(
            {"NodeNames": "n1"},
            "extender '{url}': cannot read ExtenderFilterResult: Expected `array | null`, got `str` - at `$.NodeNames`",
            id="another type",
        ),
        pytest.param(
            None, "POST {url}/a: the server closed the connection without a response", id="a connection that is closed"
        ),
    ],
)  # fmt: skip
async def test_a_failed_filter_fails_the_attempt_unless_the_extender_is_ignorable(reply, error):
    strict, lenient = Stage(a=reply, b=PASS_ALL), Stage(a=reply, b={"NodeNames": ["n2"]})

    answer = await strict.ask(filters("a"), filters("b"))
    assert error == answer.error.replace(strict.url, "{url}")
    assert "b" not in strict.order
    assert [("filter", True)] == strict.counted

    answer = await lenient.ask(filters("a", ignorable=True), filters("b"))
    assert "" == answer.error
    assert ["b", "a"] == list(dict.fromkeys(lenient.order))
    assert {"n1", "n3"} == {name for one in answer.refusals for name in one.nodes}


@pytest.mark.parametrize(
    ("reply", "left"),
    [
        pytest.param({"NodeNames": None, "Nodes": None}, [], id="neither form"),
        pytest.param({}, [], id="nothing"),
        pytest.param(b"null", None, id="null"),
        pytest.param({"nodenames": ["n1"]}, ["n1"], id="keys in lower case"),
        pytest.param({"Nodes": {"Items": [{"metadata": {"name": "n1"}}]}}, ["n1"], id="whole nodes instead of names"),
        pytest.param({"NodeNames": ["n1", "n1"]}, ["n1"], id="a node twice"),
        pytest.param({"NodeNames": ["n1"], "FailedNodes": {"n1": "but"}}, ["n1"], id="a node that passed and failed"),
    ],
)
async def test_replies_are_read_as_kube_scheduler_reads_them(reply, left):
    answer = await Stage(a=reply).ask(filters("a"))

    refused = {name for one in answer.refusals for name in one.nodes}
    assert left is None or left == [name for name in NODES if name not in refused]
    assert (left is None) is bool(answer.error)


async def test_a_node_in_both_maps_is_unresolvable():
    maps = {"FailedNodes": {"n1": "soft", "n2": "soft"}, "FailedAndUnresolvableNodes": {"n1": "hard", "n9": "unknown"}}

    answer = await Stage(a={"NodeNames": ["n3"], **maps}).ask(filters("a"))

    assert {ExtenderRefusal(("n1",), ("hard",), final=True), ExtenderRefusal(("n2",), ("soft",))} == set(
        answer.refusals
    )


# -- scores ---------------------------------------------------------------------------------------------------------


async def test_all_extenders_with_a_prioritize_verb_score_the_nodes_that_are_left():
    stage = Stage(
        f={"NodeNames": ["n1", "n2"]},
        a=[{"Host": "n1", "Score": 3}, {"Host": "n9", "Score": 10}],
        b=[{"host": "n2", "score": 1}, {"Host": "n2", "Score": 2}],
    )

    answer = await stage.ask(filters("f"), scores("a", 2), scores("b", 5))

    url = stage.body("a")["NodeNames"]
    assert ["n1", "n2"] == url
    assert [(20, {"n1": 3}), (50, {"n2": 3})] == [(one.weight, one.scores) for one in answer.scores]


async def test_one_node_is_not_scored():
    stage = Stage(f={"NodeNames": ["n1"]}, a=[])

    await stage.ask(filters("f"), scores("a"))

    assert ["f"] == stage.order


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(500, id="an error status"),
        pytest.param(None, id="no reply"),
        pytest.param([{"Host": "n1", "Score": 7.5}], id="a fraction"),
        pytest.param([{"Host": "n1", "Score": 7.0}], id="a number with a point"),
        pytest.param([{"Host": "n1", "Score": 2**63}], id="a score of 65 bits"),
        pytest.param({"Host": "n1"}, id="an object"),
    ],
)
async def test_a_failed_prioritize_gives_no_scores_and_the_others_count(reply):
    stage = Stage(a=reply, b=[{"Host": "n2", "Score": 1}])

    answer = await stage.ask(scores("a"), scores("b"))

    assert [{"n2": 1}] == [one.scores for one in answer.scores]
    assert "" == answer.error
    assert {("prioritize", True), ("prioritize", False)} == set(stage.counted)


async def test_scores_are_not_limited_to_the_scale():
    """As upstream."""
    answer = await Stage(a=[{"Host": "n1", "Score": 1000}, {"Host": "n2", "Score": -5}]).ask(scores("a"))

    assert [{"n1": 1000, "n2": -5}] == [one.scores for one in answer.scores]


# -- the pod --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("served", "error"),
    [
        pytest.param(
            ApiError("GET pod", 404, "NotFound"), "the pod cannot be read for the extenders: GET pod: 404", id="gone"
        ),
        pytest.param(
            UnreachableError("GET pod", "reset"), "the pod cannot be read for the extenders: GET pod: reset", id="lost"
        ),
        pytest.param(b'{"metadata":{"uid":"p2"},"spec":{}}', REPLACED, id="another one"),
        pytest.param(b"{", "the pod cannot be read for the extenders: cannot read Pod", id="broken"),
    ],
)
async def test_a_pod_that_cannot_be_read_fails_the_attempt(served, error):
    stage = Stage(a=PASS_ALL)
    stage.client = ScriptedClient(then=served)

    with pytest.raises(LaminaError, match=error):
        await stage.ask(filters("a"))
    assert [] == stage.order


async def test_every_command_is_answered_with_its_number_whatever_happens():
    stage = Stage(a=PASS_ALL)
    async with stage.server:
        configuration = configured(stage.server.url, filters("a"))
        calls = stage.calls(configuration)
        name = configuration.extenders[0].name
        running = asyncio.create_task(calls.run())
        stage.client.script = [b"no pod", RuntimeError("a bug")]
        for number in range(WORKERS + 2):
            calls.ask(AskExtenders(a_pod(), 1, number, ("n1", "n2", "n3"), (name,)))
        while len(stage.events) < WORKERS + 2:
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await calls.close()

    answers = [one for one in stage.events if isinstance(one, ExtendersAnswered)]
    assert list(range(WORKERS + 2)) == sorted(one.number for one in answers)
    errors = [one.answer.error for one in answers if one.answer.error]
    assert 2 == len(errors)
    assert "RuntimeError: a bug" in errors


# -- bind -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        pytest.param({"Error": ""}, "", id="bound"),
        pytest.param({}, "", id="an empty reply"),
        pytest.param({"Error": "no device"}, "no device", id="an error"),
        pytest.param(503, "failed b with extender at URL {url}/b, code 503", id="a status"),
        pytest.param(None, "POST {url}/b: the server closed the connection without a response", id="no reply"),
    ],
)
async def test_an_extender_binds_with_one_call_and_its_failure_is_returned(reply, problem):
    stage = Stage(b=reply)
    async with stage.server:
        url = stage.server.url
        configuration = configured(url, {"bindVerb": "b", "ignorable": True})
        calls = stage.calls(configuration)
        found = await calls.bind(url, a_pod(), "n1")
        await calls.close()

    assert problem == found.replace(url, "{url}")
    assert ["b"] == stage.order
    assert {"PodName": "p1", "PodNamespace": "default", "PodUID": "p1", "Node": "n1"} == stage.body("b")
    assert [("bind", bool(problem))] == stage.counted
    assert calls.ignores(url)


async def test_a_reply_that_is_too_long_is_a_failure(monkeypatch):
    monkeypatch.setattr("lamina.services.scheduler.extender_endpoint.SMALL", 10)

    answer = await Stage(a=[{"Host": "n1", "Score": 1}], b=[]).ask(scores("a"), scores("b"))

    assert [{}] == [one.scores for one in answer.scores]


def test_a_recorded_answer_is_the_answer():
    """Recordings keep answers as MessagePack."""
    answer = ExtenderAnswer(
        refusals=(ExtenderRefusal(("n1",), ("no",)),), scores=(ExtenderScores("a", 10, {"n2": -3}),)
    )
    event = ExtendersAnswered(a_pod().uid, 7, answer)

    assert event == msgspec.msgpack.decode(msgspec.msgpack.encode(event), type=ExtendersAnswered)
