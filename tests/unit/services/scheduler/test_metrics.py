"""What is counted: under kube-scheduler's names, without a label for every pod, cheap to ask for."""

import re

import msgspec
import pytest

from lamina.model.events import BindFailed, NodeSeen, PodSeen
from lamina.scheduling.contract.commands import Bind, Evict, Nominate, ReportUnschedulable
from lamina.scheduling.loop.loop import Loop
from lamina.services.informers.event_queue import EventQueue
from lamina.services.informers.informer_set import InformerSet
from lamina.services.scheduler.attempt_recorder import AttemptRecorder
from lamina.services.scheduler.decision_journal import DecisionJournal
from lamina.services.scheduler.metrics import SchedulerMetrics, SchedulerStateCollector
from lamina.services.scheduler.scheduler_host import SchedulerHost
from lamina.testing import a_loop, a_node, a_pod
from tests.unit.services.fakes import ScriptedClient, StillClock, a_decision, refused
from tests.work import steps

UPSTREAM = (
    "scheduler_schedule_attempts_total",
    "scheduler_scheduling_attempt_duration_seconds",
    "scheduler_pod_scheduling_sli_duration_seconds",
    "scheduler_pod_scheduling_attempts",
    "scheduler_pending_pods",
    "scheduler_unschedulable_pods",
    "scheduler_cache_size",
    "scheduler_preemption_victims",
    "leader_election_master_status",
)
OURS = (
    "lamina_bytes_saved_total",
    "lamina_bytes_pulled_estimate_total",
    "lamina_node_data_age_seconds",
    "lamina_reflector_relists_total",
    "lamina_bindings_failed_total",
)
SAMPLE = re.compile(r"([a-z_]+)(?:\{(.*)\})? (\S+)")


def watched(loop: Loop | None = None) -> SchedulerMetrics:
    metrics = SchedulerMetrics(StillClock())
    informers = InformerSet(ScriptedClient(), EventQueue())
    informers.reflectors["Pod"].counts.relists["gone"] += 1
    metrics.registry.register(SchedulerStateCollector(loop or a_loop(), informers))
    return metrics


def samples(metrics: SchedulerMetrics) -> dict[str, float]:
    """Every series and its value."""
    found = {}
    for line in metrics.exposition().decode().splitlines():
        if not line.startswith("#"):
            match = SAMPLE.fullmatch(line)
            assert match is not None, line
            found[f"{match[1]}{{{match[2] or ''}}}"] = float(match[3])
    return found


def a_bind(attempt: int = 1, created: float = 990.0, **more: object) -> Bind:
    return Bind(msgspec.structs.replace(a_pod(), created_at=created), "n1", a_decision(attempt=attempt, **more))


# ---------------------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize("name", [*UPSTREAM, *OURS])
def test_names_are_those_dashboards_know(name):
    metrics = watched()
    metrics.leading.labels("lamina-scheduler").set(1)
    metrics.attempted(0.1, [a_bind()])
    metrics.bound(a_bind())
    text = metrics.exposition().decode()

    # Counters carry their suffix in the samples, the others in the family's name.
    assert f"\n# TYPE {name} " in f"\n{text}" or f"\n{name} " in text or f"\n{name}{{" in text


def test_there_are_no_series_that_nobody_asked_for():
    metrics = watched()
    metrics.attempted(0.1, [a_bind()])

    assert not [name for name in samples(metrics) if "_created{" in name]


def test_no_label_names_a_pod_or_a_node():
    loop = a_loop()
    loop.feed(NodeSeen(a_node("secret-node")), PodSeen(a_pod("secret-pod")), PodSeen(a_pod("secret-huge", cpu=64)))
    metrics = watched(loop)
    metrics.attempted(0.1, [Bind(a_pod("secret-pod"), "secret-node", a_decision("default/secret-pod", "secret-node"))])
    metrics.not_bound(a_bind(), "secret reason")

    assert b"secret" not in metrics.exposition()


def test_there_are_as_many_series_for_many_pods_as_for_one():
    metrics = watched()
    metrics.attempted(0.1, [a_bind()])
    metrics.bound(a_bind())
    before = len(samples(metrics))
    for number in range(50):
        metrics.attempted(0.1, [Bind(a_pod(f"p{number}"), f"n{number}", a_decision(f"default/p{number}"))])
        metrics.bound(Bind(a_pod(f"p{number}"), f"n{number}", a_decision(f"default/p{number}")))

    assert before == len(samples(metrics))


# ------------------------------------------------------------------------------------------------------------- counting


@pytest.mark.parametrize(
    ("outcome", "result"), [("placed", "scheduled"), ("unschedulable", "unschedulable"), ("failed", "error")]
)
def test_attempts_are_counted_by_result_and_profile(outcome, result):
    metrics = watched()
    decision = a_decision(outcome=outcome, profile="lamina")
    metrics.attempted(
        0.003, [Bind(a_pod(), "n", decision) if outcome == "placed" else ReportUnschedulable(a_pod(), decision)]
    )

    found = samples(metrics)
    labels = f'profile="lamina",result="{result}"'
    assert 1 == found[f"scheduler_schedule_attempts_total{{{labels}}}"]
    assert 0.003 == found[f"scheduler_scheduling_attempt_duration_seconds_sum{{{labels}}}"]


