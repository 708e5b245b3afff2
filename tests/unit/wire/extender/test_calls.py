"""Requests and replies of extenders, from the side that calls them."""

import json

import pytest

from lamina.testing import a_pod
from lamina.wire.errors import WireError
from lamina.wire.extender import body, calls
from lamina.wire.extender.arguments import decode_extender_args
from lamina.wire.extender.preemption_arguments import ExtenderVictims, decode_preemption_args

POD = b'{"kind":"Pod","metadata":{"name":"p","uid":"u","managedFields":[1]},"spec":{"containers":[]}}'
NODE = b'{"metadata":{"name":"n1"}}'


def test_requests_are_those_that_our_own_extender_reads():
    names = decode_extender_args(calls.encode_arguments(POD, ["n1", "n2"]))
    whole = decode_extender_args(calls.encode_arguments(POD, ["n1"], [NODE]))

    assert (["n1", "n2"], None) == (names.names, names.nodes)
    assert ["n1"] == whole.names
    assert [NODE] == [bytes(one) for one in whole.nodes or ()]


def test_unset_fields_are_null_as_kube_scheduler_sends_them():
    assert {"Pod": json.loads(POD), "Nodes": None, "NodeNames": []} == json.loads(calls.encode_arguments(POD, []))
    assert None is json.loads(calls.encode_arguments(POD, [], []))["NodeNames"]


def test_managed_fields_are_left_out_and_everything_else_stays():
    want = {"kind": "Pod", "metadata": {"name": "p", "uid": "u"}, "spec": {"containers": []}}

    assert want == json.loads(calls.without_managed_fields(POD))


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"metadata":1}', b"[" * 5000])
def test_a_pod_that_is_none_is_an_error(text):
    with pytest.raises(WireError, match="cannot read Pod"):
        calls.without_managed_fields(text)


def test_a_binding_names_the_pod_and_the_node():
    want = {"PodName": "p1", "PodNamespace": "default", "PodUID": "p1", "Node": "n1"}

    assert want == json.loads(calls.encode_binding_arguments(a_pod(), "n1"))


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b'{"NodeNames":[1]}', id="numbers as names"),
        pytest.param(b'{"FailedNodes":["n1"]}', id="a list of reasons"),
        pytest.param(b'{"FailedNodes":{"n1":1}}', id="a number as a reason"),
        pytest.param(b'{"Error":{}}', id="an object as error"),
        pytest.param(b'{"NodeNames":["n1"],"nodenames":["n1"]}', id="a key in two spellings"),
        pytest.param(b'{"NodeNames":null,"Nodes":{"items":[{}]}}', id="a node without a name"),
        pytest.param(b'{"Nodes":' + b"[" * 5000, id="deep nesting"),
        pytest.param(b'{"NodeNames":["\xff"]}', id="no UTF-8"),
    ],
)
def test_a_filter_reply_that_cannot_be_read_is_one_error_of_one_line(reply):
    with pytest.raises(WireError) as caught:
        calls.decode_filter_reply(reply, names=True, asked={"n1"})

    assert "\n" not in str(caught.value)


def test_a_reply_with_an_error_may_have_any_nodes():
    assert "no" == calls.decode_filter_reply(b'{"Error":"no","NodeNames":["x"]}', names=True, asked=()).error


def test_long_reasons_are_cut():
    reply = json.dumps({"NodeNames": [], "FailedNodes": {"n1": "x" * 5000}}).encode()

    found = calls.decode_filter_reply(reply, names=True, asked={"n1"})

    assert calls.LONGEST_REASON == len(found.failed["n1"])


def test_more_whole_nodes_than_can_be_are_not_decoded(monkeypatch):
    monkeypatch.setattr(body, "MOST_NODES", 2)

    with pytest.raises(WireError, match="more than 2 nodes"):
        calls.decode_filter_reply(b'{"Nodes":{"items":[%b]}}' % b",".join([NODE] * 3), names=False, asked={"n1"})


@pytest.mark.parametrize(
    ("reply", "scores"),
    [
        pytest.param(b"[]", {}, id="none"),
        pytest.param(b"null", {}, id="null"),
        pytest.param(b'[{"Host":"a","Score":3},{"host":"b","score":-1}]', {"a": 3, "b": -1}, id="both casings"),
        pytest.param(b'[{"Host":"a","Score":3},{"Host":"a","Score":4}]', {"a": 7}, id="a host twice"),
        pytest.param(b'[{"Host":"a"},{"Score":1}]', {"a": 0, "": 1}, id="missing parts"),
    ],
)
def test_scores_are_read_as_kube_scheduler_reads_them(reply, scores):
    assert scores == calls.decode_priority_list(reply)


@pytest.mark.parametrize(
    "reply", [b"", b"{}", b'[{"Score":"3"}]', b'[{"Score":9223372036854775808}]', b"[1]", b"[" * 5000]
)
def test_scores_that_cannot_be_read_are_one_error(reply):
    with pytest.raises(WireError, match="cannot read HostPriorityList"):
        calls.decode_priority_list(reply)


