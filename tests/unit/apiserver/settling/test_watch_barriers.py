"""Barriers show that a scheduler has handled everything that was sent before them."""

import pytest

from lamina.apiserver.settling.pending_pods import BARRIER, BOUND_BARRIER, pod_key
from lamina.apiserver.settling.scheduler_log import SchedulerLog
from lamina.apiserver.settling.watch_barriers import WatchBarriers
from tests.unit.apiserver.settling.settle_stage import SCHEDULER, SettleStage, added, line

GONE = line("Delete event for unscheduled pod", pod=pod_key(BARRIER))
BOUND_ADDED = line("Add event for scheduled pod", pod=pod_key(BOUND_BARRIER))
BOUND_CHANGED = line("Update event for scheduled pod", pod=pod_key(BOUND_BARRIER))


def node_changed(name):
    return line("Update event for node", node=name)


class BarrierStage(SettleStage):
    """A stage with barriers."""

    def __init__(self, *, bound=False):
        super().__init__()
        self.log = SchedulerLog(self.pods)
        self.barriers = WatchBarriers(self.state, self.pods, self.log, SCHEDULER, bound=bound)

    def read(self, *lines):
        for one in lines:
            self.log.read(one)


def test_the_barrier_pod_comes_and_goes_in_turn():
    stage = BarrierStage()
    for expected in (added(pod_key(BARRIER)), GONE, added(pod_key(BARRIER))):
        stage.barriers.send()
        before = stage.barriers.passed
        assert not before

        stage.read(expected)

        assert stage.barriers.passed
        assert stage.barriers.confirm()


def test_a_barrier_is_no_change_and_does_not_wait():
    stage = BarrierStage()
    stage.node("n1")
    before = (stage.pods.changes, stage.pods.node_changes)
    stage.read(line("Add event for node", node="n1"))

    stage.barriers.send()

    assert before == (stage.pods.changes, stage.pods.node_changes)
    assert not stage.pods.pending


def test_barriers_do_not_count_if_a_pod_changed_after_they_were_sent():
    stage = BarrierStage()
    stage.barriers.send()
    stage.pod("a")

    stage.read(added(pod_key(BARRIER)))

    assert stage.barriers.passed
    assert not stage.barriers.confirm()


def test_a_scheduler_that_has_not_read_the_nodes_gets_no_node_barrier():
    stage = BarrierStage()
    stage.node("n1")
    stage.barriers.send()
    stage.read(added(pod_key(BARRIER)))
    before = stage.barriers.passed
    assert not before

    stage.read(line("Add event for node", node="n1"))

    # Now it reads them, and a second barrier is needed.
    assert stage.barriers.passed
    assert not stage.barriers.confirm()


@pytest.mark.parametrize(
    ("changed", "lines", "passed"),
    [
        pytest.param(["n2"], ["n2"], False, id="another node's line is no barrier"),
        pytest.param(["n2"], ["n2", "n1"], True, id="the barrier is a node that did not change"),
        pytest.param(["n1", "n2"], ["n1"], False, id="a line about the change itself does not count"),
        pytest.param(["n1", "n2"], ["n1", "n1"], True, id="one line more than changes"),
        pytest.param(["n1", "n1", "n2"], ["n2"], False, id="the node with the fewest changes"),
        pytest.param(["n1", "n1", "n2"], ["n2", "n2"], True, id="the node with the fewest changes, and one more"),
    ],
)
def test_a_node_barrier_is_told_from_other_updates(changed, lines, passed):
    stage = BarrierStage()
    stage.node("n1")
    stage.node("n2")
    stage.read(line("Add event for node", node="n1"), line("Add event for node", node="n2"))
    stage.barriers.send()
    stage.read(added(pod_key(BARRIER)), node_changed("n1"))
    assert stage.barriers.confirm()
    for number, name in enumerate(changed):
        stage.node(name, metadata={"labels": {"number": str(number)}})

    stage.barriers.send()
    stage.read(GONE, *(node_changed(name) for name in lines))

    assert passed == stage.barriers.passed


def test_nodes_that_did_not_change_need_no_barrier():
    stage = BarrierStage()
    stage.node("n1")
    stage.read(line("Add event for node", node="n1"))
    stage.barriers.send()
    stage.read(added(pod_key(BARRIER)), node_changed("n1"))
    assert stage.barriers.confirm()

    stage.barriers.send()
    stage.read(GONE)

    assert stage.barriers.passed


def test_a_node_that_changes_meanwhile_makes_a_barrier_late():
    stage = BarrierStage()
    stage.node("n1")
    stage.read(line("Add event for node", node="n1"))
    stage.barriers.send()

    stage.node("n1", metadata={"labels": {"a": "b"}})

    assert stage.barriers.late
    assert not stage.barriers.confirm()


def test_bound_pods_have_a_barrier_of_their_own_where_they_are_handled_apart():
    stage = BarrierStage(bound=True)
    for first, second in ((added(pod_key(BARRIER)), BOUND_ADDED), (GONE, BOUND_CHANGED)):
        stage.barriers.send()
        stage.read(first)
        assert not stage.barriers.passed

        stage.read(second)

        assert stage.barriers.passed
