"""
Decoder of NodeMetrics of the metrics API (``metrics.k8s.io``): a node's usage, averaged over the seconds before.

The list has no resource version and no pages. An unreadable node is skipped.
"""

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Raw

from lamina.model import quantity
from lamina.model.duration import seconds as duration
from lamina.wire.errors import WireError
from lamina.wire.timestamps import seconds as point_in_time


class NodeMetrics(msgspec.Struct, frozen=True, gc=False):
    """Usage of one node."""

    node: str
    at: float
    """Seconds since 1970, by the clock of the metrics server."""
    over: float
    """Length of the averaging window in seconds."""
    cpu: int
    """Thousandths of a core."""
    memory: int
    """Bytes."""


class _NodeMetricsMeta(msgspec.Struct, frozen=True, gc=False):
    name: str = ""


class _Used(msgspec.Struct, frozen=True, gc=False):
    cpu: str
    memory: str


class _Metrics(msgspec.Struct, frozen=True, gc=False):
    metadata: _NodeMetricsMeta
    timestamp: str
    usage: _Used
    window: str = ""


class _List(msgspec.Struct, frozen=True, gc=False):
    items: list[Raw] | None = None


_LIST: Final = msgspec.json.Decoder(_List)
_METRICS: Final = msgspec.json.Decoder(_Metrics)


def decode_node_metrics_list(data: bytes) -> Iterator[NodeMetrics | None]:
    """Return an iterator over the nodes of a list, with None for an unreadable node. Raises WireError."""
    try:
        found = _LIST.decode(data)
    except (ValueError, RecursionError) as error:
        raise WireError("NodeMetricsList", str(error)) from None
    return map(_one, found.items or ())


def _one(data: Raw) -> NodeMetrics | None:
    try:
        metrics = _METRICS.decode(data)
        read = NodeMetrics(
            metrics.metadata.name,
            point_in_time(metrics.timestamp),
            duration(metrics.window or 0),
            max(quantity.milli(metrics.usage.cpu), 0),
            max(quantity.whole(metrics.usage.memory), 0),
        )
    except (ValueError, RecursionError):
        return None
    return read if read.node else None
