"""
Which rows changed since a reader last looked: what makes a snapshot incremental.

Each facet of the node columns has a log. A reader remembers a position; asking again gives the rows touched since, or
None when that was too long ago to tell and everything must be read anew.
"""

import enum
from typing import Final

# A reader that is further behind than this re-reads everything: cheaper than replaying, and it bounds memory.
KEPT: Final = 1024


class Facet(enum.IntEnum):
    """A part of what is known about nodes. Facts that plugins bring have numbers of their own beyond these (`facts`)."""

    RESOURCES = 0
    """Allocatable and free amounts."""
    TAINTS = 1
    """Taints and the unschedulable flag."""
    LABELS = 2
    """Labels and name."""
    IMAGES = 3
    """Images the kubelet lists in the node's status."""
    LAYERS = 4
    """Layers an agent reported."""
    PODS = 5
    """Which pods are on the node."""
    CATALOG = 6
    """What images consist of: known for all nodes or for none."""
    PULLS = 7
    """Images on their way to the node, and when they will be there."""
    REPULSION = 9
    """Pods on the node that keep others away."""
    USAGE = 10
    """What the node is really used for."""
    ANNOTATIONS = 11
    """Annotations."""


class RowLog:
    """The rows of one facet that changed, oldest first."""

    __slots__ = ("_first", "_rows", "position")

    def __init__(self) -> None:
        """Start with nothing changed."""
        self._rows: list[int] = []
        self._first = 0
        self.position = 0
        """Where a reader that has seen everything stands."""

    def touch(self, row: int) -> None:
        """Note that *row* changed."""
        rows = self._rows
        rows.append(row)
        self.position += 1
        if len(rows) > 2 * KEPT:
            del rows[:KEPT]
            self._first += KEPT

    def since(self, position: int) -> list[int] | None:
        """Return the rows touched since *position*, repeats included; None: too long ago."""
        start = position - self._first
        if start < 0:
            return None
        return self._rows[start:]
