"""Scheduling agent `safe`: avoids nodes that would probably be overloaded, by the mean and deviation of their usage."""

from typing import Final

from lamina.scheduling.contract.scheduling_agent import SchedulingAgent
from lamina.scheduling.plugins.agents.safe import (
    low_risk_over_commitment,
    safe_balance,
    safe_overload,
    target_load_packing,
)
from lamina.scheduling.plugins.agents.safe.args import (
    BalanceArgs,
    OverCommitmentArgs,
    OverloadArgs,
    PackingArgs,
    environment,
)
from lamina.scheduling.plugins.agents.safe.low_risk_over_commitment import LowRiskOverCommitment
from lamina.scheduling.plugins.agents.safe.safe_balance import SafeBalance
from lamina.scheduling.plugins.agents.safe.safe_overload import SafeOverload
from lamina.scheduling.plugins.agents.safe.target_load_packing import TargetLoadPacking

AGENT: Final = SchedulingAgent(
    name="safe",
    summary="Keeps nodes from being overloaded, by the mean and the deviation of their usage.",
    plugins=(SafeOverload, SafeBalance, LowRiskOverCommitment, TargetLoadPacking),
    predicates={"safe-overload": safe_overload.NAME},
    priorities={
        "safe-overload": safe_overload.NAME,
        "safe-balance": safe_balance.NAME,
        "low-risk-overcommitment": low_risk_over_commitment.NAME,
        "target-load-packing": target_load_packing.NAME,
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
