"""What an extender answers, read back as kube-scheduler would: forms, reasons, levels and errors."""

import json

import numpy as np
import pytest

from lamina.wire.extender.arguments import decode_extender_args
from lamina.wire.extender.preemption_arguments import ExtenderVictims
from lamina.wire.extender.results import (
    encode_bind_error,
    encode_filter_error,
    encode_filter_result,
    encode_preemption_result,
    encode_priority_list,
)
from tests.unit.wire.extender_bodies import NAMES, NODES, asking, nodes

NO_REASONS = {"FailedNodes": {}, "FailedAndUnresolvableNodes": {}, "Error": ""}


def filtered(body, failed=None, unresolvable=None):
    """The answer to a filter call."""
    return json.loads(b"".join(encode_filter_result(decode_extender_args(body), failed or {}, unresolvable or {})))


# --------------------------------------------------------------------------------------------------------------- filter


def test_names_are_answered_with_names():
    answer = filtered(asking(NodeNames=["a", "b", "c", "d"]), {"a": "hot"}, {"c": "green"})

    assert answer == {
        "Nodes": None,
        "NodeNames": ["b", "d"],
        "FailedNodes": {"a": "hot"},
        "FailedAndUnresolvableNodes": {"c": "green"},
        "Error": "",
    }


@pytest.mark.parametrize(
    ("names", "failed", "expected"),
    [
        pytest.param(["a", "b"], {}, ["a", "b"], id="all"),
        pytest.param(["a", "b"], {"a": "x", "b": "y"}, [], id="none: an empty list, not null"),
        pytest.param([], {}, [], id="nothing was asked"),
        pytest.param(["a", "b", "a"], {}, ["a", "b", "a"], id="twice, as it was sent"),
        pytest.param(["a", "b", "a"], {"a": "x"}, ["b"], id="twice, and refused"),
        pytest.param(["a"], {"z": "x"}, ["a"], id="another node was rejected"),
        pytest.param(['q"\\\n', "ü"], {"ü": "x"}, ['q"\\\n'], id="odd names"),
    ],
)
def test_names_that_are_left(names, failed, expected):
    assert filtered(asking(NodeNames=names), failed)["NodeNames"] == expected


def test_whole_nodes_are_answered_with_whole_nodes():
    sent = json.loads(NODES)["Nodes"]["items"]

    assert filtered(NODES) == {"Nodes": {"metadata": {}, "items": sent}, "NodeNames": None, **NO_REASONS}
    assert filtered(NODES, {"n1": "hot"})["Nodes"]["items"] == sent[1:]
    assert filtered(NODES, {"n1": "hot"}, {"n2": "green"}) == {
        "Nodes": {"metadata": {}, "items": []},
        "NodeNames": None,
        "FailedNodes": {"n1": "hot"},
        "FailedAndUnresolvableNodes": {"n2": "green"},
        "Error": "",
    }


STRANGE = b'{ "spec" : 1.50 ,"metadata":{"name":"\\u0061"}, "\\u00fc":"\xc3\xbc" }'


@pytest.mark.parametrize("failed", [pytest.param({}, id="all are kept"), pytest.param({"b": "x"}, id="one is refused")])
def test_what_is_kept_of_whole_nodes_comes_byte_for_byte(failed):
    body = b'{"Pod":{},"Nodes":{"items": [ %b , {"metadata":{"name":"b"}} ,%b]}}' % (STRANGE, STRANGE)
    asked = decode_extender_args(body)

    answer = b"".join(encode_filter_result(asked, failed, {}))

    assert asked.names == ["a", "b", "a"]
    assert answer.count(STRANGE) == 2
    assert len(json.loads(answer)["Nodes"]["items"]) == (2 if failed else 3)


def test_whole_nodes_that_are_all_kept_are_not_copied():
    body = bytearray(asking(Nodes=nodes("a", "b")) + b" " * 5_000_000)  # above what is remembered, and copied for that
    pieces = encode_filter_result(decode_extender_args(body), {}, {})

    # A bytearray cannot change its size while a view of it exists.
    assert [type(piece) for piece in pieces].count(memoryview) == 1
    with pytest.raises(BufferError):
        body.clear()


