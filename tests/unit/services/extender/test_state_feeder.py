"""What was seen is taken in between the questions."""

import asyncio
import time

import pytest

from lamina.model.events import NodeSeen, PodGone, PodSeen
from lamina.model.pod import PodUid
from lamina.scheduling.loop.extender_core import ExtenderCore
from lamina.services.extender import state_feeder as module
from lamina.services.extender.bypass_detector import BypassDetector
from lamina.services.extender.metrics import ExtenderMetrics
from lamina.services.extender.state_feeder import StateFeeder
from lamina.services.informers.event_queue import EventQueue
from lamina.testing.builders import a_node, a_pod
from tests.unit.services.fakes import StillClock


class Desk:
    def __init__(self) -> None:
        self.panel, self.inbox, self.metrics = ExtenderCore(()), EventQueue(), ExtenderMetrics()
        self.attendance = BypassDetector(self.metrics, ["default-scheduler"])
        self.keeper = StateFeeder(self.panel, self.inbox, StillClock(), self.attendance, self.metrics)

    def take_everything(self) -> None:
        while not self.keeper.caught_up:
            self.keeper.step()


def test_events_are_taken_in_order_and_time_passes() -> None:
    desk = Desk()
    for event in (NodeSeen(a_node("n1")), PodSeen(a_pod("p")), PodSeen(a_pod("p", on="n1"))):
        desk.inbox.put(event)
    desk.take_everything()

    assert (1, 1, 1000.0) == (desk.panel.cluster.columns.count, len(desk.panel.cluster.cache), desk.panel.cluster.now)
    assert 1.0 == desk.metrics.registry.get_sample_value("lamina_extender_pods_bound_total", {"answered": "false"})


def test_pods_that_are_gone_are_forgotten() -> None:
    desk = Desk()
    for event in (NodeSeen(a_node("n1")), PodSeen(a_pod("p", on="n1")), PodGone(PodUid("p"))):
        desk.inbox.put(event)
    desk.take_everything()

    assert 0 == len(desk.panel.cluster.cache)


def test_a_slice_ends_when_its_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk()
    monkeypatch.setattr(module, "SLICE", 0.0)
    for number in range(module.PORTION + 1):
        desk.inbox.put(NodeSeen(a_node(f"n{number}")))
    desk.keeper.step()

    assert (1, module.PORTION) == (len(desk.inbox), desk.panel.cluster.columns.count)


def test_a_bell_that_brings_nothing_does_not_keep_it_busy() -> None:
    async def story() -> bool:
        desk = Desk()
        desk.inbox.wake()
        desk.keeper.step()
        try:
            async with asyncio.timeout(0.05):
                await desk.inbox.wait(10.0)
        except TimeoutError:
            return True
        return False

    assert asyncio.run(story())


@pytest.mark.parametrize(("seconds", "expected"), [(0.0, 0.0), (30.0, 29.0)], ids=["on time", "half a minute late"])
def test_time_in_which_nothing_ran_is_counted(seconds: float, expected: float, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    desk = Desk()
    now += seconds
    desk.keeper._check_stall()

    assert expected == desk.metrics.registry.get_sample_value("lamina_extender_stalled_seconds_total")


def test_it_runs_until_it_is_cancelled() -> None:
    async def story() -> int:
        desk = Desk()
        task = asyncio.create_task(desk.keeper.run())
        desk.inbox.put(NodeSeen(a_node("n1")))
        while not desk.panel.cluster.columns.count:
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return desk.panel.cluster.columns.count

    assert 1 == asyncio.run(story())
