"""Lamina's own scheduler is settled by its metrics, and unknown schedulers by silence; neither is a proof."""

import asyncio

import pytest

from lamina.apiserver.settling import lamina_settling, silence_settling
from lamina.apiserver.settling.lamina_settling import LAMINA_METRICS, LaminaSettling
from lamina.apiserver.settling.metric_text import MetricValues
from lamina.apiserver.settling.settle_method import SchedulerStuckError, SignalledWait
from lamina.apiserver.settling.silence_settling import SilenceSettling
from tests.unit.apiserver.settling.settle_stage import SettleStage

NO_PROCESS = SignalledWait(lambda: None)


@pytest.fixture
def stage():
    stage = SettleStage()
    stage.node("n1")
    stage.pod("a")
    return stage


# -- Lamina ------------------------------------------------------------------------------------------------------------


def lamina_metrics(*, active=0, unschedulable=1, nodes=1, pods=0, assumed=0, held=0, read=(1, 1)):
    """Return metrics of Lamina's scheduler."""
    text = f"""
scheduler_pending_pods{{queue="active"}} {active}
scheduler_pending_pods{{queue="unschedulable"}} {unschedulable}
scheduler_cache_size{{type="nodes"}} {nodes}
scheduler_cache_size{{type="pods"}} {pods}
scheduler_cache_size{{type="assumed_pods"}} {assumed}
lamina_pods_held {held}
lamina_reflector_events_total{{kind="Pod"}} {read[0]}
lamina_reflector_events_total{{kind="Node"}} {read[1]}
"""
    return MetricValues(text, LAMINA_METRICS)


class ListedSource:
    """Returns one scrape after the other, the last one for ever."""

    def __init__(self, *scrapes):
        self.scrapes = list(scrapes)

    async def scrape(self):
        return self.scrapes.pop(0) if len(self.scrapes) > 1 else self.scrapes[0]


@pytest.mark.parametrize(
    ("scrape", "words"),
    [
        pytest.param(lamina_metrics(), "", id="settled"),
        pytest.param(lamina_metrics(active=1), "1 pods are in its queues", id="a pod is ready"),
        pytest.param(lamina_metrics(held=2), "2 pods are in its queues", id="pods are held for their images"),
        pytest.param(lamina_metrics(unschedulable=0), "hold 0 of 1", id="a pod is in no queue"),
        pytest.param(lamina_metrics(assumed=1), "binding", id="a binding runs"),
        pytest.param(lamina_metrics(nodes=0), "0 of 1 nodes", id="a node is unread"),
    ],
)
def test_metrics_of_lamina_tell_what_is_unfinished(stage, scrape, words):
    found = LaminaSettling(stage.state, stage.pods, ListedSource(scrape), NO_PROCESS).unfinished(scrape)

    assert (bool(words), True) == (bool(found), words in found)


async def test_events_are_counted_after_the_first_check(stage):
    source = ListedSource(lamina_metrics())
    method = LaminaSettling(stage.state, stage.pods, source, NO_PROCESS)
    await method.settle()

    stage.pod("a", nodeName="n1")
    assert "events of Pods are not read" == method.unfinished(lamina_metrics(unschedulable=0, pods=1))
    source.scrapes = [lamina_metrics(unschedulable=0, pods=1, read=(2, 1))]
    await method.settle()
    stage.pod("a", nodeName="n1", status={"phase": "Succeeded"})
    stage.pod("a", nodeName="n1", status={"phase": "Succeeded", "podIP": "10.0.0.1"})
    source.scrapes = [lamina_metrics(unschedulable=0, read=(3, 1))]
    await method.settle()

    assert (3, False) == (method.figures.checks, method.figures.proven)


async def test_a_lamina_that_never_settles_is_an_error(stage, monkeypatch):
    monkeypatch.setattr(lamina_settling, "START_SECONDS", 0.0)
    method = LaminaSettling(stage.state, stage.pods, ListedSource(lamina_metrics(active=1)), NO_PROCESS)

    with pytest.raises(SchedulerStuckError, match="1 pods are in its queues"):
        await asyncio.wait_for(method.settle(), 30)


# -- silence -----------------------------------------------------------------------------------------------------------


class CountedRequests:
    """A server whose clients send *requests* and *polls* each time that it is asked."""

    def __init__(self, *, requests=0, polls=0):
        self._requests, self._polls = requests, polls
        self._sent, self.read = 1, 0

    @property
    def requests(self):
        self._sent += self._requests
        return self._sent

    @property
    def pod_reads(self):
        self.read += self._polls
        return self.read


@pytest.mark.parametrize(
    "server",
    [
        pytest.param(CountedRequests(), id="no request"),
        pytest.param(CountedRequests(requests=1, polls=1), id="a scheduler that polls and writes nothing"),
    ],
)
async def test_silence_settles_a_scheduler_that_changes_nothing_without_a_proof(stage, server):
    method = SilenceSettling(stage.pods, server, NO_PROCESS, 0.001)

    await asyncio.wait_for(method.settle(), 30)

    assert ("silence", False) == (method.figures.method, method.figures.proven)


async def test_a_scheduler_that_sends_requests_and_does_not_read_pods_is_not_settled(stage, monkeypatch):
    monkeypatch.setattr(silence_settling, "ENDLESS_SECONDS", 0.0)
    method = SilenceSettling(stage.pods, CountedRequests(requests=1), NO_PROCESS, 0.001)

    with pytest.raises(SchedulerStuckError, match="without an end"):
        await asyncio.wait_for(method.settle(), 30)


async def test_a_scheduler_that_sends_no_request_is_an_error(stage, monkeypatch):
    monkeypatch.setattr(silence_settling, "START_SECONDS", 0.0)
    server = CountedRequests()
    server._sent = 0

    with pytest.raises(SchedulerStuckError, match="sent no request"):
        await asyncio.wait_for(SilenceSettling(stage.pods, server, NO_PROCESS, 0.001).settle(), 30)