def test_a_binding_tells_how_long_the_pod_waited_and_what_was_saved():
    metrics = watched()
    metrics.bound(a_bind(attempt=3, created=990.0, saved=2.0))

    found = samples(metrics)
    assert 10.0 == found['scheduler_pod_scheduling_sli_duration_seconds_sum{attempts="3"}']
    assert 3.0 == found["scheduler_pod_scheduling_attempts_sum{}"]
    assert (500.0, 1000.0) == (found["lamina_bytes_saved_total{}"], found["lamina_bytes_pulled_estimate_total{}"])


def test_a_pod_from_the_future_has_waited_for_nothing():
    metrics = watched()
    metrics.bound(a_bind(created=5000.0))

    assert 0.0 == samples(metrics)['scheduler_pod_scheduling_sli_duration_seconds_sum{attempts="1"}']


def test_many_attempts_share_a_series():
    metrics = watched()
    for attempt in (16, 17, 40_000):
        metrics.bound(a_bind(attempt=attempt))

    assert 3 == samples(metrics)['scheduler_pod_scheduling_sli_duration_seconds_count{attempts="15+"}']


def test_bindings_that_failed_are_counted():
    metrics = watched()
    metrics.not_bound(a_bind(), "refused")

    assert 1 == samples(metrics)["lamina_bindings_failed_total{}"]


def test_queues_and_cache_are_counted_when_somebody_asks():
    loop = a_loop()
    metrics = watched(loop)
    loop.feed(NodeSeen(a_node()), PodSeen(a_pod("p1")), PodSeen(a_pod("p2", on="n1")), PodSeen(a_pod("huge", cpu=64)))

    found = samples(metrics)
    assert {"active": 0, "backoff": 0, "unschedulable": 1, "gated": 0} == {
        queue: found[f'scheduler_pending_pods{{queue="{queue}"}}']
        for queue in ("active", "backoff", "unschedulable", "gated")
    }
    assert 1 == found['scheduler_unschedulable_pods{plugin="NodeResourcesFit"}']
    assert {"nodes": 1, "pods": 2, "assumed_pods": 1} == {
        kind: found[f'scheduler_cache_size{{type="{kind}"}}'] for kind in ("nodes", "pods", "assumed_pods")
    }
    assert 1 == found['lamina_reflector_relists_total{kind="Pod",reason="gone"}']
    assert 0 == found['lamina_reflector_synced{kind="Pod"}']


def test_victims_are_counted_for_each_preemption():
    metrics = watched()
    victims = [Evict(a_pod(f"victim{number}"), a_pod(), "n1") for number in range(3)]
    metrics.attempted(
        0.1, [*victims, Nominate(a_pod(), "n1"), ReportUnschedulable(a_pod(), a_decision(outcome="unschedulable"))]
    )

    found = samples(metrics)
    assert (1, 3) == (found["scheduler_preemption_victims_count{}"], found["scheduler_preemption_victims_sum{}"])


def test_who_does_not_lead_says_so_from_the_start():
    assert 0 == samples(watched())['leader_election_master_status{name="lamina-scheduler"}']


def test_every_attempt_is_counted_also_when_there_is_nothing_new_to_tell():
    loop, clock = a_loop(), StillClock()
    metrics, inbox = watched(loop), EventQueue()

    class Nobody:
        busy = False

        def perform(self, command: object) -> None:
            pass

    host = SchedulerHost(
        loop, inbox, Nobody(), AttemptRecorder(metrics, DecisionJournal()), clock, allowed=lambda: True
    )
    inbox.put(NodeSeen(a_node()))
    inbox.put(PodSeen(a_pod("huge", cpu=64)))
    host.step()
    clock.at += 400.0
    host.step()

    found = samples(metrics)
    assert 2 == found['scheduler_schedule_attempts_total{profile="default-scheduler",result="unschedulable"}']


def test_a_binding_that_failed_is_no_attempt_of_its_own():
    loop, clock = a_loop(), StillClock()
    metrics, inbox = watched(loop), EventQueue()

    class Nobody:
        busy = False

        def perform(self, command: object) -> None:
            pass

    host = SchedulerHost(
        loop, inbox, Nobody(), AttemptRecorder(metrics, DecisionJournal()), clock, allowed=lambda: True
    )
    inbox.put(NodeSeen(a_node()))
    inbox.put(PodSeen(a_pod()))
    host.step()
    inbox.put(BindFailed("p1", str(refused(500))))
    host.step()

    counted = sum(
        value for name, value in samples(metrics).items() if name.startswith("scheduler_schedule_attempts_total")
    )
    assert 1 == counted


# ----------------------------------------------------------------------------------------------------------------- cost


def test_asking_costs_little_with_many_pods():
    """Everything runs on one event loop: while metrics are answered, nothing is decided."""

    def cost(placed: int, waiting: int) -> int:
        loop = a_loop()
        loop.take(NodeSeen(a_node(pods=200_000, cpu=100_000)))
        loop.take(*(PodSeen(a_pod(f"p{number}", on="n1")) for number in range(placed)))
        loop.take(*(PodSeen(a_pod(f"w{number}", cpu="1m")) for number in range(waiting)))
        metrics = watched(loop)
        metrics.exposition()
        return steps(metrics.exposition)

    # A pod is counted, and no more: it has no line of its own.
    assert (cost(4_000, 2_000) - cost(400, 200)) / 5_400 < 20
