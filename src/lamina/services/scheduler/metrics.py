"""
What the scheduler counts, under kube-scheduler's names where the meaning is the same, so that dashboards carry over.

No pod, node or image is a label: a series for each would be more than the cluster itself. Queue lengths and cache sizes
are counted when somebody asks, not while scheduling.

Left out of kube-scheduler's: the time of single plugins and extension points, because the decision core reads no clock; and
which event moved a pod into which queue, because pods that are alike are woken as a group.
"""

from collections import Counter as Tally
from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from lamina.model.decision import Decision
from lamina.model.layer_report import LayerReport
from lamina.scheduling.contract.commands import Bind, Command, Evict, ReportUnschedulable
from lamina.scheduling.loop.loop import Loop
from lamina.services.informers.clock import SteadyClock
from lamina.services.informers.informer_set import InformerSet

SECONDS: Final = tuple(0.0001 * 2**step for step in range(18))
ATTEMPTS: Final = (1, 2, 4, 8, 16)
RESULTS: Final = {"placed": "scheduled", "unschedulable": "unschedulable", "failed": "error"}
LEASE: Final = "lamina-scheduler"


class SchedulerMetrics:
    """Counts attempts and bindings; `exposition` is what ``/metrics`` serves."""

    def __init__(self, clock: SteadyClock, lease: str = LEASE) -> None:
        """Start at nothing; *lease* is what leadership is called by."""
        # They would be a third more series, which nobody reads.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library has no types there
        self._clock = clock
        self.registry = registry = CollectorRegistry()
        self._attempts = Counter(
            "scheduler_schedule_attempts", "Attempts to schedule pods.", ["result", "profile"], registry=registry
        )
        self._durations = Histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Seconds of deciding on one pod; the binding is not part of it.",
            ["result", "profile"],
            buckets=SECONDS,
            registry=registry,
        )
        self._sli = Histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "Seconds from a pod's first arrival in the queue to its binding.",
            ["attempts"],
            buckets=tuple(0.01 * 2**step for step in range(20)),
            registry=registry,
        )
        self._needed = Histogram(
            "scheduler_pod_scheduling_attempts",
            "Attempts it took to place a pod.",
            buckets=ATTEMPTS,
            registry=registry,
        )
        self._victims = Histogram(
            "scheduler_preemption_victims",
            "Pods evicted to make room for one.",
            buckets=(1, 2, 4, 8, 16, 32, 64),
            registry=registry,
        )
        self._bind_failures = Counter(
            "lamina_bindings_failed", "Bindings the API server refused or did not answer.", registry=registry
        )
        self._bytes_saved = Counter(
            "lamina_bytes_saved",
            "Bytes not downloaded, estimated against the mean feasible node; placements that cost more are not taken off.",
            registry=registry,
        )
        self._bytes_pulled = Counter(
            "lamina_bytes_pulled_estimate", "Bytes the chosen nodes had to download, as estimated.", registry=registry
        )
        self._ages = Histogram(
            "lamina_node_data_age_seconds",
            "Age of a node's report when it was read.",
            buckets=(1, 5, 15, 60, 300, 900, 3600),
            registry=registry,
        )
        self.leading = Gauge("leader_election_master_status", "1 if this instance leads.", ["name"], registry=registry)
        self.leading.labels(lease).set(0)
        self._by_result: dict[tuple[str, str], tuple[Counter, Histogram]] = {}
        """What has labels, looked up once."""

    def watch(self, loop: Loop, intake: InformerSet) -> None:
        """Also tell what the loop holds and how the watches are doing, when somebody asks."""
        self.registry.register(_SchedulerCollector(loop, intake))

    def attempted(self, seconds: float, commands: list[Command]) -> None:
        """One pod was looked at."""
        for command in commands:
            if isinstance(command, Bind | ReportUnschedulable) and command.decision is not None:
                decision = command.decision
                if isinstance(command, Bind) or decision.chosen is None:
                    # One that has a node and is told of all the same is a binding that failed, and was counted before.
                    self.tried(seconds, RESULTS[decision.outcome], decision.profile)
        victims = sum(isinstance(command, Evict) for command in commands)
        if victims:
            self._victims.observe(victims)

    def tried(self, seconds: float, result: str, profile: str) -> None:
        """One attempt was made, and this came of it."""
        counted = self._by_result.get((result, profile))
        if counted is None:
            labels = (result, profile)
            counted = self._by_result[labels] = (self._attempts.labels(*labels), self._durations.labels(*labels))
        counted[0].inc()
        counted[1].observe(seconds)

    def reported(self, report: LayerReport) -> None:
        """A node's report was read."""
        self._ages.observe(max(self._clock.now() - report.observed_at, 0.0))

    def bound(self, command: Bind) -> None:
        """A pod was bound."""
        decision = command.decision
        if decision is None:
            return
        waited = max(self._clock.now() - command.pod.created_at, 0.0)
        self._sli.labels(str(decision.attempt) if decision.attempt < 15 else "15+").observe(waited)
        self._needed.observe(decision.attempt)
        self._saved(decision)

    def not_bound(self, command: Bind, reason: str) -> None:
        """A pod was not bound."""
        self._bind_failures.inc()

    def _saved(self, decision: Decision) -> None:
        story = decision.locality
        if story is None:
            return
        self._bytes_pulled.inc(max(story.download, 0))
        if story.against_mean is not None:
            self._bytes_saved.inc(max(story.against_mean.bytes, 0))

    def exposition(self) -> bytes:
        """Everything, in Prometheus' text format."""
        return generate_latest(self.registry)


