"""From trace records to the record of a run: series, parts of a pod's time, held layers, and their limits."""

from typing import Any

import pytest

from lamina.evaluation.report.run_record import CHANGES, LAYERS, NODES, PODS, UNPLACED, HeldChange
from lamina.evaluation.report.run_recorder import RunRecorder
from lamina.model.resources import CPU
from lamina.trace.trace_records import (
    LayerPulled,
    NodeJoined,
    NodeLeft,
    PodArrived,
    PodBound,
    PodFinished,
    TraceRecord,
)

SIZES = {"sha256:a": ("base", 100), "sha256:b": ("", 50)}


def a_row(pod: str = "p", node: str = "n1", **changes: Any) -> dict[str, Any]:
    """A pod that waited 1 s, was queued 2 s, pulled 3 s, unpacked 4 s, started in 0.5 s and ran to second 20."""
    row = {
        "pod": pod,
        "uid": pod,
        "node": node,
        "phase": "finished",
        "arrived": 1.0,
        "bound": 2.0,
        "started": 11.5,
        "pull_queue": 2.0,
        "download": 3.0,
        "unpack": 4.0,
        "start": 0.5,
        "ended": 20.0,
        "bytes_wanted": 150,
        "bytes_pulled": 50,
        "reason": "",
        "message": "",
    }
    return {**row, **changes}


def a_summary(seconds: float = 20.0) -> dict[str, Any]:
    return {"scenario": "story", "profile": "some", "seed": 1, "virtual_seconds": seconds}


def recorded(*records: TraceRecord, detail: bool = True) -> RunRecorder:
    recorder = RunRecorder(detail=detail)
    for record in records:
        recorder.add(record)
    return recorder


def joined(count: int = 1, at: float = 0.0) -> list[TraceRecord]:
    return [NodeJoined(at, f"n{number}", {CPU: 1000}) for number in range(1, count + 1)]


def placed(pod: str, node: str, at: float, cpu: int) -> list[TraceRecord]:
    return [PodArrived(at, pod, pod, "default", (), {CPU: cpu}), PodBound(at, pod, node)]


def test_the_parts_of_a_pods_time_add_up_to_its_end():
    pod = recorded(*joined()).finish(a_summary(), [a_row()], SIZES).pods[0]

    assert (1.0, 2.0, 3.0, 4.0, 0.5, 8.5) == (pod.queue, pod.wait, pod.pull, pod.unpack, pod.start, pod.run)
    assert pod.started_after == 10.5
    assert pod.end == 20.0


@pytest.mark.parametrize(
    ("changes", "queue", "unknown"),
    [
        pytest.param({"bound": None, "started": None, "ended": None, "node": ""}, 29.0, 0.0, id="never placed"),
        pytest.param({"bound": None, "started": None, "ended": 5.0, "node": ""}, 4.0, 0.0, id="removed while pending"),
        pytest.param({"started": None, "ended": None}, 1.0, 28.0, id="never started"),
    ],
)
def test_a_pod_that_never_ran_has_no_time_of_running(changes, queue, unknown):
    parts = {"pull_queue": None, "download": None, "unpack": None, "start": None}
    record = recorded(*joined()).finish(a_summary(30.0), [a_row(**parts, **changes)], SIZES)

    (pod,) = record.pods
    assert (queue, 0.0, unknown) == (pod.queue, pod.run, pod.unknown)
    assert record.start_quantiles == ()
    assert record.started == 0


def test_bytes_are_those_that_had_arrived_at_each_time():
    recorder = recorded(*joined(), LayerPulled(0.0, "n1", "sha256:a", 100), LayerPulled(10.0, "n1", "sha256:b", 50))
    series = recorder.finish(a_summary(20.0), [], SIZES).series

    reached = [pulled for at, pulled in zip(series.at, series.bytes_pulled, strict=True) if at < 10.0]
    assert set(reached) == {100}
    assert series.bytes_pulled[-1] == 150
    assert (series.at[0], series.at[-1]) == (0.0, 20.0)


