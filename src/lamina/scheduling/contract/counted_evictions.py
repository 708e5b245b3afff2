"""
Filters whose results for a node follow from numbers of pods on it, so that evictions can be compared on all nodes at once.

Preemption asks for each of thousands of nodes: does the pod fit if these pods leave that node, and if one less leaves,
and so on? A filter that only counts pods answers for all nodes in one call. Other filters are asked node by node.

    evictions(pod, nodes, there) ──> CountedEvictions
    counts(victim) ──> numbers, summed up by row ──> codes(rows, gone)
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from lamina.model.pod import Pod
from lamina.scheduling.contract.points import FilterPlugin
from lamina.scheduling.state.columns import Bools, Ints
from lamina.scheduling.state.view import NodeView


class CountedEvictions(Protocol):
    """A filter's results for one pod if pods leave nodes. Each node is examined as if pods left only that node."""

    width: int
    """How many numbers the filter counts."""
    counting: Bools
    """By row: whether some pod there may have a count that is not 0."""

    def counts(self, pod: Pod) -> Sequence[int]:
        """
        Return how often a placed pod counts, for each of the filter's numbers.

        May read only the properties of the pod that `state.placed_pods.kind_of` lists.
        """
        ...

    def codes(self, rows: Ints, gone: Ints) -> Ints:
        """
        Return the code that `filter` would return for each of *rows*.

        *gone* has a line for each of the filter's numbers and a column for each row: the sum of `counts` of the pods
        that left the row. It is negative for pods that would be there in addition.
        """
        ...


@runtime_checkable
class CountingFilterPlugin(FilterPlugin, Protocol):
    """A filter that counts pods."""

    def evictions(self, pod: Pod, nodes: NodeView, there: Sequence[Pod]) -> CountedEvictions:
        """
        Count for *pod* on all nodes.

        Pods *there* can be on nodes in addition: their numbers are passed as negative ones.
        """
        ...


@runtime_checkable
class RelievedFilterPlugin(FilterPlugin, Protocol):
    """
    A filter that never refuses a node because pods left it: a node that passes also passes after evictions.

    A filter that counts can have these rows as well; their codes are not used.
    """

    def unsure(self, pod: Pod, nodes: NodeView) -> Sequence[int]:
        """List the rows that are an exception for *pod*."""
        ...
