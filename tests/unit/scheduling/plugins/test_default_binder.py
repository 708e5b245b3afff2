"""DefaultBinder: an ordinary binding."""

from lamina.scheduling.contract.commands import Bind
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import points_of
from lamina.testing import a_pod
from tests.unit.scheduling.bench import Bench


def test_it_asks_for_the_binding_of_the_pod_to_the_chosen_node():
    """The host performs it."""
    pod = a_pod()

    assert Bind(pod, "n1") == Bench().make("DefaultBinder").bind(CycleState(), pod, "n1")


def test_it_stands_at_bind_only():
    """It filters and ranks nothing."""
    assert points_of(Bench().make("DefaultBinder")) == ("bind",)
