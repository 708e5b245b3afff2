"""Comparison of two answers: what counts as equal, as different, and as not compared."""

import msgspec
import pytest

from tests.parity.case_files import ParityCase, PreemptionCandidate, RecordedAnswer, RecordedCase
from tests.parity.case_objects import container_object, node_object, pod_object
from tests.parity.comparison import compare, preemption_costs
from tests.parity.known_differences import known_case
from tests.parity.parity_report import ParityReport
from tests.parity.replay import LaminaAnswer, lamina_answer
from tests.parity.storage_cases import StorageObjects, claim_volume

CASE = ParityCase(
    "family",
    1,
    [node_object(f"n{number}", {"cpu": "2", "memory": "4Gi", "pods": "9"}, {}) for number in range(3)],
    [
        pod_object(name, [container_object("c0", {})], nodeName="n0", priority=priority, status={"startTime": start})
        for name, priority, start in (
            ("e0", 5, "2026-01-01T01"),
            ("e1", 5, "2026-01-01T02"),
            ("e2", 7, "2026-01-01T03"),
        )
    ],
    pod_object("p", [container_object("c0", {"cpu": "1"})]),
)
OURS = LaminaAnswer(
    unmet=(),
    ignored=(),
    feasible=frozenset({"n0", "n1"}),
    scores={"A": {"n0": 10, "n1": 20}},
    totals={"n0": 10, "n1": 20},
    chosen="n1",
    message="",
    refused_by=frozenset({"NodePorts"}),
    nominated="",
    victims=[],
    preempts=False,
)
THEIRS = RecordedAnswer(feasible=[0, 1], scores={"A": [10, 20]}, chosen=1)


def compared(theirs=THEIRS, **changes):
    return compare(RecordedCase(CASE, theirs), msgspec.structs.replace(OURS, **changes))


def test_equal_answers_have_no_difference():
    found = compared()

    assert found.equal
    assert {"A", "NodePorts"} == found.active
    assert (2, 2) == (found.triples, found.triples_equal)
    assert (True, True) == (found.totals_equal, found.chosen_equal)


def test_a_node_that_only_lamina_finds_feasible_is_unsound():
    found = compared(feasible=frozenset({"n0", "n1", "n2"}))

    assert ["n2"] == found.unsound
    assert not found.feasible_equal
    assert {"NodePorts"} == found.unequal


def test_a_different_score_is_counted_and_names_its_plugin():
    found = compared(scores={"A": {"n0": 10, "n1": 19}}, totals={"n0": 10, "n1": 19})

    assert (2, 1, {"A"}) == (found.triples, found.triples_equal, found.unequal)
    assert found.totals_equal is False
    assert found.chosen_equal is True


def test_scores_of_a_scorer_that_lamina_lacks_are_not_compared():
    theirs = RecordedAnswer(feasible=[0, 1], scores={"A": [10, 20], "InterPodAffinity": [0, 200]}, chosen=1)
    found = compared(theirs)

    assert found.equal
    assert {"InterPodAffinity"} == found.left_out
    assert found.totals_equal is None


def test_a_pod_with_unmet_demands_is_not_compared():
    found = compared(unmet=("inter-pod affinity",), feasible=frozenset())

    assert ("InterPodAffinity", [], False) == (found.not_compared, found.unsound, found.equal)


@pytest.mark.parametrize(
    ("theirs", "ours", "preempts", "equal"),
    [
        pytest.param("0/3 nodes: 3 Too many pods.", "0/3 nodes: 3 Too many pods.", False, True, id="equal"),
        pytest.param("0/3: x. preemption: y", "0/3: x.", False, True, id="no preemption in Lamina's profile"),
        pytest.param("0/3: x. preemption: y", "0/3: x.", True, False, id="preemption in Lamina's profile"),
        pytest.param(
            "0/3: x. no new claims to deallocate, preemption: y", "0/3: x. preemption: y", True, True, id="no claims"
        ),
        pytest.param("0/3: x.", "0/3: z.", False, False, id="other reasons"),
    ],
)
def test_messages_are_compared_as_far_as_lamina_has_the_plugins(theirs, ours, preempts, equal):
    found = compared(RecordedAnswer(message=theirs), feasible=frozenset(), message=ours, preempts=preempts)

    assert equal == found.message_equal


