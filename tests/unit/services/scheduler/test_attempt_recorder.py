"""What is said about attempts and bindings, as loudly as was asked for."""

import logging
from collections.abc import Iterator

import msgspec
import pytest

from lamina.scheduling.contract.commands import Bind, Nominate, ReportUnschedulable
from lamina.services.informers.clock import SteadyClock
from lamina.services.log_lines import Verbosity
from lamina.services.scheduler.attempt_recorder import AttemptRecorder
from lamina.services.scheduler.decision_journal import DecisionJournal
from lamina.services.scheduler.metrics import SchedulerMetrics
from lamina.testing import a_pod
from tests.unit.services.fakes import StillClock, a_decision

BOUND = Bind(a_pod(), "n1", a_decision(verdicts=2))
WAITS = ReportUnschedulable(a_pod(), a_decision(outcome="unschedulable", message="no room"))


@pytest.fixture(autouse=True)
def loudness(caplog) -> Iterator[None]:
    before = Verbosity.level
    caplog.set_level(logging.INFO, "lamina")
    yield
    Verbosity.level = before


def said(caplog: pytest.LogCaptureFixture, verbosity: int, *commands: object) -> list[str]:
    Verbosity.level = verbosity
    attempts = AttemptRecorder(SchedulerMetrics(StillClock()), DecisionJournal())
    attempts.attempted(0.001, list(commands))
    return caplog.messages


@pytest.mark.parametrize(
    ("verbosity", "lines"),
    [
        (0, []),
        (1, []),
        (2, ["Unable to schedule pod; no fit; waiting"]),
        (3, ["Attempting to schedule pod", "Unable to schedule pod; no fit; waiting"]),
    ],
)
def test_a_pod_that_waits_is_said_from_verbosity_two(caplog, verbosity, lines):
    assert lines == said(caplog, verbosity, WAITS, Nominate(a_pod(), "n1"))


def test_scores_are_said_node_by_node_from_verbosity_ten(caplog):
    assert "Calculated node's final score for pod" not in said(caplog, 9, BOUND)
    assert 2 == said(caplog, 10, BOUND).count("Calculated node's final score for pod")


@pytest.mark.parametrize(("verbosity", "lines"), [(0, []), (2, ["Successfully bound pod to node"])])
def test_a_binding_is_said_from_verbosity_two(caplog, verbosity, lines):
    Verbosity.level = verbosity
    AttemptRecorder(SchedulerMetrics(StillClock()), DecisionJournal()).bound(BOUND)

    assert lines == caplog.messages
    if lines:
        assert {"pod": "default/p1", "node": "n1", "evaluatedNodes": "3", "feasibleNodes": "2"} == caplog.records[
            0
        ].fields


def test_a_binding_that_failed_is_always_said(caplog):
    Verbosity.level = 0
    AttemptRecorder(SchedulerMetrics(StillClock()), DecisionJournal()).not_bound(BOUND, "409")

    assert ["bind failed"] == caplog.messages
    assert {"pod": "default/p1", "node": "n1", "reason": "409"} == caplog.records[0].fields


def test_what_was_decided_is_remembered_however_quiet_it_is(caplog):
    journal = DecisionJournal()
    Verbosity.level = 0
    AttemptRecorder(SchedulerMetrics(StillClock()), journal).attempted(0.1, [BOUND])

    assert journal.about("default/p1") is BOUND.decision


def test_the_clock_is_not_set_by_who_sets_the_machines(monkeypatch):
    clock = SteadyClock()
    before = clock.now()
    monkeypatch.setattr("time.time", lambda: 0.0)

    assert before <= clock.now() < before + 5.0


def test_what_is_odd_about_a_pod_is_said_once_and_not_at_every_attempt(caplog, monkeypatch):
    Verbosity.level = 2
    monkeypatch.setattr("lamina.services.scheduler.attempt_recorder.MOST_NOTES", 2)
    attempts = AttemptRecorder(SchedulerMetrics(StillClock()), DecisionJournal())
    one, other = (msgspec.structs.replace(a_decision(uid), uid=uid, notes=("odd",)) for uid in ("u1", "u2"))
    for decision in (one, one, other, one, msgspec.structs.replace(one, notes=("odder",))):
        attempts.attempted(0.001, [ReportUnschedulable(a_pod(), decision)])

    assert 3 == caplog.messages.count("Pod asks for something odd")
    assert len(attempts._noted) <= 2
