"""
The contract of whoever can tell what nodes are used for, and what holds for all of them.

Called by `watch` and by the annotators, one look at a time.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from lamina.model.node import Node
from lamina.model.node_usage import NodeUsage

LEAST_SAMPLES: Final = 3
"""With fewer there is no deviation worth the name, and nothing is told."""
SKEW: Final = 300.0
"""Seconds that two clocks may differ; beyond that nobody knows how old something is."""
NAMED: Final = 5
"""How many names stand in a message at most."""


class UsageSource(Protocol):
    """Tells what nodes were used for over a while."""

    @property
    def remark(self) -> str:
        """What was lacking at the last look, in one line; empty when every node is told of."""
        ...

    async def look(self, nodes: Mapping[str, Node], /) -> Sequence[NodeUsage]:
        """
        Look at *nodes* once, and tell of those about which enough is known, in the order of their names.

        Raises a LaminaError of one line when nobody could be asked. Times are those of whoever measured; what is promised
        is when there will be another measurement to look at.
        """
        ...

    async def close(self) -> None:
        """End what is open."""
        ...


def of_known_age(usages: Iterable[NodeUsage], now: float) -> tuple[list[NodeUsage], int]:
    """Leave out what was measured by a clock too far from ours, and count it; what is yet to come ended just now."""
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
    """List a few names, and say that there are more."""
    listed = sorted(names)
    shown = ", ".join("".join(one if one.isprintable() else "?" for one in name[:100]) for name in listed[:NAMED])
    return f"{shown} and {len(listed) - NAMED} more" if len(listed) > NAMED else shown
