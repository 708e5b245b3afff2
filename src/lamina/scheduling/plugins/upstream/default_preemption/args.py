"""Arguments of DefaultPreemption, in upstream's format and with its limits."""

from typing import Annotated

import msgspec

from lamina.scheduling.contract.plugin_registry import PluginArgs


class PreemptionArgs(PluginArgs, frozen=True, kw_only=True, rename="camel"):
    """
    How many candidate nodes are enough, where each node must be tried by itself.

    That is so if host ports, affinity between pods or spread constraints matter. If only amounts of resources matter,
    all nodes are compared.
    """

    min_candidate_nodes_percentage: Annotated[int, msgspec.Meta(ge=0, le=100)] = 10
    """Percentage of the nodes on which evictions could help."""
    min_candidate_nodes_absolute: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] = 100

    def __post_init__(self) -> None:
        """Reject what upstream rejects."""
        if not self.min_candidate_nodes_percentage and not self.min_candidate_nodes_absolute:
            raise ValueError(
                "minCandidateNodesPercentage and minCandidateNodesAbsolute cannot both be 0; set one of them"
            )

    def enough(self, nodes: int) -> int:
        """Return the number of candidates that are enough among *nodes* nodes."""
        least = max(nodes * self.min_candidate_nodes_percentage // 100, self.min_candidate_nodes_absolute)
        return min(least, nodes)
