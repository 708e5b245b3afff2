"""A period-driven scheduler has settled after two whole sessions without a placement."""

import asyncio

import pytest

from lamina.apiserver.settling.pending_pods import BARRIER, pod_key
from lamina.apiserver.settling.session_log import SessionLines, SessionLog
from lamina.apiserver.settling.session_settling import SessionSettling
from lamina.apiserver.settling.settle_method import SignalledWait
from tests.unit.apiserver.settling.settle_stage import SettleStage

OPEN = "I1118 14:20:01.000000    100 session.go:113] Open Session 6f0 with <1> Job and <1> Queues"
CLOSE = "I1118 14:20:01.000000    100 session.go:143] Close Session 6f0"
PLACE = "I1118 14:20:01.000000    100 allocate.go:161] Binding Task <default/a> to node <n1>"
SEEN = f"I1118 14:20:01.000000    100 event_handlers.go:201] Added pod <{pod_key(BARRIER)}> into cache."
SESSION = (OPEN, CLOSE)


@pytest.fixture
def stage():
    stage = SettleStage()
    stage.pod("a")
    return stage


@pytest.mark.parametrize(
    ("lines", "on_their_way"),
    [
        pytest.param([OPEN, PLACE], 0, id="the session has not ended"),
        pytest.param([OPEN, PLACE, CLOSE], 0, id="no later session"),
        pytest.param([OPEN, PLACE, CLOSE, *SESSION], 1, id="the next session left it out"),
        pytest.param([OPEN, PLACE, CLOSE, OPEN, PLACE, CLOSE], 0, id="an incomplete gang is placed again"),
    ],
)
def test_a_pod_that_a_later_session_leaves_out_is_on_its_way(stage, lines, on_their_way):
    log = SessionLog(stage.pods)
    for one in lines:
        log.read(one)

    assert on_their_way == log.on_their_way()


def test_a_bound_pod_has_arrived(stage):
    log = SessionLog(stage.pods)
    for one in (OPEN, PLACE, CLOSE, *SESSION):
        log.read(one)

    stage.pod("a", nodeName="n1")

    assert 0 == log.on_their_way()


def test_another_scheduler_may_have_other_lines(stage):
    log = SessionLog(stage.pods, SessionLines(opens="cycle begins", closes="cycle ends", places=r"picked (\S+)"))
    for one in ("cycle begins", "picked default/a", "cycle ends", "cycle begins", "cycle ends"):
        log.read(one)

    assert (2, 2, 1) == (log.opened, log.closed, log.on_their_way())


class SessionStage:
    """A settle method, fed with lines while it waits."""

    def __init__(self, stage):
        self.log = SessionLog(stage.pods)
        self.wait = SignalledWait(lambda: None)
        self.method = SessionSettling(stage.state, stage.pods, self.log, self.wait, "kube-batch", 0.0)
        self.task = asyncio.create_task(self.method.settle())

    async def read(self, *lines):
        """Read lines, and let the method react."""
        for one in lines:
            self.log.read(one)
            self.wait.wake()
            await turns()


async def turns():
    """Let other tasks run as far as they can."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_two_whole_sessions_after_the_barrier_are_needed(stage):
    sessions = SessionStage(stage)
    await turns()
    await sessions.read(*SESSION, *SESSION, OPEN)
    await sessions.read(SEEN, CLOSE, OPEN)
    assert not sessions.task.done()
    await sessions.read(CLOSE)
    assert not sessions.task.done()
    await sessions.read(OPEN)
    await sessions.read(CLOSE)

    await asyncio.wait_for(sessions.task, 30)

    assert ("sessions", 0) == (sessions.method.figures.method, sessions.method.figures.limits_hit)


async def test_a_placement_begins_the_count_again(stage):
    sessions = SessionStage(stage)
    await turns()
    await sessions.read(SEEN, *SESSION)
    stage.pod("a", nodeName="n1")
    await sessions.read(*SESSION)
    assert not sessions.task.done()
    await sessions.read(SEEN, *SESSION, *SESSION)

    await asyncio.wait_for(sessions.task, 30)


async def test_a_run_with_changed_nodes_is_not_proven(stage):
    sessions = SessionStage(stage)
    await turns()
    await sessions.read(SEEN, *SESSION, *SESSION)
    await asyncio.wait_for(sessions.task, 30)
    assert sessions.method.figures.proven
    stage.node("n1")

    again = asyncio.create_task(sessions.method.settle())
    await turns()
    await sessions.read(SEEN, *SESSION, *SESSION)
    await asyncio.wait_for(again, 30)

    assert not sessions.method.figures.proven