class _SchedulerCollector(Collector):
    """What is counted only when somebody asks."""

    def __init__(self, loop: Loop, intake: InformerSet) -> None:
        self._loop = loop
        self._intake = intake

    def collect(self) -> Iterable[Metric]:
        """Count."""
        loop = self._loop
        pending = GaugeMetricFamily("scheduler_pending_pods", "Pods that wait, by queue.", labels=["queue"])
        for queue, count in loop.queue.counts().items():
            pending.add_metric([queue], count)
        yield pending
        refused: Tally[str] = Tally()
        for queued in loop.queue:
            if queued.place == "unschedulable":
                refused.update(queued.refused_by)
        unschedulable = GaugeMetricFamily(
            "scheduler_unschedulable_pods", "Pods a plugin refused everywhere.", labels=["plugin"]
        )
        for plugin, count in sorted(refused.items()):
            unschedulable.add_metric([plugin], count)
        yield unschedulable
        sizes = GaugeMetricFamily("scheduler_cache_size", "What the cache holds.", labels=["type"])
        assumed = sum(placed.assumed for placed in loop.cluster.cache)
        for kind, count in (
            ("nodes", loop.cluster.columns.count),
            ("pods", len(loop.cluster.cache)),
            ("assumed_pods", assumed),
        ):
            sizes.add_metric([kind], count)
        yield sizes
        yield from self._watches()
        complaints = CounterMetricFamily(
            "lamina_reports_disbelieved", "Node reports that could not be true.", labels=["reason"]
        )
        for reason, count in sorted(loop.cluster.inventory.complaints.items()):
            complaints.add_metric([reason], count)
        yield complaints

    def _watches(self) -> Iterable[Metric]:
        relists = CounterMetricFamily(
            "lamina_reflector_relists", "Times everything was listed anew, by reason.", labels=["kind", "reason"]
        )
        connects = CounterMetricFamily("lamina_reflector_connects", "Watches and lists begun.", labels=["kind"])
        events = CounterMetricFamily("lamina_reflector_events", "Changes seen.", labels=["kind"])
        undecodable = CounterMetricFamily(
            "lamina_reflector_undecodable", "Objects that could not be read and were left out.", labels=["kind"]
        )
        synced = GaugeMetricFamily("lamina_reflector_synced", "1 once everything was seen.", labels=["kind"])
        for kind, reflector in self._intake.reflectors.items():
            for reason, count in sorted(reflector.counts.relists.items()):
                relists.add_metric([kind, reason], count)
            connects.add_metric([kind], reflector.counts.connects)
            events.add_metric([kind], reflector.counts.events)
            undecodable.add_metric([kind], reflector.counts.undecodable)
            synced.add_metric([kind], float(reflector.synced))
        yield from (relists, connects, events, undecodable, synced)
