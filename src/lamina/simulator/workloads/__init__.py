"""Where the pods of a run come from: scenario files."""

from lamina.simulator.workloads.scenario import PodArrival, Scenario, ScenarioEvent
from lamina.simulator.workloads.scenario_loader import load_scenario

__all__ = ["PodArrival", "Scenario", "ScenarioEvent", "load_scenario"]
