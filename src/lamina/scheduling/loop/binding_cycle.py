"""
Binding cycle: from a chosen node to a bound pod, through reserve, permit, pre-bind and bind.

    reserve ─> permit ─> (waits) ─> pre_bind ─> (work) ─> bind ─> (binds) ─> bound
       └──────────┴───────────┴──────────┴─────────┴────────┴──> abandoned: unreserved, forgotten, queued again

A call ends at each step in brackets; an event or the passing of time continues from there.
"""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from lamina.model.decision import Decision
from lamina.model.pod import Pod, PodUid
from lamina.scheduling.contract.commands import Bind, Command, DoWork
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.points import Plugin, Wait, Work
from lamina.scheduling.contract.status import Code, Status, failed, raised, unschedulable
from lamina.scheduling.contract.waiting_pods import WaitingPod, WaitingPods
from lamina.scheduling.loop.queue_snapshot import QueuedPodSnapshot, ShapeNumbers
from lamina.scheduling.loop.queued_pod import QueuedPodInfo, restored

NODE_GONE: Final = "the chosen node has left the cluster"
NO_BINDER: Final = "no bind plugin took the pod"
# kube-scheduler's upper bound for permit timeouts, in seconds.
LONGEST_WAIT: Final = 900.0


class BindingCycle(msgspec.Struct, eq=False):
    """A pod between its chosen node and its binding."""

    queued: QueuedPodInfo
    node: str
    state: CycleState
    decision: Decision
    changes: int
    """The loop's count of cluster changes when the node was chosen."""
    stage: str = "reserved"
    reserved: int = 0
    """Number of reserve plugins to undo."""
    prepared: int = 0
    """Number of pre-bind plugins that are done."""
    latest: Pod | None = None
    """The pod's newest version if it changed since; used if the pod is queued again."""


class BindingCycleSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A binding cycle as data, without the values that plugins stored in its cycle state."""

    queued: QueuedPodSnapshot
    node: str
    decision: Decision
    changes: int
    stage: str
    reserved: int
    prepared: int
    latest: Pod | None
    deadlines: dict[str, float] | None
    """Deadline in seconds for each permit plugin that holds the pod; None if none does."""
    since: float
    """When the wait began, in seconds."""


def _timed_out(plugin: str, waited: float) -> Status:
    minutes, seconds = divmod(waited, 60)
    hours, minutes = divmod(int(minutes), 60)
    # Durations in Go's format, because the message is kube-scheduler's.
    text = (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + f"{seconds:g}s"
    return unschedulable(f"rejected due to timeout after waiting {text} at plugin {plugin}").of(plugin)


GiveUpHandler = Callable[[BindingCycle, Status], None]
BindingErrorHandler = Callable[[Pod, str, str, Status], None]
"""Takes the pod, the plugin's name, its method and the error as a status."""


