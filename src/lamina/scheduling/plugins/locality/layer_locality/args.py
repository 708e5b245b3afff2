"""Arguments of LayerLocality."""

from typing import Annotated, Literal

import msgspec

from lamina.layers.pull_rates import DOWNLOAD, UNPACK
from lamina.scheduling.contract.plugin_registry import PluginArgs

Seconds = Annotated[float, msgspec.Meta(ge=0, le=3600)]
Rate = Annotated[float, msgspec.Meta(ge=1e4, le=1e11)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Barrier(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """
    Penalty in seconds for nodes that would be more loaded than the others.

    Excess load is measured in large pods: (load with the pod - mean load) / size of a large pod.
    """

    begin: Annotated[float, msgspec.Meta(ge=0, le=100)] = 0.5
    """Excess up to which there is no penalty."""
    width: Annotated[float, msgspec.Meta(gt=0, le=100)] = 0.8
    """At begin + width, a node scores 0; the penalty rises to infinity on the way."""
    seconds: Seconds = 5.0
    """Penalty half-way, in seconds."""
    floor: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.10
    """Minimum size of a large pod as a share of a node, even if recent pods were smaller."""


class LayerLocalityArgs(PluginArgs, frozen=True, kw_only=True, rename="camel"):
    """Arguments of LayerLocality."""

    mode: Literal["seconds", "bytes", "original"] = "seconds"
    knowledge: Literal["layers", "images"] = "layers"
    """*images* ignores shared layers, to measure what knowledge of layers is worth."""
    half_score: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 5.0
    """Seconds at which the score has dropped to half."""
    neutral: Seconds = 0.5
    """Waiting times below this many seconds are treated as 0."""
    byte_price: Annotated[float, msgspec.Meta(ge=0, le=100)] = 0.25
    """Penalty per second of download; among nodes with equal waiting time, the one with less to download wins."""
    bandwidth: Rate = DOWNLOAD
    """Download rate in bytes per second for nodes without a measured rate."""
    unpack_rate: Rate = UNPACK
    """Unpack rate in unpacked bytes per second for nodes without a measured rate."""
    barrier: Barrier | None = Barrier()
    replica_share: Share = 0.2
    """Maximum share of a controller's pods per node (at least one pod), if another node is feasible; 1: no limit."""
