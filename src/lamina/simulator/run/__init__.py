"""Simulation runs: play a scenario in virtual time under the live scheduling loop; return result and trace."""

from lamina.simulator.decider import Decider
from lamina.simulator.run.latency import FREE, Latency
from lamina.simulator.run.result import NodeOutcome, PodOutcome, SimulationResult
from lamina.simulator.run.run_summary import summary
from lamina.simulator.run.simulation import RunObserver, simulate

__all__ = [
    "FREE",
    "Decider",
    "Latency",
    "NodeOutcome",
    "PodOutcome",
    "RunObserver",
    "SimulationResult",
    "simulate",
    "summary",
]
