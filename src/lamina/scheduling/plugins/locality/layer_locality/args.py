"""What can be set about LayerLocality, and what pods and namespaces can say about it."""

import re
from collections.abc import Mapping
from typing import Annotated, Final, Literal

import msgspec

from lamina.layers.pull_rates import DOWNLOAD, UNPACK
from lamina.scheduling.contract.plugin_registry import PluginArgs

ANNOTATION: Final = "lamina.dev/layer-locality"
OFF: Final = "off"
FULL: Final = 100

_PERCENT: Final = re.compile(r"[0-9]{1,3}")

Seconds = Annotated[float, msgspec.Meta(ge=0, le=3600)]
Rate = Annotated[float, msgspec.Meta(ge=1e4, le=1e11)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Barrier(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """
    The price of a node that would be more loaded than the others.

    Excess load is counted in large pods: (load with the pod - mean load) / size of a large pod.
    """

    begin: Annotated[float, msgspec.Meta(ge=0, le=100)] = 0.5
    """Up to here it is free."""
    width: Annotated[float, msgspec.Meta(gt=0, le=100)] = 0.8
    """So much further on it is out of the question; the price rises to infinity on the way."""
    seconds: Seconds = 5.0
    """What it costs half-way."""
    floor: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.10
    """A large pod takes at least this share of a node, however small the recent ones were."""


class LayerLocalityArgs(PluginArgs, frozen=True, kw_only=True, rename="camel"):
    """Arguments of LayerLocality."""

    mode: Literal["seconds", "bytes", "original"] = "seconds"
    knowledge: Literal["layers", "images"] = "layers"
    """*images*: as if nobody knew that images share layers; to see what knowing it is worth."""
    half_score: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 5.0
    """Seconds at which half of the score is gone."""
    neutral: Seconds = 0.5
    """Waiting for less than this is no reason to prefer another node."""
    byte_price: Annotated[float, msgspec.Meta(ge=0, le=100)] = 0.25
    """What a second of download counts beside the waiting: where waiting is equal, whoever downloads less wins."""
    bandwidth: Rate = DOWNLOAD
    """Bytes per second of nodes that did not say."""
    unpack_rate: Rate = UNPACK
    """Unpacked bytes per second of nodes that did not say."""
    barrier: Barrier | None = Barrier()
    replica_share: Share = 0.2
    """No node gets more than this share of a controller's pods (or one pod) if it can be helped; 1: any share."""


def wish(annotations: Mapping[str, str]) -> tuple[int | None, str]:
    """Read how much layers shall count, in percent (None: nothing said), and what is wrong with what was said."""
    said = annotations.get(ANNOTATION)
    if said is None:
        return None, ""
    if said == OFF:
        return 0, ""
    if _PERCENT.fullmatch(said) and int(said) <= FULL:
        return int(said), ""
    return None, f"annotation {ANNOTATION} is {said[:40]!r}; write off, or a percentage from 0 to 100; it was ignored"
