"""
The decision loop: `feed(*events) -> [command, …]`.

The host feeds events and executes the returned commands. The loop never awaits, reads no clock and draws no random
number: time arrives with TimePassed, and the host's *pick* breaks ties. The scheduler and the simulator run the same
class.
"""

from collections.abc import Callable, Mapping
from typing import assert_never

from lamina.model import events
from lamina.model.errors import WiringError
from lamina.model.events import Event
from lamina.model.pod import Pod, PodUid
from lamina.scheduling.contract.commands import Command, WakeAt
from lamina.scheduling.contract.kept_state import SavedPlugin
from lamina.scheduling.contract.status import Code, Status
from lamina.scheduling.loop.binding_cycle import NODE_GONE, BindingCycles
from lamina.scheduling.loop.evictions import eviction_failed
from lamina.scheduling.loop.extender_waits import ExtenderWaits
from lamina.scheduling.loop.loop_snapshot import LoopSnapshot, SnapshotError, check_rows, queued_in, unsigned_shapes
from lamina.scheduling.loop.loop_state import LoopSettings, LoopState, MakeProfiles
from lamina.scheduling.loop.plugin_timers import PluginTimers
from lamina.scheduling.loop.queue_snapshot import ShapeNumbers
from lamina.scheduling.loop.scheduling_cycle import SchedulingCycle
from lamina.scheduling.loop.scheduling_queue import SchedulingQueue
from lamina.scheduling.runtime.pod_followers import PodFollowers
from lamina.scheduling.runtime.profile import Profile
from lamina.scheduling.state.cluster_changes import ChangeKind, ClusterChange
from lamina.scheduling.state.cluster_state import ClusterState

Pick = Callable[[int], int]
"""Given n, returns a number in 0..n-1 to break a tie."""


