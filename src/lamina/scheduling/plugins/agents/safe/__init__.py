"""The agent `safe`: nodes that would probably not be overloaded, going by the mean and the deviation of their use."""

from typing import Final

from lamina.scheduling.framework.agent import Agent
from lamina.scheduling.plugins.agents.safe import balance, over_commitment, overload, packing
from lamina.scheduling.plugins.agents.safe.args import (
    BalanceArgs,
    OverCommitmentArgs,
    OverloadArgs,
    PackingArgs,
    environment,
)
from lamina.scheduling.plugins.agents.safe.balance import SafeBalance
from lamina.scheduling.plugins.agents.safe.over_commitment import LowRiskOverCommitment
from lamina.scheduling.plugins.agents.safe.overload import SafeOverload
from lamina.scheduling.plugins.agents.safe.packing import TargetLoadPacking

AGENT: Final = Agent(
    name="safe",
    summary="Keeps nodes from being overloaded, going by the mean and the deviation of their use.",
    plugins=(SafeOverload, SafeBalance, LowRiskOverCommitment, TargetLoadPacking),
    predicates={"safe-overload": overload.NAME},
    priorities={
        "safe-overload": overload.NAME,
        "safe-balance": balance.NAME,
        "low-risk-overcommitment": over_commitment.NAME,
        "target-load-packing": packing.NAME,
    },
    environment=environment,
)

__all__ = [
    "AGENT",
    "BalanceArgs",
    "LowRiskOverCommitment",
    "OverCommitmentArgs",
    "OverloadArgs",
    "PackingArgs",
    "SafeBalance",
    "SafeOverload",
    "TargetLoadPacking",
]