def test_an_answer_without_refusals_to_what_kube_scheduler_sent():
    assert filtered(NAMES) == {"Nodes": None, "NodeNames": ["n1", "n2"], **NO_REASONS}


# --------------------------------------------------------------------------------------------------------------- levels


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        pytest.param([0, 5, 10], [0, 5, 10], id="as they are"),
        pytest.param([3, 5, 10], [0, 2, 7], id="the least is taken off"),
        pytest.param([4, 4, 4], [0, 0, 0], id="no difference, nothing to say"),
        pytest.param([0, 0, 1], [0, 0, 1], id="only one counts"),
        pytest.param([11, 5, 2**70], [5, 0, 5], id="too high"),
        pytest.param([200, 5, 10], [5, 0, 5], id="too high, but a byte"),
        pytest.param([-1, 0, 10], [5, 0, 10], id="unknown: the mean"),
        pytest.param([-1, 4, 9], [3, 0, 5], id="unknown: the mean, 6.5, is rounded up to 7"),
        pytest.param([-7, 4, 8], [2, 0, 4], id="anything below zero is unknown"),
        pytest.param([-1, 200, 0], [5, 10, 0], id="unknown: the mean of what is within bounds"),
        pytest.param([-1, 7, -1], [0, 0, 0], id="one known, nothing to compare"),
        pytest.param([-1, -1, -1], [0, 0, 0], id="nothing known"),
        pytest.param([-(2**70), 3, 2**70], [4, 0, 7], id="far away: the mean of 3 and 10, 6.5, is rounded up to 7"),
    ],
)
def test_levels_in_few_words(levels, expected):
    answer = encode_priority_list(["a", "b", "c"], levels)

    assert json.loads(answer) == [
        {"Host": host, "Score": score} for host, score in zip("abc", expected, strict=True) if score
    ]


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        pytest.param([3, 5, 10], [3, 5, 10], id="as they are"),
        pytest.param([0, 0, 0], [0, 0, 0], id="zeros are named"),
        pytest.param([-1, 4, 11], [7, 4, 10], id="unknown: the mean"),
    ],
)
def test_levels_of_all_hosts(levels, expected):
    answer = encode_priority_list(["a", "b", "c"], levels, sparse=False)

    assert json.loads(answer) == [{"Host": host, "Score": score} for host, score in zip("abc", expected, strict=True)]


def test_levels_are_written_as_integers():
    assert encode_priority_list(["a", "b"], [2, 9]) == b'[{"Host":"b","Score":7}]'
    assert encode_priority_list(["a", "b"], [2, 9], sparse=False) == b'[{"Host":"a","Score":2},{"Host":"b","Score":9}]'


@pytest.mark.parametrize("sparse", [True, False])
def test_no_hosts_no_levels(sparse):
    assert encode_priority_list([], [], sparse=sparse) == b"[]"


@pytest.mark.parametrize("sparse", [True, False])
def test_a_host_that_was_sent_twice_is_named_once(sparse):
    """Because what is named twice counts twice."""
    answer = json.loads(encode_priority_list(["a", "b", "a", "c"], [7, 0, 7, 9], sparse=sparse))

    assert [one["Host"] for one in answer] == (["a", "c"] if sparse else ["a", "b", "c"])
    assert [one["Score"] for one in answer] == ([7, 9] if sparse else [7, 0, 9])