@pytest.mark.parametrize(
    ("node", "victims", "nomination", "evicted"),
    [
        pytest.param("n0", ["e0"], True, True, id="the same"),
        pytest.param("n1", ["e0"], True, True, id="another node at the same cost"),
        pytest.param("n2", ["e2"], False, True, id="a node at a higher cost"),
        pytest.param("n0", ["e1"], True, False, id="other victims"),
        pytest.param("", [], False, False, id="no preemption"),
    ],
)
def test_a_preemption_is_equal_if_it_costs_the_same(node, victims, nomination, evicted):
    candidates = {
        "n0": PreemptionCandidate(["e0"]),
        "n1": PreemptionCandidate(["e0"]),
        "n2": PreemptionCandidate(["e2"]),
    }
    theirs = RecordedAnswer(message="x", nominated=0, victims=["e0"], candidates=candidates)
    found = compared(theirs, feasible=frozenset(), message="x", preempts=True, nominated=node, victims=victims)

    assert (nomination, evicted) == (found.nomination_equal, found.victims_equal)


def test_costs_of_preemption_are_violations_priorities_number_and_start():
    answer = RecordedAnswer(candidates={"n0": PreemptionCandidate(["e0", "e1"], violations=1)})

    # Upstream adds 2^31 to every priority, so that pods of negative priority do not make a node cheaper.
    assert {"n0": (1, 5, 10 + 2 * 2**31, 2, "2026-01-01T01")} == preemption_costs(RecordedCase(CASE, answer))


def test_lamina_answers_with_every_node():
    found = lamina_answer(CASE, {"namespaces": []})

    assert {"n0", "n1", "n2"} == found.feasible
    assert found.totals.keys() == found.feasible
    assert found.chosen in found.feasible


def test_a_report_counts_equal_and_uncompared_cases_by_plugin():
    figures = ParityReport()
    for one in (compared(), compared(unmet=("inter-pod affinity",))):
        figures.add(one)
    found = figures.figures()

    assert (2, 1, 1, {"InterPodAffinity": 1}) == (
        found["cases"],
        found["compared"],
        found["equal"],
        found["not_compared"],
    )
    assert {"cases": 2, "equal": 1, "not_compared": 1} == found["by_plugin"]["A"]


@pytest.mark.parametrize(
    ("operator", "apart"),
    [
        pytest.param("DoesNotExist", True, id="a negative selector: kube-scheduler 1.36 matches all namespaces"),
        pytest.param("Exists", False, id="a positive selector"),
    ],
)
def test_a_known_difference_sets_a_case_apart(operator, apart):
    term = {"topologyKey": "zone", "namespaceSelector": {"matchExpressions": [{"key": "team", "operator": operator}]}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    case = msgspec.structs.replace(CASE, pod={**CASE.pod, "spec": {**CASE.pod["spec"], "affinity": affinity}})

    assert apart == bool(known_case(case))


@pytest.mark.parametrize(
    ("ours", "known"),
    [
        pytest.param("refused. preemption: 0/3 nodes: 3 Preemption is not helpful for scheduling.", True, id="no help"),
        pytest.param("refused. preemption: 0/3 nodes: 3 No preemption victims found.", False, id="attempted"),
        pytest.param("other. preemption: 0/3 nodes: 3 Preemption is not helpful for scheduling.", False, id="reason"),
    ],
)
def test_a_refusal_before_filtering_may_end_differently(ours, known):
    found = compared(RecordedAnswer(message="refused. not found"), feasible=frozenset(), message=ours, preempts=True)

    assert known is found.message_equal
    assert known is bool(found.known)


@pytest.mark.parametrize(
    ("users", "modes", "apart"),
    [
        pytest.param(2, ["ReadWriteOncePod"], True, id="two users"),
        pytest.param(1, ["ReadWriteOncePod"], False, id="one user"),
        pytest.param(2, ["ReadWriteOnce"], False, id="not for one pod"),
    ],
)
def test_several_users_of_a_claim_for_one_pod_set_a_case_apart(users, modes, apart):
    objects = StorageObjects("p")
    volumes = [claim_volume(objects.bound_claim(access_modes=modes))]
    placed = [pod_object(f"e{number}", [], nodeName="n0", volumes=volumes) for number in range(users)]
    case = ParityCase("family", 1, CASE.nodes, placed, pod_object("p", [], volumes=volumes), objects.found)

    assert apart is bool(known_case(case))
