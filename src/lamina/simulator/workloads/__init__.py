"""Where the pods of a run come from: scenario files."""

from lamina.simulator.workloads.load import load_scenario
from lamina.simulator.workloads.scenario import Arrival, Happening, Scenario

__all__ = ["Arrival", "Happening", "Scenario", "load_scenario"]
