"""
Interface of a source of node usage, with the limits that all sources share.

Called by `usage_poller` and by the annotators, one measurement at a time.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from lamina.model.node import Node
from lamina.model.node_usage import NodeUsage

LEAST_SAMPLES: Final = 3
"""With fewer samples a deviation is meaningless, and the node is left out."""
SKEW: Final = 300.0
"""Seconds that two clocks may differ; beyond that the age of a measurement is unknown."""
NAMED: Final = 5
"""Most names in a message."""


class UsageSource(Protocol):
    """Measures the usage of nodes over a window."""

    @property
    def remark(self) -> str:
        """What was missing in the last measurement, in one line; empty if every node was measured."""
        ...

    async def look(self, nodes: Mapping[str, Node], /) -> Sequence[NodeUsage]:
        """
        Measure *nodes* once; return the nodes with enough data, in order of their names.

        Raises a LaminaError with a one-line message if the source cannot be reached. Times are those of the source's
        clock. `renews_within` is when the source will have a newer measurement.
        """
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


def of_known_age(usages: Iterable[NodeUsage], now: float) -> tuple[list[NodeUsage], int]:
    """Drop and count usage whose time is more than `SKEW` from *now*; shift future times back to *now*."""
    kept: list[NodeUsage] = []
    strange = 0
    for usage in usages:
        ahead = usage.until - now
        if abs(ahead) > SKEW:
            strange += 1
        elif ahead > 0:
            kept.append(msgspec.structs.replace(usage, since=usage.since - ahead, until=now))
        else:
            kept.append(usage)
    return kept, strange


def some(names: Iterable[str]) -> str:
    """List up to `NAMED` names, and the number of others."""
    listed = sorted(names)
    shown = ", ".join("".join(one if one.isprintable() else "?" for one in name[:100]) for name in listed[:NAMED])
    return f"{shown} and {len(listed) - NAMED} more" if len(listed) > NAMED else shown
