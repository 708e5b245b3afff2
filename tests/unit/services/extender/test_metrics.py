"""What the extender counts."""

from lamina.scheduling.loop.panel import Panel
from lamina.services.extender.metrics import Metrics


def test_watches_that_are_interrupted_are_told_however_ready_it_is() -> None:
    metrics = Metrics()
    metrics.watch(Panel([]), lambda: True, lambda: {"Node": 0.0, "Pod": 90.5})
    exposition = metrics.exposition().decode()

    assert 'lamina_extender_stale_seconds{kind="Node"} 0.0' in exposition
    assert 'lamina_extender_stale_seconds{kind="Pod"} 90.5' in exposition
    assert "lamina_extender_ready 1.0" in exposition
