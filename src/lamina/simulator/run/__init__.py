"""Scenario in, trace and result out: a run in virtual time under the loop that also runs live."""

from lamina.simulator.run.decider import Decider
from lamina.simulator.run.figures import summary
from lamina.simulator.run.latency import FREE, Latency
from lamina.simulator.run.result import NodeOutcome, PodOutcome, Result
from lamina.simulator.run.simulation import Observer, simulate

__all__ = ["FREE", "Decider", "Latency", "NodeOutcome", "Observer", "PodOutcome", "Result", "simulate", "summary"]
