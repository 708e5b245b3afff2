"""
The decision loop: `feed(*events) -> [command, …]`.

The host tells what happened and performs what comes back. Nothing here awaits, reads a clock or draws a random number:
time comes with TimePassed and ties are broken by the *pick* the host hands in. The same object runs live, in the
extender and in simulation.
"""

from collections.abc import Callable, Mapping

import msgspec

from lamina.model import events
from lamina.model.errors import WiringError
from lamina.model.events import Event
from lamina.model.image import Image
from lamina.model.node import Node
from lamina.model.pod import Pod, PodUid
from lamina.model.usage import NodeUsage
from lamina.scheduling.framework.changes import Change, Changed
from lamina.scheduling.framework.commands import Command, WakeAt
from lamina.scheduling.framework.profile import Profile
from lamina.scheduling.framework.rowlog import Facet
from lamina.scheduling.framework.status import Code, Status
from lamina.scheduling.loop.binding import NODE_GONE
from lamina.scheduling.loop.cycle import Cycle
from lamina.scheduling.loop.state import LoopState, MakeProfiles, Settings

Pick = Callable[[int], int]
"""Given n, returns a number in 0..n-1; how ties are broken."""


class Loop:
    """Queue, cache and profiles together."""

    def __init__(self, make_profiles: MakeProfiles, pick: Pick, settings: Settings | None = None) -> None:
        """Build profiles over this loop's own view of the cluster; *pick* breaks ties."""
        self.state = LoopState(make_profiles, settings or Settings())
        _check_queue_sorts(self.state.profiles)
        self._cycle = Cycle(self.state, pick)
        self._wake: float | None = None
        self._meanings = 0
        bindings, inventory = self.state.bindings, self.state.inventory
        self._handlers: dict[type, Callable[..., object]] = {
            events.TimePassed: self._pass_time,
            events.PodSeen: self._pod_seen,
            events.PodGone: self._pod_gone,
            events.NodeSeen: self._node_seen,
            events.NodeGone: self._node_gone,
            events.BindDone: bindings.bound,
            events.BindFailed: self._bind_failed,
            events.WorkDone: lambda *answer: self.state.do(*bindings.work_done(*answer)),
            events.WorkFailed: bindings.work_failed,
            events.PermitGiven: self._permit_given,
            events.PermitRefused: self._permit_refused,
            events.NamespaceSeen: self._namespace_seen,
            events.ImagesLearned: self._images_learned,
            events.LayersReported: lambda report: self._layers_changed(inventory.report(report)),
            events.UsageReported: self._usage_reported,
            events.LayersWithdrawn: lambda node: self._layers_changed(inventory.withdraw(node)),
        }

    def feed(self, *happened: Event) -> list[Command]:
        """Take events in, decide what can be decided, and return what is to be done, in order."""
        self.take(*happened)
        return self.decide(self.state.settings.cycles_per_feed)

    def take(self, *happened: Event) -> None:
        """Take events in without deciding anything yet."""
        for event in happened:
            # The fields of an event are the arguments of whoever handles it.
            self._handlers[type(event)](*msgspec.structs.astuple(event))
        if self.state.inventory.meanings != self._meanings:
            # Nodes hold other images under a name than before: what was judged by that name is judged anew.
            self._meanings = self.state.inventory.meanings
            self.state.columns.touch(Facet.CATALOG, 0)

    def decide(self, limit: int = 0) -> list[Command]:
        """Decide up to *limit* pods (0: all that are ready) and return what is to be done, in order."""
        self._cycle.run(limit)
        self._ask_to_be_woken()
        commands, self.state.commands = self.state.commands, []
        return commands

    @property
    def unfinished(self) -> bool:
        """Whether the last `decide` stopped at its limit, and pods may be ready that it did not look at."""
        return self._cycle.unfinished

    @property
    def tried(self) -> list[str]:
        """The profiles of the pods the last `decide` looked at, whatever came of it."""
        return self._cycle.tried

    # -- what happened -----------------------------------------------------------------------------------------------

    def _bind_failed(self, uid: PodUid, reason: str) -> None:
        underway = self.state.bindings.get(uid)
        if underway is not None and underway.stage == "binding":
            self.state.bindings.abandon(underway, Status(Code.ERROR, (reason,)))

    def _permit_given(self, uid: PodUid, plugin: str) -> None:
        self.state.bindings.waiting.allow(uid, plugin)
        self.state.do(*self.state.bindings.settle())

    def _permit_refused(self, uid: PodUid, plugin: str, reason: str) -> None:
        self.state.bindings.waiting.refuse(uid, plugin, reason)
        self.state.do(*self.state.bindings.settle())

    def _namespace_seen(self, name: str, annotations: dict[str, str], labels: dict[str, str] | None = None) -> None:
        self.state.columns.repulsion.name(name, labels or {})
        if self.state.context.namespaces.get(name, {}) != annotations:
            self.state.context.namespaces[name] = annotations
            self.state.columns.touch(Facet.CATALOG, 0)

    def _images_learned(self, images: tuple[Image, ...], good_for: float) -> None:
        news, rows = self.state.inventory.learn(images, good_for)
        if news:
            self.state.columns.touch(Facet.CATALOG, 0)
        self._layers_changed(rows)

    def _pass_time(self, now: float) -> None:
        if self._wake is not None and now >= self._wake:
            # The wake-up that was asked for has come; the next one has to be asked for again.
            self._wake = None
        if now <= self.state.now:
            return
        self.state.now = self.state.queue.now = now
        self.state.queue.pass_time(now)
        expired, rows = self.state.inventory.pass_time(now)
        if expired:
            self.state.columns.touch(Facet.CATALOG, 0)
        if rows:
            self.state.pulls_changed(rows)
        if self.state.context.usage.pass_time(now):
            # Nobody is refused for what is not believed any more.
            self.state.changed(Changed(Change.USAGE))
        self.state.commands += self.state.bindings.pass_time(now)

    def _pod_seen(self, pod: Pod) -> None:
        if pod.finished:
            self._pod_gone(pod.uid)
        elif pod.node_name:
            self._pod_placed(pod)
        elif pod.deleting:
            # It will not be bound any more; what it holds until it is gone is given back at once.
            self._pod_gone(pod.uid)
        elif (underway := self.state.bindings.get(pod.uid)) is not None:
            # Its node was chosen for what it was; what it is now counts if it has to be queued again.
            underway.latest = pod
        elif self.state.cache.get(pod.uid) is not None:
            # Bound, and this is older news.
            return
        elif self.state.queue.get(pod.uid) is not None:
            self.state.queue.update(pod)
        else:
            profile = self.state.profiles.get(pod.scheduler_name)
            if profile is not None:
                self.state.queue.add(pod, profile)

    def _pod_placed(self, pod: Pod) -> None:
        self.state.queue.remove(pod.uid)
        underway = self.state.bindings.get(pod.uid)
        if underway is not None:
            if underway.node == pod.node_name and underway.stage == "binding":
                self.state.bindings.bound(pod.uid)
            else:
                self.state.bindings.drop(pod.uid)
        before = self.state.cache.get(pod.uid)
        self.state.follow(pod, None if before is None else before.node)
        if not self.state.cache.confirm(pod, pod.node_name):
            return
        if before is not None:
            # It left another node, or takes less of this one: somebody may fit there now.
            self.state.changed(Changed(Change.POD_REMOVED, self.state.row(before.node), pod=before.pod))
        self.state.changed(Changed(Change.POD_PLACED, self.state.row(pod.node_name), pod=pod))

    def _pod_gone(self, uid: PodUid) -> None:
        self.state.queue.remove(uid)
        self.state.bindings.drop(uid)
        placed = self.state.cache.remove(uid)
        self.state.pulls_changed(self.state.inventory.gone(uid))
        if placed is not None:
            self.state.changed(Changed(Change.POD_REMOVED, self.state.row(placed.node), pod=placed.pod))

    def _node_seen(self, node: Node) -> None:
        known = self.state.columns.rows.get(node.name)
        before = None if known is None else self.state.columns.nodes[known]
        if before is not None and before.uid and node.uid and before.uid != node.uid:
            # A new machine under an old name: nothing that was known of the old one holds.
            self._node_gone(node.name)
            before = None
        row = self.state.cache.put_node(node)
        if before is None:
            self.state.context.usage.join(node.name, row)
        if before is None or node.platform != before.platform:
            self._join(node, row)
        if before is None:
            self.state.changed(Changed(Change.NODE_ADDED, row))
            return
        if node.allocatable != before.allocatable:
            self.state.changed(Changed(Change.NODE_ALLOCATABLE, row, before))
        if node.taints != before.taints or node.unschedulable != before.unschedulable:
            self.state.changed(Changed(Change.NODE_TAINTS, row, before))
        if node.labels != before.labels:
            self.state.changed(Changed(Change.NODE_LABELS, row, before))
        if node.annotations != before.annotations:
            self.state.changed(Changed(Change.NODE_ANNOTATIONS, row, before))

    def _join(self, node: Node, row: int) -> None:
        """Let the inventory know whose row it is, and of which platform; a node may say that later than its name."""
        platforms = self.state.inventory.wants.platforms
        self.state.inventory.join(node.name, node.uid, row, node.platform)
        self.state.columns.touch(Facet.LAYERS, row)
        if self.state.inventory.wants.platforms > platforms:
            self.state.columns.touch(Facet.CATALOG, 0)

    def _node_gone(self, name: str) -> None:
        if name not in self.state.columns.rows:
            return
        self.state.inventory.leave(name)
        self.state.context.usage.leave(name)
        self.state.cache.remove_node(name)
        for underway in self.state.bindings:
            if underway.node == name and underway.stage != "binding":
                self.state.bindings.abandon(underway, Status(Code.ERROR, (NODE_GONE,)))
        # A pod that must be spread evenly may have had this node's domain to wait for.
        self.state.changed(Changed(Change.NODE_REMOVED))

    def _usage_reported(self, usages: tuple[NodeUsage, ...]) -> None:
        if self.state.context.usage.report(usages):
            self.state.changed(Changed(Change.USAGE))

    def _layers_changed(self, rows: list[int]) -> None:
        for row in rows:
            self.state.columns.touch(Facet.LAYERS, row)
        if rows:
            self.state.changed(Changed(Change.LAYERS, rows[0] if len(rows) == 1 else -1))

    def _ask_to_be_woken(self) -> None:
        due = self.state.now if self._cycle.unfinished else self.state.queue.next_time()
        deadline = self.state.bindings.waiting.next_deadline()
        if deadline is not None and (due is None or deadline < due):
            due = deadline
        if due is not None and due != self._wake:
            self.state.do(WakeAt(due))
        self._wake = due


def _check_queue_sorts(profiles: Mapping[str, Profile]) -> None:
    names = sorted({profile.queue_sort.name for profile in profiles.values()})
    if len(names) > 1:
        raise WiringError(f"all profiles share one queue and must use the same queueSort plugin, not {names}")
