"""What can be set about the plugins of this agent, and what its environment variables used to set."""

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
# Variable → the argument it sets.
VARIABLES: Final = {
    "SAFEUTILIZATION": "threshold",
    "SAFEPERCENTILE": "tolerance",
    "SAFEFORECASTWEIGHT": "forecastWeight",
}
TABLE: Final = "SAFEPRINTTABLE"


class StatisticsArgs(PluginArgs, frozen=True, kw_only=True, rename="camel"):
    """Where the use of nodes is read from."""

    source: Source = "auto"
    """*auto*: what was measured, and annotations where nothing was."""
    forecast_weight: Percent = 20.0
    """How much a forecast counts beside the mean, where there is one."""
    compatible: bool = False
    """To the letter as kube-safe-scheduler has it: from annotations, and in eleven levels."""

    def __post_init__(self) -> None:
        """Refuse to read annotations only, and not at all."""
        if self.compatible and self.source == "measured":
            raise ValueError("compatible reads annotations; leave source out, or compatible")


class OverloadArgs(StatisticsArgs, frozen=True, kw_only=True, rename="camel"):
    """Arguments of SafeOverload."""

    threshold: Percent = 90.0
    """A node that is used for more than this is overloaded."""
    tolerance: Percent = 30.0
    """How likely that may be."""


class BalanceArgs(StatisticsArgs, frozen=True, kw_only=True, rename="camel"):
    """Arguments of SafeBalance; a sensitivity of 1 is LoadVariationRiskBalancing's."""

    margin: Annotated[float, msgspec.Meta(ge=0, le=100)] = 1.0
    """What the deviation counts for beside the mean."""
    sensitivity: Annotated[float, msgspec.Meta(gt=0, le=100)] = 2.0
    """Which root of the deviation that is: the higher, the more small ones count."""


class LimitWeights(msgspec.Struct, frozen=True, kw_only=True):
    """For each resource how much limits count; the rest is what load counts."""

    cpu: Share = 0.5
    memory: Share = 0.5


class OverCommitmentArgs(PluginArgs, frozen=True, kw_only=True, rename="camel"):
    """Arguments of LowRiskOverCommitment."""

    smoothing_window_size: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 5
    """Over how many samples the measured use was averaged, which hides that much of its deviation."""
    risk_limit_weights: LimitWeights = LimitWeights()
    source: Source = "auto"
    compatible: bool = False
    """As upstream has it: a node of which nothing is known scores nothing."""


class PackingArgs(PluginArgs, frozen=True, kw_only=True, rename="camel"):
    """Arguments of TargetLoadPacking."""

    target_utilization: Annotated[float, msgspec.Meta(gt=0, lt=100)] = 40.0
    """The percentage of cpu in use that is best."""
    default_requests_multiplier: Annotated[float, msgspec.Meta(ge=1, le=100)] = 1.5
    """A container without a limit is expected to use so many times what it requests."""
    default_requests: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 1000
    """What a container that says nothing is expected to use, in thousandths of a core."""
    source: Source = "auto"
    compatible: bool = False
    """As upstream has it: a node of which nothing is known scores nothing."""


def environment(variables: Mapping[str, str]) -> AgentSettings:
    """Read the variables kube-safe-scheduler had; whatever is wrong with one, its argument keeps its default."""
    found: dict[str, object] = {}
    complaints: list[str] = []
    defaults = msgspec.to_builtins(OverloadArgs())
    for variable, argument in VARIABLES.items():
        said = variables.get(variable, "")
        if _WHOLE.fullmatch(said) and int(said) <= 100:
            found[argument] = int(said)
        elif said:
            default = round(defaults[argument])
            complaints.append(f"{variable} is {said[:40]!r}; write a whole number from 0 to 100; {default} is used")
    if variables.get(TABLE) == "true":
        complaints.append(f"{TABLE} has no effect: decisions told in full detail have the mean, deviation and risk")
    shared = {name: value for name, value in found.items() if name == VARIABLES["SAFEFORECASTWEIGHT"]}
    return {plugin: args for plugin, args in (("SafeOverload", found), ("SafeBalance", shared)) if args}, complaints
