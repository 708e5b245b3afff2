"""Scenarios: what a simulated run starts from, read from YAML files, other tools' files and seeds."""

from lamina.simulator.workloads.scenario import PodArrival, Scenario, ScenarioEvent, ScenarioObject
from lamina.simulator.workloads.scenario_loader import load_scenario

__all__ = ["PodArrival", "Scenario", "ScenarioEvent", "ScenarioObject", "load_scenario"]
