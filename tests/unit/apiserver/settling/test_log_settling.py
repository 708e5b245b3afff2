"""kube-scheduler has settled when its log says so; else its metrics decide, and never silence."""

import asyncio

import pytest

from lamina.apiserver.settling import log_settling
from lamina.apiserver.settling.log_settling import LogSettling
from lamina.apiserver.settling.pending_pods import BARRIER, pod_key
from lamina.apiserver.settling.scheduler_log import SchedulerLog
from lamina.apiserver.settling.settle_method import SchedulerStuckError, SettleFigures, SignalledWait
from lamina.apiserver.settling.watch_barriers import WatchBarriers
from lamina.simulator.facade.kube_object import NamespacedName
from tests.unit.apiserver.settling.settle_stage import SCHEDULER, SettleStage, added, attempt, line, moved, refused

A = "default/a"
SEEN = added(pod_key(BARRIER))
GONE = line("Delete event for unscheduled pod", pod=pod_key(BARRIER))
REFUSAL = (added(A), moved(A, "Active"), attempt(A), moved(A, "Unschedulable"), refused(A))


class FixedConfirmation:
    """Metrics that always tell the same."""

    def __init__(self, why="", *, preempting=False):
        self.why, self.running = why, preempting
        self.asked = 0

    async def confirm(self):
        self.asked += 1
        return self.why

    async def preempting(self):
        self.asked += 1
        return self.running


class LogStage(SettleStage):
    """A settle method, fed with lines while it waits."""

    def __init__(self, confirmation=None):
        super().__init__()
        self.log = SchedulerLog(self.pods)
        self.wait = SignalledWait(lambda: None)
        barriers = WatchBarriers(self.state, self.pods, self.log, SCHEDULER)
        self.method = LogSettling(self.pods, self.log, barriers, self.wait, confirmation)

    async def read(self, *lines):
        """Read lines, and let the method react."""
        await turns()
        for one in lines:
            self.log.read(one)
            self.wait.wake()
            await turns()


async def turns():
    """Let other tasks run as far as they can."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_scheduler_settles_when_its_pods_rest_and_the_barrier_is_passed():
    stage = LogStage()
    stage.pod("a")
    task = asyncio.create_task(stage.method.settle())
    await stage.read(*REFUSAL)
    assert not task.done()

    await stage.read(SEEN)

    await asyncio.wait_for(task, 30)
    assert ("log", True, 1, 0) == (
        stage.method.figures.method,
        stage.method.figures.proven,
        stage.method.figures.checks,
        stage.method.figures.limits_hit,
    )


async def test_a_pod_that_an_earlier_event_moves_before_the_barrier_is_awaited():
    stage = LogStage()
    stage.pod("a")
    task = asyncio.create_task(stage.method.settle())
    await stage.read(*REFUSAL, moved(A, "Backoff"), SEEN)
    assert not task.done()

    await stage.read(*REFUSAL[2:], GONE)

    await asyncio.wait_for(task, 30)


async def test_a_write_after_the_barrier_needs_another_one():
    stage = LogStage()
    stage.pod("a")
    task = asyncio.create_task(stage.method.settle())
    await stage.read(*REFUSAL)
    stage.pod("a", nodeName="n1")
    await stage.read(SEEN)
    assert not task.done()

    await stage.read(GONE)

    await asyncio.wait_for(task, 30)


async def test_a_log_that_stops_is_decided_by_the_metrics(monkeypatch):
    monkeypatch.setattr(log_settling, "START_SECONDS", 0.01)
    confirmation = FixedConfirmation()
    stage = LogStage(confirmation)
    stage.pod("a")

    await asyncio.wait_for(stage.method.settle(), 30)

    assert (1, 1) == (stage.method.figures.limits_hit, confirmation.asked)
    assert not stage.log.busy


@pytest.mark.parametrize(
    "confirmation",
    [
        pytest.param(None, id="there are no metrics"),
        pytest.param(FixedConfirmation("3 pods are in its queues"), id="the metrics show work"),
    ],
)
async def test_a_scheduler_that_settles_by_no_method_is_an_error(monkeypatch, confirmation):
    monkeypatch.setattr(log_settling, "START_SECONDS", 0.01)
    stage = LogStage(confirmation)
    stage.pod("a")

    with pytest.raises(SchedulerStuckError, match=r"1 pods \(default/a\)"):
        await asyncio.wait_for(stage.method.settle(), 30)

    assert 1 == stage.method.figures.limits_hit


async def test_a_scheduler_that_reads_nothing_is_an_error(monkeypatch):
    monkeypatch.setattr(log_settling, "START_SECONDS", 0.01)

    with pytest.raises(SchedulerStuckError, match="read its watches"):
        await asyncio.wait_for(LogStage().method.settle(), 30)


async def test_metrics_tell_whether_a_doubtful_preemption_runs(monkeypatch):
    monkeypatch.setattr(log_settling, "DOUBT_SECONDS", 0.001)
    confirmation = FixedConfirmation(preempting=False)
    stage = LogStage(confirmation)
    stage.pod("a")
    task = asyncio.create_task(stage.method.settle())
    determined = line("the target node for the preemption is determined", pod=A, node="n4")
    spared = line("Victim Pod is already being deleted, skipping the API call for it", preemptor=A, victim="default/v")
    await stage.read(*REFUSAL[:3], determined, spared, *REFUSAL[3:])
    async with asyncio.timeout(30):
        while stage.state.store.table("", "pods").get(BARRIER) is None:
            await asyncio.sleep(0.001)

    await stage.read(SEEN)

    await asyncio.wait_for(task, 30)
    assert (1, 0) == (confirmation.asked, stage.method.figures.limits_hit)


@pytest.mark.parametrize(
    ("confirmation", "proven"),
    [pytest.param(None, False, id="without metrics"), pytest.param(FixedConfirmation(), True, id="with metrics")],
)
async def test_volumes_have_no_barrier_so_metrics_confirm_that_their_changes_are_handled(confirmation, proven):
    stage = LogStage(confirmation)
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c", "namespace": "default"}}
    stage.store.put(stage.store.table("", "persistentvolumeclaims"), NamespacedName("default", "c"), claim)
    task = asyncio.create_task(stage.method.settle())
    await stage.read(SEEN)

    await asyncio.wait_for(task, 30)

    assert proven == stage.method.figures.proven


def test_figures_tell_the_real_time_of_a_decision():
    assert 5.0 == SettleFigures("log", seconds=1.0, decisions=200).milliseconds_per_decision
    assert SettleFigures("log", seconds=1.0).milliseconds_per_decision is None
