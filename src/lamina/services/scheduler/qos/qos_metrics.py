"""
Prometheus metrics of controllers and of classes of controllers, computed at each scrape.

A class is all controllers with the same SLO, in hundredths; so there are at most 101. The number of controllers with
series of their own is limited to `MOST_SERIES`: those whose promise breaks first. A controller without pods has none.
"""

import heapq
from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from lamina.qos.controller_record import ControllerRecord
from lamina.qos.engine import QosEngine
from lamina.qos.promise import ControllerKey, Promise
from lamina.qos.standing import Standing
from lamina.scheduling.contract.commands import Command, Evict
from lamina.services.informers.clock import SteadyClock

MOST_SERIES: Final = 1000
LABELS: Final = ("namespace", "kind", "controller", "class")


class QosMetrics(Collector):
    """Metrics of one engine; counts evictions as well."""

    def __init__(self, engine: Callable[[], QosEngine], clock: SteadyClock) -> None:
        """Report the standings of the engine that *engine* returns, at the time of *clock*."""
        self._engine, self._clock = engine, clock
        self._evictions: Tally[ControllerKey] = Tally()
        self._class_evictions: Tally[str] = Tally()

    def evicted(self, commands: Sequence[Command]) -> None:
        """Count the evictions among some commands."""
        for command in commands:
            if isinstance(command, Evict):
                key = self._engine().controller_of(command.pod.uid)
                promise = None if key is None else self._engine().promise_of(key)
                if key is not None and promise is not None:
                    self._evictions[key] += 1
                    self._class_evictions[class_of(promise)] += 1

    def collect(self) -> Iterable[Metric]:
        """Return the metrics."""
        now = self._clock.now()
        t = self._engine().moment(now)
        standings = [(record, record.standing(t)) for record in self._engine().records(now) if record.pods]
        for gone in [key for key in self._evictions if self._engine().promise_of(key) is None]:
            del self._evictions[gone]
        yield from self._of_controllers(standings)
        yield from self._of_classes(standings)

    def _of_controllers(self, standings: list[tuple[ControllerRecord, Standing]]) -> Iterable[Metric]:
        shown = standings
        if len(standings) > MOST_SERIES:
            shown = heapq.nsmallest(MOST_SERIES, standings, key=lambda one: one[1].metric)
        families = {
            name: GaugeMetricFamily(f"lamina_qos_{name}", about, labels=LABELS)
            for name, about in (
                ("availability_ratio", "QoS of a controller: share of its pods' lifetime in which they ran."),
                ("slo_ratio", "SLO of a controller."),
                ("deficit_ratio", "SLO minus QoS of a controller; 0 if the promise is kept."),
                ("time_to_violation_seconds", "Seconds until a controller's promise breaks; negative: it is broken."),
            )
        }
        evictions = CounterMetricFamily(
            "lamina_qos_evictions", "Pods of a controller that were evicted.", labels=LABELS
        )
        for record, standing in shown:
            key, slo = record.key, record.promise.slo
            labels = (key.namespace, key.kind, key.name, class_of(record.promise))
            families["availability_ratio"].add_metric(labels, standing.qos)
            families["slo_ratio"].add_metric(labels, slo)
            families["deficit_ratio"].add_metric(labels, max(slo - standing.qos, 0.0))
            families["time_to_violation_seconds"].add_metric(labels, standing.metric)
            evictions.add_metric(labels, self._evictions[key])
        yield from families.values()
        yield evictions
        left_out = GaugeMetricFamily("lamina_qos_controllers_without_series", "Controllers beyond the limit of series.")
        left_out.add_metric((), len(standings) - len(shown))
        yield left_out

    def _of_classes(self, standings: list[tuple[ControllerRecord, Standing]]) -> Iterable[Metric]:
        members: defaultdict[str, list[Standing]] = defaultdict(list)
        for record, standing in standings:
            members[class_of(record.promise)].append(standing)
        controllers = GaugeMetricFamily("lamina_qos_class_controllers", "Controllers with pods.", labels=["class"])
        met = GaugeMetricFamily("lamina_qos_class_met", "Controllers that keep their promise.", labels=["class"])
        mean = GaugeMetricFamily("lamina_qos_class_availability_ratio", "Mean QoS of controllers.", labels=["class"])
        for name, found in sorted(members.items()):
            controllers.add_metric((name,), len(found))
            met.add_metric((name,), sum(one.qos >= one.promise.slo for one in found))
            mean.add_metric((name,), sum(one.qos for one in found) / len(found))
        yield from (controllers, met, mean)
        evictions = CounterMetricFamily("lamina_qos_class_evictions", "Evicted pods.", labels=["class"])
        for name, count in sorted(self._class_evictions.items()):
            evictions.add_metric((name,), count)
        yield evictions


def class_of(promise: Promise) -> str:
    """Return the class of a promise: its SLO in hundredths."""
    return f"{promise.slo:.2f}"