class BindingCycles:
    """All binding cycles. Calls *give_up* for pods that could not be bound."""

    def __init__(
        self, give_up: GiveUpHandler, raised_after: BindingErrorHandler, extender: Callable[[Pod], str] = lambda _: ""
    ) -> None:
        """
        Start empty; *raised_after* is called when a plugin raises outside of an attempt.

        *extender* returns the name of the extender that binds a pod, or an empty text.
        """
        self.now = 0.0
        self.waiting = WaitingPods()
        self._give_up = give_up
        self._raised_after = raised_after
        self._extender = extender
        self._cycles: dict[PodUid, BindingCycle] = {}

    def __len__(self) -> int:
        """Return the number of binding cycles."""
        return len(self._cycles)

    def __iter__(self) -> Iterator[BindingCycle]:
        """Iterate over the binding cycles, oldest first."""
        return iter(tuple(self._cycles.values()))

    def get(self, uid: PodUid) -> BindingCycle | None:
        """Return a pod's binding cycle, or None."""
        return self._cycles.get(uid)

    def start(self, cycle: BindingCycle) -> list[Command]:
        """Start a pod's binding cycle and run it until it waits; return the commands."""
        queued = cycle.queued
        self._cycles[queued.pod.uid] = cycle
        cycle.state.now = self.now
        profile = queued.profile
        for plugin in profile.reserve:
            cycle.reserved += 1
            answer = plugin.reserve(cycle.state, queued.pod, cycle.node)
            if answer is not None and not answer.ok:
                self.abandon(cycle, answer.of(plugin.name))
                return []
        deadlines: dict[str, float] = {}
        for permit in profile.permit:
            word = permit.permit(cycle.state, queued.pod, cycle.node, self.waiting)
            if isinstance(word, Wait) and word.timeout > 0:
                deadlines[permit.name] = self.now + min(word.timeout, LONGEST_WAIT)
            elif isinstance(word, Wait):
                self.abandon(cycle, _timed_out(permit.name, 0.0))
                return self.settle()
            elif word is not None and not word.ok:
                self.abandon(cycle, word.of(permit.name))
                return self.settle()
        if deadlines:
            cycle.stage = "waiting"
            self.waiting.hold(WaitingPod(queued.pod, cycle.node, deadlines, self.now))
            return self.settle()
        return [*self._go_on(cycle), *(self.settle() if profile.permit else ())]

    def settle(self) -> list[Command]:
        """Continue or abandon the pods that permit plugins allowed or refused; return the commands."""
        commands: list[Command] = []
        allowed, refused = self.waiting.answered()
        while allowed or refused:
            for uid in allowed:
                cycle = self._cycles.get(uid)
                if cycle is not None and cycle.stage == "waiting":
                    self.waiting.release(uid)
                    commands.extend(self._go_on(cycle))
            for uid, plugin, reason in refused:
                cycle = self._cycles.get(uid)
                if cycle is not None and cycle.stage == "waiting":
                    self.abandon(cycle, unschedulable(reason).of(plugin))
            allowed, refused = self.waiting.answered()
        return commands

    def pass_time(self, now: float) -> list[Command]:
        """Advance the clock; abandon pods whose permit deadline passed."""
        self.now = now
        if not len(self.waiting):
            # Pods are settled at once when a plugin allows them, so none is left to settle.
            return []
        for uid, plugin in self.waiting.overdue(now):
            cycle, held = self._cycles.get(uid), self.waiting.get(uid)
            if cycle is not None and held is not None:
                self.abandon(cycle, _timed_out(plugin, held.deadlines[plugin] - held.since))
        return self.settle()

    def work_done(self, uid: PodUid, plugin: str, attempt: int) -> list[Command]:
        """Continue after the work that *plugin* requested; ignore outdated reports."""
        cycle = self._cycles.get(uid)
        if cycle is None or not self._works_for(cycle, plugin, attempt):
            return []
        cycle.prepared += 1
        return self._go_on(cycle)

    def work_failed(self, uid: PodUid, plugin: str, attempt: int, reason: str) -> None:
        """Abandon a pod whose work failed; ignore outdated reports."""
        cycle = self._cycles.get(uid)
        if cycle is not None and self._works_for(cycle, plugin, attempt):
            self.abandon(cycle, failed(reason).of(plugin))

    def bound(self, uid: PodUid) -> BindingCycle | None:
        """Finish the cycle of a bound pod and return it; None if the pod was not being bound."""
        cycle = self._cycles.get(uid)
        if cycle is None or cycle.stage != "binding":
            return None
        del self._cycles[uid]
        cycle.state.now = self.now
        for plugin in cycle.queued.profile.post_bind:
            self._call_after("post_bind", plugin, cycle)
        return cycle

    def drop(self, uid: PodUid) -> BindingCycle | None:
        """End the cycle of a pod that was deleted or bound elsewhere; the pod is not queued again."""
        cycle = self._cycles.pop(uid, None)
        if cycle is not None:
            self.waiting.release(uid)
            self._undo(cycle)
        return cycle

    def abandon(self, cycle: BindingCycle, status: Status) -> None:
        """End a pod's binding cycle and queue the pod again."""
        self.drop(cycle.queued.pod.uid)
        self._give_up(cycle, status)

    def snapshot(self) -> tuple[BindingCycleSnapshot, ...]:
        """Return the binding cycles as data, oldest first."""
        return tuple(self._saved(cycle) for cycle in self._cycles.values())

    def _saved(self, cycle: BindingCycle) -> BindingCycleSnapshot:
        waiting = self.waiting.get(cycle.queued.pod.uid)
        return BindingCycleSnapshot(
            queued=cycle.queued.snapshot(),
            node=cycle.node,
            decision=cycle.decision,
            changes=cycle.changes,
            stage=cycle.stage,
            reserved=cycle.reserved,
            prepared=cycle.prepared,
            latest=cycle.latest,
            deadlines=None if waiting is None else dict(waiting.deadlines),
            since=0.0 if waiting is None else waiting.since,
        )

    def restore(self, now: float, saved: tuple[BindingCycleSnapshot, ...], labels: ShapeNumbers) -> None:
        """Restore binding cycles; the values that plugins stored in their cycle states are lost."""
        self.now = now
        held: list[WaitingPod] = []
        for one in saved:
            queued = restored(one.queued, labels)
            self._cycles[queued.pod.uid] = BindingCycle(
                queued,
                one.node,
                CycleState(),
                one.decision,
                one.changes,
                one.stage,
                one.reserved,
                one.prepared,
                one.latest,
            )
            if one.deadlines is not None:
                held.append(WaitingPod(queued.pod, one.node, dict(one.deadlines), one.since))
        self.waiting.restore(sorted(held, key=lambda waiting: waiting.since))

    def _go_on(self, cycle: BindingCycle) -> list[Command]:
        """Run pre-bind and bind. If a plugin raises, the pod's attempt fails and other pods are not affected."""
        try:
            return self._prepare(cycle)
        except Exception as error:  # noqa: BLE001 - the pod's event reports whatever a plugin raises
            self.abandon(cycle, raised(error))
            return []

    def _prepare(self, cycle: BindingCycle) -> list[Command]:
        pod, profile = cycle.queued.pod, cycle.queued.profile
        cycle.stage = "preparing"
        cycle.state.now = self.now
        while cycle.prepared < len(profile.pre_bind):
            plugin = profile.pre_bind[cycle.prepared]
            answer = plugin.pre_bind(cycle.state, pod, cycle.node)
            if isinstance(answer, Work):
                return [DoWork(pod, cycle.node, plugin.name, cycle.queued.attempts, answer.task)]
            if answer is not None and not answer.ok:
                self.abandon(cycle, answer.of(plugin.name))
                return []
            cycle.prepared += 1
        for binder in profile.bind:
            command = binder.bind(cycle.state, pod, cycle.node)
            if isinstance(command, Bind):
                cycle.stage = "binding"
                return [Bind(command.pod, command.node, cycle.decision, self._extender(pod))]
            if command.code is not Code.SKIP:
                self.abandon(cycle, command.of(binder.name))
                return []
        self.abandon(cycle, failed(NO_BINDER))
        return []

    def _works_for(self, cycle: BindingCycle, plugin: str, attempt: int) -> bool:
        steps = cycle.queued.profile.pre_bind
        return (
            cycle.stage == "preparing"
            and cycle.queued.attempts == attempt
            and cycle.prepared < len(steps)
            and steps[cycle.prepared].name == plugin
        )

    def _undo(self, cycle: BindingCycle) -> None:
        cycle.state.now = self.now
        for plugin in reversed(cycle.queued.profile.reserve[: cycle.reserved]):
            self._call_after("unreserve", plugin, cycle)
        cycle.reserved = 0

    def _call_after(self, point: str, plugin: Plugin, cycle: BindingCycle) -> None:
        """Call post_bind or unreserve; if the plugin raises, report it and continue with the next plugin."""
        pod = cycle.queued.pod
        try:
            getattr(plugin, point)(cycle.state, pod, cycle.node)
        except Exception as error:  # noqa: BLE001 - the pod is bound or released, whatever a plugin raises
            self._raised_after(pod, plugin.name, point, raised(error))
