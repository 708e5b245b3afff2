"""
What nodes are really used for, as somebody measured it over a while.

Amounts are in the units of the resource: thousandths of a core, bytes. Times are seconds since 1970.
"""

import msgspec


class ResourceUsage(msgspec.Struct, frozen=True, gc=False):
    """How much of one resource a node used over a while."""

    mean: float
    deviation: float = 0.0
    """The standard deviation of the use, not of a counter of it."""
    forecast: float | None = None
    """What is expected for the near future."""


class NodeUsage(msgspec.Struct, frozen=True, gc=False):
    """What one node was used for; a resource that was not measured is left out."""

    node: str
    cpu: ResourceUsage | None = None
    memory: ResourceUsage | None = None
    since: float = 0.0
    """When the window begins that was measured."""
    until: float = 0.0
    """When it ends."""
    renews_within: float = 0.0
    """Another measurement is promised within so many seconds; 0: nothing is promised, and this one holds."""
