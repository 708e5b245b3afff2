"""Scenario in, trace and result out: a run in virtual time under the loop that also runs live."""

from lamina.simulator.run.figures import summary
from lamina.simulator.run.result import NodeOutcome, PodOutcome, Result
from lamina.simulator.run.simulation import Observer, simulate

__all__ = ["NodeOutcome", "Observer", "PodOutcome", "Result", "simulate", "summary"]
