"""Calls of the preempt verb by kube-scheduler's rules: order, forms, valid replies, and which failures count."""

from typing import Any

import msgspec
import pytest

from lamina.model.extender_answer import AllowedVictims, ExtenderAnswer
from lamina.model.pod import PodUid
from lamina.scheduling.contract.commands import ProposedVictims
from lamina.testing import a_pod
from lamina.wire.kube.codec import decode_pod
from tests.unit.services.scheduler.test_extender_calls import Stage

A, B, C = (a_pod(name, cpu=1, on=node, priority=-1) for name, node in (("a", "n1"), ("b", "n1"), ("c", "n2")))
PROPOSED = (ProposedVictims("n1", (A, B), 1), ProposedVictims("n2", (C,)))
BOTH: dict[str, Any] = {
    "n1": {"Pods": [{"UID": "a"}, {"UID": "b"}], "NumPDBViolations": 1},
    "n2": {"Pods": [{"UID": "c"}], "NumPDBViolations": 0},
}


def preempts(verb: str, **more: Any) -> dict[str, Any]:
    return {"preemptVerb": verb, **more}


def reply(**nodes: str) -> dict[str, Any]:
    """Return a result: the uids of victims, separated by blanks, by node."""
    return {
        "NodeNameToMetaVictims": {node: {"Pods": [{"UID": u} for u in uids.split()]} for node, uids in nodes.items()}
    }


def allowed(answer: ExtenderAnswer) -> dict[str, str]:
    assert "" == answer.error
    return {one.node: " ".join(one.uids) for one in answer.victims}


async def test_each_extender_is_asked_about_the_victims_that_the_previous_ones_left():
    stage = Stage(a={"NodeNameToMetaVictims": BOTH}, b=reply(n1="b"), c=reply(n1="b"))

    answer = await stage.ask(preempts("a"), preempts("b"), preempts("c"), proposed=PROPOSED)

    assert BOTH == stage.body("a")["NodeNameToMetaVictims"]
    assert None is stage.body("a")["NodeNameToVictims"]
    assert {"n1": {"Pods": [{"UID": "b"}], "NumPDBViolations": 0}} == stage.body("c")["NodeNameToMetaVictims"]
    assert {"n1": "b"} == allowed(answer)
    assert ["a", "b", "c"] == stage.order
    assert [("preempt", False)] * 3 == stage.counted


async def test_the_number_of_violated_budgets_is_passed_on_and_may_be_changed():
    stage = Stage(a={"NodeNameToMetaVictims": {"n2": BOTH["n2"], "n1": {**BOTH["n1"], "NumPDBViolations": 5}}})

    answer = await stage.ask(preempts("a"), proposed=PROPOSED)

    assert 1 == stage.body("a")["NodeNameToMetaVictims"]["n1"]["NumPDBViolations"]
    assert (AllowedVictims("n1", (PodUid("a"), PodUid("b")), 5), AllowedVictims("n2", (PodUid("c"),))) == answer.victims


async def test_an_extender_without_a_node_cache_receives_whole_victims():
    stage = Stage(a=reply(n2="c"), b=reply(n2="c"))

    await stage.ask(preempts("a", nodeCacheCapable=False), preempts("b", nodeCacheCapable=False), proposed=PROPOSED)

    sent = stage.body("a")
    assert None is sent["NodeNameToMetaVictims"]
    assert ["n1", "n2"] == list(sent["NodeNameToVictims"])
    assert 1 == sent["NodeNameToVictims"]["n1"]["NumPDBViolations"]
    first = sent["NodeNameToVictims"]["n1"]["Pods"][0]
    assert ("a", "n1", -1) == (first["metadata"]["uid"], first["spec"]["nodeName"], first["spec"]["priority"])
    assert ["c"] == [one["metadata"]["uid"] for one in stage.body("b")["NodeNameToVictims"]["n2"]["Pods"]]


async def test_whole_victims_are_pods_that_lamina_reads_back_itself():
    stage = Stage(a=reply(n2="c"))

    await stage.ask(preempts("a", nodeCacheCapable=False), proposed=PROPOSED)

    sent = stage.body("a")["NodeNameToVictims"]["n2"]["Pods"][0]
    read = decode_pod(msgspec.json.encode(sent))
    assert (C.uid, C.name, C.priority, C.requests) == (read.uid, read.name, read.priority, read.requests)


