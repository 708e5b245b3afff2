"""Records: how each kind stands in a file, letter by letter."""

import math

import msgspec
import pytest

from lamina.model.decision import Decision, NodeVerdict, PluginScore
from lamina.trace import trace_records
from lamina.trace.trace_records import (
    ImagesRemoved,
    LayerPulled,
    NodeFailed,
    NodeJoined,
    NodeLeft,
    NodeRecovered,
    PodArrived,
    PodBound,
    PodDecided,
    PodEvicted,
    PodFailed,
    PodFinished,
    PodRejected,
    PodRemoved,
    PodRestarted,
    PodStarted,
    PullDone,
    PullFailed,
    PullStarted,
    TraceEnd,
    TraceHeader,
    TraceRecord,
)
from lamina.trace.trace_writer import ENCODER

DECISION = Decision(
    pod="shop/cart",
    uid="u1",
    at=1.5,
    attempt=2,
    profile="lamina",
    outcome="placed",
    nodes=3,
    feasible=2,
    chosen=NodeVerdict(node="n1", total=90, scores=(PluginScore(plugin="LayerLocality", score=90, weight=1),)),
)

LINES = [
    (
        TraceHeader(at=0.0, scenario="rollout", profile="lamina", seed=7),
        (
            '{"type":"header","at":0.0,"format":"lamina-trace","version":2,'
            '"scenario":"rollout","profile":"lamina","seed":7,"started":0.0}'
        ),
    ),
    (
        NodeJoined(0.0, "n1", {"memory": 1024, "cpu": 4000}, 125e6),
        '{"type":"node-joined","at":0.0,"node":"n1","allocatable":{"cpu":4000,"memory":1024},"bandwidth":125000000.0}',
    ),
    (NodeLeft(9.25, "n1"), '{"type":"node-left","at":9.25,"node":"n1"}'),
    (NodeFailed(9.25, "n1"), '{"type":"node-failed","at":9.25,"node":"n1"}'),
    (NodeRecovered(9.5, "n1"), '{"type":"node-recovered","at":9.5,"node":"n1"}'),
    (
        PodArrived(1.0, "shop/cart", "u1", "shop", ("nginx:1.27",), {"cpu": 100}),
        (
            '{"type":"pod-arrived","at":1.0,"pod":"shop/cart","uid":"u1","namespace":"shop",'
            '"images":["nginx:1.27"],"requests":{"cpu":100}}'
        ),
    ),
    (
        PodDecided(1.5, DECISION),
        (
            '{"type":"decided","at":1.5,"decision":{"pod":"shop/cart","uid":"u1","at":1.5,"attempt":2,"profile":"lamina",'
            '"outcome":"placed","nodes":3,"feasible":2,"chosen":{"node":"n1","total":90,"scores":'
            '[{"plugin":"LayerLocality","score":90,"weight":1,"facts":{}}],"refusal":null},"runner_up":null,"tied":0,'
            '"refusals":{},"verdicts":[],"message":"","locality":null,"notes":[]}}'
        ),
    ),
    (PodBound(1.5, "shop/cart", "n1"), '{"type":"pod-bound","at":1.5,"pod":"shop/cart","node":"n1"}'),
    (
        PullStarted(1.5, "n1", "nginx:1.27", 300, 2),
        '{"type":"pull-started","at":1.5,"node":"n1","image":"nginx:1.27","bytes":300,"layers":2}',
    ),
    (
        LayerPulled(2.0, "n1", "sha256:ab", 100),
        '{"type":"layer-pulled","at":2.0,"node":"n1","layer":"sha256:ab","bytes":100}',
    ),
    (
        PullDone(3.0, "n1", "nginx:1.27", 300, 1.5),
        '{"type":"pull-done","at":3.0,"node":"n1","image":"nginx:1.27","bytes":300,"seconds":1.5}',
    ),
    (
        PullFailed(3.0, "n1", "nginx:1.27", "pull QPS exceeded", 13.0),
        '{"type":"pull-failed","at":3.0,"node":"n1","image":"nginx:1.27","reason":"pull QPS exceeded","retry_at":13.0}',
    ),
    (
        ImagesRemoved(3.0, "n1", ("nginx:1.27", "redis:7"), 900, "collected"),
        (
            '{"type":"images-removed","at":3.0,"node":"n1","images":["nginx:1.27","redis:7"],"bytes":900,'
            '"reason":"collected"}'
        ),
    ),
    (PodStarted(3.0, "shop/cart", "n1"), '{"type":"pod-started","at":3.0,"pod":"shop/cart","node":"n1"}'),
    (
        PodRestarted(4.0, "shop/cart", "n1", 2),
        '{"type":"pod-restarted","at":4.0,"pod":"shop/cart","node":"n1","restarts":2}',
    ),
    (
        PodFailed(5.0, "shop/cart", "n1", "Error"),
        '{"type":"pod-failed","at":5.0,"pod":"shop/cart","node":"n1","reason":"Error"}',
    ),
    (
        PodEvicted(5.0, "shop/cart", "n1", "The node was low on resource: memory."),
        (
            '{"type":"pod-evicted","at":5.0,"pod":"shop/cart","node":"n1",'
            '"reason":"The node was low on resource: memory."}'
        ),
    ),
    (PodFinished(5.0, "shop/cart", "n1"), '{"type":"pod-finished","at":5.0,"pod":"shop/cart","node":"n1"}'),
    (PodRemoved(5.0, "shop/cart"), '{"type":"pod-removed","at":5.0,"pod":"shop/cart","node":""}'),
    (
        PodRejected(5.0, "shop/cart", "n1", "OutOfcpu"),
        '{"type":"pod-rejected","at":5.0,"pod":"shop/cart","node":"n1","reason":"OutOfcpu"}',
    ),
    (TraceEnd(5.0, 12), '{"type":"end","at":5.0,"records":12}'),
]


