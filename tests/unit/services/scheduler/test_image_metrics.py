"""What is counted about images, under names that stay and labels that are few."""

from collections import Counter

from prometheus_client import CollectorRegistry, generate_latest

from lamina.services.scheduler.image_metrics import MOST_SERIES, ImageMetrics, ImageStateCollector


def samples(registry: CollectorRegistry) -> dict[str, float]:
    lines = generate_latest(registry).decode().splitlines()
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#") and "_created" not in line)
    return {name: float(value) for name, _, value in pairs}


def test_what_was_told_is_on_the_page():
    registry = CollectorRegistry()
    metrics = ImageMetrics(registry)
    registry.register(ImageStateCollector(lambda: 3, Counter({("registry", "found"): 2}), Counter({"requests": 7})))
    metrics.held(0.2)
    metrics.deleted("unused")
    found = samples(registry)

    assert 3 == found["lamina_pods_held"]
    assert 2 == found['lamina_images_resolved_total{reason="found",source="registry"}']
    assert 7 == found['lamina_registry_requests_total{outcome="requests"}']
    assert 1 == found['lamina_image_layers_deleted_total{reason="unused"}']
    assert (1, 0.2, 0, 1) == (
        found["lamina_pod_held_seconds_count"],
        found["lamina_pod_held_seconds_sum"],
        found['lamina_pod_held_seconds_bucket{le="0.1"}'],
        found['lamina_pod_held_seconds_bucket{le="0.25"}'],
    )


def test_nobody_makes_series_without_end():
    registry = CollectorRegistry()
    many: Counter[str] = Counter({f"outcome {number}": 1 for number in range(1000)})
    registry.register(ImageStateCollector(lambda: 0, Counter(), many))

    assert MOST_SERIES == sum(name.startswith("lamina_registry_requests") for name in samples(registry))
