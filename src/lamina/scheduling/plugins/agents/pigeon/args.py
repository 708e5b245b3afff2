"""
What can be set about PigeonHoling, by arguments or by the environment variables the agent had first.

What used to stand in a file `pigeon.cfg` are arguments now: `policyObjective` is *objective*, and `policyResourceIndex` is
*primeResource*.
"""

from collections.abc import Mapping
from typing import Annotated, Final, Literal, get_args

import msgspec

from lamina.scheduling.contract.plugin_registry import PluginArgs
from lamina.scheduling.contract.scheduling_agent import AgentSettings

NAME: Final = "PigeonHoling"
MOST_RESOURCES: Final = 5

Objective = Literal["A_BINPACK", "LOAD_BALANCE", "CONSOLIDATE"]


class PigeonHolingArgs(PluginArgs, frozen=True, kw_only=True, rename="camel"):
    """Arguments of PigeonHoling."""

    objective: Objective = "A_BINPACK"
    num_resources: Annotated[int, msgspec.Meta(ge=1, le=MOST_RESOURCES)] = 2
    """How many count, in this order: cpu, memory, pods, gpu, ephemeral-storage."""
    prime_resource: Annotated[int, msgspec.Meta(ge=0, lt=MOST_RESOURCES)] = 0
    """Which of them (0: cpu) is balanced or consolidated; adaptive packing looks at all that count."""
    usage: Literal["cluster", "annotations"] = "cluster"
    """
    Where the use of a node is read.

    *cluster*: requests of all pods known to be there, those on their way included; *annotations*: what an annotator
    wrote at the node under `requested-cpu` and so on, which may be a minute old.
    """
    compatible: bool = False
    """The cluster is what the pod can go to, and init containers and overhead count for nothing: as it was at first."""

    def __post_init__(self) -> None:
        """Refuse a prime resource that does not count."""
        if self.prime_resource >= self.num_resources:
            raise ValueError(
                f"primeResource {self.prime_resource} is not among the first {self.num_resources} resources, counted "
                "from 0; raise numResources or lower primeResource"
            )


def environment(variables: Mapping[str, str]) -> AgentSettings:
    """Read NUM_RESOURCES and POLICY_OBJECTIVE; what cannot be used is told, and counts as not set."""
    told: dict[str, object] = {}
    complaints: list[str] = []
    count = variables.get("NUM_RESOURCES", "").strip()
    if count in {str(number) for number in range(1, MOST_RESOURCES + 1)}:
        told["numResources"] = int(count)
    elif count:
        complaints.append(f"NUM_RESOURCES is {count[:40]!r}; write a number from 1 to {MOST_RESOURCES}; it was ignored")
    objective = variables.get("POLICY_OBJECTIVE", "").strip()
    if objective in get_args(Objective):
        told["objective"] = objective
    elif objective:
        known = ", ".join(get_args(Objective))
        complaints.append(f"POLICY_OBJECTIVE is {objective[:40]!r}; write one of {known}; it was ignored")
    return ({NAME: told} if told else {}), complaints
