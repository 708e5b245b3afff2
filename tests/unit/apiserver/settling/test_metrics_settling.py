"""Metrics show a settled scheduler only if they account for every event and every pod."""

import asyncio

import pytest

from lamina.apiserver.settling import metrics_settling
from lamina.apiserver.settling.event_account import EventAccount
from lamina.apiserver.settling.metrics_settling import MetricsSettling
from lamina.apiserver.settling.settle_method import SchedulerStuckError, SignalledWait
from tests.unit.apiserver.settling.settle_stage import SettleStage, metric_values


def exposition(handled, *, pending=(), binding=0, victims=0, preemptions=0):
    """Return metrics in Prometheus' text format."""
    rows = ["# TYPE scheduler_pending_pods gauge"]
    rows += [
        f'scheduler_event_handling_duration_seconds_count{{event="{event}"}} {count}'
        for event, count in handled.items()
    ]
    rows += [f'scheduler_pending_pods{{queue="{queue}"}} {count}' for queue, count in dict(pending).items()]
    rows.append(f'scheduler_goroutines{{operation="binding"}} {binding}')
    rows.append(f"scheduler_preemption_victims_count {victims}")
    rows.append(f'scheduler_preemption_goroutines_execution_total{{result="success"}} {preemptions}')
    return metric_values("\n".join(rows))


class FixedSource:
    """Returns one scrape after the other, the last one for ever."""

    def __init__(self, *scrapes):
        self.scrapes = list(scrapes)
        self.count = 0

    async def scrape(self):
        self.count += 1
        return self.scrapes.pop(0) if len(self.scrapes) > 1 else self.scrapes[0]


HANDLED = {"UnschedulablePodAdd": 2, "NodeAdd": 1}


@pytest.fixture
def stage():
    stage = SettleStage()
    stage.node("n1")
    stage.pod("a")
    stage.pod("b")
    return stage


def settling(stage, *scrapes, counting="started"):
    account = EventAccount(stage.state, stage.pods)
    account.begin()
    source = FixedSource(*scrapes)
    return MetricsSettling(stage.pods, account, source, SignalledWait(lambda: None), counting), source


RESTING = {"active": 0, "backoff": 0, "unschedulable": 2, "gated": 0}


@pytest.mark.parametrize(
    ("scrape", "words"),
    [
        pytest.param(exposition(HANDLED, pending=RESTING), "", id="settled"),
        pytest.param(exposition({"NodeAdd": 1}, pending=RESTING), "UnschedulablePodAdd", id="events are unread"),
        pytest.param(exposition(HANDLED, pending={**RESTING, "active": 1}), "1 pods are", id="active"),
        pytest.param(exposition(HANDLED, pending={**RESTING, "backoff": 3}), "3 pods are", id="back-off"),
        pytest.param(exposition(HANDLED, pending={"unschedulable": 1}), "hold 1 of 2", id="a pod is in an attempt"),
        pytest.param(exposition(HANDLED, pending={"unschedulable": 1, "gated": 1}), "", id="gated pods count"),
        pytest.param(exposition(HANDLED, pending=RESTING, binding=1), "binding", id="a binding runs"),
        pytest.param(exposition(HANDLED, pending=RESTING, victims=2, preemptions=1), "preempting", id="a preemption"),
        pytest.param(metric_values("up 1"), "from version 1.33", id="a version without these metrics"),
    ],
)
def test_a_scrape_tells_what_is_unfinished(stage, scrape, words):
    found = settling(stage, scrape)[0].unfinished(scrape)

    assert words in found
    assert bool(words) == bool(found)


def test_a_preemption_without_a_deletion_counts_from_1_37_on(stage):
    scrape = exposition(HANDLED, pending=RESTING, victims=2, preemptions=1)

    assert "" == settling(stage, scrape, counting="selected")[0].unfinished(scrape)