def test_load_is_of_all_nodes_that_are_there():
    recorder = recorded(
        *joined(2),
        *placed("p", "n1", 0.0, 500),
        # From 10 s on, the empty node is gone: the other one is the mean.
        NodeLeft(10.0, "n2"),
        PodFinished(19.0, "p", "n1"),
    )
    series = recorder.finish(a_summary(20.0), [], SIZES).series
    load = dict(zip(series.at, zip(series.peak_load, series.imbalance, strict=True), strict=True))

    # Shares 0.5 and 0: mean 0.25, standard deviation 0.25.
    assert load[0.0] == (2.0, 1.0)
    assert {load[at] for at in load if 10.0 <= at < 19.0} == {(1.0, 0.0)}
    assert load[20.0] == (None, None)


def test_a_change_of_what_a_node_holds_is_recorded_layer_by_layer():
    recorder = recorded(*joined())
    recorder.hold(0.0, "n1", {"sha256:a"})
    recorder.hold(5.0, "n1", {"sha256:b"})
    record = recorder.finish(a_summary(), [], SIZES)

    assert [(one.name, one.bytes) for one in record.layers] == [("base", 100), ("b", 50)]
    assert record.changes == (
        HeldChange(0.0, 0, 0, held=True),
        HeldChange(5.0, 0, 0, held=False),
        HeldChange(5.0, 0, 1, held=True),
    )
    assert record.changes_until is None


def test_only_the_first_nodes_are_followed():
    recorder = recorded(*joined(NODES + 1))

    assert recorder.follows(f"n{NODES}")
    assert not recorder.follows(f"n{NODES + 1}")
    assert not recorder.follows("unknown")


def test_a_record_has_whole_nodes_and_no_more_pods_than_allowed():
    each = PODS // 2 - 100
    rows = [a_row(f"{node}-{number}", node) for node in ("n1", "n2", "n3") for number in range(each)]
    record = recorded(*joined(3)).finish(a_summary(), rows, SIZES)

    assert record.nodes == ("n1", "n2")
    assert len(record.pods) == 2 * each
    assert (record.all_nodes, record.all_pods) == (3, 3 * each)


def test_runs_that_share_a_report_share_its_room():
    rows = [a_row(f"p{number}") for number in range(PODS)]

    assert len(recorded(*joined()).finish(a_summary(), rows, SIZES, share=3).pods) == PODS // 3


@pytest.mark.parametrize(
    ("share", "placed", "unplaced"),
    [
        pytest.param(1, PODS - UNPLACED, UNPLACED, id="room for all without a node"),
        pytest.param(PODS // 20, 10, 10, id="less room than that"),
        pytest.param(PODS, 1, 0, id="room for one"),
        pytest.param(PODS + 1, 0, 0, id="no room"),
    ],
)
def test_pods_without_a_node_take_at_most_half_of_the_room(share, placed, unplaced):
    rows = [a_row(f"p{number}", "n1" if number % 2 else "") for number in range(2 * PODS)]
    nodes = [pod.node for pod in recorded(*joined()).finish(a_summary(), rows, SIZES, share=share).pods]

    assert (nodes.count("n1"), nodes.count("")) == (placed, unplaced)


def test_the_map_is_bounded_and_says_where_it_ends():
    recorder = recorded(*joined())
    many = {f"sha256:{number:04}": (f"l{number}", 1) for number in range(LAYERS + 5)}
    for step in range(CHANGES):
        recorder.hold(float(step), "n1", many if step % 2 == 0 else {})
    record = recorder.finish(a_summary(), [], many)

    assert len(record.layers) == LAYERS
    assert record.all_layers == LAYERS + 5
    assert len(record.changes) == CHANGES
    assert record.changes_until is not None


def test_without_detail_there_are_figures_only():
    recorder = recorded(*joined(), *placed("p", "n1", 0.0, 500), detail=False)
    record = recorder.finish(a_summary(), [a_row()], SIZES)

    assert not recorder.follows("n1")
    assert (record.pods, record.nodes, record.layers) == ((), (), ())
    assert record.start_quantiles == (10.5,)
