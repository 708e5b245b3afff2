"""
Prometheus metrics of the scheduler, with kube-scheduler's names where the meaning is the same, so that dashboards work.

No pod, node or image is a label, because there would be too many series. Queue lengths and cache sizes are computed at
each scrape, not while scheduling.

Two groups of kube-scheduler's metrics are missing: the duration of plugins and extension points, because the decision
loop reads no clock; and which event moved a pod to which queue, because equal pods are woken as a group.
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
    """Counts attempts and bindings; `exposition` is the content of ``/metrics``."""

    def __init__(self, clock: SteadyClock, lease: str = LEASE) -> None:
        """Start at zero; *lease* is the label of the leadership metric."""
        # The _created series would be a third more, and are not used.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library has no types there
        self._clock = clock
        self.registry = registry = CollectorRegistry()
        self._attempts = Counter(
            "scheduler_schedule_attempts", "Attempts to schedule pods.", ["result", "profile"], registry=registry
        )
        self._durations = Histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Seconds to decide on one pod, without the binding.",
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
            "Attempts needed to place a pod.",
            buckets=ATTEMPTS,
            registry=registry,
        )
        self._victims = Histogram(
            "scheduler_preemption_victims",
            "Pods evicted for one preemption.",
            buckets=(1, 2, 4, 8, 16, 32, 64),
            registry=registry,
        )
        self._bind_failures = Counter(
            "lamina_bindings_failed", "Bindings that the API server rejected or did not answer.", registry=registry
        )
        self._extender_calls = Counter(
            "lamina_extender_calls", "Calls of extenders.", ["extender", "verb", "result"], registry=registry
        )
        self._bytes_saved = Counter(
            "lamina_bytes_saved",
            "Estimated bytes not downloaded, against the mean feasible node; worse placements are not subtracted.",
            registry=registry,
        )
        self._bytes_pulled = Counter(
            "lamina_bytes_pulled_estimate", "Estimated bytes that the chosen nodes had to download.", registry=registry
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
        """Labelled metrics, looked up once."""

    def attempted(self, seconds: float, commands: list[Command]) -> None:
        """Count an attempt and its outcome."""
        for command in commands:
            if isinstance(command, Bind | ReportUnschedulable) and command.decision is not None:
                decision = command.decision
                if isinstance(command, Bind) or decision.chosen is None:
                    # An unschedulable report with a chosen node is a failed binding, whose attempt was counted before.
                    self.tried(seconds, RESULTS[decision.outcome], decision.profile)
        victims = sum(isinstance(command, Evict) for command in commands)
        if victims:
            self._victims.observe(victims)

    def tried(self, seconds: float, result: str, profile: str) -> None:
        """Count one attempt with its result."""
        counted = self._by_result.get((result, profile))
        if counted is None:
            labels = (result, profile)
            counted = self._by_result[labels] = (self._attempts.labels(*labels), self._durations.labels(*labels))
        counted[0].inc()
        counted[1].observe(seconds)

    def reported(self, report: LayerReport) -> None:
        """Record the age of a node's report."""
        self._ages.observe(max(self._clock.now() - report.observed_at, 0.0))

    def bound(self, command: Bind) -> None:
        """Record a bound pod."""
        decision = command.decision
        if decision is None:
            return
        waited = max(self._clock.now() - command.pod.created_at, 0.0)
        self._sli.labels(str(decision.attempt) if decision.attempt < 15 else "15+").observe(waited)
        self._needed.observe(decision.attempt)
        self._saved(decision)

    def not_bound(self, command: Bind, reason: str) -> None:
        """Count a failed binding."""
        self._bind_failures.inc()

    def called(self, extender: str, verb: str, *, failed: bool) -> None:
        """Count a call of an extender."""
        self._extender_calls.labels(extender, verb, "error" if failed else "success").inc()

    def _saved(self, decision: Decision) -> None:
        story = decision.locality
        if story is None:
            return
        self._bytes_pulled.inc(max(story.download, 0))
        if story.against_mean is not None:
            self._bytes_saved.inc(max(story.against_mean.bytes, 0))

    def exposition(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)


class SchedulerStateCollector(Collector):
    """Metrics of the loop's state and of the reflectors, computed at each scrape."""

    def __init__(self, loop: Loop, informers: InformerSet) -> None:
        """Report the state of these."""
        self._loop = loop
        self._informers = informers

    def collect(self) -> Iterable[Metric]:
        """Return the metrics."""
        loop = self._loop
        pending = GaugeMetricFamily("scheduler_pending_pods", "Pending pods, by queue.", labels=["queue"])
        for queue, count in loop.queue.counts().items():
            pending.add_metric([queue], count)
        yield pending
        refused: Tally[str] = Tally()
        for queued in loop.queue:
            if queued.place == "unschedulable":
                refused.update(queued.refused_by)
        unschedulable = GaugeMetricFamily(
            "scheduler_unschedulable_pods", "Pods that a plugin rejected on every node.", labels=["plugin"]
        )
        for plugin, count in sorted(refused.items()):
            unschedulable.add_metric([plugin], count)
        yield unschedulable
        sizes = GaugeMetricFamily("scheduler_cache_size", "Objects in the cache.", labels=["type"])
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
            "lamina_reports_disbelieved", "Node reports that failed the plausibility checks.", labels=["reason"]
        )
        for reason, count in sorted(loop.cluster.inventory.complaints.items()):
            complaints.add_metric([reason], count)
        yield complaints

    def _watches(self) -> Iterable[Metric]:
        relists = CounterMetricFamily("lamina_reflector_relists", "Relists, by reason.", labels=["kind", "reason"])
        connects = CounterMetricFamily("lamina_reflector_connects", "Watches and lists started.", labels=["kind"])
        events = CounterMetricFamily("lamina_reflector_events", "Watch events received.", labels=["kind"])
        undecodable = CounterMetricFamily(
            "lamina_reflector_undecodable", "Objects that could not be decoded and were left out.", labels=["kind"]
        )
        synced = GaugeMetricFamily("lamina_reflector_synced", "1 when the cache is synced.", labels=["kind"])
        for kind, reflector in self._informers.reflectors.items():
            for reason, count in sorted(reflector.counts.relists.items()):
                relists.add_metric([kind, reason], count)
            connects.add_metric([kind], reflector.counts.connects)
            events.add_metric([kind], reflector.counts.events)
            undecodable.add_metric([kind], reflector.counts.undecodable)
            synced.add_metric([kind], float(reflector.synced))
        yield from (relists, connects, events, undecodable, synced)
