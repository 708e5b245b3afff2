"""Scheduling agent `pigeon`: places pods so that the cluster as a whole approaches an objective."""

from typing import Final

from lamina.scheduling.contract.scheduling_agent import SchedulingAgent
from lamina.scheduling.plugins.agents.pigeon.args import NAME, PigeonHolingArgs, environment
from lamina.scheduling.plugins.agents.pigeon.plugin import PigeonHoling

AGENT: Final = SchedulingAgent(
    name="pigeon",
    summary="Balances, consolidates or adaptively packs the cluster as a whole.",
    plugins=(PigeonHoling,),
    priorities={"pigeon-holing": NAME},
    environment=environment,
)

__all__ = ["AGENT", "PigeonHoling", "PigeonHolingArgs"]
