"""What the recorder reads in kube-scheduler's log, line by line."""

from tests.parity.recording.recording_log import RecordingLog

HEAD = "I1118 17:00:00.000000   12345 file.go:1] "


def read(log: RecordingLog, *lines: str) -> None:
    for line in lines:
        log.read(HEAD + line)


def test_nodes_and_pods_are_mirrored():
    log = RecordingLog(lambda: None)
    read(log, '"Add event for node" node="n0"', '"Add event for node" node="n1"', '"Delete event for node" node="n0"')
    read(log, '"Add event for scheduled pod" pod="default/e0"', '"Add event for unscheduled pod" pod="default/p"')
    read(log, '"Update event for node" node="n1"')

    assert ({"n1"}, {"default/e0"}, {"default/p"}, {"n1"}) == (log.nodes, log.pods, log.waiting, log.touched)


def test_only_scores_of_the_first_attempt_count():
    log = RecordingLog(lambda: None)
    log.begin("default/p")
    attempt, line = '"Attempting to schedule pod" pod="default/p"', '"Plugin scored node for pod" pod="default/p"'
    read(log, attempt, f'{line} plugin="A" node="n0" score=300', attempt, f'{line} plugin="A" node="n0" score=7')
    read(log, '"Plugin scored node for pod" pod="default/q" plugin="A" node="n0" score=1')

    assert {"A": {"n0": 300}} == log.scores
    assert 2 == log.attempts


def test_the_ends_of_binding_and_preemption_are_those_of_the_pod():
    log = RecordingLog(lambda: None)
    log.begin("default/p")
    read(log, '"Successfully bound pod to node" pod="default/q" node="n0" evaluatedNodes=1 feasibleNodes=1')
    assert not log.bound
    read(log, '"Successfully bound pod to node" pod="default/p" node="n0" evaluatedNodes=1 feasibleNodes=1')
    read(log, '"Async Preemption finished completely" preemptor="default/p" node="n0" result="success"')

    assert (True, True) == (log.bound, log.preempted)


def test_other_lines_change_nothing_and_wake_nothing():
    woken = []
    log = RecordingLog(lambda: woken.append(1))
    read(log, '"Some other line" pod="default/p"', "no quotes")
    log.read("")

    assert [] == woken
