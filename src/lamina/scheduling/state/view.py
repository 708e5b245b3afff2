"""Read access to nodes for plugins: all or some of them as arrays, or a single one."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from lamina.model.node import Node
from lamina.model.pod import Pod
from lamina.model.resources import CPU, MEMORY
from lamina.model.selectors import LabelSelector, Requirement
from lamina.scheduling.state.columns import LINES, NUDGE, WELL_KNOWN, Bools, Floats, Ints, NodeColumns
from lamina.scheduling.state.image_names import ImageNames
from lamina.scheduling.state.node_facts import F, FactHandle, Placements
from lamina.scheduling.state.placed_terms import PlacedTermIndex
from lamina.scheduling.state.pod_counts import OwnerKey
from lamina.scheduling.state.taint_sets import Taints
from lamina.scheduling.state.term_counts import PodSet
from lamina.scheduling.state.topology import MISSING, NodeRequirement

# Lines of cpu and memory in `ranked` and in every other column.
RANKED = {CPU: 0, MEMORY: 1}


class NodeView:
    """
    Some rows of the columns, in row order; its arrays have that length.

    The view is valid only during the call it is passed to: the arrays change as pods are placed. It can contain rows of
    removed nodes; the runtime ignores a plugin's results for them.
    """

    __slots__ = ("_columns", "rows", "size")

    def __init__(self, columns: NodeColumns, rows: slice | npt.NDArray[np.intp], size: int) -> None:
        """Select *rows*; *size* is their number."""
        self._columns = columns
        self.rows = rows
        self.size = size

    def __len__(self) -> int:
        """Return the number of rows in view."""
        return self.size

    @property
    def total(self) -> int:
        """Number of nodes in the cluster, in view or not."""
        return self._columns.count

    @property
    def height(self) -> int:
        """Number of rows in the columns, and so the length of an array that `rows` can index."""
        return self._columns.size

    @property
    def whole(self) -> bool:
        """Whether the view contains every row, in order."""
        return isinstance(self.rows, slice) and self.size == self._columns.size

    @property
    def gone(self) -> Placements:
        """Pods that the view assumes gone, with their rows; empty except in a hypothetical view."""
        return ()

    @property
    def there(self) -> Placements:
        """Pods that the view assumes present in addition, with their rows; empty except in a hypothetical view."""
        return ()

    @property
    def changed(self) -> Sequence[tuple[int, int]]:
        """Positions in view, with their rows, that have such pods."""
        return ()

    @property
    def alive(self) -> Bools:
        """Which rows have a node."""
        return self._columns.alive[self.rows]

    @property
    def any_unschedulable(self) -> bool:
        """Whether any node of the cluster is cordoned."""
        return self._columns.cordoned > 0

    @property
    def plain(self) -> bool:
        """Whether all nodes of the cluster have cpu and memory in the range where `headroom_with` is exact."""
        return not self._columns.odd

    @property
    def unschedulable(self) -> Bools:
        """Which nodes are cordoned."""
        return self._columns.unschedulable[self.rows]

    @property
    def taint_set(self) -> Ints:
        """Number of each node's set in `taint_sets`; see `judged`."""
        return self._columns.taint_set[self.rows]

    @property
    def taint_sets(self) -> list[Taints]:
        """All distinct taint sets in the cluster, by number; an unused number maps to the empty set."""
        return self._columns.taint_sets

    @property
    def any_taints(self) -> bool:
        """Whether any node of the cluster has a taint."""
        return self._columns.taints.used > 1

    def judged(self, judge: Callable[[Taints], int]) -> Ints:
        """Call *judge* once for each distinct taint set in view; return its result for each node."""
        sets, numbers = self._columns.taints.sets, self.taint_set
        said = np.zeros(len(sets), dtype=np.int64)
        for number in set(numbers.tolist()) if self.size < len(sets) else range(len(sets)):
            said[number] = judge(sets[number])
        return said.take(numbers)

    @property
    def images(self) -> ImageNames:
        """Image names listed in node statuses (row numbers of the whole cluster)."""
        return self._columns.images

    def allocatable(self, resource: str) -> Ints:
        """Return the allocatable amount of a resource on each node; 0 where the node has none."""
        line = LINES.get(resource)
        return self._scalars(resource)[0] if line is None else self._columns.allocatable[line, self.rows]

    def free(self, resource: str) -> Ints:
        """Return the free amount of a resource on each node; negative if overcommitted."""
        line = LINES.get(resource)
        return self._scalars(resource)[1] if line is None else self._columns.free[line, self.rows]

    def offered(self, resource: str) -> bool:
        """Return whether any node of the cluster offers a resource."""
        return resource in LINES or self._columns.scalars.offers(resource)

    def ranked(self, resource: str) -> Ints:
        """Return the requested cpu or memory as counted for scoring, with defaults for containers without requests."""
        return self._columns.ranked[RANKED[resource], self.rows]

    def requested(self, resource: str) -> Ints:
        """Return the requested amount of a resource on each node."""
        return self.allocatable(resource) - self.free(resource)

    def limited(self, resource: str) -> Ints:
        """Return the sum of cpu or memory limits on each node; requests replace missing limits."""
        return self._columns.limited[RANKED[resource], self.rows]

    def annotations(self, key: str) -> list[str | None]:
        """Return the value of an annotation on each node; None where it is missing."""
        nodes = self._columns.nodes
        seen = nodes[self.rows] if isinstance(self.rows, slice) else [nodes[row] for row in self.rows]
        return [None if node is None else node.annotations.get(key) for node in seen]

    def floats(self, key: str) -> Floats:
        """Return an annotation of each node as a number; NaN where it is missing or not finite. Read-only."""
        return self._columns.annotations.floats(key, self._columns.size)[self.rows]

    def headroom_with(self, resource: str, amount: int) -> Floats:
        """
        Return the percentage of cpu or memory that would be free with *amount* more requested; round it down.

        Rounded down, it is exact for nodes where `plain` is true; negative if overcommitted.
        """
        line = RANKED[resource]
        if not amount:
            return self._columns.headroom[line, self.rows] + NUDGE
        left = self._columns.unit[line, self.rows] * -float(amount)
        left += self._columns.headroom[line, self.rows]
        left += NUDGE
        return left

    def owned(self, key: OwnerKey) -> Ints:
        """Return each node's number of pods of a controller (see `owner_key`) that are not being deleted; read-only."""
        return self._columns.pods.owned(key, self._columns.size)[self.rows]

    def owned_in_all(self, key: OwnerKey) -> int:
        """Return the number of pods of a controller on all nodes of the cluster, in view or not."""
        return self._columns.pods.owned_in_all(key, self._columns.size)

    def matching(self, namespace: str, selector: LabelSelector) -> Ints:
        """Return each node's number of pods in a namespace that a selector matches, as in `owned`; read-only."""
        return self._columns.pods.matching(namespace, selector, self._columns.size)[self.rows]

    def matched(self, terms: PodSet) -> Ints:
        """Return each node's number of pods that match all terms of a set, deleted ones included; read-only."""
        return self._columns.matched(terms)[self.rows]

    def domains(self, key: str) -> Ints:
        """
        Number of each node's domain, that is, of its value of label *key*; 0 where the label is missing.

        Read-only.
        """
        return self._columns.topology.domains(key).of_row[: self._columns.size][self.rows]

    def domain_count(self, key: str) -> int:
        """Return how many numbers `domains` uses for a label, including 0 (missing) and 1 (empty value)."""
        return len(self._columns.topology.domains(key).numbers) + 1

    def labelled(self, key: str) -> int:
        """Return how many nodes of the cluster have a label."""
        return self._columns.topology.domains(key).labelled

    def rows_with(self, key: str, value: str) -> npt.NDArray[np.intp]:
        """Return the rows of the cluster, in view or not, whose label *key* has a value; read-only."""
        return self._columns.topology.domains(key).rows_with(value)

    def meeting(self, requirement: Requirement) -> Bools:
        """Return which nodes meet a requirement on a label."""
        return self._columns.topology.domains(requirement.key).meeting(requirement)[: self._columns.size][self.rows]

    def selected(self, wanted: NodeRequirement) -> Bools:
        """Return which nodes a pod's node selector and required affinity match; read-only."""
        return self._columns.topology.selected(wanted)[: self._columns.size][self.rows]

    def fact(self, handle: FactHandle[F]) -> F:
        """Return a registered fact for this view."""
        return handle.fact

    def anti_affinity(self) -> PlacedTermIndex:
        """Return the required anti-affinity terms of placed pods."""
        return self._columns.anti_affinity

    def scoring_terms(self) -> PlacedTermIndex:
        """Return the other affinity terms of placed pods, which score nodes for other pods."""
        return self._columns.scoring_terms

    def closed(self, pod: Pod) -> Bools | None:
        """Return which nodes are in a domain that placed pods' anti-affinity closes for *pod*; None if no term does."""
        rules = self.anti_affinity().about(pod)
        if not rules:
            return None
        flags = np.zeros(self.size, dtype=np.bool_)
        for rule in rules:
            of_row = self._columns.topology.domains(rule.term.topology_key).of_row
            held = np.zeros(self.domain_count(rule.term.topology_key), dtype=np.bool_)
            held[of_row[list(rule.rows)]] = True
            held[MISSING] = False
            flags |= held.take(of_row[: self._columns.size][self.rows])
        return flags

    def noted(self, facet: int) -> int:
        """Return the current position of a facet's journal, to pass to `changed_since` later."""
        return self._columns.logs[facet].position

    def changed_since(self, facet: int, noted: int) -> list[int] | None:
        """List rows of the cluster that changed since a position, with repeats; None if the journal is too short."""
        return self._columns.logs[facet].since(noted)

    def column(self, resource: str) -> int:
        """Return the index of a resource in `NodeRow.free_all`, or -1 if it is not there (see `NodeRow.free`)."""
        return LINES.get(resource, -1)

    @property
    def resources(self) -> tuple[str, ...]:
        """Names of the well-known resources, then of all others that a node offers."""
        return WELL_KNOWN + self._columns.scalars.names

    def node(self, position: int) -> Node | None:
        """Return the node at a position of the view; None if it was removed."""
        return self._columns.nodes[self.row(position)]

    def row(self, position: int) -> int:
        """Return the row number behind a position of the view."""
        if isinstance(self.rows, slice):
            return int(self.rows.start or 0) + position
        return int(self.rows[position])

    def position(self, name: str) -> int | None:
        """Return the position of a node in view; None if it is not in view."""
        row = self._columns.rows.get(name)
        if row is None:
            return None
        if isinstance(self.rows, slice):
            place = row - int(self.rows.start or 0)
            return place if 0 <= place < self.size else None
        found = np.flatnonzero(self.rows == row)
        return int(found[0]) if len(found) else None

    def _scalars(self, resource: str) -> Ints:
        return self._columns.scalars.arrays(resource, self._columns.size)[:, self.rows]


