"""Arguments of the agent's plugins, and the environment variables that kube-safe-scheduler used instead."""

import re
from collections.abc import Mapping
from typing import Annotated, Final, Literal

import msgspec

from lamina.scheduling.contract.plugin_registry import PluginArgs
from lamina.scheduling.contract.scheduling_agent import AgentSettings

Percent = Annotated[float, msgspec.Meta(ge=0, le=100)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Source = Literal["auto", "measured", "annotations"]

_WHOLE: Final = re.compile(r"[0-9]{1,3}")
# Variable → the argument that it sets.
VARIABLES: Final = {
    "SAFEUTILIZATION": "threshold",
    "SAFEPERCENTILE": "tolerance",
    "SAFEFORECASTWEIGHT": "forecastWeight",
}
TABLE: Final = "SAFEPRINTTABLE"


class StatisticsArgs(PluginArgs, frozen=True, kw_only=True, rename="camel"):
    """Arguments about the source of usage data."""

    source: Source = "auto"
    """*auto* uses measurements, and annotations on nodes without measurements."""
    forecast_weight: Percent = 20.0
    """Weight of the forecast in percent, beside the mean; ignored without a forecast."""
    compatible: bool = False
    """Behave exactly like kube-safe-scheduler: read annotations, and score in eleven levels."""

    def __post_init__(self) -> None:
        """Reject contradicting arguments: compatible reads annotations, so *source* must not exclude them."""
        if self.compatible and self.source == "measured":
            raise ValueError("compatible reads annotations: omit source, or omit compatible")


class OverloadArgs(StatisticsArgs, frozen=True, kw_only=True, rename="camel"):
    """Arguments of SafeOverload."""

    threshold: Percent = 90.0
    """Usage in percent above which a node is overloaded."""
    tolerance: Percent = 30.0
    """Accepted probability of overload, in percent."""


class BalanceArgs(StatisticsArgs, frozen=True, kw_only=True, rename="camel"):
    """Arguments of SafeBalance; a sensitivity of 1 is LoadVariationRiskBalancing's."""

    margin: Annotated[float, msgspec.Meta(ge=0, le=100)] = 1.0
    """Weight of the deviation, beside the mean."""
    sensitivity: Annotated[float, msgspec.Meta(gt=0, le=100)] = 2.0
    """Degree of the root of the deviation: the higher, the more small deviations matter."""


class LimitWeights(msgspec.Struct, frozen=True, kw_only=True):
    """Weight of limits for each resource; the rest is the weight of the load."""

    cpu: Share = 0.5
    memory: Share = 0.5


class OverCommitmentArgs(PluginArgs, frozen=True, kw_only=True, rename="camel"):
    """Arguments of LowRiskOverCommitment."""

    smoothing_window_size: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 5
    """Number of samples in each measured mean; averaging hides that much of the deviation."""
    risk_limit_weights: LimitWeights = LimitWeights()
    source: Source = "auto"
    compatible: bool = False
    """As upstream: a node without data scores 0."""


class PackingArgs(PluginArgs, frozen=True, kw_only=True, rename="camel"):
    """Arguments of TargetLoadPacking."""

    target_utilization: Annotated[float, msgspec.Meta(gt=0, lt=100)] = 40.0
    """Target cpu usage in percent."""
    default_requests_multiplier: Annotated[float, msgspec.Meta(ge=1, le=100)] = 1.5
    """Expected usage of a container without a limit, as a multiple of its request."""
    default_requests: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 1000
    """Expected usage of a container without limit and request, in millicores."""
    source: Source = "auto"
    compatible: bool = False
    """As upstream: a node without data scores 0."""


def environment(variables: Mapping[str, str]) -> AgentSettings:
    """Read kube-safe-scheduler's variables; for an invalid value, report an error and keep the default."""
    found: dict[str, object] = {}
    complaints: list[str] = []
    defaults = msgspec.to_builtins(OverloadArgs())
    for variable, argument in VARIABLES.items():
        said = variables.get(variable, "")
        if _WHOLE.fullmatch(said) and int(said) <= 100:
            found[argument] = int(said)
        elif said:
            default = round(defaults[argument])
            complaints.append(f"{variable} is {said[:40]!r}; write an integer from 0 to 100; {default} is used")
    if variables.get(TABLE) == "true":
        complaints.append(f"{TABLE} has no effect: decisions with detail full show mean, deviation and risk")
    shared = {name: value for name, value in found.items() if name == VARIABLES["SAFEFORECASTWEIGHT"]}
    return {plugin: args for plugin, args in (("SafeOverload", found), ("SafeBalance", shared)) if args}, complaints
