"""
Cache of placed pods: which pods count on which node.

    unknown --assume--> assumed --confirm--> bound --remove--> gone
       ^                   |
       +------forget-------+

A pod counts on its node as soon as it is assumed. Data from the API server replaces assumptions: a pod seen on another
node is moved there. Pods can arrive before their node and outlive it; they count nowhere until the node (re)appears.
Only `ClusterState` writes to the cache. The cache never calls the API server; the next event corrects a wrong
assumption.
"""

import enum
from collections.abc import Iterable, Iterator

import msgspec

from lamina.model.node import Node
from lamina.model.pod import Pod, PodUid
from lamina.scheduling.state.cluster_usage import ClusterUsage
from lamina.scheduling.state.columns import NodeColumns
from lamina.scheduling.state.placed_pods import NOWHERE, PlacedPods


class PlacedPod(msgspec.Struct, eq=False):
    """A pod and the node on which it counts."""

    pod: Pod
    node: str
    assumed: bool
    slot: int = -1
    """Its slot in the arrays of placed pods, if there are any."""


class Confirmation(enum.Enum):
    """Effect of an API server update on a placed pod."""

    KNOWN = "known"
    """The update changed nothing."""
    FIRST = "first"
    """The update confirmed an assumed pod, whose binding could still fail until then."""
    CHANGED = "changed"
    """The pod is new, moved, or counts differently than before."""


