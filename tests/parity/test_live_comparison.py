"""Two answers of kube-scheduler to one case: which differences count, and which are ties."""

import msgspec
import pytest

from tests.parity.case_files import ParityCase, PreemptionCandidate, RecordedAnswer, RecordedCase
from tests.parity.case_objects import container_object, node_object, pod_object, running_status
from tests.parity.live_comparison import LiveReport, compare_live

CASE = ParityCase(
    "family",
    1,
    [node_object(f"n{number}", {"cpu": "2"}, {}) for number in range(3)],
    [
        pod_object(f"e{number}", [container_object("c0", {})], nodeName=f"n{number}", status=running_status())
        for number in range(3)
    ],
    pod_object("p", [container_object("c0", {"cpu": "1"})]),
)
PLACED = RecordedAnswer(feasible=[0, 1, 2], scores={"A": [10, 20, 20], "B": [1, 1, 1]}, chosen=1)
CANDIDATES = {
    "n0": PreemptionCandidate(["e0"], 1),
    "n1": PreemptionCandidate(["e1"]),
    "n2": PreemptionCandidate(["e2"]),
}
REFUSED = RecordedAnswer(message="0/3 nodes", nominated=1, victims=["e1"], candidates=CANDIDATES)


def compared(recorded, **changes):
    live = msgspec.structs.replace(recorded, **changes)
    return compare_live(RecordedCase(CASE, recorded), live, {"A"})


@pytest.mark.parametrize(
    ("recorded", "changes"),
    [
        pytest.param(PLACED, {}, id="the same"),
        pytest.param(PLACED, {"chosen": 2}, id="another of the best nodes"),
        pytest.param(REFUSED, {}, id="the same preemption"),
        pytest.param(REFUSED, {"nominated": 2, "victims": ["e2"]}, id="another node of the same cost"),
    ],
)
def test_equal_answers_and_ties_have_no_difference(recorded, changes):
    assert [] == compared(recorded, **changes).differences


@pytest.mark.parametrize(
    ("recorded", "changes", "unequal"),
    [
        pytest.param(PLACED, {"feasible": [0, 1]}, {"feasible_equal": False}, id="feasible nodes"),
        pytest.param(PLACED, {"scores": {"A": [10, 20, 21]}}, {"triples": 6, "triples_equal": 2}, id="scores"),
        pytest.param(PLACED, {"chosen": 0}, {"chosen_equal": False}, id="a worse node"),
        pytest.param(REFUSED, {"message": "1/3 nodes"}, {"message_equal": False}, id="message"),
        pytest.param(REFUSED, {"victims": []}, {"victims_equal": False}, id="victims"),
        pytest.param(REFUSED, {"nominated": 0, "victims": ["e0"]}, {"victims_equal": False}, id="a more costly node"),
        pytest.param(REFUSED, {"nominated": -1, "victims": []}, {"victims_equal": False}, id="no nomination"),
        pytest.param(REFUSED, {"candidates": {}}, {"victims_equal": False}, id="candidates"),
    ],
)
def test_a_difference_is_found_and_described(recorded, changes, unequal):
    found = compared(recorded, **changes)

    assert unequal == {name: getattr(found, name) for name in unequal}
    assert 1 <= len(found.differences)


def test_a_report_counts_cases_scores_and_plugins():
    report = LiveReport(found=[compared(PLACED), compared(PLACED, feasible=[0]), compared(REFUSED)])

    figures = report.figures()

    assert (3, 2, 1) == (figures["cases"], figures["feasible_equal"], figures["victims_equal"])
    assert (6, 6) == (figures["score_triples"], figures["score_triples_equal"])
    assert {"A": 3} == figures["by_plugin"]
