"""The last decisions: the newest of a pod, the newest pods, never more than agreed."""

from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.scheduling.contract.commands import Bind, Evict, Nominate, ReportUnschedulable, WakeAt
from lamina.services.scheduler.decision_journal import MOST, DecisionJournal
from lamina.testing import a_pod
from tests.unit.services.fakes import a_decision


def placed(name: str, attempt: int = 1) -> Bind:
    return Bind(a_pod(name), "n1", a_decision(f"default/{name}", attempt=attempt))


def test_the_newest_decision_about_a_pod_is_kept():
    journal = DecisionJournal()
    refused = a_decision("default/p1", outcome="unschedulable", message="no room")
    journal.note([ReportUnschedulable(a_pod("p1"), refused)])
    journal.note([placed("p1", attempt=2)])

    assert 2 == journal.about("default/p1").attempt
    assert 1 == len(journal)


def test_nothing_is_known_of_a_pod_nobody_decided_about():
    assert DecisionJournal().about("default/p1") is None


def test_commands_without_a_decision_are_passed_over():
    journal = DecisionJournal()
    journal.note([Evict(a_pod(), a_pod(), "n"), Nominate(a_pod(), "n"), WakeAt(1.0), Bind(a_pod(), "n")])

    assert 0 == len(journal)


@given(st.lists(st.integers(0, 12), max_size=60), st.integers(1, 8))
@settings(max_examples=40)
def test_the_pods_decided_about_last_are_remembered(names, most):
    journal = DecisionJournal(most)
    for number, name in enumerate(names):
        journal.note([placed(str(name), attempt=number + 1)])

    newest = list(dict.fromkeys(reversed(names)))[:most]
    assert [f"default/{name}" for name in reversed(newest)] == [decision.pod for decision in journal]
    for name in newest:
        assert len(names) - names[::-1].index(name) == journal.about(f"default/{name}").attempt


def test_ten_thousand_are_remembered():
    assert 10_000 == MOST


def test_decisions_in_full_detail_are_bounded_too():
    journal = DecisionJournal()
    for number in range(100):
        journal.note([Bind(a_pod(), "n1", a_decision(f"default/p{number}", verdicts=5000))])

    assert 250_000 >= sum(len(decision.verdicts) for decision in journal)
