"""
Node labels as arrays: the topology domain of each row, and the rows that a pod's node selector matches.

The domains of a topology are the values of one label. They are numbered in order of appearance, so that plugins count
per number. Arrays are built on request and updated when a row's node or labels change. The least recently used ones are
evicted. The columns write; plugins read through `NodeView`.
"""

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from lamina.model.node import Node
from lamina.model.selectors import IN, NAME_FIELD, NodeSelector, Requirement
from lamina.rows.growable import grown

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
NodeRequirement = tuple[tuple[tuple[str, str], ...], NodeSelector | None]
"""A pod's node selector and its required node affinity; both must match."""

MISSING: Final = 0
"""Number of a row without the label or without a node. Not a domain; 0, so that numbers can index counts."""
EMPTY: Final = 1
"""Number of the domain with an empty label value. Fixed, because upstream reads a missing label as empty."""

# Maximum number of topologies and of selections; a cluster has a handful of each.
MOST: Final = 64
# Unused numbers tolerated before renumbering, in addition to one per row.
SPARE: Final = 1024

T = TypeVar("T")
NO_ROWS: Final = np.zeros(0, dtype=np.intp)


class Domains:
    """The domain of every row, for one label."""

    __slots__ = ("_by_number", "_order", "key", "labelled", "numbers", "of_row")

    def __init__(self, key: str, nodes: Sequence[Node | None]) -> None:
        """Number the values of *nodes*."""
        self.key = key
        self.numbers: dict[str, int] = {"": EMPTY}
        self.of_row: Ints = np.array([self._number(node) for node in nodes], dtype=np.int64)
        self.labelled = int(np.count_nonzero(self.of_row))
        """Number of nodes with the label."""
        self._order: npt.NDArray[np.intp] | None = None
        self._by_number: Ints = self.of_row

    def put(self, row: int, node: Node | None) -> None:
        """Set the node of a row."""
        self.of_row = grown(self.of_row, row + 1, MISSING)
        number = self._number(node)
        self.labelled += (number != MISSING) - (self.of_row.item(row) != MISSING)
        self.of_row[row] = number
        self._order = None

    def rows_with(self, value: str) -> npt.NDArray[np.intp]:
        """Return the rows whose label has a value, in row order; read-only."""
        number = self.numbers.get(value)
        if number is None:
            return NO_ROWS
        if self._order is None:
            # Sorted once for all values; volumes of single nodes look up thousands of them.
            self._order = np.argsort(self.of_row, kind="stable")
            self._by_number = self.of_row[self._order]
        first, last = np.searchsorted(self._by_number, [number, number + 1])
        return self._order[first:last]

    def meeting(self, requirement: Requirement) -> Bools:
        """Return which rows meet a requirement on this label; it is checked once for each value."""
        met = np.zeros(len(self.numbers) + 1, dtype=np.bool_)
        met[MISSING] = requirement.matches({})
        for value, number in self.numbers.items():
            met[number] = requirement.matches({self.key: value})
        return met.take(self.of_row)

    def _number(self, node: Node | None) -> int:
        value = None if node is None else node.labels.get(self.key)
        return MISSING if value is None else self.numbers.setdefault(value, len(self.numbers) + 1)


class SelectedNodes:
    """Rows that a node selector and affinity match."""

    __slots__ = ("_wanted", "rows")

    def __init__(self, wanted: NodeRequirement, nodes: Sequence[Node | None], by_name: Mapping[str, int]) -> None:
        """Match every node, or only the named ones if the affinity names nodes."""
        self._wanted = wanted
        names = named_nodes(wanted[1])
        if names is None:
            self.rows: Bools = np.array([self._matches(node) for node in nodes], dtype=np.bool_)
            return
        self.rows = np.zeros(len(nodes), dtype=np.bool_)
        for row in (by_name[name] for name in names if name in by_name):
            self.rows[row] = self._matches(nodes[row])

    def put(self, row: int, node: Node | None) -> None:
        """Set the node of a row."""
        self.rows = grown(self.rows, row + 1)
        self.rows[row] = self._matches(node)

    def _matches(self, node: Node | None) -> bool:
        return node is not None and selects(self._wanted, node)


class Topology:
    """Recently requested domains and selections."""

    __slots__ = ("_by_name", "_domains", "_nodes", "_selections")

    def __init__(self, nodes: Sequence[Node | None], by_name: Mapping[str, int]) -> None:
        """Read *nodes* (by row) and *by_name* (row by node name). The caller that changes them must call `put`."""
        self._nodes = nodes
        self._by_name = by_name
        self._domains: dict[str, Domains] = {}
        self._selections: dict[NodeRequirement, SelectedNodes] = {}

    def put(self, row: int, node: Node | None) -> None:
        """Update a row with a new or relabelled node; None if it was removed."""
        for domains in self._domains.values():
            domains.put(row, node)
        for selection in self._selections.values():
            selection.put(row, node)

    def domains(self, key: str) -> Domains:
        """Return the domains of one label."""
        known = self._domains.pop(key, None)
        if known is None or len(known.numbers) > 2 * len(self._nodes) + SPARE:
            _make_room(self._domains)
            known = Domains(key, self._nodes)
        self._domains[key] = known
        return known

    def selected(self, wanted: NodeRequirement) -> Bools:
        """Return which rows a pod's node selector and affinity match; read-only."""
        known = self._selections.pop(wanted, None)
        if known is None:
            _make_room(self._selections)
            known = SelectedNodes(wanted, self._nodes, self._by_name)
        self._selections[wanted] = known
        return known.rows


def selects(wanted: NodeRequirement, node: Node) -> bool:
    """Return whether a node selector and affinity match a node."""
    labels, affinity = wanted
    return all(node.labels.get(key) == value for key, value in labels) and (
        affinity is None or affinity.matches(node.labels, node.name)
    )


def named_nodes(affinity: NodeSelector | None) -> frozenset[str] | None:
    """
    Return the node names that an affinity requires, or None if it can match other nodes.

    Terms are alternatives; all fields of a term must match. Pods of DaemonSets have such an affinity.
    """
    if affinity is None or not affinity.terms:
        return None
    named: set[str] = set()
    for term in affinity.terms:
        sets = [set(one.values) for one in term.fields if one.key == NAME_FIELD and one.operator == IN]
        if not sets:
            return None
        named |= set.intersection(*sets)
    return frozenset(named)


def _make_room(kept: dict[T, Domains] | dict[T, SelectedNodes]) -> None:
    if len(kept) >= MOST:
        kept.pop(next(iter(kept)))
