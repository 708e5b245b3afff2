"""
Facts about nodes and their pods that a plugin maintains in addition to the node columns.

A plugin registers its fact in its constructor, `handle = context.register(HostPorts())`, before any node is known.
From then on the columns update the fact for every node and every pod. They journal the changed rows under the fact's
own facet, `handle.facet`, which the plugin declares in its `reads`. The plugin reads the fact through the view,
`nodes.fact(handle)`; a hypothetical view returns the fact for its hypothetical pods.

    node added, changed or removed ──> put ─┐
    pod counted on a row ────────────> add ─┼─ True: the row is journaled under the fact's facet
    pod no longer counted ───────> remove ──┘

Plugins of several profiles that register facts of the same name share the first one.
"""

from collections.abc import Sequence
from typing import Generic, Protocol, Self, TypeVar

from lamina.model.node import Node
from lamina.model.pod import Pod

Placements = Sequence[tuple[int, Pod]]
"""Pods with the row each of them is on."""


class NodeFact(Protocol):
    """One fact about nodes. It must be bounded: keep nothing about pods and nodes that are gone."""

    @property
    def name(self) -> str:
        """Identifies the fact; facts of the same name are the same fact."""
        ...

    def counts(self, pod: Pod) -> object:
        """Return the properties of a pod that the fact uses, falsy if it ignores the pod. Called at every placement."""
        ...

    def put(self, row: int, node: Node | None) -> bool:
        """Set the node of a row, None if it was removed; return whether the row's fact changed."""
        ...

    def add(self, row: int, pod: Pod) -> bool:
        """Count a pod on a row; return whether the row's fact changed."""
        ...

    def remove(self, row: int, pod: Pod) -> bool:
        """Stop counting a pod on a row; *pod* is as it was counted. Return whether the row's fact changed."""
        ...

    def as_if(self, gone: Placements, there: Placements) -> Self:
        """
        Return a read-only fact for the cluster without the pods *gone* and with the pods *there*.

        Must neither change nor copy this fact; its cost must depend only on the given pods. `counts` is truthy for all
        of them.
        """
        ...


F = TypeVar("F", bound=NodeFact)


class FactHandle(Generic[F]):
    """A registered fact with its facet."""

    __slots__ = ("facet", "fact")

    def __init__(self, fact: F, facet: int) -> None:
        """Join a fact with its facet."""
        self.fact = fact
        """The current fact; inside a cycle use `NodeView.fact`."""
        self.facet = facet
        """The facet to declare in `Reads`."""
