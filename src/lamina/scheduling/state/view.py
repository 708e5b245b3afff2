"""What a plugin sees of the nodes: all of them as arrays, some of them as arrays, or a single one."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from lamina.model.node import Node
from lamina.model.pod import Pod
from lamina.model.resources import CPU, MEMORY
from lamina.model.selectors import LabelSelector
from lamina.scheduling.state.anti_affinity import AntiAffinityIndex
from lamina.scheduling.state.columns import LINES, NUDGE, WELL_KNOWN, Bools, Floats, Ints, NodeColumns
from lamina.scheduling.state.image_names import ImageNames
from lamina.scheduling.state.node_facts import F, FactHandle, Placements
from lamina.scheduling.state.pod_counts import OwnerKey
from lamina.scheduling.state.taint_sets import Taints
from lamina.scheduling.state.topology import MISSING, NodeRequirement

# The lines of both in `ranked`, and in every other column.
RANKED = {CPU: 0, MEMORY: 1}


class NodeView:
    """
    Some rows of the columns, in row order; answers are arrays of that length.

    The view is valid during the call it is passed to: the arrays behind it change as pods are placed. Rows of nodes
    that have left may be among them; whatever a plugin answers for those is ignored.
    """

    __slots__ = ("_columns", "rows", "size")

    def __init__(self, columns: NodeColumns, rows: slice | npt.NDArray[np.intp], size: int) -> None:
        """Look at *rows* (of which there are *size*)."""
        self._columns = columns
        self.rows = rows
        self.size = size

    def __len__(self) -> int:
        """Count the rows in view."""
        return self.size

    @property
    def total(self) -> int:
        """How many nodes the whole cluster has, in view or not."""
        return self._columns.count

    @property
    def height(self) -> int:
        """How many rows the whole columns have: what an array that *rows* can index must be as long as."""
        return self._columns.size

    @property
    def whole(self) -> bool:
        """Whether this is every row, in order."""
        return isinstance(self.rows, slice) and self.size == self._columns.size

    @property
    def gone(self) -> Placements:
        """The pods that count as gone in this view, with their rows: none, unless it answers a what-if question."""
        return ()

    @property
    def there(self) -> Placements:
        """The pods that count as there in this view and are not, with their rows."""
        return ()

    @property
    def changed(self) -> Sequence[tuple[int, int]]:
        """The places in view, with their rows, on which such pods are."""
        return ()

    @property
    def alive(self) -> Bools:
        """Which rows belong to a node."""
        return self._columns.alive[self.rows]

    @property
    def any_unschedulable(self) -> bool:
        """Whether any node of the whole cluster is cordoned."""
        return self._columns.cordoned > 0

    @property
    def plain(self) -> bool:
        """Whether every node of the whole cluster has cpu and memory, and not more than `headroom_with` is exact for."""
        return not self._columns.odd

    @property
    def unschedulable(self) -> Bools:
        """Which nodes are cordoned."""
        return self._columns.unschedulable[self.rows]

    @property
    def taint_set(self) -> Ints:
        """Which of `taint_sets` each node has; see `judged`."""
        return self._columns.taint_set[self.rows]

    @property
    def taint_sets(self) -> list[Taints]:
        """Every distinct set of taints in the cluster, by number; a number no node has stands for the empty set."""
        return self._columns.taint_sets

    @property
    def any_taints(self) -> bool:
        """Whether any node of the whole cluster has a taint."""
        return self._columns.taints.used > 1

    def judged(self, judge: Callable[[Taints], int]) -> Ints:
        """Let *judge* say a number about each distinct set of taints in view, and return that of each node."""
        sets, numbers = self._columns.taints.sets, self.taint_set
        said = np.zeros(len(sets), dtype=np.int64)
        for number in set(numbers.tolist()) if self.size < len(sets) else range(len(sets)):
            said[number] = judge(sets[number])
        return said.take(numbers)

    @property
    def images(self) -> ImageNames:
        """Which nodes list which image names (row numbers of the whole cluster)."""
        return self._columns.images

    def allocatable(self, resource: str) -> Ints:
        """What each node can give of a resource; 0 where it has none."""
        line = LINES.get(resource)
        return self._scalars(resource)[0] if line is None else self._columns.allocatable[line, self.rows]

    def free(self, resource: str) -> Ints:
        """What is left of a resource on each node; negative on an overcommitted one."""
        line = LINES.get(resource)
        return self._scalars(resource)[1] if line is None else self._columns.free[line, self.rows]

    def offered(self, resource: str) -> bool:
        """Whether any node of the whole cluster can give a resource; without one, nothing of it is free anywhere."""
        return resource in LINES or self._columns.scalars.offers(resource)

    def ranked(self, resource: str) -> Ints:
        """Cpu or memory in use as rankings count it: containers that ask nothing count for something."""
        return self._columns.ranked[RANKED[resource], self.rows]

    def requested(self, resource: str) -> Ints:
        """What the pods on each node have asked for of a resource."""
        return self.allocatable(resource) - self.free(resource)

    def limited(self, resource: str) -> Ints:
        """What the pods on each node may use at most of cpu or memory; requests stand in for limits nobody set."""
        return self._columns.limited[RANKED[resource], self.rows]

    def annotations(self, key: str) -> list[str | None]:
        """What each node says under a key; None where it says nothing."""
        nodes = self._columns.nodes
        seen = nodes[self.rows] if isinstance(self.rows, slice) else [nodes[row] for row in self.rows]
        return [None if node is None else node.annotations.get(key) for node in seen]

    def floats(self, key: str) -> Floats:
        """What each node says under a key, as a number; NaN where it says nothing, or no finite number. Read only."""
        return self._columns.annotations.floats(key, self._columns.size)[self.rows]

    def headroom_with(self, resource: str, amount: int) -> Floats:
        """
        Return the percentage of cpu or memory that would be left with *amount* more in use, to be rounded down.

        Exact when rounded, where `plain` says so; negative where more would be counted than there is.
        """
        line = RANKED[resource]
        if not amount:
            return self._columns.headroom[line, self.rows] + NUDGE
        left = self._columns.unit[line, self.rows] * -float(amount)
        left += self._columns.headroom[line, self.rows]
        left += NUDGE
        return left

    def owned(self, key: OwnerKey) -> Ints:
        """How many pods of a controller (see `owner_key`) each node has, those being deleted not counted; read only."""
        return self._columns.pods.owned(key, self._columns.size)[self.rows]

    def owned_in_all(self, key: OwnerKey) -> int:
        """How many pods of a controller there are on all nodes of the cluster, in view or not."""
        return self._columns.pods.owned_in_all(key, self._columns.size)

    def matching(self, namespace: str, selector: LabelSelector) -> Ints:
        """How many pods of a namespace a selector matches on each node, as in `owned`; read only."""
        return self._columns.pods.matching(namespace, selector, self._columns.size)[self.rows]

    def domains(self, key: str) -> Ints:
        """The number of each node's domain, that is of its value of a label; 0 where the label is missing. Read only."""
        return self._columns.topology.domains(key).of_row[: self._columns.size][self.rows]

    def domain_count(self, key: str) -> int:
        """Return how many numbers `domains` uses for a label, 0 (missing) and 1 (an empty value) included."""
        return len(self._columns.topology.domains(key).numbers) + 1

    def labelled(self, key: str) -> int:
        """Return how many nodes of the whole cluster have a label, that is a domain."""
        return self._columns.topology.domains(key).labelled

    def selected(self, wanted: NodeRequirement) -> Bools:
        """Which nodes a pod's node selector and required affinity match; read only."""
        return self._columns.topology.selected(wanted)[: self._columns.size][self.rows]

    def fact(self, handle: FactHandle[F]) -> F:
        """Return a fact that a plugin registered, as it is for this view."""
        return handle.fact

    def rules(self) -> AntiAffinityIndex:
        """Return the rules of placed pods that keep others away."""
        return self._columns.repulsion

    def closed(self, pod: Pod) -> Bools | None:
        """Which nodes are in a domain that pods already placed keep *pod* away from; None: none of them mind it."""
        rules = self.rules().about(pod)
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
        """Say where the notes of what changed stand: what to ask `changed_since` with the next time."""
        return self._columns.logs[facet].position

    def changed_since(self, facet: int, noted: int) -> list[int] | None:
        """List the rows of the whole cluster that changed since, repeats included; None: too long ago to tell."""
        return self._columns.logs[facet].since(noted)

    def column(self, resource: str) -> int:
        """Return the place of a resource in `NodeRow.free_all`; -1 when it is not there (see `NodeRow.free`)."""
        return LINES.get(resource, -1)

    @property
    def resources(self) -> tuple[str, ...]:
        """The names of the well-known resources, then of all others that a node offers."""
        return WELL_KNOWN + self._columns.scalars.names

    def node(self, position: int) -> Node | None:
        """Return the node at a position of the view; None if it has left."""
        return self._columns.nodes[self.row(position)]

    def row(self, position: int) -> int:
        """Return the row number behind a position of the view."""
        if isinstance(self.rows, slice):
            return int(self.rows.start or 0) + position
        return int(self.rows[position])

    def position(self, name: str) -> int | None:
        """Find a node by name; None if it is not in view."""
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

    For plugins that also answer for a single node (`filter_node`, `score_node`): after one pod was placed one node has
    changed, and asking for that one costs a tenth of asking an array of length one.
    """

    __slots__ = ("_columns", "row")

    def __init__(self, columns: NodeColumns, row: int) -> None:
        """Look at *row*."""
        self._columns = columns
        self.row = row

    @property
    def node(self) -> Node | None:
        """The node; None if it has left."""
        return self._columns.nodes[self.row]

    @property
    def total(self) -> int:
        """How many nodes the whole cluster has."""
        return self._columns.count

    @property
    def images(self) -> ImageNames:
        """Which nodes list which image names."""
        return self._columns.images

    def annotation(self, key: str) -> str | None:
        """What the node says under a key."""
        node = self.node
        return None if node is None else node.annotations.get(key)

    def fact(self, handle: FactHandle[F]) -> F:
        """Return a fact that a plugin registered, as it is for this node."""
        return handle.fact

    def free_all(self) -> list[int]:
        """What is left of the well-known resources; `NodeView.column` tells which is where."""
        left: list[int] = self._columns.free[:, self.row].tolist()
        return left

    def ranked(self, resource: str) -> int:
        """Cpu or memory in use as rankings count it."""
        return self._columns.ranked.item(RANKED[resource], self.row)

    def capacity_and_ranked(self, resource: str) -> tuple[int, int]:
        """What the node can give of cpu or memory, and what is in use of that as rankings count it."""
        line = RANKED[resource]
        return self._columns.allocatable.item(line, self.row), self._columns.ranked.item(line, self.row)

    def capacity_and_free(self, resource: str) -> tuple[int, int]:
        """What the node can give of a resource, and what is left of that."""
        return self._columns.amounts_on(self.row, resource)

    def allocatable(self, resource: str) -> int:
        """What the node can give of a resource."""
        return self._columns.amounts_on(self.row, resource)[0]

    def free(self, resource: str) -> int:
        """What is left of a resource."""
        return self._columns.amounts_on(self.row, resource)[1]


def everything(columns: NodeColumns) -> NodeView:
    """Look at every row."""
    return NodeView(columns, slice(0, columns.size), columns.size)


def only(columns: NodeColumns, rows: list[int]) -> NodeView:
    """Look at some rows (in the order given, each once)."""
    if len(rows) == 1:
        return NodeView(columns, slice(rows[0], rows[0] + 1), 1)
    return NodeView(columns, np.array(rows, dtype=np.intp), len(rows))
