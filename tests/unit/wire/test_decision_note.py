"""The note on a pod: why it is where it is, small whatever happens, and read without trust."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.model.decision import Decision, NodeVerdict, PluginScore
from lamina.model.locality_explanation import LocalityExplanation, Savings
from lamina.wire.decision_note import (
    MOST_BYTES,
    DecisionNote,
    NotedSaving,
    OtherNode,
    decode_note,
    encode_note,
    note_of,
)
from lamina.wire.errors import WireError

TEXT = st.text(st.sampled_from('aZ0-\x00\n"ä€😀'), max_size=300)
NAMES = st.text(st.sampled_from("aZ0-ä😀"), min_size=1, max_size=253)
FLOATS = st.floats(-1e12, 1e12)
SAVED = st.none() | st.builds(Savings, FLOATS, st.integers(-(2**60), 2**60))
VERDICTS = st.builds(
    NodeVerdict,
    NAMES,
    st.integers(-(2**62), 2**62),
    st.lists(st.builds(PluginScore, TEXT, st.integers(0, 100), st.integers(1, 1000)), max_size=12).map(tuple),
)
STORIES = st.builds(
    LocalityExplanation,
    layers=st.just(()),
    seconds=st.floats(0, 1e12),
    download=st.integers(0, 2**60),
    against_mean=SAVED,
    against_runner_up=SAVED,
)
DECISIONS = st.builds(
    Decision,
    pod=st.just("default/p"),
    uid=st.just("u"),
    at=st.floats(0, 4e9),
    attempt=st.integers(1, 10**6),
    profile=TEXT,
    outcome=st.just("placed"),
    nodes=st.integers(0, 10**6),
    feasible=st.integers(0, 10**6),
    tied=st.integers(0, 10**6),
    chosen=VERDICTS,
    runner_up=st.none() | VERDICTS,
    locality=st.none() | STORIES,
)


def a_decision(*plugins: str, node: str = "n1", profile: str = "lamina") -> Decision:
    return Decision(
        pod="shop/web-0",
        uid="u",
        at=1234.56789,
        attempt=2,
        profile=profile,
        outcome="placed",
        nodes=5,
        feasible=3,
        tied=1,
        chosen=NodeVerdict(node, 300, tuple(PluginScore(plugin, 50, 3) for plugin in plugins)),
        runner_up=NodeVerdict("n2", 200),
        locality=LocalityExplanation(layers=(), seconds=1.23456, download=771_000, against_mean=Savings(2.5, 1000)),
    )


def test_the_note_says_what_counted():
    assert DecisionNote(
        node="n1",
        at=1234.568,
        profile="lamina",
        attempt=2,
        nodes=5,
        feasible=3,
        tied=1,
        total=300,
        points={"LayerLocality": 150, "NodeResourcesFit": 150},
        runner_up=OtherNode("n2", 200),
        seconds=1.235,
        download=771_000,
        against_mean=NotedSaving(2.5, 1000),
    ) == decode_note(encode_note(a_decision("LayerLocality", "NodeResourcesFit")))


def test_it_is_json_in_kubernetes_style():
    said = json.loads(encode_note(a_decision("LayerLocality")))

    assert {"node", "at", "profile", "attempt", "nodes", "feasible", "tied", "total", "points"} < set(said)
    assert {"node": "n2", "total": 200} == said["runnerUp"]
    assert {"seconds": 2.5, "bytes": 1000} == said["againstMean"]
    assert "againstRunnerUp" not in said


@given(DECISIONS)
@settings(max_examples=30)
def test_every_decision_fits_and_the_note_says_nothing_that_was_not_decided(decision):
    text = encode_note(decision)
    note, whole = decode_note(text), note_of(decision)

    assert MOST_BYTES >= len(text.encode())
    assert (whole.node, whole.at, whole.attempt) == (note.node, note.at, note.attempt)
    for name, value in msgspec.structs.asdict(note).items():
        assert value in (getattr(whole, name), getattr(DecisionNote(node=note.node), name))


@pytest.mark.parametrize(
    ("decision", "kept"),
    [
        pytest.param(a_decision(*(f"Plugin{number}" for number in range(20))), "points", id="many plugins are kept"),
        pytest.param(a_decision("P" * 3000), "profile", id="an absurd plugin: all but the points"),
        pytest.param(a_decision(*("ä" * number for number in range(100))), "profile", id="many letters of two bytes"),
        pytest.param(a_decision(profile="ü" * 2000), "node", id="an absurd profile: the node and little more"),
        pytest.param(a_decision(node="x" * 253, profile="\x00" * 2000), "node", id="letters of six bytes"),
    ],
)
def test_what_is_too_much_is_left_out_step_by_step(decision, kept):
    text = encode_note(decision)
    note = decode_note(text)

    assert MOST_BYTES >= len(text.encode())
    whole = note_of(decision)
    assert getattr(whole, kept) == getattr(note, kept)
    assert (kept == "points") == bool(note.points)


def test_a_pod_that_was_not_placed_has_no_note():
    with pytest.raises(AssertionError, match="placed"):
        encode_note(msgspec.structs.replace(a_decision(), chosen=None))


@pytest.mark.parametrize("seconds", [float("inf"), float("-inf"), float("nan")])
def test_whatever_is_written_can_be_read(seconds):
    story = LocalityExplanation(layers=(), seconds=1.0, download=0, against_mean=Savings(seconds, 0))
    note = decode_note(encode_note(msgspec.structs.replace(a_decision(), locality=story)))

    assert "n1" == note.node


# ------------------------------------------------------------------------------------------------------- strangers' notes


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("hello", id="no JSON"),
        pytest.param("[]", id="a list"),
        pytest.param("null", id="null"),
        pytest.param("{}", id="no node"),
        pytest.param('{"node": 5}', id="a number for a node"),
        pytest.param('{"node": "' + "n" * 254 + '"}', id="an impossible name"),
        pytest.param('{"node": "n", "points": {"P": "x"}}', id="text for points"),
        pytest.param('{"node": "n", "points": {"P": 1.5}}', id="half a point"),
        pytest.param('{"node": "n", "seconds": "1"}', id="text for seconds"),
        pytest.param('{"node": "n", "runnerUp": {}}', id="a second without a name"),
        pytest.param('{"node": "n"', id="cut off"),
        pytest.param("[" * 2000, id="deep"),
        pytest.param('{"x":' * 800 + "1" + "}" * 800, id="deep in an unused field"),
        pytest.param('{"node": "n", "profile": "' + "x" * 5000 + '"}', id="long"),
        pytest.param("\ud800", id="a lone surrogate"),
    ],
)
def test_a_note_that_is_none_is_refused_in_one_line(text):
    with pytest.raises(WireError) as caught:
        decode_note(text)

    assert 1 == len(str(caught.value).splitlines())
    assert "lamina.dev/decision" in str(caught.value)


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda data: data.decode("utf-8", "surrogateescape")))
@settings(max_examples=60)
def test_whatever_stands_there_is_read_or_refused(text):
    refused = "in one line"
    try:
        assert isinstance(decode_note(text), DecisionNote)
    except WireError as error:
        refused = str(error)

    assert 1 == len(refused.splitlines())


def test_fields_of_a_later_version_are_passed_over():
    assert "n1" == decode_note('{"node": "n1", "weather": {"sun": [1, 2]}}').node


def test_a_note_of_the_fewest_words_is_a_note():
    assert DecisionNote(node="n1") == decode_note('{"node":"n1"}')
