"""
The contract of whoever knows what should stand on nodes.

Called by `rounds`, one round at a time.
"""

from collections.abc import Mapping
from typing import Protocol

import msgspec

from lamina.model.node import Node


class DesiredNumber(msgspec.Struct, frozen=True, gc=False):
    """What should stand in one annotation, and how far it has to be from what stands there to be worth a write."""

    value: int
    step: float


class DesiredValues(msgspec.Struct, frozen=True, gc=False):
    """What should stand on one node."""

    numbers: dict[str, DesiredNumber]
    """By annotation; those of the same kind that are neither here nor unknown are taken off."""
    observed_at: float
    """When that was so, in seconds since 1970."""
    unknown: frozenset[str] = frozenset()
    """Annotations of which nothing is known for the moment; they stay as they are until they are too old."""


class NodeValues(Protocol):
    """Knows what should stand on nodes."""

    @property
    def remark(self) -> str:
        """What was lacking the last time, in one line; empty when nothing was."""
        ...

    async def values(self, nodes: Mapping[str, Node], now: float) -> dict[str, DesiredValues]:
        """Say what should stand on nodes now; a node that is left out is one of which nothing is known."""
        ...

    async def close(self) -> None:
        """End what is open."""
        ...
