"""Agents for tests of the extender: as small as an agent can be, with the names and verbs of those that come with it."""

from collections.abc import Mapping
from typing import Annotated, Final

import msgspec
import numpy as np

from lamina.scheduling.contract.plugin_registry import NoArgs, PluginArgs
from lamina.scheduling.contract.scheduling_agent import SchedulingAgent, SchedulingAgentRegistry


class RiskArgs(PluginArgs, frozen=True, kw_only=True):
    utilization: Annotated[int, msgspec.Meta(ge=0, le=100)] = 90
    percentile: Annotated[int, msgspec.Meta(ge=0, le=100)] = 30

    def __post_init__(self):
        if self.utilization < self.percentile:
            raise ValueError("utilization must not be below percentile")


class Scores:
    """Gives every node the same."""

    name = "Scores"
    Args: type[PluginArgs] = NoArgs

    def __init__(self, context, args):
        self.args = args

    def score(self, state, pod, nodes):
        return np.zeros(len(nodes), dtype=np.int64)


class Filters(Scores):
    """Refuses no node."""

    name = "Filters"

    def filter(self, state, pod, nodes):
        return None


class SafeOverload(Filters):
    name = "SafeOverload"
    Args = RiskArgs


class SafeBalance(Scores):
    name = "SafeBalance"


class LowRisk(Scores):
    name = "LowRisk"


class Congestion(Scores):
    name = "Congestion"


class Pigeon(Scores):
    name = "Pigeon"


class Foo(Filters):
    name = "Foo"


class Layers(Scores):
    name = "Layers"


def variables(environ: Mapping[str, str]) -> tuple[dict[str, dict[str, object]], list[str]]:
    text = environ.get("SAFEUTILIZATION", "")
    if not text:
        return {}, []
    if not (text.isascii() and text.isdigit()):
        return {}, [f"SAFEUTILIZATION: {text!r} is no number"]
    return {"SafeOverload": {"utilization": int(text)}}, []


SAFE: Final = SchedulingAgent(
    name="safe",
    summary="spread the risk of overload",
    plugins=(SafeOverload, SafeBalance, LowRisk),
    predicates={"safe-overload": "SafeOverload"},
    priorities={
        "safe-overload": "SafeOverload",
        "safe-balance": "SafeBalance",
        "low-risk-overcommitment": "LowRisk",
    },
    environment=variables,
)
LAYERS: Final = SchedulingAgent(
    name="layers", summary="start where layers are", plugins=(Layers,), priorities={"layers": "Layers"}
)
CONGESTION: Final = SchedulingAgent(
    name="congestion", summary="avoid the congested", plugins=(Congestion,), priorities={"congestion": "Congestion"}
)
PIGEON: Final = SchedulingAgent(
    name="pigeon", summary="pack", plugins=(Pigeon,), priorities={"pigeon-holing": "Pigeon"}
)
FOO: Final = SchedulingAgent(
    name="foo", summary="a skeleton", plugins=(Foo,), predicates={"foo": "Foo"}, priorities={"foo": "Foo"}
)


def all_agents() -> SchedulingAgentRegistry:
    return SchedulingAgentRegistry(LAYERS, SAFE, PIGEON, CONGESTION, FOO)