async def test_the_pod_is_sent_as_the_api_server_has_it():
    stage = Stage(a=reply(n2="c"))

    await stage.ask(preempts("a"), proposed=PROPOSED)

    assert [{"name": "v"}] == stage.body("a")["Pod"]["spec"]["volumes"]


async def test_no_further_extender_is_asked_when_no_node_is_left():
    stage = Stage(a=reply(), b=reply(n1="a"))

    answer = await stage.ask(preempts("a"), preempts("b"), proposed=PROPOSED)

    assert {} == allowed(answer)
    assert ["a"] == stage.order


async def test_a_reply_may_name_other_pods_of_a_node_and_other_nodes():
    stage = Stage(a=reply(n1="other", n3="far"))
    stage.placed = [a_pod("other", on="n1"), a_pod("far", on="n3")]

    assert {"n1": "other", "n3": "far"} == allowed(await stage.ask(preempts("a"), proposed=PROPOSED))


async def test_a_victim_that_is_named_twice_counts_once():
    stage = Stage(a=reply(n2="c c"))

    assert {"n2": "c"} == allowed(await stage.ask(preempts("a"), proposed=PROPOSED))


FAILURES = [
    pytest.param(503, "failed a with extender at URL {url}/a, code 503", id="a status"),
    pytest.param(None, "POST {url}/a: the server closed the connection without a response", id="no reply"),
    pytest.param(
        {"NodeNameToMetaVictims": []},
        "extender '{url}': cannot read ExtenderPreemptionResult: Expected `object | null`, got `array` - at "
        "`$.NodeNameToMetaVictims`",
        id="an unreadable reply",
    ),
    pytest.param(
        reply(n9="c"),
        "extender '{url}' claims to preempt pods on node 'n9', but there is no such node",
        id="an unknown node",
    ),
    pytest.param(
        reply(n1="c"),
        "extender '{url}' claims to preempt pod (UID: c) on node 'n1', but the pod is not found on that node",
        id="a victim that is elsewhere",
    ),
    pytest.param(
        {"NodeNameToMetaVictims": {"n1": {"Pods": [{}]}}},
        "extender '{url}' claims to preempt pod (UID: ) on node 'n1', but the pod is not found on that node",
        id="a victim without a uid",
    ),
]


@pytest.mark.parametrize(("failure", "problem"), FAILURES)
async def test_a_failure_ends_the_attempt_with_its_text_unless_the_extender_is_ignorable(failure, problem):
    strict = Stage(a=failure, b=reply(n1="a"))
    lenient = Stage(a=failure, b=reply(n1="a"))

    answer = await strict.ask(preempts("a"), preempts("b"), proposed=PROPOSED)
    skipped = await lenient.ask(preempts("a", ignorable=True), preempts("b", ignorable=True), proposed=PROPOSED)

    assert ExtenderAnswer(error=problem.replace("{url}", strict.url)) == answer
    assert ["a"] == strict.order[:1]
    assert "b" not in strict.order
    assert ["n1", "n2"] == list(lenient.body("b")["NodeNameToMetaVictims"])
    assert {"n1": "a"} == allowed(skipped)
    assert [("preempt", True), ("preempt", False)] == lenient.counted


async def test_if_all_extenders_fail_and_are_ignorable_the_proposal_stands():
    stage = Stage(a=503)

    assert {"n1": "a b", "n2": "c"} == allowed(await stage.ask(preempts("a", ignorable=True), proposed=PROPOSED))


async def test_a_node_without_victims_is_an_error_or_is_left_out_by_an_ignorable_extender():
    empty = {"NodeNameToMetaVictims": {"n1": {"Pods": []}, "n2": {"Pods": [{"UID": "c"}], "NumPDBViolations": 0}}}

    strict = await Stage(a=empty).ask(preempts("a"), proposed=PROPOSED)
    lenient = await Stage(a=empty).ask(preempts("a", ignorable=True), proposed=PROPOSED)

    assert "expected at least one victim pod on node 'n1'" == strict.error
    assert {"n2": "c"} == allowed(lenient)
