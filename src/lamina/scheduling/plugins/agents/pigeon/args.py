"""
Arguments of PigeonHoling, and its environment variables.

They replace the former file `pigeon.cfg`: `policyObjective` is *objective*, and `policyResourceIndex` is
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
    """Number of resources to consider, in this order: cpu, memory, pods, gpu, ephemeral-storage."""
    prime_resource: Annotated[int, msgspec.Meta(ge=0, lt=MOST_RESOURCES)] = 0
    """Index of the resource (0 is cpu) to balance or consolidate; adaptive packing uses all considered resources."""
    usage: Literal["cluster", "annotations"] = "cluster"
    """
    Source of each node's usage.

    *cluster*: requests of all pods on the node, including assumed ones. *annotations*: values that an annotator wrote
    under `requested-cpu` and so on, which can be a minute old.
    """
    compatible: bool = False
    """Behave like the original: only feasible nodes form the cluster; init containers and overhead are ignored."""

    def __post_init__(self) -> None:
        """Reject a prime resource that is not considered."""
        if self.prime_resource >= self.num_resources:
            raise ValueError(
                f"primeResource {self.prime_resource} is not among the first {self.num_resources} resources, counted "
                "from 0; raise numResources or lower primeResource"
            )


def environment(variables: Mapping[str, str]) -> AgentSettings:
    """Read NUM_RESOURCES and POLICY_OBJECTIVE; report and ignore invalid values."""
    found: dict[str, object] = {}
    complaints: list[str] = []
    count = variables.get("NUM_RESOURCES", "").strip()
    if count in {str(number) for number in range(1, MOST_RESOURCES + 1)}:
        found["numResources"] = int(count)
    elif count:
        complaints.append(f"NUM_RESOURCES is {count[:40]!r}; write a number from 1 to {MOST_RESOURCES}; it was ignored")
    objective = variables.get("POLICY_OBJECTIVE", "").strip()
    if objective in get_args(Objective):
        found["objective"] = objective
    elif objective:
        known = ", ".join(get_args(Objective))
        complaints.append(f"POLICY_OBJECTIVE is {objective[:40]!r}; write one of {known}; it was ignored")
    return ({NAME: found} if found else {}), complaints
