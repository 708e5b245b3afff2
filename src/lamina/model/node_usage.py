"""
Measured resource usage of nodes over a time window.

Amounts are in the units of the resource: thousandths of a core, bytes. Times are seconds since 1970.
"""

import msgspec


class ResourceUsage(msgspec.Struct, frozen=True, gc=False):
    """Usage of one resource on a node over the window."""

    mean: float
    deviation: float = 0.0
    """Standard deviation of the usage, not of a usage counter."""
    forecast: float | None = None
    """Expected usage in the near future."""


class NodeUsage(msgspec.Struct, frozen=True, gc=False):
    """Usage of one node; a resource that was not measured is None."""

    node: str
    cpu: ResourceUsage | None = None
    memory: ResourceUsage | None = None
    since: float = 0.0
    """Start of the measured window."""
    until: float = 0.0
    """End of the measured window."""
    renews_within: float = 0.0
    """Seconds within which another measurement follows; 0: this one is valid until it is replaced."""