@pytest.mark.parametrize(
    ("reply", "error"),
    [(b"{}", ""), (b'{"Error":""}', ""), (b'{"error":"no"}', "no"), (b'{"Error":null}', "")],
    ids=["nothing", "empty", "lower case", "null"],
)
def test_the_error_of_a_binding_is_read(reply, error):
    assert error == calls.decode_binding_error(reply)


@pytest.mark.parametrize("reply", [b"", b"[]", b'{"Error":1}'])
def test_a_binding_result_that_cannot_be_read_is_an_error(reply):
    with pytest.raises(WireError, match="cannot read ExtenderBindingResult"):
        calls.decode_binding_error(reply)


# -- preempt --------------------------------------------------------------------------------------------------------

VICTIMS = {"n1": ExtenderVictims(("a", "b"), 1), "n2": ExtenderVictims(("c",))}


def test_a_question_about_victims_is_the_one_that_our_own_extender_reads():
    by_uid = decode_preemption_args(calls.encode_preemption_arguments(POD, VICTIMS))
    pods = {uid: b'{"metadata":{"uid":"%b"}}' % uid.encode() for uid in "abc"}
    whole = decode_preemption_args(calls.encode_preemption_arguments(POD, VICTIMS, pods))

    assert (VICTIMS, True) == (by_uid.victims, by_uid.meta)
    assert (VICTIMS, False) == (whole.victims, whole.meta)


def test_the_other_form_of_victims_is_null_as_kube_scheduler_sends_it():
    assert {
        "Pod": json.loads(POD),
        "NodeNameToVictims": None,
        "NodeNameToMetaVictims": {"n2": {"Pods": [{"UID": "c"}], "NumPDBViolations": 0}},
    } == json.loads(calls.encode_preemption_arguments(POD, {"n2": VICTIMS["n2"]}))
    assert {
        "Pod": json.loads(POD),
        "NodeNameToVictims": {"n2": {"Pods": [{"kind": "Pod"}], "NumPDBViolations": 0}},
        "NodeNameToMetaVictims": None,
    } == json.loads(calls.encode_preemption_arguments(POD, {"n2": VICTIMS["n2"]}, {"c": b'{"kind":"Pod"}'}))


@pytest.mark.parametrize(
    ("reply", "want"),
    [
        pytest.param(
            b'{"NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":"a"},{"UID":"b"}],"NumPDBViolations":1}}}',
            {"n1": ExtenderVictims(("a", "b"), 1)},
            id="as kube-scheduler's types are written",
        ),
        pytest.param(
            b'{"nodeNameToMetaVictims":{"n1":{"pods":[{"uid":"a"}],"numPDBViolations":2}}}',
            {"n1": ExtenderVictims(("a",), 2)},
            id="keys with small letters",
        ),
        pytest.param(b"{}", {}, id="nothing"),
        pytest.param(b'{"NodeNameToMetaVictims":null}', {}, id="null"),
        pytest.param(b'{"NodeNameToMetaVictims":{"n1":null}}', {"n1": ExtenderVictims(())}, id="a null node"),
        pytest.param(b'{"NodeNameToMetaVictims":{"n1":{}}}', {"n1": ExtenderVictims(())}, id="a node without pods"),
        pytest.param(
            b'{"NodeNameToMetaVictims":{"n1":{"Pods":[{}]}}}', {"n1": ExtenderVictims(("",))}, id="a pod without a uid"
        ),
    ],
)
def test_the_victims_of_a_reply_are_read_as_kube_scheduler_reads_them(reply, want):
    assert want == calls.decode_preemption_reply(reply)


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"[]",
        b'{"NodeNameToMetaVictims":[]}',
        b'{"NodeNameToMetaVictims":{"n1":[]}}',
        b'{"NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":1}]}}}',
        b'{"NodeNameToMetaVictims":{"n1":{"NumPDBViolations":1.5}}}',
        b'{"NodeNameToMetaVictims":{"n1":{"NumPDBViolations":9223372036854775808}}}',
        b'{"NodeNameToMetaVictims":{}} {}',
        b"[" * 5000,
    ],
)
def test_victims_that_cannot_be_read_are_one_error_of_one_line(reply):
    with pytest.raises(WireError, match="cannot read ExtenderPreemptionResult") as caught:
        calls.decode_preemption_reply(reply)
    assert "\n" not in str(caught.value)


def test_more_victims_than_can_be_are_not_decoded(monkeypatch):
    monkeypatch.setattr(body, "MOST_VICTIMS", 2)
    with pytest.raises(WireError, match="more than 2 victims"):
        calls.decode_preemption_reply(b'{"NodeNameToMetaVictims":{"n1":{"Pods":[{},{},{}]}}}')
