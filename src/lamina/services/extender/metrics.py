"""
Prometheus metrics of the extender.

kube-scheduler does not report when an extender fails to answer, so the extender counts this itself: pods that were
bound without an answer (`bypass_detector`), requests whose client disconnected, and seconds in which the process did
not run.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from lamina.scheduling.loop.extender_core import ExtenderCore

SECONDS: Final = tuple(0.00005 * 2**step for step in range(17))
QUESTIONS: Final = "/scheduler/"
"""Prefix of the paths of extender requests."""


class ExtenderMetrics:
    """Counts requests and answers; `exposition` is the content of ``/metrics``."""

    def __init__(self) -> None:
        """Start at zero."""
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library has no types there
        self.registry = registry = CollectorRegistry()
        self._answers = Counter(
            "lamina_extender_answers",
            "Requests by outcome: answered, neutral (caches not synced yet), malformed, failed (an agent raised).",
            ["verb", "result"],
            registry=registry,
        )
        self._seconds = Histogram(
            "lamina_extender_request_duration_seconds",
            "Seconds from the last byte of a request to the first byte of the response.",
            ["verb"],
            buckets=SECONDS,
            registry=registry,
        )
        self._unknown = Counter(
            "lamina_extender_unknown_nodes", "Nodes in requests that are not known.", registry=registry
        )
        self._full = Counter(
            "lamina_extender_full_node_requests",
            "Requests with whole nodes instead of names: nodeCacheCapable is not set.",
            registry=registry,
        )
        self._bound = Counter(
            "lamina_extender_pods_bound",
            "Bound pods of schedulers that use this extender, by whether the extender had answered.",
            ["answered"],
            registry=registry,
        )
        self._abandoned = Counter(
            "lamina_extender_abandoned", "Requests whose client disconnected before the answer.", registry=registry
        )
        self._refused = Counter(
            "lamina_extender_refused", "Requests and connections that were rejected.", ["reason"], registry=registry
        )
        self._readers_refused = Counter(
            "lamina_extender_pages_refused",
            "The same at the second address of the endpoints, which needs no certificate.",
            ["reason"],
            registry=registry,
        )
        self._stalled = Counter(
            "lamina_extender_stalled_seconds", "Seconds in which the process did not run.", registry=registry
        )
        self._reloads = Counter(
            "lamina_extender_certificate_reloads",
            "Reloads of changed certificates.",
            ["ok"],
            registry=registry,
        )
        self._connections = Gauge("lamina_extender_connections", "Open connections.", registry=registry)
        for answered in ("true", "false"):
            self._bound.labels(answered)
        self._known: dict[tuple[str, str], Counter] = {}
        self._timed: dict[str, Histogram] = {}

    def exposition(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)

    # -- extender requests -------------------------------------------------------------------------------------------

    def answered(self, verb: str, result: str) -> None:
        """Count the outcome of a request. Series are looked up once, because the lookup costs more than the count."""
        series = self._known.get((verb, result))
        if series is None:
            series = self._known[verb, result] = self._answers.labels(verb, result)
        series.inc()

    def unknown(self, nodes: int) -> None:
        """Count nodes that are not known."""
        self._unknown.inc(nodes)

    def full_nodes(self) -> None:
        """Count a request with whole nodes."""
        self._full.inc()

    # -- pods and time -----------------------------------------------------------------------------------------------

    def bound(self, *, answered: bool) -> None:
        """Count a bound pod."""
        self._bound.labels("true" if answered else "false").inc()

    def stalled(self, seconds: float) -> None:
        """Count time in which the process did not run."""
        self._stalled.inc(seconds)

    # -- the server --------------------------------------------------------------------------------------------------

    def served(self, path: str, status: int, seconds: float, bytes_in: int, bytes_out: int) -> None:
        """Record the response time, whether or not the client got the response."""
        if not path.startswith(QUESTIONS):
            return
        series = self._timed.get(path)
        if series is None:
            series = self._timed[path] = self._seconds.labels(path.removeprefix(QUESTIONS))
        series.observe(seconds)

    def abandoned(self, path: str) -> None:
        """Count an extender request whose client has disconnected; other endpoints are not counted."""
        if path.startswith(QUESTIONS):
            self._abandoned.inc()

    def refused(self, why: str) -> None:
        """Count a request or connection that was rejected."""
        self._refused.labels(why).inc()

    def reader_refused(self, why: str) -> None:
        """Count a rejection at the second address of the endpoints."""
        self._readers_refused.labels(why).inc()

    def connections(self, count: int) -> None:
        """Record the number of open connections."""
        self._connections.set(count)

    def reload(self, ok: bool) -> None:
        """Count a reload of certificates."""
        self._reloads.labels("true" if ok else "false").inc()


class ExtenderStateCollector(Collector):
    """Gauges of the extender's state, computed at each scrape."""

    def __init__(self, core: ExtenderCore, ready: Callable[[], bool], stale: Callable[[], Mapping[str, float]]) -> None:
        """Report the state of *core*; *stale* returns the seconds of missed changes by resource."""
        self._core = core
        self._ready = ready
        self._stale = stale

    def collect(self) -> Iterable[Metric]:
        """Return the metrics."""
        state = self._core.cluster
        for name, words, value in (
            ("lamina_extender_ready", "Whether the caches are synced.", int(self._ready())),
            ("lamina_extender_nodes", "Known nodes.", state.columns.count),
            ("lamina_extender_pods", "Known pods on nodes.", len(state.cache)),
            ("lamina_extender_nodes_measured", "Nodes with measured usage.", state.context.usage.measured),
        ):
            yield GaugeMetricFamily(name, words, value=value)
        # The extender still answers while a watch is down; this metric shows how old its data is.
        stale = GaugeMetricFamily(
            "lamina_extender_stale_seconds",
            "Seconds since changes may have been missed; 0: watch is up.",
            labels=["kind"],
        )
        for kind, seconds in self._stale().items():
            stale.add_metric([kind], seconds)
        yield stale
