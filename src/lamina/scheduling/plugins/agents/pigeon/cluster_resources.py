"""Capacity and usage of each node by resource, as PigeonHoling uses them."""

from collections.abc import Callable
from typing import Final

import msgspec
import numpy as np

from lamina.scheduling.plugins.agents.pigeon.demand_statistics import GPU, RESOURCES, is_gpu
from lamina.scheduling.state.columns import LARGEST, Bools, Floats, Ints
from lamina.scheduling.state.view import NodeView

ANNOTATION: Final = "requested-"


class ClusterResources(msgspec.Struct, frozen=True):
    """One line per considered resource, one column per row of the cluster."""

    capacity: Floats
    usage: Floats
    counted: Bools
    """Which rows are nodes of the cluster; the others are ignored."""

    def among(self, rows: Bools) -> "ClusterResources":
        """Return the cluster restricted to these nodes."""
        return ClusterResources(self.capacity, self.usage, self.counted & rows)

    def fits(self, asked: Floats) -> Bools:
        """Return which nodes have room for the requested amount of every resource."""
        room: Bools = np.logical_and.reduce(self.usage + asked[:, np.newaxis] <= self.capacity)
        return room

    def shares(self, line: int, asked: float) -> tuple[Floats, Floats]:
        """
        Return the used share of a resource on each node, and the share that *asked* would add.

        On nodes without the resource, the used share is 1.
        """
        capacity, usage = self.capacity[line], self.usage[line]
        absent = capacity <= 0
        if not absent.any():
            return usage / capacity, asked / capacity
        divisor = np.where(absent, 1.0, capacity)
        return np.where(absent, 1.0, usage / divisor), np.where(absent, 0.0, asked / divisor)

    def mean_capacity(self) -> Floats:
        """Return the mean capacity of each resource over the nodes that have it; 0 if no node does."""
        having = [np.count_nonzero(self.counted & (line > 0)) for line in self.capacity]
        means: Floats = self.capacity @ self.counted / np.maximum(having, 1)
        return means


def read_cluster(nodes: NodeView, count: int, *, annotations: bool = False) -> ClusterResources:
    """Read the first *count* resources of all nodes; with *annotations*, usage comes from node annotations."""
    names = RESOURCES[:count]
    capacity = np.array([_of(nodes, nodes.allocatable, name) for name in names], dtype=np.float64)
    if annotations:
        usage = np.array([_said(nodes.floats(ANNOTATION + name)) for name in names])
    else:
        usage = np.array([_of(nodes, nodes.requested, name) for name in names], dtype=np.float64)
    return ClusterResources(capacity, usage, nodes.alive)


def _of(nodes: NodeView, column: Callable[[str], Ints], resource: str) -> Ints:
    if resource != GPU:
        return column(resource)
    total = np.zeros(len(nodes), dtype=np.int64)
    for name in nodes.resources:
        if is_gpu(name):
            total += column(name)
    return total


def _said(numbers: Floats) -> Floats:
    """Replace NaN by 0 and clip values to 0..LARGEST."""
    return np.clip(np.nan_to_num(numbers), 0.0, LARGEST)