class Loop:
    """Cluster state, queue, binding cycles and profiles."""

    def __init__(self, make_profiles: MakeProfiles, pick: Pick, settings: LoopSettings | None = None) -> None:
        """Build profiles over a new, empty cluster state; *pick* breaks ties."""
        self._state = state = LoopState(make_profiles, settings or LoopSettings())
        self.cluster: ClusterState = state.cluster
        self.queue: SchedulingQueue = state.queue
        self.bindings: BindingCycles = state.bindings
        self.waits: ExtenderWaits = state.waits
        self.profiles: Mapping[str, Profile] = state.profiles
        _check_queue_sorts(self.profiles)
        self._cycle = SchedulingCycle(state, pick)
        self._timers = PluginTimers(state)
        plugins = [plugin for profile in self.profiles.values() for plugin in profile.plugins.values()]
        self.followers = PodFollowers(plugins, state.plugin_raised)
        self._wake: float | None = None

    @property
    def now(self) -> float:
        """The time of the last `TimePassed`, in seconds."""
        return self.cluster.now

    def feed(self, *happened: Event) -> list[Command]:
        """Apply events, decide pods, and return commands in order."""
        self.take(*happened)
        return self.decide(self._state.settings.cycles_per_feed)

    def take(self, *happened: Event) -> None:
        """Apply events without deciding pods."""
        for event in happened:
            self._take(event)

    def _take(self, event: Event) -> None:  # noqa: PLR0912 - one branch for each event
        match event:
            case events.PodSeen(pod):
                self.followers.notice(event, self.now)
                self._pod_seen(pod)
                self._state.react(self.cluster.apply(event))
            case events.PodGone(uid):
                self.followers.notice(event, self.now)
                self._leave(uid)
                self._state.react(self.cluster.apply(event))
            case events.TimePassed(now):
                self._pass_time(event, now)
            case (
                events.NodeSeen()
                | events.NodeGone()
                | events.NamespaceSeen()
                | events.NamespaceGone()
                | events.ObjectSeen()
                | events.ObjectGone()
                | events.ImagesLearned()
                | events.LayersReported()
                | events.LayersWithdrawn()
                | events.UsageReported()
            ):
                changes = self.cluster.apply(event)
                for change in changes:
                    self._abandon_those_on(change)
                self._state.react(changes)
            case events.PluginHistoryLoaded():
                self.followers.notice(event, self.now)
            case events.BindDone(uid):
                self.bindings.bound(uid)
            case events.BindFailed(uid, reason):
                self._bind_failed(uid, reason)
            case events.EvictFailed():
                eviction_failed(self._state, event)
            case events.ReportUnschedulableFailed(uid):
                self._report_failed(uid)
            case events.WorkDone(uid, plugin, attempt):
                self._state.do(*self.bindings.work_done(uid, plugin, attempt))
            case events.WorkFailed(uid, plugin, attempt, reason):
                self.bindings.work_failed(uid, plugin, attempt, reason)
            case events.ExtendersAnswered(uid, number, answer):
                self.waits.answer(uid, number, answer)
            case events.PermitGiven(uid, plugin):
                self.bindings.waiting.allow(uid, plugin)
                self._state.do(*self.bindings.settle())
            case events.PermitRefused(uid, plugin, reason):
                self.bindings.waiting.refuse(uid, plugin, reason)
                self._state.do(*self.bindings.settle())
            case _:
                assert_never(event)

    def decide(self, limit: int = 0) -> list[Command]:
        """Decide up to *limit* pods (0 for all that are ready) and return all pending commands in order."""
        if len(self.bindings.waiting):
            # Plugins can allow or refuse waiting pods in any call, not only in `permit`.
            self._state.do(*self.bindings.settle())
        self._cycle.run(limit)
        if len(self.bindings.waiting):
            # A plugin can refuse waiting pods when it refuses one that belongs to them. The room that they leave may
            # help others.
            before = len(self.bindings)
            self._state.do(*self.bindings.settle())
            self._cycle.unfinished = self._cycle.unfinished or len(self.bindings) < before
        self._ask_to_be_woken()
        commands, self._state.commands = self._state.commands, []
        return commands

    @property
    def unfinished(self) -> bool:
        """Whether the last `decide` stopped at its limit, with pods left that may be ready."""
        return self._cycle.unfinished

    @property
    def tried(self) -> list[str]:
        """Profiles of the pods that the last `decide` attempted, whatever the result."""
        return self._cycle.tried

    @property
    def awaits_plugin(self) -> bool:
        """Whether pods wait and a timed plugin is due later, which may help them."""
        return len(self.queue) > 0 and self._timers.next_time() is not None

    @property
    def asked_until(self) -> float | None:
        """The latest time in seconds that plugins asked for: permit deadlines, retries and wake-ups."""
        times = [self._timers.next_time(), self.queue.retried_at, self.bindings.waiting.last_deadline()]
        return max((at for at in times if at is not None), default=None)

    @property
    def pending(self) -> int:
        """Number of commands that the next `decide` returns in any case."""
        return len(self._state.commands)

    # -- snapshots ---------------------------------------------------------------------------------------------------

    def snapshot(self) -> LoopSnapshot:
        """
        Return the complete state as data, without pending commands.

        Signatures cannot be stored. A shape whose signature no waiting pod has any more is therefore retired. Otherwise
        that signature could reappear and join the shape in this loop, but not in a restored one.
        """
        snapshot = LoopSnapshot(
            wake=self._wake,
            changes=self._state.changes,
            cluster=self.cluster.snapshot(),
            queue=self.queue.snapshot(),
            underway=self.bindings.snapshot(),
            waits=self.waits.snapshot(),
            asked=self.waits.number,
            kept=self._state.kept.snapshot(),
            evictions_off_until=self._state.evictions_off_until,
            plugins=tuple((name, plugin.save()) for name, plugin in self._saved_plugins().items()),
        )
        for name, profile in self.profiles.items():
            profile.retire(unsigned_shapes(snapshot, name))
        return snapshot

    def restore(self, snapshot: LoopSnapshot) -> None:
        """
        Restore a snapshot into a new loop that was not fed yet.

        Raise `SnapshotError` if the snapshot is inconsistent or names unknown profiles; the loop must then be
        discarded.
        """
        check_rows(snapshot)
        saved = dict(snapshot.plugins)
        try:
            self.cluster.restore(snapshot.cluster)
            for placed in self.cluster.cache:
                self.followers.notice(events.PodSeen(placed.pod), self.now)
            for queued in queued_in(snapshot):
                self.followers.notice(events.PodSeen(queued.pod), self.now)
            # What a plugin saved replaces what it derived from these pods.
            for name, plugin in self._saved_plugins().items():
                if name in saved:
                    plugin.load(saved[name])
            labels = ShapeNumbers(self.profiles)
            for queued in queued_in(snapshot):
                labels.learn(queued)
            self.queue.restore(snapshot.queue, labels)
            self.bindings.restore(self.now, snapshot.underway, labels)
            self.waits.restore(snapshot.asked, snapshot.waits, labels)
        except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError) as error:
            raise SnapshotError(f"the snapshot is inconsistent ({type(error).__name__}: {error})") from error
        self._state.kept.restore(snapshot.kept)
        self._state.changes = snapshot.changes
        self._state.evictions_off_until = snapshot.evictions_off_until
        self._wake = snapshot.wake

    def _saved_plugins(self) -> dict[str, SavedPlugin]:
        """Return the plugins whose state is part of snapshots; one of each name, since profiles share that state."""
        return {
            plugin.name: plugin
            for profile in self.profiles.values()
            for plugin in profile.plugins.values()
            if isinstance(plugin, SavedPlugin)
        }

    # -- events ------------------------------------------------------------------------------------------------------

    def _pass_time(self, event: events.TimePassed, now: float) -> None:
        if self._wake is not None and now >= self._wake:
            # The requested time has come; the next one must be requested again.
            self._wake = None
        if now <= self.now:
            return
        self.queue.now = now
        self.queue.pass_time(now)
        self._state.react(self.cluster.apply(event))
        self._state.do(*self.bindings.pass_time(now))
        self._cycle.end_waits(now)
        self._timers.pass_time(now)

    def _pod_seen(self, pod: Pod) -> None:
        """Queue a waiting pod, or remove a pod that no longer waits."""
        if pod.finished or (pod.deleting and not pod.node_name):
            self._leave(pod.uid)
        elif pod.node_name:
            self.queue.remove(pod.uid)
            self._end_wait(pod.uid)
            cycle = self.bindings.get(pod.uid)
            if cycle is not None:
                self._state.withdraw(pod.uid)
                if cycle.node == pod.node_name and cycle.stage == "binding":
                    self.bindings.bound(pod.uid)
                else:
                    self.bindings.drop(pod.uid)
        elif (cycle := self.bindings.get(pod.uid)) is not None:
            # The node was chosen for the earlier version; the new one is used if the pod is queued again.
            cycle.latest = pod
        elif (wait := self.waits.get(pod.uid)) is not None:
            if pod != wait.queued.pod:
                # The extenders were asked about the earlier version; they are asked again.
                wait.latest = pod
        elif self.cluster.cache.get(pod.uid) is not None:
            # Bound already; this event is older.
            return
        elif self.queue.get(pod.uid) is not None:
            self.queue.update(pod)
        else:
            profile = self.profiles.get(pod.scheduler_name)
            if profile is not None:
                self.queue.add(pod, profile)

    def _leave(self, uid: PodUid) -> None:
        self.queue.remove(uid)
        self._end_wait(uid)
        if self.bindings.drop(uid) is not None:
            self._state.withdraw(uid)

    def _end_wait(self, uid: PodUid) -> None:
        """Stop waiting for extenders: the pod left. The next pod of the group it was woken for is tried instead."""
        wait = self.waits.drop(uid)
        if wait is not None:
            self.queue.placed(wait.queued)

    def _bind_failed(self, uid: PodUid, reason: str) -> None:
        cycle = self.bindings.get(uid)
        if cycle is not None and cycle.stage == "binding":
            self.bindings.abandon(cycle, Status(Code.ERROR, (reason,)))

    def _report_failed(self, uid: PodUid) -> None:
        """Report the same message again after the next attempt: the last report was lost."""
        other = self.bindings.get(uid) or self.waits.get(uid)
        queued = self.queue.get(uid) if other is None else other.queued
        if queued is not None:
            queued.told = ""

    def _abandon_those_on(self, change: ClusterChange) -> None:
        """Requeue pods whose chosen node was removed, unless the host has their `Bind` and will report its outcome."""
        if change.kind is not ChangeKind.NODE_REMOVED or change.before is None:
            return
        for cycle in self.bindings:
            if cycle.node != change.before.name:
                continue
            withdrawn = self._state.withdraw(cycle.queued.pod.uid)
            if withdrawn or cycle.stage != "binding":
                self.bindings.abandon(cycle, Status(Code.ERROR, (NODE_GONE,)))

    def _ask_to_be_woken(self) -> None:
        due = self.now if self._cycle.unfinished else self.queue.next_time()
        deadline = self.bindings.waiting.next_deadline()
        if deadline is not None and (due is None or deadline < due):
            due = deadline
        deadline = self.waits.next_deadline() if len(self.waits) else None
        if deadline is not None and (due is None or deadline < due):
            due = deadline
        timer = self._timers.next_time() if self._timers.plugins else None
        if timer is not None and (due is None or timer < due):
            due = timer
        if due is not None and due != self._wake:
            self._state.do(WakeAt(due))
        self._wake = due


def _check_queue_sorts(profiles: Mapping[str, Profile]) -> None:
    names = sorted({profile.queue_sort.name for profile in profiles.values()})
    if len(names) > 1:
        raise WiringError(f"all profiles share one queue and must use the same queueSort plugin, not {names}")
