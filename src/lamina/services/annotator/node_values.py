"""
Interface of a source of annotation values.

Called by `annotation_loop`, one round at a time.
"""

from collections.abc import Mapping
from typing import Protocol

import msgspec

from lamina.model.node import Node


class DesiredNumber(msgspec.Struct, frozen=True, gc=False):
    """Value of one annotation, and by how much it must differ from the current one before a write."""

    value: int
    step: float


class DesiredValues(msgspec.Struct, frozen=True, gc=False):
    """Values of one node's annotations."""

    numbers: dict[str, DesiredNumber]
    """By annotation; annotations of this source that are neither here nor in `unknown` are removed."""
    observed_at: float
    """When the values were measured, in seconds since 1970."""
    unknown: frozenset[str] = frozenset()
    """Annotations whose value is currently unknown; they stay until they expire."""


class NodeValues(Protocol):
    """Computes the annotation values of nodes."""

    @property
    def remark(self) -> str:
        """What was missing in the last round, in one line; empty if nothing was."""
        ...

    async def values(self, nodes: Mapping[str, Node], now: float) -> dict[str, DesiredValues]:
        """Return the current values of nodes; leave out nodes without data."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...
