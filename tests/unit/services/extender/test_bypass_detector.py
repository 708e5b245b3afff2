"""Which pods were placed with our answer, and which without."""

import pytest

from lamina.model.pod import PodUid
from lamina.services.extender import bypass_detector as module
from lamina.services.extender.bypass_detector import BypassDetector
from lamina.testing.builders import a_pod


class Counted:
    def __init__(self) -> None:
        self.said: list[bool] = []

    def bound(self, *, answered: bool) -> None:
        self.said.append(answered)


def test_a_pod_that_was_asked_about_counts_as_answered_once() -> None:
    counted = Counted()
    attendance = BypassDetector(counted, ["default-scheduler"])
    attendance.seen(a_pod("p"))
    attendance.answered(a_pod("p"))
    attendance.seen(a_pod("p", on="n1"))
    attendance.seen(a_pod("p", on="n1", started=True))

    assert [True] == counted.said


def test_a_pod_that_nobody_asked_about_counts_as_not_answered() -> None:
    counted = Counted()
    attendance = BypassDetector(counted, ["default-scheduler"])
    attendance.seen(a_pod("p"))
    attendance.seen(a_pod("p", on="n1"))

    assert [False] == counted.said


def test_a_pod_whose_asker_was_gone_counts_as_not_answered() -> None:
    counted = Counted()
    attendance = BypassDetector(counted, ["default-scheduler"])
    attendance.seen(a_pod("p"))
    attendance.answered(a_pod("p"))
    attendance.unanswered(PodUid("p"))
    attendance.seen(a_pod("p", on="n1"))

    assert [False] == counted.said


@pytest.mark.parametrize(("later", "expected"), [(600.0, True), (601.0, False)], ids=["ten minutes", "longer"])
def test_an_answer_to_an_earlier_attempt_does_not_count(later: float, expected: bool) -> None:
    counted, now = Counted(), [100.0]
    attendance = BypassDetector(counted, ["default-scheduler"], lambda: now[0])
    attendance.seen(a_pod("p"))
    attendance.answered(a_pod("p"))
    now[0] += later
    attendance.seen(a_pod("p", on="n1"))

    assert [expected] == counted.said


def test_pods_of_other_schedulers_and_pods_that_were_never_seen_waiting_do_not_count() -> None:
    counted = Counted()
    attendance = BypassDetector(counted, ["default-scheduler"])
    attendance.seen(a_pod("other", scheduler="other"))
    attendance.seen(a_pod("other", scheduler="other", on="n1"))
    attendance.seen(a_pod("bound before", on="n1"))

    assert [] == counted.said


def test_a_scheduler_that_has_asked_once_is_expected_to_ask_again() -> None:
    counted = Counted()
    attendance = BypassDetector(counted)
    attendance.answered(a_pod("first", scheduler="mine"))
    attendance.seen(a_pod("second", scheduler="mine"))
    attendance.seen(a_pod("second", scheduler="mine", on="n1"))

    assert [False] == counted.said


def test_pods_that_are_gone_are_forgotten() -> None:
    counted = Counted()
    attendance = BypassDetector(counted, ["default-scheduler"])
    attendance.seen(a_pod("p"))
    attendance.gone(PodUid("p"))
    attendance.seen(a_pod("p", on="n1"))

    assert [] == counted.said


def test_only_so_many_are_remembered() -> None:
    attendance = BypassDetector(Counted(), ["default-scheduler"])
    for number in range(module.MOST + 10):
        attendance.seen(a_pod(f"p{number}"))
        attendance.answered(a_pod(f"p{number}", scheduler=f"s{number}"))

    assert (module.MOST, module.MOST, module.MOST_SCHEDULERS) == (
        len(attendance._waiting),
        len(attendance._answered),
        len(attendance._schedulers),
    )


def test_what_no_api_server_would_have_taken_is_not_remembered() -> None:
    counted = Counted()
    attendance = BypassDetector(counted, ["default-scheduler"])
    endless = a_pod("p" * 1_000_000)
    attendance.answered(endless)
    attendance.answered(a_pod("p", scheduler="s" * 1_000_000))
    attendance.seen(endless)
    attendance.seen(a_pod("p" * 1_000_000, on="n1"))

    assert [] == counted.said
    assert ["default-scheduler"] == list(attendance._schedulers)
