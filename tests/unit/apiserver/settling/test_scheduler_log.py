"""The state of pods in kube-scheduler follows from its log lines, in whatever order goroutines write them."""

import pytest

from lamina.apiserver.settling.scheduler_log import SchedulerLog
from tests.unit.apiserver.settling.settle_stage import SettleStage, added, attempt, line, moved, refused

A = "default/a"
DETERMINED = line("the target node for the preemption is determined", pod=A, node="n4")
SPARED = line(
    "Victim Pod is already being deleted, skipping the API call for it", preemptor=A, node="n4", victim="default/v"
)
FINISHED = line("Async Preemption finished completely", preemptor=A, node="n4", result="success")
FAILED = line("Async Preemption finished completely", preemptor=A, node="n4", result="error")
RECREATED = line(
    "Pod was recreated while handling scheduling failure. Skip requeueing and status updates.", pod=A, oldUID="x"
)
REFUSAL = [added(A), moved(A, "Active"), attempt(A), moved(A, "Unschedulable"), refused(A)]


@pytest.fixture
def stage():
    stage = SettleStage()
    stage.pod("a")
    return stage


def log_of(stage, lines, **options):
    log = SchedulerLog(stage.pods, **options)
    for one in lines:
        log.read(one)
    return log


@pytest.mark.parametrize(
    ("lines", "busy"),
    [
        pytest.param([], True, id="nothing is logged yet"),
        pytest.param([added(A)], True, id="added, in no queue yet"),
        pytest.param(REFUSAL[:2], True, id="in the active queue"),
        pytest.param(REFUSAL[:3], True, id="in an attempt"),
        pytest.param(REFUSAL[:4], True, id="in the unschedulable queue, with its status not written"),
        pytest.param(REFUSAL, False, id="refused"),
        pytest.param([*REFUSAL, moved(A, "Backoff")], True, id="moved to back-off by an event"),
        pytest.param([*REFUSAL, moved(A, "Active", "ForceActivate")], True, id="activated"),
        pytest.param([*REFUSAL, moved(A, "Backoff"), *REFUSAL[2:]], False, id="refused again"),
        pytest.param([*REFUSAL[:3], moved(A, "Backoff"), refused(A)], True, id="failed with an error, in back-off"),
        pytest.param([*REFUSAL[:3], refused(A), moved(A, "Active")], True, id="an event came within the attempt"),
    ],
)
def test_a_pod_rests_when_its_attempt_is_over_and_no_queue_will_hand_it_out(stage, lines, busy):
    assert busy == bool(log_of(stage, lines).busy)


@pytest.mark.parametrize(
    "line_of_queue",
    [
        pytest.param(
            line("Pod moved to an internal scheduling queue, because the pod is gated", pod=A, queue="Unschedulable"),
            id="1.36, gated",
        ),
        pytest.param(
            line("Entity moved to an internal scheduling queue", type="pod", entity=A, queue="Unschedulable"),
            id="1.37, moved",
        ),
        pytest.param(
            line("Entity moved to an internal scheduling queue, because it is gated", entity=A, queue="Unschedulable"),
            id="1.37, gated",
        ),
    ],
)
def test_each_version_has_its_own_words_for_a_pod_that_waits(stage, line_of_queue):
    assert not log_of(stage, [moved(A, "Active"), line_of_queue]).busy


def test_1_37_names_a_pod_that_is_queued_an_entity(stage):
    queued = line("Entity moved to an internal scheduling queue", type="pod", entity=A, event="NodeAdd", queue="Active")

    assert {A} == log_of(stage, [*REFUSAL, queued]).busy


@pytest.mark.parametrize(
    "condition",
    [
        pytest.param(line("Updating pod condition", pod=A, conditionType="PodScheduled"), id="1.30 and 1.33"),
        pytest.param(refused(A), id="1.36 and 1.37"),
    ],
)
def test_an_attempt_ends_with_the_line_about_the_condition(stage, condition):
    assert not log_of(stage, [*REFUSAL[:4], condition]).busy


def test_a_nomination_within_a_binding_cycle_is_no_end_of_an_attempt(stage):
    nominated = line("Updating pod condition and nominated node name", pod=A, nominatedNodeName="n1")

    assert {A} == log_of(stage, [*REFUSAL[:3], nominated]).busy


def test_a_failed_binding_may_end_after_the_next_attempt_has_begun(stage):
    lines = [moved(A, "Active"), attempt(A), moved(A, "Backoff"), attempt(A), refused(A)]
    log = log_of(stage, lines)
    assert {A} == log.busy

    for one in (moved(A, "Unschedulable"), refused(A)):
        assert log.busy
        log.read(one)

    assert not log.busy


def test_the_line_about_back_off_may_follow_the_attempt_that_takes_the_pod_out(stage):
    lines = [attempt(A), moved(A, "Backoff"), moved(A, "Unschedulable"), refused(A)]

    assert not log_of(stage, lines).busy


