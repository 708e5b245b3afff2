"""
Node facts that plugins bring along: what a plugin must know of nodes and of the pods on them, beyond the columns there are.

A plugin registers its fact when it is made, `handle = context.register(HostPorts())`, before there is any node. From then on
the columns keep the fact in step, whoever places pods, and note which rows changed under a facet of the fact's own,
`handle.facet`, which the plugin names in its `reads`. It reads the fact through the view, `nodes.fact(handle)`: a view that
answers a what-if question hands out a fact that answers the same question.

    node came, changed or left ──> put ─┐
    pod counted on a row ────────> add ─┼─ True: the row is noted under the fact's facet
    pod no longer counted ───> remove ──┘

Plugins of several profiles that register a fact of the same name share the one that was registered first.
"""

from collections.abc import Sequence
from typing import Generic, Protocol, Self, TypeVar

from lamina.model.node import Node
from lamina.model.pod import Pod

Placements = Sequence[tuple[int, Pod]]
"""Pods, and the rows they are on."""


class NodeFact(Protocol):
    """One thing about nodes. Bounded: nothing is kept of pods and nodes that are gone."""

    @property
    def name(self) -> str:
        """By what the fact is known; two facts of one name are the same fact."""
        ...

    def counts(self, pod: Pod) -> object:
        """Return what of a pod the fact goes by; nothing (falsy) for a pod it does not count. Asked at every placement."""
        ...

    def put(self, row: int, node: Node | None) -> bool:
        """Take over which node a row has, or how it is now; None when it has left. Say whether the row's fact changed."""
        ...

    def add(self, row: int, pod: Pod) -> bool:
        """Count a pod on a row; say whether the row's fact changed."""
        ...

    def remove(self, row: int, pod: Pod) -> bool:
        """Stop counting a pod on a row, *pod* as it was counted; say whether the row's fact changed."""
        ...

    def as_if(self, gone: Placements, there: Placements) -> Self:
        """
        Return a fact that answers as if pods were gone and others were there, and is only read.

        Neither changes this fact nor copies it; costs no more than the pods it is about. All of them are counted.
        """
        ...


F = TypeVar("F", bound=NodeFact)


class FactHandle(Generic[F]):
    """A registered fact: what a plugin keeps of it."""

    __slots__ = ("facet", "fact")

    def __init__(self, fact: F, facet: int) -> None:
        """Know a fact by this facet."""
        self.fact = fact
        """How things are; inside a cycle go through `NodeView.fact`."""
        self.facet = facet
        """What to name in `Reads`."""
