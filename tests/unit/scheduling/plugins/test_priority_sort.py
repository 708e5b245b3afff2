"""PrioritySort: who is next."""

from dataclasses import dataclass

import pytest

from lamina.model.pod import Pod
from lamina.scheduling.contract.plugin_registry import points_of
from lamina.testing import a_pod
from tests.unit.scheduling.bench import Bench


@dataclass
class Waiting:
    """A pod in the queue."""

    pod: Pod
    queued_at: float = 0.0
    arrived_at: float = 0.0
    attempts: int = 0


@pytest.fixture
def plugin():
    return Bench().make("PrioritySort")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(Waiting(a_pod(priority=2)), Waiting(a_pod(priority=1)), id="a higher priority"),
        pytest.param(Waiting(a_pod(priority=0)), Waiting(a_pod(priority=-1)), id="none before a negative one"),
        pytest.param(
            Waiting(a_pod(priority=2_000_001_000)),
            Waiting(a_pod(priority=2_000_000_999)),
            id="one apart among the system's priorities",
        ),
        pytest.param(
            Waiting(a_pod(priority=1), queued_at=5.0), Waiting(a_pod(priority=1), queued_at=6.0), id="queued earlier"
        ),
        pytest.param(
            Waiting(a_pod(priority=2), queued_at=9.0),
            Waiting(a_pod(priority=1), queued_at=1.0),
            id="a higher priority queued later",
        ),
    ],
)
def test_priority_decides_and_then_the_time_in_the_queue(plugin, first, second):
    """Upstream's order: larger priority, then earlier timestamp."""
    assert plugin.sort_key(first, now=10.0) < plugin.sort_key(second, now=10.0)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(Waiting(a_pod(priority=1), queued_at=5.0, arrived_at=1.0), id="first arrival"),
        pytest.param(Waiting(a_pod(priority=1), queued_at=5.0, attempts=7), id="attempts"),
    ],
)
def test_nothing_else_counts(plugin, other):
    """Neither when a pod was created nor how often it was tried."""
    assert plugin.sort_key(Waiting(a_pod(priority=1), queued_at=5.0), now=10.0) == plugin.sort_key(other, now=99.0)


def test_the_order_does_not_change_with_time(plugin):
    """So the queue need not be sorted anew."""
    assert plugin.changes_with_time is False


def test_it_stands_at_queue_sort_only(plugin):
    """It filters and ranks nothing."""
    assert points_of(plugin) == ("queueSort",)