@pytest.mark.parametrize(
    ("most", "turn", "expected"),
    [
        pytest.param(0, 0, "abcdef", id="all of them"),
        pytest.param(6, 0, "abcdef", id="as many as there are"),
        pytest.param(4, 0, "acdf", id="the best"),
        pytest.param(3, 0, "acd", id="the best, and of equals the first"),
        pytest.param(3, 1, "acf", id="the best, and of equals the second"),
        pytest.param(3, 2, "acd", id="the best, and of equals the first again"),
        pytest.param(1, 7, "a", id="one"),
    ],
)
def test_the_best_hosts_are_named_and_of_equals_some(most, turn, expected):
    answer = json.loads(encode_priority_list([*"xabcdef"], [1, 9, 2, 8, 4, 3, 4], most=most, turn=turn))

    assert [*expected] == [one["Host"] for one in answer]
    assert {"a": 8}.items() <= {one["Host"]: one["Score"] for one in answer}.items()


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb", "a\x7fb", "ü", "\u2028", "🐳", " ", "a'b", "<b>"])
def test_odd_names_are_written_as_json_wants_them(name):
    assert json.loads(encode_priority_list(["x", name, "y"], [0, 4, 5])) == [
        {"Host": name, "Score": 4},
        {"Host": "y", "Score": 5},
    ]


@pytest.mark.parametrize(
    "levels",
    [
        pytest.param(np.array([3, 5, 10]), id="an array"),
        pytest.param(np.array([3, 5, 10], dtype=np.int8), id="an array of bytes"),
        pytest.param(list(np.array([3, 5, 10])), id="numpy's integers"),
        pytest.param((3, 5, 10), id="a tuple"),
        pytest.param(bytes([3, 5, 10]), id="bytes"),
    ],
)
def test_levels_may_come_in_any_kind_of_sequence(levels):
    assert encode_priority_list(["a", "b", "c"], levels) == b'[{"Host":"b","Score":2},{"Host":"c","Score":7}]'


def test_unknown_hosts_in_an_array():
    assert (
        encode_priority_list(["a", "b", "c"], np.array([-1, 4, 8]))
        == b'[{"Host":"a","Score":2},{"Host":"c","Score":4}]'
    )


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("levels", [pytest.param([1], id="too few"), pytest.param([1, 2, 3], id="too many")])
def test_levels_have_to_be_as_many_as_names(levels, sparse):
    with pytest.raises(ValueError, match="2 names and"):
        encode_priority_list(["a", "b"], levels, sparse=sparse)


# ----------------------------------------------------------------------------------------------------------------- others


def test_preemption_is_answered_with_uids():
    answer = encode_preemption_result({"n1": ExtenderVictims(("a", "b"), 1), "n2": ExtenderVictims(("c",))})

    assert json.loads(answer) == {
        "NodeNameToMetaVictims": {
            "n1": {"Pods": [{"UID": "a"}, {"UID": "b"}], "NumPDBViolations": 1},
            "n2": {"Pods": [{"UID": "c"}], "NumPDBViolations": 0},
        }
    }


def test_preemption_without_candidates_is_an_empty_map():
    assert encode_preemption_result({}) == b'{"NodeNameToMetaVictims":{}}'


def test_a_filter_that_failed_gives_the_reason_and_names_no_node():
    assert json.loads(encode_filter_error('no "Pod"')) == {
        "Nodes": None,
        "NodeNames": None,
        "FailedNodes": None,
        "FailedAndUnresolvableNodes": None,
        "Error": 'no "Pod"',
    }


def test_a_bind_that_is_refused_says_why():
    assert encode_bind_error("not here") == b'{"Error":"not here"}'


@pytest.mark.parametrize("encode", [encode_filter_error, encode_bind_error])
def test_an_error_is_bounded(encode):
    assert len(json.loads(encode("x" * 100_000))["Error"]) == 1024


@pytest.mark.parametrize("encode", [encode_filter_error, encode_bind_error])
def test_an_error_is_never_empty(encode):
    """An empty one would mean that all went well."""
    assert json.loads(encode(""))["Error"] == "failed without a message"


@pytest.mark.parametrize("encode", [encode_filter_error, encode_bind_error])
def test_an_error_can_be_written_whatever_it_says(encode):
    assert json.loads(encode('a"\n\ud800b'))["Error"] == 'a"\n?b'
