"""
What is counted about images: who was asked what they are, how long pods waited for that, what was cleared away.

No image, registry or namespace is a label: whoever may create a pod could make as many series as they like.
"""

from collections import Counter as Tally
from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

HELD: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0)
MOST_SERIES: Final = 64
"""Of one name. There are some twenty; this is for an answer that nobody thought of."""


class ImageMetrics:
    """Told by the doorkeeper and the custodian."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Start at nothing."""
        self._registry = registry
        self._held = Histogram(
            "lamina_pod_held_seconds",
            "Seconds pods were held until it was known what their images consist of, or no longer.",
            buckets=HELD,
            registry=registry,
        )
        self._deleted = Counter(
            "lamina_image_layers_deleted", "ImageLayers objects that were deleted.", ["reason"], registry=registry
        )

    def held(self, seconds: float) -> None:
        """A pod was held for so long."""
        self._held.observe(seconds)

    def deleted(self, reason: str) -> None:
        """An ImageLayers object was deleted."""
        self._deleted.labels(reason).inc()

    def watch(self, held: Callable[[], int], resolved: Tally[tuple[str, str]], requests: Tally[str]) -> None:
        """Also tell, when somebody asks, how many pods are held and what was counted elsewhere."""
        self._registry.register(_ImageCollector(held, resolved, requests))


class _ImageCollector(Collector):
    """What is counted only when somebody asks."""

    def __init__(self, held: Callable[[], int], resolved: Tally[tuple[str, str]], requests: Tally[str]) -> None:
        self._held = held
        self._resolved = resolved
        self._requests = requests

    def collect(self) -> Iterable[Metric]:
        """Count."""
        yield GaugeMetricFamily(
            "lamina_pods_held", "Pods that wait until it is known what their images consist of.", value=self._held()
        )
        resolved = CounterMetricFamily(
            "lamina_images_resolved",
            "Images of pods looked at, by who was asked and what came of it.",
            labels=["source", "reason"],
        )
        for (source, reason), count in sorted(self._resolved.items())[:MOST_SERIES]:
            resolved.add_metric([source, reason], count)
        yield resolved
        requests = CounterMetricFamily(
            "lamina_registry_requests", "Requests to registries, by what came of them.", labels=["outcome"]
        )
        for outcome, count in sorted(self._requests.items())[:MOST_SERIES]:
            requests.add_metric([outcome], count)
        yield requests
