"""Scheduling agent `congestion`: prefers nodes whose annotations report less congestion."""

from typing import Final

from lamina.scheduling.contract.scheduling_agent import SchedulingAgent
from lamina.scheduling.plugins.agents.congestion.plugin import NAME, Congestion, CongestionArgs, environment

AGENT: Final = SchedulingAgent(
    name="congestion",
    summary="Prefers nodes whose annotation `congestion-factor` is low.",
    plugins=(Congestion,),
    priorities={"congestion": NAME},
    environment=environment,
)

__all__ = ["AGENT", "Congestion", "CongestionArgs"]