@pytest.mark.parametrize(("record", "line"), [pytest.param(*case, id=type(case[0]).__name__) for case in LINES])
def test_a_record_is_one_line_of_json_in_a_fixed_order(record, line):
    """Files of today must still be readable tomorrow, so a change here is a change of the format."""
    assert line == ENCODER.encode(record).decode()
    assert record == msgspec.json.decode(line, type=TraceRecord)


def test_every_kind_of_record_is_in_the_table():
    """A new kind needs a line above."""
    assert set(TraceRecord.__args__) == {type(record) for record, _ in LINES}


def test_equal_records_give_equal_bytes_whatever_order_their_parts_were_put_together_in():
    first = NodeJoined(0.0, "n1", {"cpu": 1, "memory": 2})
    second = NodeJoined(0.0, "n1", {"memory": 2, "cpu": 1})

    assert ENCODER.encode(first) == ENCODER.encode(second)


@pytest.mark.parametrize(
    ("record", "field"),
    [
        pytest.param(PodBound(math.nan, "p", "n"), "at", id="time"),
        pytest.param(NodeJoined(0.0, "n", {}, math.inf), "bandwidth", id="bandwidth"),
        pytest.param(PullDone(0.0, "n", "i", 1, -math.inf), "seconds", id="duration"),
        pytest.param(PullFailed(0.0, "n", "i", "r", math.inf), "retry_at", id="time of the next attempt"),
        pytest.param(TraceHeader(at=0.0, started=math.inf), "started", id="start of the run"),
        pytest.param(
            PodDecided(0.0, msgspec.structs.replace(DECISION, at=math.nan)), "decision.at", id="in a decision"
        ),
        pytest.param(PodBound(1e300, "p", "n"), "", id="large but finite"),
    ],
)
def test_a_number_that_json_cannot_say_is_noticed(record, field):
    assert field == trace_records.not_finite(record)