def test_a_bound_pod_does_not_wait(stage):
    log = log_of(stage, REFUSAL[:3])

    stage.pod("a", nodeName="n1")

    assert not log.busy


def test_a_deleted_pod_does_not_wait(stage):
    log = log_of(stage, REFUSAL[:3])

    stage.remove_pod("a")

    assert not log.busy


def test_the_end_of_an_attempt_of_a_deleted_pod_is_not_the_end_of_its_successors(stage):
    log = log_of(stage, REFUSAL[:3])
    stage.remove_pod("a")
    stage.pod("a", metadata={"uid": "another"})

    for one in (RECREATED, moved(A, "Active"), attempt(A), moved(A, "Unschedulable")):
        log.read(one)
        assert log.busy
    log.read(refused(A))

    assert not log.busy


def test_a_pod_that_is_gone_from_the_informer_ends_its_attempt_with_a_condition(stage):
    log = log_of(stage, REFUSAL[:3])
    stage.remove_pod("a")
    log.read(line("Pod doesn't exist in informer cache", pod=A, err="not found"))
    log.read(refused(A))

    stage.pod("a")
    for one in REFUSAL:
        log.read(one)

    assert not log.busy


def test_a_gated_pod_does_not_wait_until_its_gate_is_removed(stage):
    log = log_of(stage, REFUSAL)
    stage.pod("b", schedulingGates=[{"name": "x"}])
    assert not log.busy

    stage.pod("b")

    assert {"default/b"} == log.busy


def test_an_updated_pod_may_leave_the_unschedulable_queue(stage):
    updated = line(
        "Pod moved to an internal scheduling queue because the Pod is updated", pod=A, event="x", queue="Backoff"
    )

    assert {A} == log_of(stage, [*REFUSAL, updated]).busy


def test_lines_of_other_programs_and_pods_are_ignored(stage):
    log = log_of(stage, [*REFUSAL, "", "no klog", 'E1118 x.go:1] "Error occurred"', attempt("default/other")])

    assert not log.busy


# -- preemption --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "busy"),
    [
        pytest.param([], True, id="its victims are being deleted"),
        pytest.param([FINISHED], False, id="its victims are deleted"),
        pytest.param([FAILED], True, id="a deletion failed, so that the pod will be activated"),
    ],
)
def test_a_preemptor_rests_when_its_preemption_is_finished(stage, lines, busy):
    log = log_of(stage, [*REFUSAL[:3], DETERMINED, *REFUSAL[3:], *lines])

    assert busy == bool(log.busy)


def test_a_preemption_may_end_before_its_attempt(stage):
    assert not log_of(stage, [*REFUSAL[:3], DETERMINED, FINISHED, *REFUSAL[3:]]).busy


def test_a_preemption_without_a_deletion_is_doubtful(stage):
    log = log_of(stage, [*REFUSAL[:3], DETERMINED, SPARED, *REFUSAL[3:]])
    assert ({A}, {A}) == (log.busy, log.doubtful)

    log.end_doubtful()

    assert not log.busy


@pytest.mark.parametrize(
    ("victims", "busy"),
    [pytest.param(1, False, id="all were being deleted"), pytest.param(2, True, id="one is deleted now")],
)
def test_1_37_tells_the_number_of_victims(stage, victims, busy):
    told = line(
        "Status after running PostFilter plugins for pod",
        pod=A,
        status=f"preemption: found, preempting {victims} victims",
    )
    log = log_of(stage, [*REFUSAL[:3], DETERMINED, SPARED, told, *REFUSAL[3:]])

    assert (busy, set()) == (bool(log.busy), log.doubtful)


def test_1_30_deletes_victims_within_the_attempt(stage):
    assert not log_of(stage, [*REFUSAL[:3], DETERMINED, *REFUSAL[3:]], async_preemption=False).busy


# -- restarts and names ------------------------------------------------------------------------------------------------


def test_a_restarted_scheduler_has_to_see_all_pods_again(stage):
    log = log_of(stage, [*REFUSAL, attempt("default/other")])

    log.read(line("Starting Kubernetes Scheduler", version="v1.36.3"))
    assert {A} == log.busy
    for one in REFUSAL:
        log.read(one)

    assert not log.busy


def test_pods_of_another_profile_of_the_same_scheduler_are_followed_once_it_adds_one(stage):
    log = log_of(stage, REFUSAL)
    stage.pod("b", schedulerName="second")
    stage.pod("c", schedulerName="third")
    assert not log.busy

    log.read(added("default/b"))

    assert {"default/b"} == log.busy


def test_metrics_that_show_a_settled_scheduler_end_everything(stage):
    log = log_of(stage, REFUSAL[:3])

    log.forget()

    assert not log.busy
