"""
Nodes as arrays: one row per node, one column per property that plugins read.

Only the pod cache writes; plugins read through `NodeView`. A row belongs to a node until the node is removed, and is
then reused for another node; readers check `alive`. Every write is recorded in the facet's `RowJournal`, so that a
returning reader evaluates only the changed rows.

Amounts are exact int64 values. `free` is stored beside `allocatable` (requested = allocatable - free), because every
filter compares with it. Well-known resources have a line each; all others are in `scalar_resources`, because their
number is not bounded. Percentages for scoring are stored beside the amounts, because a division per node and pod would
dominate the cost.
"""

from collections.abc import Callable
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from lamina.model.errors import WiringError
from lamina.model.node import Node
from lamina.model.pod import Pod, PodTerm
from lamina.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Amounts
from lamina.rows.growable import grown
from lamina.rows.row_journal import RowJournal
from lamina.scheduling.state import scalar_resources
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.image_names import ImageNames
from lamina.scheduling.state.namespace_labels import NamespaceLabels
from lamina.scheduling.state.node_annotations import NodeAnnotations
from lamina.scheduling.state.node_facts import F, FactHandle, NodeFact
from lamina.scheduling.state.placed_terms import (
    REQUIRED,
    PlacedTermIndex,
    TermKey,
    required_anti_affinity,
    scoring_terms,
)
from lamina.scheduling.state.pod_counts import PodCounts
from lamina.scheduling.state.scalar_resources import ScalarResources
from lamina.scheduling.state.taint_sets import Taints, TaintSets
from lamina.scheduling.state.term_counts import PodSet, TermCounts
from lamina.scheduling.state.topology import Topology

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

FIRST_ROWS: Final = 64
WELL_KNOWN: Final = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS)
LARGEST: Final = scalar_resources.LARGEST
"""Larger amounts are capped to this value."""
LINES: Final = {name: line for line, name in enumerate(WELL_KNOWN)}
"""The line of each well-known resource in `allocatable` and `free`."""
# Scores round percentages of cpu and memory down. `headroom` and `unit` hold them as floats, and
# headroom - amount · unit is within 6e-14 of the true value: three roundings of numbers up to 100. A true value that is
# not an integer is at least 1/capacity away from the next integer, 2.2e-13 below this capacity. `NUDGE` lies between
# the two: a value plus NUDGE rounds down to exactly the result of integer arithmetic.
EXACT_BELOW: Final = 2**42
NUDGE: Final = 1e-13
PERCENT: Final = 100.0
NONE: Final[Ints] = np.zeros(2, dtype=np.int64)
# Maximum entries of the memo; pods of a cluster have few distinct sets of requests. It is cleared when full.
MEMO: Final = 4096
WIDE: Final = 32
"""Requests for more resources than this are not memoized: they are large and seldom repeat."""

Taken = tuple[Ints, Amounts]
"""A pod's requests: one number per well-known resource, and the other amounts."""


class ColumnsSnapshot(msgspec.Struct, frozen=True):
    """Assignment of rows to nodes. Usage is not included; it is restored with the pods."""

    nodes: tuple[Node | None, ...]
    """By row; None for a free row."""
    spare: tuple[int, ...]
    """Free rows; the last one is assigned first."""
    image_sizes: dict[str, int]
    """Size in bytes of each image name in node statuses: that of the first node that listed it."""
    rules: tuple[PodTerm, ...]
    """Required anti-affinity of placed pods, oldest first."""
    namespaces: dict[str, dict[str, str]]
    """Labels by namespace."""
    scoring_terms: tuple[TermKey, ...] = ()
    """Other affinity terms of placed pods with their weights, oldest first."""