class NodeRow:
    """
    One node, in plain integers.

    For plugins that implement `filter_node` or `score_node`: placing a pod changes a single node, and evaluating it
    this way costs a tenth of evaluating an array of length one.
    """

    __slots__ = ("_columns", "row")

    def __init__(self, columns: NodeColumns, row: int) -> None:
        """Read *row*."""
        self._columns = columns
        self.row = row

    @property
    def node(self) -> Node | None:
        """The node; None if it was removed."""
        return self._columns.nodes[self.row]

    @property
    def total(self) -> int:
        """Number of nodes in the cluster."""
        return self._columns.count

    @property
    def images(self) -> ImageNames:
        """Image names listed in node statuses."""
        return self._columns.images

    def annotation(self, key: str) -> str | None:
        """Return the value of an annotation; None if it is missing."""
        node = self.node
        return None if node is None else node.annotations.get(key)

    def fact(self, handle: FactHandle[F]) -> F:
        """Return a registered fact for this node."""
        return handle.fact

    def free_all(self) -> list[int]:
        """Return the free amounts of the well-known resources, in the order of `NodeView.column`."""
        left: list[int] = self._columns.free[:, self.row].tolist()
        return left

    def ranked(self, resource: str) -> int:
        """Return the requested cpu or memory as counted for scoring."""
        return self._columns.ranked.item(RANKED[resource], self.row)

    def capacity_and_ranked(self, resource: str) -> tuple[int, int]:
        """Return the allocatable cpu or memory, and the requested amount as counted for scoring."""
        line = RANKED[resource]
        return self._columns.allocatable.item(line, self.row), self._columns.ranked.item(line, self.row)

    def capacity_and_free(self, resource: str) -> tuple[int, int]:
        """Return the allocatable and free amount of a resource."""
        return self._columns.amounts_on(self.row, resource)

    def allocatable(self, resource: str) -> int:
        """Return the allocatable amount of a resource."""
        return self._columns.amounts_on(self.row, resource)[0]

    def free(self, resource: str) -> int:
        """Return the free amount of a resource; negative if overcommitted."""
        return self._columns.amounts_on(self.row, resource)[1]


def everything(columns: NodeColumns) -> NodeView:
    """Return a view of every row."""
    return NodeView(columns, slice(0, columns.size), columns.size)


def only(columns: NodeColumns, rows: list[int]) -> NodeView:
    """Return a view of some rows, in the given order; each row once."""
    if len(rows) == 1:
        return NodeView(columns, slice(rows[0], rows[0] + 1), 1)
    return NodeView(columns, np.array(rows, dtype=np.intp), len(rows))