class PodCache:
    """Placed pods by node; updates the columns with every change."""

    def __init__(self, columns: NodeColumns, usage: ClusterUsage) -> None:
        """Start empty. Only the cache writes to *columns*; it reports arriving and leaving pods to *usage*."""
        self.columns = columns
        self.usage = usage
        self._placed: dict[PodUid, PlacedPod] = {}
        self._on_node: dict[str, dict[PodUid, PlacedPod]] = {}
        self._arrays: PlacedPods | None = None
        usage.ask(self.on)

    def arrays(self) -> PlacedPods:
        """Return arrays of the placed pods; they are kept from the first call on."""
        if self._arrays is None:
            self._arrays = PlacedPods()
            for placed in self._placed.values():
                placed.slot = self._arrays.add(placed.pod, self.columns.rows.get(placed.node, NOWHERE))
        return self._arrays

    def __len__(self) -> int:
        """Return the number of pods with a node."""
        return len(self._placed)

    def __iter__(self) -> Iterator[PlacedPod]:
        """Iterate over the pods with a node, in the order they got it."""
        return iter(self._placed.values())

    def get(self, uid: PodUid) -> PlacedPod | None:
        """Return a pod's placement, bound or assumed; None if it has no node."""
        return self._placed.get(uid)

    def on(self, node: str) -> tuple[Pod, ...]:
        """List the pods on a node."""
        return tuple([placed.pod for placed in self._on_node.get(node, {}).values()])

    def assume(self, pod: Pod, node: str) -> None:
        """Count a pod on the node it is about to be bound to."""
        self._count(PlacedPod(pod, node, assumed=True))
        self.usage.came(node, pod)

    def forget(self, uid: PodUid) -> None:
        """Undo `assume`."""
        self.remove(uid)

    def confirm(self, pod: Pod, node: str) -> Confirmation:
        """Replace a pod's placement by the API server's version; return what changed."""
        known = self._placed.get(pod.uid)
        before = None if known is None else known.pod
        if known is None or known.node != node or _load(known.pod) != _load(pod):
            self._uncount(pod.uid)
            self._count(PlacedPod(pod, node, assumed=False))
            confirmed = Confirmation.CHANGED
        elif not (_same_to_counters(known.pod, pod) and self.columns.same_to_facts(known.pod, pod)):
            self._recount(known, pod)
            confirmed = Confirmation.CHANGED
        else:
            confirmed = Confirmation.FIRST if known.assumed else Confirmation.KNOWN
            if self._arrays is not None:
                self._arrays.change(known.slot, pod)
            known.pod = pod
            known.assumed = False
        self._follow(before, "" if known is None else known.node, pod, node)
        return confirmed

    def remove(self, uid: PodUid) -> PlacedPod | None:
        """Stop counting a pod; return its placement."""
        placed = self._uncount(uid)
        if placed is not None:
            self.usage.left(placed.node, placed.pod)
        return placed

    def put_node(self, node: Node) -> int:
        """Add or update a node and return its row; pods that arrived before their node count from now on."""
        known = node.name in self.columns.rows
        row = self.columns.put(node)
        if not known:
            for placed in self._on_node.get(node.name, {}).values():
                self.columns.use(row, placed.pod)
                if self._arrays is not None:
                    self._arrays.move(placed.slot, row)
        return row

    def remove_node(self, name: str) -> None:
        """Remove a node. Its pods are kept but count nowhere."""
        row = self.columns.rows[name]
        for placed in self._on_node.get(name, {}).values():
            self.columns.vacate(row, placed.pod)
            if self._arrays is not None:
                self._arrays.move(placed.slot, NOWHERE)
        self.columns.remove(name)

    def snapshot(self) -> tuple[tuple[Pod, str, bool], ...]:
        """Return (pod, node, assumed) in the order in which pods got their nodes."""
        return tuple((placed.pod, placed.node, placed.assumed) for placed in self._placed.values())

    def restore(self, placed: Iterable[tuple[Pod, str, bool]]) -> None:
        """Count pods on their nodes; the columns must be restored and no pod counted yet."""
        for pod, node, assumed in placed:
            self._count(PlacedPod(pod, node, assumed))

    def _count(self, placed: PlacedPod) -> None:
        pod = placed.pod
        self._placed[pod.uid] = placed
        self._on_node.setdefault(placed.node, {})[pod.uid] = placed
        row = self.columns.rows.get(placed.node)
        if row is not None:
            self.columns.use(row, pod)
        if self._arrays is not None:
            placed.slot = self._arrays.add(pod, NOWHERE if row is None else row)

    def _follow(self, before: Pod | None, was_on: str, pod: Pod, node: str) -> None:
        """Report an arriving, leaving or changed pod to the usage, after the columns were updated."""
        if before is not None and was_on != node:
            self.usage.left(was_on, before)
        if before is None or was_on != node or pod.started != before.started or _load(pod) != _load(before):
            self.usage.came(node, pod)

    def _recount(self, placed: PlacedPod, pod: Pod) -> None:
        """
        Replace a pod whose requests are unchanged.

        A new object: callers that hold *placed* keep the earlier version.
        """
        recounted = PlacedPod(pod, placed.node, assumed=False, slot=placed.slot)
        self._placed[pod.uid] = self._on_node[placed.node][pod.uid] = recounted
        if self._arrays is not None:
            self._arrays.change(placed.slot, pod)
        row = self.columns.rows.get(placed.node)
        if row is not None:
            self.columns.recount(row, placed.pod, pod)

    def _uncount(self, uid: PodUid) -> PlacedPod | None:
        placed = self._placed.pop(uid, None)
        if placed is None:
            return None
        pods = self._on_node[placed.node]
        del pods[uid]
        if not pods:
            del self._on_node[placed.node]
        row = self.columns.rows.get(placed.node)
        if row is not None:
            self.columns.release(row, placed.pod)
        if self._arrays is not None:
            self._arrays.remove(placed.slot)
        return placed


def _load(pod: Pod) -> tuple[object, object, object]:
    return (pod.requests, pod.scoring_requests, pod.limits)


def _same_to_counters(before: Pod, pod: Pod) -> bool:
    return (
        before.labels == pod.labels
        and before.owner == pod.owner
        and before.deleting == pod.deleting
        and before.namespace == pod.namespace
        and before.repels == pod.repels
        and before.required_pods == pod.required_pods
        and before.preferred_pods == pod.preferred_pods
        and before.avoided_pods == pod.avoided_pods
    )
