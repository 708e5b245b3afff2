"""
Current state of one cluster; `apply(event)` keeps it up to date.

    NodeSeen, PodSeen, LayersReported, … ──apply──> columns, cache, inventory, usage, nominations, namespaces
                                          └──> changes that can make a waiting pod schedulable

The decision loop and the extender core each own one. It holds the state of the cluster only: no queue, no profile, no
command. Plugins read it through `context`.
"""

from collections.abc import Iterable
from typing import assert_never

import msgspec

from lamina.layers.inventory import Inventory, InventorySnapshot
from lamina.model import events
from lamina.model.cluster_objects import ClusterObject
from lamina.model.events import ClusterEvent
from lamina.model.image import Image
from lamina.model.node import Node
from lamina.model.pod import Pod, PodUid
from lamina.model.resources import Amounts
from lamina.scheduling.state.cluster_changes import ChangeKind, ClusterChange
from lamina.scheduling.state.cluster_objects import EFFECTS, Assumption, ClusterObjects
from lamina.scheduling.state.cluster_usage import ClusterUsage, UsageSnapshot
from lamina.scheduling.state.columns import ColumnsSnapshot, NodeColumns
from lamina.scheduling.state.evictions import Evictions
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.nominations import NominatedPod, Nominations
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.pod_cache import Confirmation, PlacedPod, PodCache

NO_CHANGE: list[ClusterChange] = []


class ClusterSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Complete content of a `ClusterState`. Shallow: it shares pods, nodes, reports and images with the state."""

    now: float
    columns: ColumnsSnapshot
    placed: tuple[tuple[Pod, str, bool], ...]
    """Pods with a node, in the order they got it: (pod, node, whether only assumed)."""
    recent: tuple[Amounts, ...]
    """Requests of the most recently placed pods."""
    usage: UsageSnapshot
    inventory: InventorySnapshot
    namespaces: dict[str, dict[str, str]]
    """Annotations by namespace."""
    nominated: tuple[NominatedPod, ...]
    objects: tuple[ClusterObject, ...] = ()
    """Disruption budgets and other objects, oldest first within a kind."""
    evictions: tuple[tuple[PodUid, PodUid], ...] = ()
    """Evictions in flight: (victim, preemptor)."""
    assumed_objects: tuple[Assumption, ...] = ()


class ClusterState:
    """State of one cluster: nodes, pods, layers, usage, nominations and namespaces."""

    def __init__(self) -> None:
        """Start at time 0 with an empty cluster."""
        self.now = 0.0
        self.columns = NodeColumns()
        self.inventory = Inventory()
        self.usage = ClusterUsage(self.columns)
        self.cache = PodCache(self.columns, self.usage)
        self.context = PluginContext(self.columns, self.inventory, self.cache)
        self.load = self.context.load
        self.objects: ClusterObjects = self.context.objects
        self.nominations = Nominations()
        self.evictions: Evictions = self.context.evictions
        self._meanings = 0

    def row(self, node: str) -> int:
        """Return a node's row, or -1 if the node is unknown."""
        return self.columns.rows.get(node, -1)

    # -- events ------------------------------------------------------------------------------------------------------

    def apply(self, event: ClusterEvent) -> list[ClusterChange]:  # noqa: PLR0912 - one branch for each event
        """Apply an event; return the changes that can make a waiting pod schedulable, in order."""
        match event:
            case events.PodSeen(pod):
                return self._pod_seen(pod)
            case events.PodGone(uid):
                return self._pod_gone(uid)
            case events.TimePassed(now):
                changes = self._pass_time(now)
            case events.NodeSeen(node):
                changes = self._node_seen(node)
            case events.NodeGone(name):
                changes = self._node_gone(name)
            case events.LayersReported(report):
                changes = self._layers_changed(self.inventory.report(report))
            case events.LayersWithdrawn(node_name):
                changes = self._layers_changed(self.inventory.withdraw(node_name))
            case events.ImagesLearned(images, good_for):
                changes = self._images_learned(images, good_for)
            case events.UsageReported(usages):
                changes = [ClusterChange(ChangeKind.USAGE)] if self.usage.report(usages) else NO_CHANGE
            case events.NamespaceSeen(name, annotations, labels):
                changes = self._namespace_seen(name, annotations, labels)
            case events.NamespaceGone(name):
                changes = self._namespace_gone(name)
            case events.ObjectSeen(found):
                changes = self._object_changed(found) if self.objects.put(found) != found else NO_CHANGE
            case events.ObjectGone(key):
                gone = self.objects.remove(key)
                changes = NO_CHANGE if gone is None else self._object_changed(gone)
            case _:
                assert_never(event)
        if self.inventory.meanings != self._meanings:
            # A name now stands for other images: results that depend on the name must be computed again.
            self._meanings = self.inventory.meanings
            self.columns.touch(Facet.CATALOG, 0)
        return changes

    def _pass_time(self, now: float) -> list[ClusterChange]:
        if now <= self.now:
            return NO_CHANGE
        self.now = now
        expired, rows = self.inventory.pass_time(now)
        if expired:
            self.columns.touch(Facet.CATALOG, 0)
        self._pulls_changed(rows)
        # A measurement that expired no longer refuses nodes.
        return [ClusterChange(ChangeKind.USAGE)] if self.usage.pass_time(now) else NO_CHANGE

    def _images_learned(self, images: tuple[Image, ...], good_for: float) -> list[ClusterChange]:
        news, rows = self.inventory.learn(images, good_for)
        if news:
            self.columns.touch(Facet.CATALOG, 0)
        return self._layers_changed(rows)

    def _layers_changed(self, rows: list[int]) -> list[ClusterChange]:
        for row in rows:
            self.columns.touch(Facet.LAYERS, row)
        return [ClusterChange(ChangeKind.LAYERS, rows[0] if len(rows) == 1 else -1)] if rows else NO_CHANGE

    def _namespace_seen(self, name: str, annotations: dict[str, str], labels: dict[str, str]) -> list[ClusterChange]:
        if self.context.namespaces.get(name, {}) != annotations:
            self.context.namespaces[name] = annotations
            self.columns.touch(Facet.CATALOG, 0)
        return self._namespace_labelled(name, labels)

    def _namespace_gone(self, name: str) -> list[ClusterChange]:
        if self.context.namespaces.pop(name, None):
            self.columns.touch(Facet.CATALOG, 0)
        return self._namespace_labelled(name, None)

    def _namespace_labelled(self, name: str, labels: dict[str, str] | None) -> list[ClusterChange]:
        changed = self.columns.label_namespace(name, labels)
        return [ClusterChange(ChangeKind.NAMESPACE_LABELS)] if changed else NO_CHANGE

    def _object_changed(self, found: ClusterObject) -> list[ClusterChange]:
        effect = EFFECTS[type(found)]
        if effect.facet is not None:
            self.columns.touch(effect.facet, 0)
        return NO_CHANGE if effect.change is None else [ClusterChange(effect.change, found=found)]

    # -- nodes -------------------------------------------------------------------------------------------------------

    def _node_seen(self, node: Node) -> list[ClusterChange]:
        known = self.columns.rows.get(node.name)
        before = None if known is None else self.columns.nodes[known]
        changes: list[ClusterChange] = []
        if before is not None and before.uid and node.uid and before.uid != node.uid:
            # A new machine under an old name: drop everything about the old one.
            changes += self._node_gone(node.name)
            before = None
        row = self.cache.put_node(node)
        if before is None:
            self.usage.join(node.name, row)
        if before is None or node.platform != before.platform:
            self._join(node, row)
        if before is None:
            return [*changes, ClusterChange(ChangeKind.NODE_ADDED, row)]
        if node.allocatable != before.allocatable:
            changes.append(ClusterChange(ChangeKind.NODE_ALLOCATABLE, row, before))
        if node.taints != before.taints or node.unschedulable != before.unschedulable:
            changes.append(ClusterChange(ChangeKind.NODE_TAINTS, row, before))
        if node.labels != before.labels:
            changes.append(ClusterChange(ChangeKind.NODE_LABELS, row, before))
        if node.declared_features != before.declared_features:
            changes.append(ClusterChange(ChangeKind.NODE_FEATURES, row, before))
        if node.annotations != before.annotations:
            changes.append(ClusterChange(ChangeKind.NODE_ANNOTATIONS, row, before))
        return changes

    def _join(self, node: Node, row: int) -> None:
        """Pass a node's row and platform to the inventory; the platform can arrive later than the name."""
        platforms = self.inventory.readiness_cache.edition
        self.inventory.join(node.name, node.uid, row, node.platform)
        self.columns.touch(Facet.LAYERS, row)
        if self.inventory.readiness_cache.edition != platforms:
            self.columns.touch(Facet.CATALOG, 0)

    def _node_gone(self, name: str) -> list[ClusterChange]:
        row = self.columns.rows.get(name)
        if row is None:
            return NO_CHANGE
        node = self.columns.nodes[row]
        platforms = self.inventory.readiness_cache.edition
        self.inventory.leave(name)
        if self.inventory.readiness_cache.edition != platforms:
            self.columns.touch(Facet.CATALOG, 0)
        self.usage.leave(name)
        self.cache.remove_node(name)
        # A pod with a spread constraint can be waiting because of this node's domain.
        return [ClusterChange(ChangeKind.NODE_REMOVED, before=node)]

    # -- pods --------------------------------------------------------------------------------------------------------

    def _pod_seen(self, pod: Pod) -> list[ClusterChange]:
        if pod.finished or (pod.deleting and not pod.node_name):
            # An unbound pod that is being deleted will not be bound; release its resources now.
            return self._pod_gone(pod.uid)
        if pod.node_name:
            return self._pod_placed(pod)
        if self.cache.get(pod.uid) is not None:
            # Bound or assumed already; this event is older.
            return NO_CHANGE
        return self._nomination_seen(pod)

    def _nomination_seen(self, pod: Pod) -> list[ClusterChange]:
        """Apply a pod's nominatedNodeName, unless it is older than our own nomination."""
        said, known = pod.nominated_node, self.nominations.get(pod.uid)
        if known is None:
            if said:
                self.nominations.put(pod, said)
            return NO_CHANGE
        before, node = known
        if said and said in (node, before.nominated_node):
            # Either our own nomination, or the value from before we nominated another node.
            self.nominations.put(pod, node)
            return [self._room(before, node)] if before.requests != pod.requests else NO_CHANGE
        if not said and before.nominated_node != node:
            self.nominations.put(pod, node)
            return NO_CHANGE
        changes = self.end_nomination(pod.uid)
        if said:
            self.nominations.put(pod, said)
        return changes

    def _pod_placed(self, pod: Pod) -> list[ClusterChange]:
        node = pod.node_name
        if pod.deleting:
            self.evictions.end(pod.uid)
        # From now on the pod counts itself; release what was reserved for it elsewhere.
        nominated = self.nominations.remove(pod.uid)
        changes = [self._room(*nominated)] if nominated is not None and nominated[1] != node else []
        before = self.cache.get(pod.uid)
        was_on, was = ("", None) if before is None else (before.node, before.pod)
        self._follow(pod, was_on)
        confirmed = self.cache.confirm(pod, node)
        if confirmed is Confirmation.KNOWN:
            return changes
        if was is not None and confirmed is Confirmation.CHANGED:
            # The pod left another node, or requests less: another pod may fit there.
            changes.append(ClusterChange(ChangeKind.POD_REMOVED, self.row(was_on), pod=was))
        changes.append(ClusterChange(ChangeKind.POD_PLACED, self.row(node), pod=pod))
        return changes

    def _pod_gone(self, uid: PodUid) -> list[ClusterChange]:
        changes = self.end_nomination(uid)
        self.evictions.end(uid)
        placed = self.cache.remove(uid)
        self._pulls_changed(self.inventory.gone(uid))
        return changes if placed is None else [*changes, self._room(placed.pod, placed.node)]

    def _follow(self, pod: Pod, before: str) -> None:
        """Expect the images of a pod on its node until the pod runs; *before* is the node it was counted on."""
        if not before:
            self.load.note(pod)
            if pod.node_name not in self.columns.rows:
                # The pod changes the usual pod size, but no row of a node can be journaled for it.
                self.columns.touch(Facet.CATALOG, 0)
        if pod.started:
            self._pulls_changed(self.inventory.ran(pod.uid))
        elif before != pod.node_name:
            self._pulls_changed(self.inventory.expect(pod.uid, pod.node_name, pod.images))

    def _pulls_changed(self, rows: list[int]) -> None:
        for row in rows:
            self.columns.touch(Facet.PULLS, row)

    def _room(self, pod: Pod, node: str) -> ClusterChange:
        return ClusterChange(ChangeKind.POD_REMOVED, self.row(node), pod=pod)

    # -- scheduling decisions ----------------------------------------------------------------------------------------

    def assume(self, pod: Pod, node: str) -> list[ClusterChange]:
        """Count a pod on its chosen node and expect its images there; return the resulting changes."""
        ended = self.nominations.remove(pod.uid) if self.nominations.nodes else None
        self.cache.assume(pod, node)
        self.load.note(pod)
        self._pulls_changed(self.inventory.expect(pod.uid, node, pod.images))
        return [self._room(*ended)] if ended is not None and ended[1] != node else NO_CHANGE

    def forget(self, pod: Pod) -> PlacedPod | None:
        """Undo `assume`; return the placement."""
        placed = self.cache.remove(pod.uid)
        self._pulls_changed(self.inventory.gone(pod.uid))
        return placed

    def nominate(self, pod: Pod, node: str, victims: Iterable[Pod] = ()) -> None:
        """
        Reserve resources for a pod on a node where *victims* are evicted.

        Ends when the pod is bound or deleted, or no longer fits.
        """
        self.nominations.put(pod, node, frozenset(victim.uid for victim in victims))

    def nominated_on(self, row: int) -> list[Pod]:
        """Return the pods that are nominated for the node in a row; none for row -1."""
        node = self.columns.nodes[row] if row >= 0 else None
        return [] if node is None else self.nominations.on(node.name)

    def leaves(self, victim: Pod) -> bool:
        """Return whether a pod is being evicted in favour of another pod, by this scheduler or an earlier one."""
        return (victim.deleting and victim.preempted) or victim.uid in self.evictions

    def end_nomination(self, uid: PodUid) -> list[ClusterChange]:
        """End a pod's nomination; return the change."""
        ended = self.nominations.remove(uid)
        return NO_CHANGE if ended is None else [self._room(*ended)]

    # -- snapshots ---------------------------------------------------------------------------------------------------

    def snapshot(self) -> ClusterSnapshot:
        """Return the complete state as data."""
        return ClusterSnapshot(
            now=self.now,
            columns=self.columns.snapshot(),
            placed=self.cache.snapshot(),
            recent=self.load.snapshot(),
            usage=self.usage.snapshot(),
            inventory=self.inventory.snapshot(),
            namespaces=dict(self.context.namespaces),
            nominated=self.nominations.snapshot(),
            objects=self.objects.snapshot(),
            evictions=self.evictions.snapshot(),
            assumed_objects=self.objects.assumptions(),
        )

    def restore(self, snapshot: ClusterSnapshot) -> None:
        """Restore a snapshot into a new, empty state."""
        self.now = snapshot.now
        self.columns.restore(snapshot.columns)
        self.objects.restore(snapshot.objects, snapshot.assumed_objects)
        self.cache.restore(snapshot.placed)
        self.load.restore(snapshot.recent)
        self.usage.restore(snapshot.usage)
        self.inventory.restore(snapshot.inventory)
        self.context.namespaces.update(snapshot.namespaces)
        self.nominations.restore(snapshot.nominated)
        self.evictions.restore(snapshot.evictions)
        self._meanings = self.inventory.meanings
