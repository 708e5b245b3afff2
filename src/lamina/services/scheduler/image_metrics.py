"""
Metrics about images: how they were resolved, how long pods waited for that, and which ImageLayers were deleted.

No image, registry or namespace is a label: any user who can create pods could create any number of series.
"""

from collections import Counter as Tally
from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

HELD: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0)
MOST_SERIES: Final = 64
"""Most series of one metric. There are about twenty; the limit is for unexpected outcomes."""


class ImageMetrics:
    """Metrics of the image gate and of the ImageLayers garbage collection."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Start at zero."""
        self._held = Histogram(
            "lamina_pod_held_seconds",
            "Seconds that pods were held until their images were resolved or the deadline passed.",
            buckets=HELD,
            registry=registry,
        )
        self._deleted = Counter(
            "lamina_image_layers_deleted", "ImageLayers objects that were deleted.", ["reason"], registry=registry
        )

    def held(self, seconds: float) -> None:
        """Record that a pod was held for *seconds*."""
        self._held.observe(seconds)

    def deleted(self, reason: str) -> None:
        """Count a deleted ImageLayers object."""
        self._deleted.labels(reason).inc()


class ImageStateCollector(Collector):
    """Metrics that are computed at each scrape: held pods, resolved images and registry requests."""

    def __init__(self, held: Callable[[], int], resolved: Tally[tuple[str, str]], requests: Tally[str]) -> None:
        """Report the number of *held* pods, and these counts."""
        self._held = held
        self._resolved = resolved
        self._requests = requests

    def collect(self) -> Iterable[Metric]:
        """Return the metrics."""
        yield GaugeMetricFamily("lamina_pods_held", "Pods held until their images are resolved.", value=self._held())
        resolved = CounterMetricFamily(
            "lamina_images_resolved",
            "Images of pods, by where they were looked up and the outcome.",
            labels=["source", "reason"],
        )
        for (source, reason), count in sorted(self._resolved.items())[:MOST_SERIES]:
            resolved.add_metric([source, reason], count)
        yield resolved
        requests = CounterMetricFamily(
            "lamina_registry_requests", "Requests to registries, by outcome.", labels=["outcome"]
        )
        for outcome, count in sorted(self._requests.items())[:MOST_SERIES]:
            requests.add_metric([outcome], count)
        yield requests
