"""
Laws of the extender's wire format: spelling and order of keys mean nothing, and answers are about what was asked.

Scores are read as kube-scheduler reads them: integers only, unknown hosts ignored, missing hosts zero, and hosts that are
named twice counted twice.
"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.wire.errors import WireError
from lamina.wire.extender import calls
from lamina.wire.extender.arguments import decode_extender_args
from lamina.wire.extender.body import other_spellings
from lamina.wire.extender.preemption_arguments import ExtenderVictims, decode_preemption_args
from lamina.wire.extender.results import encode_filter_result, encode_preemption_result, encode_priority_list

# Names as the API server lets them be, and names that need care in JSON.
NAMES = st.lists(
    st.one_of(
        st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,8}[a-z0-9])?", fullmatch=True),
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4),
    ),
    max_size=12,
)
UIDS = st.lists(st.uuids().map(str), min_size=1, max_size=4)
WHOLE_NUMBERS = st.integers(0, 2**63 - 1)
POD: dict[str, Any] = {"metadata": {"name": "p", "uid": "u"}, "spec": {"containers": [{"image": "app"}]}}


def scores(text: bytes, names: list[str]) -> list[int]:
    """Return what kube-scheduler would add to each of *names*."""
    found = dict.fromkeys(names, 0)
    for one in json.loads(text):
        assert type(one["Score"]) is int
        if one["Host"] in found:
            found[one["Host"]] += one["Score"]
    return [found[name] for name in names]


@st.composite
def respelled(draw, value, keys):
    """The same, with each of *keys* in some spelling, and all keys in some order."""
    if isinstance(value, list):
        return [draw(respelled(one, keys)) for one in value]
    if not isinstance(value, dict):
        return value
    pairs = [
        (draw(st.sampled_from([key, *other_spellings(key)])) if key in keys else key, draw(respelled(inner, keys)))
        for key, inner in value.items()
    ]
    return dict(draw(st.permutations(pairs)))


def whole(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"of": name}}, "status": {"x": [1, 2.50, None]}}


def a_body(names: list[str], *, by_name: bool) -> dict[str, Any]:
    if by_name:
        return {"Pod": POD, "Nodes": None, "NodeNames": names}
    return {"Pod": POD, "Nodes": {"metadata": {}, "items": [whole(name) for name in names]}, "NodeNames": None}


def encode(body: Any) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode()


# --------------------------------------------------------------------------------------------------------------- asking


@given(NAMES, st.booleans(), st.data())
def test_spelling_and_order_of_keys_mean_nothing(names, by_name, data):
    body = a_body(names, by_name=by_name)
    other = data.draw(respelled(body, {"Pod", "Nodes", "NodeNames", "items"}))

    asked, again = decode_extender_args(encode(body)), decode_extender_args(encode(other))

    assert (again.pod, again.names) == (asked.pod, asked.names)
    assert asked.names == names
    assert (again.nodes is None) is by_name


@given(st.dictionaries(st.text(max_size=5), st.tuples(UIDS, WHOLE_NUMBERS), max_size=5), st.booleans(), st.data())
def test_spelling_and_order_of_keys_mean_nothing_for_victims(victims, meta, data):
    found = {
        node: {
            "Pods": [{"UID": uid} if meta else {"metadata": {"uid": uid}} for uid in uids],
            "NumPDBViolations": violations,
        }
        for node, (uids, violations) in victims.items()
    }
    body = {"Pod": POD, "NodeNameToMetaVictims" if meta else "NodeNameToVictims": found}
    keys = {"Pod", "NodeNameToVictims", "NodeNameToMetaVictims", "Pods", "UID", "NumPDBViolations"}
    expected = {node: ExtenderVictims(tuple(uids), violations) for node, (uids, violations) in victims.items()}

    # A node may be called like a key, and then its name is no key.
    spelled = body if keys & set(victims) else data.draw(respelled(body, keys))
    asked = decode_preemption_args(encode(spelled))

    assert asked.victims == expected
    assert asked.meta is meta


# ------------------------------------------------------------------------------------------------------------- answering


@given(NAMES, st.booleans(), st.data())
def test_a_filter_leaves_what_was_sent_without_what_was_refused(names, by_name, data):
    anybody = st.sampled_from(names) if names else st.just("nobody")
    failed = data.draw(st.dictionaries(anybody, st.text(max_size=5), max_size=4))
    unresolvable = data.draw(st.dictionaries(anybody, st.text(max_size=5), max_size=2))
    asked = decode_extender_args(encode(a_body(names, by_name=by_name)))

    answer = json.loads(b"".join(encode_filter_result(asked, failed, unresolvable)))

    left = [name for name in names if name not in failed and name not in unresolvable]
    if by_name:
        assert (answer["NodeNames"], answer["Nodes"]) == (left, None)
    else:
        assert (answer["NodeNames"], answer["Nodes"]["items"]) == (None, [whole(name) for name in left])
    assert (answer["FailedNodes"], answer["FailedAndUnresolvableNodes"]) == (failed, unresolvable)
    assert answer["Error"] == ""


@given(NAMES, st.booleans(), st.data())
def test_each_node_is_kept_byte_for_byte(names, indented, data):
    items = [json.dumps(whole(name), indent=1 if indented else None).encode() for name in names]
    refused = data.draw(st.sets(st.sampled_from(names))) if names else set()
    asked = decode_extender_args(b'{"Pod":{},"Nodes":{"items":[' + b", ".join(items) + b"]}}")

    answer = b"".join(encode_filter_result(asked, dict.fromkeys(refused, ""), {}))

    kept = [item for name, item in zip(names, items, strict=True) if name not in refused]
    found = decode_extender_args(answer.replace(b'{"Nodes"', b'{"Pod":{},"Nodes"', 1))
    assert [bytes(text) for text in found.nodes or ()] == kept


LEVELS = st.integers(-2, 13)


@given(NAMES, st.data())
def test_levels_are_within_bounds_and_about_hosts_that_were_asked_about(names, data):
    levels = data.draw(st.lists(LEVELS, min_size=len(names), max_size=len(names)))
    answer = json.loads(encode_priority_list(names, levels))

    assert {one["Host"] for one in answer} <= set(names)
    assert len({one["Host"] for one in answer}) == len(answer)
    assert all(0 < one["Score"] <= 10 for one in answer)


@given(NAMES.map(lambda names: list(dict.fromkeys(names))), st.data())
def test_few_words_say_the_same_as_many(names, data):
    """Differences between hosts are the same, and only those count."""
    levels = data.draw(st.lists(LEVELS, min_size=len(names), max_size=len(names)))

    few = scores(encode_priority_list(names, levels), names)
    many = scores(encode_priority_list(names, levels, sparse=False), names)

    assert few == [score - min(many) for score in many]


@given(NAMES.map(lambda names: list(dict.fromkeys(names))), st.data())
def test_known_levels_stay_and_unknown_ones_are_between_them(names, data):
    levels = data.draw(st.lists(st.integers(-1, 10), min_size=len(names), max_size=len(names)))

    many = scores(encode_priority_list(names, levels, sparse=False), names)

    known = [level for level in levels if level >= 0]
    assert [score for score, level in zip(many, levels, strict=True) if level >= 0] == known
    unknown = {score for score, level in zip(many, levels, strict=True) if level < 0}
    assert len(unknown) <= 1
    assert all(min(known, default=0) <= score <= max(known, default=0) for score in unknown)


@given(
    levels=st.lists(st.integers(0, 10), max_size=60),
    most=st.integers(1, 70),
    turn=st.integers(0, 2**32 - 1),
)
def test_whoever_is_not_named_is_no_better_than_anybody_who_is(levels, most, turn):
    names = [f"n{number}" for number in range(len(levels))]
    answer = json.loads(encode_priority_list(names, levels, most=most, turn=turn))
    whole = {one["Host"]: one["Score"] for one in json.loads(encode_priority_list(names, levels))}
    named = {one["Host"]: one["Score"] for one in answer}

    assert min(most, len(whole)) == len(answer) == len(named)
    assert named.items() <= whole.items()
    assert max((whole[name] for name in whole.keys() - named.keys()), default=0) <= min(named.values(), default=10)


@given(st.dictionaries(st.text(max_size=5), st.tuples(UIDS, WHOLE_NUMBERS), max_size=5))
def test_victims_that_are_kept_are_read_back(victims):
    kept = {node: ExtenderVictims(tuple(uids), violations) for node, (uids, violations) in victims.items()}

    answer = encode_preemption_result(kept)

    assert decode_preemption_args(b'{"Pod":{},' + answer[1:]).victims == kept


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), st.tuples(UIDS, WHOLE_NUMBERS)))
def test_an_answer_about_victims_is_read_as_it_was_written(found):
    """By the side that calls other vendors' extenders; a question about the same victims, too."""
    victims = {node: ExtenderVictims(tuple(uids), violations) for node, (uids, violations) in found.items()}

    assert victims == calls.decode_preemption_reply(encode_preemption_result(victims))
    assert victims == decode_preemption_args(calls.encode_preemption_arguments(encode(POD), victims)).victims


# ------------------------------------------------------------------------------------------------------------ bad bodies

KEYS = ["NodeNameToMetaVictims", "Pods", "UID", "NumPDBViolations", "NodeNames", "Nodes", "items", "Host", "Score", "n"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=12,
)


@given(st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()))
def test_a_reply_of_another_vendors_extender_is_read_or_is_one_error_of_one_line(reply):
    for decode in (
        calls.decode_preemption_reply,
        calls.decode_priority_list,
        calls.decode_binding_error,
        lambda body: calls.decode_filter_reply(body, names=True, asked=()),
    ):
        said = ""
        try:
            decode(reply)
        except WireError as error:
            said = str(error)
        assert said.isprintable()


@given(st.binary(max_size=60))
def test_bytes_are_read_or_refused(data):
    for decode in (decode_extender_args, decode_preemption_args):
        with pytest.raises(WireError) as error:
            decode(data)
        assert str(error.value).isprintable()


@given(NAMES, st.booleans(), st.data())
def test_what_is_cut_short_is_refused(names, by_name, data):
    body = encode(a_body(names, by_name=by_name))

    with pytest.raises(WireError):
        decode_extender_args(body[: data.draw(st.integers(0, len(body) - 1))])
