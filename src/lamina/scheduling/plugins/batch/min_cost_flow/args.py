"""Arguments of MinCostFlow."""

from typing import Annotated, Literal

import msgspec

from lamina.scheduling.contract.plugin_registry import PluginArgs

Seconds = Annotated[float, msgspec.Meta(ge=0, le=3600)]


class LoadPrice(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """
    Price in seconds for nodes that would be more loaded than the others.

    Excess load is measured in large pods, as for LayerLocality: (load with the pod - mean load) / size of a large pod.
    """

    seconds: Seconds = 10.0
    """Price of a full node compared with an empty one."""
    begin: Annotated[float, msgspec.Meta(ge=0, le=100)] = 0.4
    """Excess from which the barrier rises."""
    width: Annotated[float, msgspec.Meta(gt=0, le=100)] = 0.8
    """At begin + width the barrier reaches *most*."""
    barrier: Seconds = 5.0
    """Price half-way, in seconds."""
    most: Seconds = 600.0
    floor: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.10
    """Minimum size of a large pod as a share of a node, even if recent pods were smaller."""


class PendingPrice(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Cost of leaving a pod pending."""

    seconds: Annotated[float, msgspec.Meta(ge=0, le=3600)] = 3600.0
    """Cost for a pod that has just arrived."""
    growth: Annotated[float, msgspec.Meta(ge=0, le=100)] = 1.0
    """Cost added for each second that the pod has waited."""


class MinCostFlowArgs(PluginArgs, frozen=True, kw_only=True, rename="camel"):
    """Arguments of MinCostFlow."""

    cost_model: Literal["layers", "quincy", "octopus"] = "layers"
    batch: Annotated[int, msgspec.Meta(ge=1, le=20_000)] = 10_000
    """Maximum number of pods placed together."""
    most_cells: Annotated[int, msgspec.Meta(ge=1, le=20_000_000)] = 4_000_000
    """Maximum of distinct pods x nodes; further pods of the batch go through the ordinary cycle."""
    most_steps: Annotated[int, msgspec.Meta(ge=1, le=10_000_000)] = 200_000
    """Maximum steps of the solver for one flow; beyond it, the pods go through the ordinary cycle."""
    rounds: Annotated[int, msgspec.Meta(ge=1, le=20)] = 4
    """Flows solved for one batch: each starts from the room and the pulls that the earlier ones leave."""
    byte_price: Annotated[float, msgspec.Meta(ge=0, le=100)] = 0.25
    """Cost of a second of download, besides the waiting that it causes."""
    score_price: Annotated[float, msgspec.Meta(ge=0, le=10)] = 0.01
    """Seconds that a point of the profile's total score is worth."""
    load: LoadPrice = LoadPrice()
    replica_share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.2
    """Maximum share of a controller's pods per node (at least one pod), if other nodes have room; 1: no limit."""
    pending: PendingPrice = PendingPrice()
    hold: bool = False
    """Whether a pod waits when that costs less than any node with room; otherwise the ordinary cycle places it."""

    def __post_init__(self) -> None:
        """Reject arguments that contradict each other."""
        if self.hold and not self.pending.growth:
            raise ValueError("with hold, pending.growth must be above 0, or a pod could wait for ever")
