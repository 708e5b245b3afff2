"""Metrics of controllers and classes: what they say, that they go with their controller, and that there is a limit."""

from collections.abc import Iterator

import pytest

from lamina.qos.life_cycle_facts import ControllerGone
from lamina.scheduling.contract.commands import Evict
from lamina.services.scheduler.qos import qos_metrics
from lamina.services.scheduler.qos.qos_metrics import QosMetrics
from lamina.testing import a_pod
from tests.unit.qos.qos_lives import Cluster, key, promised
from tests.unit.services.fakes import StillClock


@pytest.fixture
def cluster() -> Cluster:
    """`gold` has run from the start, `free` has waited for half of its life."""
    made = Cluster()
    made.create(0, "g", of="gold", promise=promised(1.0), replicas=1)
    made.bind(0, "g")
    made.create(0, "f", of="free", promise=promised(0.75), replicas=1)
    made.bind(50, "f")
    return made


def series(metrics: QosMetrics) -> Iterator[tuple[str, str, float]]:
    """Name without prefix, controller or class, and value."""
    for family in metrics.collect():
        for sample in family.samples:
            labels = sample.labels
            yield (
                sample.name.removeprefix("lamina_qos_"),
                labels.get("controller", labels.get("class", "")),
                sample.value,
            )


def evicted(pod: str) -> Evict:
    return Evict(a_pod(pod), a_pod("winner"), "n1")


def test_the_metrics_say_how_promises_are_kept(cluster):
    metrics = QosMetrics(lambda: cluster.engine, StillClock(100.0))
    metrics.evicted([evicted("f"), evicted("f"), evicted("unknown")])

    found = {(name, who): value for name, who, value in series(metrics)}

    assert {
        ("availability_ratio", "gold"): 1.0,
        ("availability_ratio", "free"): 0.5,
        ("slo_ratio", "gold"): 1.0,
        ("slo_ratio", "free"): 0.75,
        ("deficit_ratio", "gold"): 0.0,
        ("deficit_ratio", "free"): 0.25,
        ("evictions_total", "gold"): 0,
        ("evictions_total", "free"): 2,
        ("controllers_without_series", ""): 0,
        ("class_controllers", "0.75"): 1,
        ("class_controllers", "1.00"): 1,
        ("class_met", "0.75"): 0,
        ("class_met", "1.00"): 1,
        ("class_availability_ratio", "0.75"): 0.5,
        ("class_availability_ratio", "1.00"): 1.0,
        ("class_evictions_total", "0.75"): 2,
        ("time_to_violation_seconds", "gold"): 0.0,
        # 50 / 0.75 - 100, and 2.4 s for a binding.
        ("time_to_violation_seconds", "free"): pytest.approx(-35.733, abs=0.001),
    } == found


def test_a_controller_without_pods_has_no_series(cluster):
    metrics = QosMetrics(lambda: cluster.engine, StillClock(100.0))
    metrics.evicted([evicted("f")])
    cluster.delete(90, "f")

    assert "free" not in {who for _, who, _ in series(metrics)}
    # It returns with its history, and with its count.
    cluster.create(95, "f2", of="free", promise=promised(0.75))
    assert ("evictions_total", "free", 1) in set(series(metrics))

    cluster.delete(96, "f2")
    cluster.tell(ControllerGone(97, key("free")))
    cluster.create(98, "f3", of="free", promise=promised(0.75))
    assert ("evictions_total", "free", 1) in set(series(metrics))
    cluster.delete(98, "f3")
    cluster.tell(ControllerGone(98, key("free")))
    list(series(metrics))
    cluster.create(99, "f4", of="free", promise=promised(0.75))
    assert ("evictions_total", "free", 0) in set(series(metrics))


def test_beyond_the_limit_those_have_series_whose_promise_breaks_first(cluster, monkeypatch):
    monkeypatch.setattr(qos_metrics, "MOST_SERIES", 1)

    found = list(series(QosMetrics(lambda: cluster.engine, StillClock(100.0))))

    assert {"free"} == {who for name, who, _ in found if name == "availability_ratio"}
    assert ("controllers_without_series", "", 1) in found
    # Classes count all of them.
    assert ("class_controllers", "1.00", 1) in found
