"""
What the extender counts.

kube-scheduler tells nobody when an extender fails to answer, so what matters most is counted here: pods that were bound
without an answer of ours (`attendance`), questions whose asker was gone, and seconds in which nothing ran.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from lamina.scheduling.loop.extender_core import ExtenderCore

SECONDS: Final = tuple(0.00005 * 2**step for step in range(17))
QUESTIONS: Final = "/scheduler/"
"""How the paths of questions begin."""


class ExtenderMetrics:
    """Counts questions and answers; `exposition` is what ``/metrics`` serves."""

    def __init__(self) -> None:
        """Start at nothing."""
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library has no types there
        self.registry = registry = CollectorRegistry()
        self._answers = Counter(
            "lamina_extender_answers",
            "Questions by what became of them: answered, neutral (nothing was known yet), malformed, failed (an agent broke).",
            ["verb", "result"],
            registry=registry,
        )
        self._seconds = Histogram(
            "lamina_extender_request_duration_seconds",
            "Seconds from the last byte of a question to the answer's first.",
            ["verb"],
            buckets=SECONDS,
            registry=registry,
        )
        self._unknown = Counter(
            "lamina_extender_unknown_nodes", "Nodes that were asked about and not known.", registry=registry
        )
        self._full = Counter(
            "lamina_extender_full_node_requests",
            "Questions with whole nodes instead of names: nodeCacheCapable is not set.",
            registry=registry,
        )
        self._bound = Counter(
            "lamina_extender_pods_bound",
            "Pods of schedulers that ask us, by whether they were bound with our answer.",
            ["answered"],
            registry=registry,
        )
        self._abandoned = Counter(
            "lamina_extender_abandoned", "Questions whose asker was gone before the answer.", registry=registry
        )
        self._refused = Counter(
            "lamina_extender_refused", "Requests and connections that were refused.", ["reason"], registry=registry
        )
        self._readers_refused = Counter(
            "lamina_extender_pages_refused",
            "The same at the address of the pages, which anybody may reach.",
            ["reason"],
            registry=registry,
        )
        self._stalled = Counter(
            "lamina_extender_stalled_seconds", "Seconds in which the process did not get on.", registry=registry
        )
        self._reloads = Counter(
            "lamina_extender_certificate_reloads",
            "Times that changed certificates were read.",
            ["ok"],
            registry=registry,
        )
        self._connections = Gauge("lamina_extender_connections", "Open connections.", registry=registry)
        for answered in ("true", "false"):
            self._bound.labels(answered)
        self._known: dict[tuple[str, str], Counter] = {}
        self._timed: dict[str, Histogram] = {}

    def watch(
        self, panel: ExtenderCore, ready: Callable[[], bool], stale: Callable[[], Mapping[str, float]] = dict
    ) -> None:
        """Tell how much is known whenever somebody asks; *stale*: seconds since something may have been missed, by kind."""
        self.registry.register(_ExtenderStateCollector(panel, ready, stale))

    def exposition(self) -> bytes:
        """Write everything in Prometheus' format."""
        return generate_latest(self.registry)

    # -- questions ---------------------------------------------------------------------------------------------------

    def answered(self, verb: str, result: str) -> None:
        """Count what became of a question. The series are looked up once: that costs more than counting."""
        series = self._known.get((verb, result))
        if series is None:
            series = self._known[verb, result] = self._answers.labels(verb, result)
        series.inc()

    def unknown(self, nodes: int) -> None:
        """Count nodes that nobody told of."""
        self._unknown.inc(nodes)

    def full_nodes(self) -> None:
        """Count a question with whole nodes."""
        self._full.inc()

    # -- pods and time -----------------------------------------------------------------------------------------------

    def bound(self, *, answered: bool) -> None:
        """Count a pod that was bound."""
        self._bound.labels("true" if answered else "false").inc()

    def stalled(self, seconds: float) -> None:
        """Count time in which nothing ran."""
        self._stalled.inc(seconds)

    # -- the server --------------------------------------------------------------------------------------------------

    def served(self, path: str, status: int, seconds: float, bytes_in: int, bytes_out: int) -> None:
        """Count the time an answer took, whether or not anybody waited for it."""
        if not path.startswith(QUESTIONS):
            return
        series = self._timed.get(path)
        if series is None:
            series = self._timed[path] = self._seconds.labels(path.removeprefix(QUESTIONS))
        series.observe(seconds)

    def abandoned(self, path: str) -> None:
        """Count a question nobody waited for the answer of; who leaves a page has asked nothing."""
        if path.startswith(QUESTIONS):
            self._abandoned.inc()

    def refused(self, why: str) -> None:
        """Count a request that was refused before anybody was asked."""
        self._refused.labels(why).inc()

    def reader_refused(self, why: str) -> None:
        """Count somebody who was turned away from the pages' own address."""
        self._readers_refused.labels(why).inc()

    def connections(self, count: int) -> None:
        """Note how many connections there are."""
        self._connections.set(count)

    def reload(self, ok: bool) -> None:
        """Count certificates that were read again."""
        self._reloads.labels("true" if ok else "false").inc()


class _ExtenderStateCollector(Collector):
    """How much is known, counted when somebody asks."""

    def __init__(
        self, panel: ExtenderCore, ready: Callable[[], bool], stale: Callable[[], Mapping[str, float]]
    ) -> None:
        self._panel = panel
        self._ready = ready
        self._stale = stale

    def collect(self) -> Iterable[Metric]:
        state = self._panel.cluster
        for name, words, value in (
            ("lamina_extender_ready", "Whether everything was seen that answers are made from.", int(self._ready())),
            ("lamina_extender_nodes", "Nodes that are known.", state.columns.count),
            ("lamina_extender_pods", "Pods that are known to be on nodes.", len(state.cache)),
            ("lamina_extender_nodes_measured", "Nodes whose use is known.", state.context.usage.measured),
        ):
            yield GaugeMetricFamily(name, words, value=value)
        # Answers are made all the same: whoever wants to know that they grow old looks here.
        stale = GaugeMetricFamily(
            "lamina_extender_stale_seconds", "Seconds since changes may have been missed; 0: none.", labels=["kind"]
        )
        for kind, seconds in self._stale().items():
            stale.add_metric([kind], seconds)
        yield stale