async def test_two_scrapes_must_show_that_all_events_are_handled(stage):
    settled = exposition(HANDLED, pending=RESTING)
    method, source = settling(stage, None, exposition({}, pending=RESTING), settled, settled)

    await method.settle()

    assert 4 == source.count
    assert (1, 0, True) == (method.figures.checks, method.figures.limits_hit, method.figures.proven)


async def test_a_scheduler_that_never_settles_is_an_error_and_no_silence(stage, monkeypatch):
    monkeypatch.setattr(metrics_settling, "START_SECONDS", 0.0)
    method, _ = settling(stage, exposition(HANDLED, pending={**RESTING, "backoff": 1}))

    with pytest.raises(SchedulerStuckError, match="1 pods are in its queues"):
        await asyncio.wait_for(method.settle(), 30)

    assert 1 == method.figures.limits_hit


# -- what must be handled ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "sent"),
    [
        pytest.param(lambda s: s.pod("c"), {"UnschedulablePodAdd": 1}, id="a new pod"),
        pytest.param(lambda s: s.pod("c", schedulerName="other"), {}, id="a pod of another scheduler"),
        pytest.param(lambda s: s.pod("c", nodeName="n1"), {"AssignedPodAdd": 1}, id="a new bound pod"),
        pytest.param(
            lambda s: s.pod("a", status={"phase": "Pending", "nominatedNodeName": "n1"}),
            {"UnschedulablePodUpdate": 1},
            id="a written status",
        ),
        pytest.param(
            lambda s: s.pod("a", nodeName="n1"), {"AssignedPodAdd": 1, "UnschedulablePodDelete": 1}, id="a binding"
        ),
        pytest.param(lambda s: s.remove_pod("a"), {"UnschedulablePodDelete": 1}, id="a deleted pod"),
        pytest.param(
            lambda s: s.pod("run", nodeName="n1", status={"phase": "Succeeded"}), {"AssignedPodDelete": 1}, id="an end"
        ),
        pytest.param(
            lambda s: s.pod("run", nodeName="n1", status={"phase": "Running", "podIP": "10.0.0.1"}),
            {"AssignedPodUpdate": 2},
            id="a changed status of a bound pod counts twice",
        ),
        pytest.param(
            lambda s: s.pod("run", nodeName="n1", status={"phase": "Running"}, metadata={"labels": {"a": "b"}}),
            {"AssignedPodUpdate": 1},
            id="a changed label of a bound pod",
        ),
        pytest.param(lambda s: s.node("n2"), {"NodeAdd": 1}, id="a new node"),
        pytest.param(lambda s: s.node("n1", metadata={"labels": {"a": "b"}}), {"NodeUpdateNodeLabel": 1}, id="a label"),
        pytest.param(lambda s: s.node("n1", spec={"taints": [{"key": "a"}]}), {"NodeUpdateNodeTaint": 1}, id="a taint"),
        pytest.param(lambda s: s.node("n1", spec={"unschedulable": True}), {}, id="a cordon moves no pod"),
        pytest.param(
            lambda s: s.node("n1", status={"allocatable": {"cpu": "1"}}), {"NodeUpdateNodeAllocatable": 1}, id="room"
        ),
        pytest.param(
            lambda s: s.node(
                "n1", status={"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "x"}]}
            ),
            {},
            id="a heartbeat",
        ),
    ],
)
def test_each_change_is_an_event_that_the_scheduler_counts(stage, change, sent):
    stage.pod("run", nodeName="n1", status={"phase": "Running"})
    account = EventAccount(stage.state, stage.pods)
    account.begin()
    before = account.sent.copy()

    change(stage)

    assert sent == dict(account.sent - before)


def test_the_account_knows_how_many_pods_are_in_queues(stage):
    account = EventAccount(stage.state, stage.pods)
    account.begin()
    stage.pod("gated", schedulingGates=[{"name": "x"}])
    stage.pod("a", nodeName="n1")
    stage.pod("b", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})

    assert (2, 1) == (account.waiting, account.leaving)
