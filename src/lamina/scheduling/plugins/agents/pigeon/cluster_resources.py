"""The cluster as PigeonHoling sees it: what each node can give and what of that is in use, resource by resource."""

from collections.abc import Callable
from typing import Final

import msgspec
import numpy as np

from lamina.scheduling.plugins.agents.pigeon.demand_statistics import GPU, RESOURCES, is_gpu
from lamina.scheduling.state.columns import LARGEST, Bools, Floats, Ints
from lamina.scheduling.state.view import NodeView

ANNOTATION: Final = "requested-"


class ClusterResources(msgspec.Struct, frozen=True):
    """One line for each resource that counts, one column for each row of the whole cluster."""

    capacity: Floats
    usage: Floats
    counted: Bools
    """Which rows are nodes of the cluster; the others count for nothing."""

    def among(self, rows: Bools) -> "ClusterResources":
        """Return the cluster that has only these of its nodes."""
        return ClusterResources(self.capacity, self.usage, self.counted & rows)

    def fits(self, asked: Floats) -> Bools:
        """Say where there is room for so much more of every resource."""
        room: Bools = np.logical_and.reduce(self.usage + asked[:, np.newaxis] <= self.capacity)
        return room

    def shares(self, line: int, asked: float) -> tuple[Floats, Floats]:
        """
        Return the share of a resource that is in use on each node, and what *asked* would add to it.

        Where there is none of it, all is in use.
        """
        capacity, usage = self.capacity[line], self.usage[line]
        lacking = capacity <= 0
        if not lacking.any():
            return usage / capacity, asked / capacity
        divisor = np.where(lacking, 1.0, capacity)
        return np.where(lacking, 1.0, usage / divisor), np.where(lacking, 0.0, asked / divisor)

    def mean_capacity(self) -> Floats:
        """Return what a node that has a resource has of it on average; 0 where no node has any."""
        having = [np.count_nonzero(self.counted & (line > 0)) for line in self.capacity]
        means: Floats = self.capacity @ self.counted / np.maximum(having, 1)
        return means


def read_cluster(nodes: NodeView, count: int, *, annotations: bool = False) -> ClusterResources:
    """Look at all nodes, as far as the first *count* resources go; *annotations*: their use is what nodes say it is."""
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
    """Take what cannot be meant for nothing in use, or for as much as there can be."""
    return np.clip(np.nan_to_num(numbers), 0.0, LARGEST)