class NodeColumns:
    """Columns over all nodes; rows are assigned in the order in which nodes arrive."""

    def __init__(self) -> None:  # noqa: PLR0915 - an attribute each
        """Start without nodes."""
        self.size = 0
        """Number of rows, including free ones in between; columns are valid up to here."""
        self.count = 0
        """Number of nodes."""
        self.structure = 0
        """Increases when rows are added; arrays derived from the columns are then outdated."""
        self.capacity = 0
        """Increases when a node's allocatable resources change, or whether it accepts pods."""
        self.naming = 0
        """Increases when a node joins or leaves."""
        self.rows: dict[str, int] = {}
        self.nodes: list[Node | None] = []
        self.images = ImageNames()
        self.pods = PodCounts()
        self.namespaces = NamespaceLabels()
        self.anti_affinity = PlacedTermIndex(self.namespaces, required_anti_affinity)
        """Required anti-affinity terms of placed pods."""
        self.scoring_terms = PlacedTermIndex(self.namespaces, scoring_terms)
        """All other affinity terms of placed pods."""
        self.term_counts = TermCounts(self.pods, self.namespaces)
        self.topology = Topology(self.nodes, self.rows)
        self.annotations = NodeAnnotations(self.nodes)
        self.logs: list[RowJournal] = [RowJournal() for _ in range(max(Facet) + 1)]
        """By facet; journals of registered facts follow those of `Facet`."""
        self._facts: list[tuple[NodeFact, RowJournal]] = []
        self.fact_raised: Callable[[str, str, Exception], None] = _ignored
        """Called when a fact raises, with the fact's name, the method and the error."""
        self.scalars = ScalarResources()
        self.alive: Bools = np.zeros(FIRST_ROWS, dtype=np.bool_)
        self.unschedulable: Bools = np.zeros(FIRST_ROWS, dtype=np.bool_)
        self.allocatable: Ints = np.zeros((len(WELL_KNOWN), FIRST_ROWS), dtype=np.int64)
        self.free: Ints = np.zeros((len(WELL_KNOWN), FIRST_ROWS), dtype=np.int64)
        self.ranked: Ints = np.zeros((2, FIRST_ROWS), dtype=np.int64)
        """Requested cpu and memory as counted for scoring (lines 0 and 1)."""
        self.limited: Ints = np.zeros((2, FIRST_ROWS), dtype=np.int64)
        """Limits of cpu and memory summed over pods (lines 0 and 1)."""
        self.headroom: Floats = np.zeros((2, FIRST_ROWS))
        """Percentage of cpu and memory not requested, as counted for scoring; negative if overcommitted."""
        self.unit: Floats = np.zeros((2, FIRST_ROWS))
        """Percentage of the node that one unit of cpu or memory makes up."""
        self.taint_set: Ints = np.zeros(FIRST_ROWS, dtype=np.int64)
        self.taints = TaintSets()
        self.cordoned = 0
        """Number of unschedulable nodes."""
        self.odd: set[int] = set()
        """Rows without cpu or memory, or with too much for exact float division (see `EXACT_BELOW`)."""
        self._spare: list[int] = []
        self._taken: dict[Amounts, Taken] = {}

    @property
    def taint_sets(self) -> list[Taints]:
        """Distinct taint sets by the numbers in `taint_set`; an unused number maps to the empty set."""
        return self.taints.sets

    def register(self, fact: F) -> FactHandle[F]:
        """
        Maintain a fact under a facet of its own; return the known fact if one of that name is registered already.

        Call it before the first node is added: earlier nodes and pods are not replayed.
        """
        for facet, (known, _) in enumerate(self._facts, max(Facet) + 1):
            if known.name == fact.name:
                if not isinstance(known, type(fact)) or type(known) is not type(fact):
                    raise WiringError(f"two different node facts are called {fact.name!r}; rename one of them")
                return FactHandle(known, facet)
        if self.nodes:
            raise WiringError(f"node fact {fact.name!r} is registered too late: register it when the plugin is made")
        self.logs.append(RowJournal())
        self._facts.append((fact, self.logs[-1]))
        return FactHandle(fact, len(self.logs) - 1)

    def same_to_facts(self, before: Pod, pod: Pod) -> bool:
        """Return whether every registered fact counts both versions of a pod the same way."""
        return all(self._counted(fact, before) == self._counted(fact, pod) for fact, _ in self._facts)

    def _counted(self, fact: NodeFact, pod: Pod) -> object:
        try:
            return fact.counts(pod)
        except Exception as error:  # noqa: BLE001 - a plugin's fact that raises must not leave a pod half counted
            self.fact_raised(fact.name, "counts", error)
            return None

    def _change_fact(self, point: str, row: int, what: Node | Pod | None) -> None:
        """
        Call a method of every fact.

        If one raises, its row is journaled as changed and the other facts are still called.
        """
        for fact, log in self._facts:
            try:
                if point != "put" and not fact.counts(what):  # type: ignore[arg-type]  # pods are added and removed
                    continue
                changed = getattr(fact, point)(row, what)
            except Exception as error:  # noqa: BLE001 - as above
                self.fact_raised(fact.name, point, error)
                changed = True
            if changed:
                log.touch(row)

    def put(self, node: Node) -> int:
        """Add or update a node; return its row. Usage by pods is kept."""
        row = self.rows.get(node.name)
        if row is None:
            return self._add(node)
        before = self.nodes[row]
        assert before is not None, "a named row is alive"
        self.nodes[row] = node
        if node.allocatable != before.allocatable:
            self._allocate(row, node)
            self.touch(Facet.RESOURCES, row)
        if node.taints != before.taints or node.unschedulable != before.unschedulable:
            self._taint(row, node)
            self.touch(Facet.TAINTS, row)
        if node.labels != before.labels:
            self.topology.put(row, node)
            self.touch(Facet.LABELS, row)
        if node.annotations != before.annotations:
            self.annotations.put(row, node.annotations)
            self.touch(Facet.ANNOTATIONS, row)
        if node.images != before.images and self.images.replace(row, node.images):
            self.touch(Facet.IMAGES, row)
        self._change_fact("put", row, node)
        return row

    def _add(self, node: Node) -> int:
        if self._spare:
            row = self._spare.pop()
            self.nodes[row] = node
        else:
            row = self.size
            if row == len(self.alive):
                self._grow(row + 1)
            self.size += 1
            self.structure += 1
            self.nodes.append(node)
        self.rows[node.name] = row
        self.naming += 1
        self.count += 1
        self.alive[row] = True
        self._allocate(row, node)
        self._taint(row, node, new=True)
        self.images.replace(row, node.images)
        self.topology.put(row, node)
        self.annotations.put(row, node.annotations)
        self._change_fact("put", row, node)
        self._touch_all(row)
        return row

    def remove(self, name: str) -> int:
        """Remove a node; return its former row. The caller must `vacate` its pods first."""
        row = self.rows.pop(name)
        self.naming += 1
        self.count -= 1
        self.capacity += 1
        self.nodes[row] = None
        self.alive[row] = False
        self.cordoned -= int(self.unschedulable[row])
        self.odd.discard(row)
        self.unschedulable[row] = False
        taints = self.taint_set.item(row)
        self.taint_set[row] = 0
        self._let_taints_go(taints)
        self.allocatable[:, row] = 0
        self.free[:, row] = 0
        self.ranked[:, row] = 0
        self.limited[:, row] = 0
        self.headroom[:, row] = 0
        self.unit[:, row] = 0
        self.scalars.forget(row)
        self.images.replace(row, ())
        self.topology.put(row, None)
        self.annotations.put(row, {})
        self._change_fact("put", row, None)
        self._spare.append(row)
        self._touch_all(row)
        return row

    def use(self, row: int, pod: Pod) -> None:
        """Count a pod on a node."""
        taken, others = self.taken(pod.requests)
        self.free[:, row] -= taken
        if others:
            self.scalars.use(row, others, 1)
        self._rank(row, self.taken(pod.scoring_requests)[0], 1)
        # Without limits, requests count as limits. Reusing *taken* avoids hashing the requests again.
        self.limited[:, row] += (self.taken(pod.limits)[0] if pod.limits else taken)[:2]
        self._settle(row, pod)
        self.logs[Facet.RESOURCES].touch(row)
        self.logs[Facet.PODS].touch(row)

    def release(self, row: int, pod: Pod) -> None:
        """Stop counting a pod on a node; *pod* must be as it was counted."""
        taken, others = self.taken(pod.requests)
        self.free[:, row] += taken
        if others:
            self.scalars.use(row, others, -1)
        self._rank(row, self.taken(pod.scoring_requests)[0], -1)
        # Without limits, requests count as limits. Reusing *taken* avoids hashing the requests again.
        self.limited[:, row] -= (self.taken(pod.limits)[0] if pod.limits else taken)[:2]
        self.vacate(row, pod)
        self.logs[Facet.RESOURCES].touch(row)
        self.logs[Facet.PODS].touch(row)

    def recount(self, row: int, before: Pod, pod: Pod) -> None:
        """Replace a pod on a node by its new version with the same requests."""
        self.vacate(row, before)
        self._settle(row, pod)
        self.logs[Facet.PODS].touch(row)

    def vacate(self, row: int, pod: Pod) -> None:
        """Remove a pod from counts, facts and affinity terms but keep its requests."""
        changed = self.pods.remove(row, pod)
        if self._facts:
            self._change_fact("remove", row, pod)
        if pod.has_pod_terms:
            self.anti_affinity.remove(row, pod)
            self.scoring_terms.remove(row, pod)
            changed = True
        if changed:
            self.logs[Facet.POD_AFFINITY].touch(row)

    def _settle(self, row: int, pod: Pod) -> None:
        changed = self.pods.add(row, pod)
        if self._facts:
            self._change_fact("add", row, pod)
        if pod.has_pod_terms:
            self.anti_affinity.add(row, pod)
            self.scoring_terms.add(row, pod)
            changed = True
        if changed:
            self.logs[Facet.POD_AFFINITY].touch(row)

    def matched(self, terms: PodSet) -> Ints:
        """Return the number of pods on each row that match all terms of a set; read-only."""
        dropped = self.term_counts.dropped
        counter = self.term_counts.counter(terms, self.size)
        if self.term_counts.dropped != dropped:
            # Later changes of a dropped counter are not journaled, so results that used it are outdated now.
            self.touch(Facet.POD_AFFINITY, 0)
        return counter.first(self.size)

    def label_namespace(self, namespace: str, labels: dict[str, str] | None) -> bool:
        """Set the labels of a namespace (None if it is gone); return whether terms can mean other pods now."""
        names = self.namespaces
        if not (names.forget(namespace) if labels is None else names.put(namespace, labels)):
            return False
        self.term_counts.drop_selected()
        self.touch(Facet.POD_AFFINITY, 0)
        return True

    def _rank(self, row: int, amounts: Ints, times: int) -> None:
        """
        Add *times* · *amounts* to the requests for scoring.

        Headroom is recomputed from integers, so it does not drift.
        """
        # Scalars, because numpy is slower for arrays of two.
        for line in (0, 1):
            in_use = self.ranked.item(line, row) + times * amounts.item(line)
            self.ranked[line, row] = in_use
            capacity = self.allocatable.item(line, row)
            self.headroom[line, row] = (capacity - in_use) * 100 / capacity if capacity > 0 else 0.0

    def taken(self, requests: Amounts) -> Taken:
        """Return a pod's request of each well-known resource ("pods" is 1), and its other requests."""
        known = self._taken.get(requests)
        if known is None:
            amounts = np.zeros(len(WELL_KNOWN), dtype=np.int64)
            for name, amount in requests:
                line = LINES.get(name)
                if line is not None:
                    amounts[line] = min(amount, LARGEST)
            amounts[LINES[PODS]] = 1
            known = (amounts, tuple(one for one in requests if one[0] not in LINES and one[1]))
            if len(requests) > WIDE:
                return known
            if len(self._taken) >= MEMO:
                self._taken.clear()
            self._taken[requests] = known
        return known

    def amounts_on(self, row: int, resource: str) -> tuple[int, int]:
        """Return allocatable and free amounts of a resource for one row."""
        line = LINES.get(resource)
        if line is None:
            return self.scalars.on(row, resource)
        return self.allocatable.item(line, row), self.free.item(line, row)

    def snapshot(self) -> ColumnsSnapshot:
        """Return the assignment of rows to nodes as data."""
        return ColumnsSnapshot(
            tuple(self.nodes),
            tuple(self._spare),
            self.images.sizes(),
            tuple(term for term, _ in self.anti_affinity.snapshot()),
            self.namespaces.snapshot(),
            self.scoring_terms.snapshot(),
        )

    def restore(self, snapshot: ColumnsSnapshot) -> None:
        """Assign rows as in the snapshot, into empty columns; pods are added afterwards."""
        for row, node in enumerate(snapshot.nodes):
            self.put(Node(name=f"free row {row}") if node is None else node)
        for row in snapshot.spare:
            self.remove(f"free row {row}")
        self.images.restore(snapshot.image_sizes)
        self.namespaces.restore(snapshot.namespaces)
        self.anti_affinity.restore((term, REQUIRED) for term in snapshot.rules)
        self.scoring_terms.restore(snapshot.scoring_terms)

    def touch(self, facet: int, row: int) -> None:
        """Record in the facet's journal that a row changed."""
        self.logs[facet].touch(row)

    def _touch_all(self, row: int) -> None:
        for log in self.logs:
            log.touch(row)

    def _allocate(self, row: int, node: Node) -> None:
        self.capacity += 1
        amounts = dict(node.allocatable)
        used = self.allocatable[:, row] - self.free[:, row]
        for name, line in LINES.items():
            self.allocatable[line, row] = min(amounts.pop(name, 0), LARGEST)
        self.free[:, row] = self.allocatable[:, row] - used
        self.scalars.put(row, amounts.items())
        both = self.allocatable[:2, row].tolist()
        if all(0 < one < EXACT_BELOW for one in both):
            self.odd.discard(row)
        else:
            self.odd.add(row)
        self.unit[:, row] = [PERCENT / one if one > 0 else 0.0 for one in both]
        self._rank(row, NONE, 0)

    def _taint(self, row: int, node: Node, *, new: bool = False) -> None:
        self.capacity += 1
        before = self.taint_set.item(row)
        self.taint_set[row] = self.taints.take(node.taints)
        if not new:
            self._let_taints_go(before)
        self.cordoned += int(node.unschedulable) - int(self.unschedulable[row])
        self.unschedulable[row] = node.unschedulable

    def _let_taints_go(self, number: int) -> None:
        self.taints.let_go(number)
        renumbered = self.taints.renumber()
        if renumbered is not None:
            self.taint_set[:] = renumbered.take(self.taint_set)

    def _grow(self, rows: int) -> None:
        self.alive = grown(self.alive, rows)
        self.unschedulable = grown(self.unschedulable, rows)
        self.taint_set = grown(self.taint_set, rows)
        self.allocatable = grown(self.allocatable, rows)
        self.free = grown(self.free, rows)
        self.ranked = grown(self.ranked, rows)
        self.limited = grown(self.limited, rows)
        self.headroom = grown(self.headroom, rows)
        self.unit = grown(self.unit, rows)


def _ignored(fact: str, method: str, error: Exception) -> None:
    """Ignore the error: only the loop can report it to the operator."""
