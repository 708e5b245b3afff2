"""
From a chosen node to a bound pod: reserve, permit, pre-bind, bind.

    reserve ─> permit ─> (waits) ─> pre_bind ─> (work) ─> bind ─> (asked) ─> bound
       └──────────┴───────────┴──────────┴─────────┴────────┴──> given up: unreserved, forgotten, queued again

Each arrow into brackets ends a call; an event or the passing of time continues from there.
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
# kube-scheduler's bound on what a permit plugin may ask for.
LONGEST_WAIT: Final = 900.0


class BindingCycle(msgspec.Struct, eq=False):
    """A pod on its way to a node."""

    queued: QueuedPodInfo
    node: str
    state: CycleState
    decision: Decision
    changes: int
    """How many changes the loop had seen when the node was chosen."""
    stage: str = "reserved"
    reserved: int = 0
    """How many reserve plugins have to be undone."""
    prepared: int = 0
    """How many pre-bind plugins are done."""
    latest: Pod | None = None
    """How the pod is by now, if it was changed on its way; counts when it has to be queued again."""


class BindingCycleSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A pod on its way to a node, as data; without what plugins wrote down for it."""

    queued: QueuedPodSnapshot
    node: str
    decision: Decision
    changes: int
    stage: str
    reserved: int
    prepared: int
    latest: Pod | None
    deadlines: dict[str, float] | None
    """Set while permit plugins hold it: when the patience of each ends."""
    since: float
    """Since when they do."""


def _timed_out(plugin: str, waited: float) -> Status:
    minutes, seconds = divmod(waited, 60)
    hours, minutes = divmod(int(minutes), 60)
    # As Go writes durations, because these are kube-scheduler's words.
    text = (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + f"{seconds:g}s"
    return unschedulable(f"rejected due to timeout after waiting {text} at plugin {plugin}").of(plugin)


GiveUpHandler = Callable[[BindingCycle, Status], None]
BindingErrorHandler = Callable[[Pod, str, str, Status], None]
"""Takes the pod, the plugin, its method and what it raised."""


class BindingCycles:
    """All pods on their way. Calls *give_up* for those that do not make it."""

    def __init__(self, give_up: GiveUpHandler, raised_after: BindingErrorHandler) -> None:
        """Start empty; *raised_after* hears of plugins that raise when there is no attempt left to fail."""
        self.now = 0.0
        self.waiting = WaitingPods()
        self._give_up = give_up
        self._raised_after = raised_after
        self._underway: dict[PodUid, BindingCycle] = {}

    def __len__(self) -> int:
        """Count the pods on their way."""
        return len(self._underway)

    def __iter__(self) -> Iterator[BindingCycle]:
        """Go through the pods on their way, oldest first."""
        return iter(tuple(self._underway.values()))

    def get(self, uid: PodUid) -> BindingCycle | None:
        """Return a pod if it is on its way."""
        return self._underway.get(uid)

    def start(self, underway: BindingCycle) -> list[Command]:
        """Take a pod from its decision as far as it gets now."""
        queued = underway.queued
        self._underway[queued.pod.uid] = underway
        underway.state.now = self.now
        profile = queued.profile
        for plugin in profile.reserve:
            underway.reserved += 1
            answer = plugin.reserve(underway.state, queued.pod, underway.node)
            if answer is not None and not answer.ok:
                self.abandon(underway, answer.of(plugin.name))
                return []
        deadlines: dict[str, float] = {}
        for permit in profile.permit:
            word = permit.permit(underway.state, queued.pod, underway.node, self.waiting)
            if isinstance(word, Wait) and word.timeout > 0:
                deadlines[permit.name] = self.now + min(word.timeout, LONGEST_WAIT)
            elif isinstance(word, Wait):
                self.abandon(underway, _timed_out(permit.name, 0.0))
                return self.settle()
            elif word is not None and not word.ok:
                self.abandon(underway, word.of(permit.name))
                return self.settle()
        if deadlines:
            underway.stage = "waiting"
            self.waiting.hold(WaitingPod(queued.pod, underway.node, deadlines, self.now))
            return self.settle()
        return [*self._go_on(underway), *(self.settle() if profile.permit else ())]

    def settle(self) -> list[Command]:
        """Let those go on, and those go back, about whom a permit plugin spoke."""
        commands: list[Command] = []
        allowed, refused = self.waiting.answered()
        while allowed or refused:
            for uid in allowed:
                underway = self._underway.get(uid)
                if underway is not None and underway.stage == "waiting":
                    self.waiting.release(uid)
                    commands.extend(self._go_on(underway))
            for uid, plugin, reason in refused:
                underway = self._underway.get(uid)
                if underway is not None and underway.stage == "waiting":
                    self.abandon(underway, unschedulable(reason).of(plugin))
            allowed, refused = self.waiting.answered()
        return commands

    def pass_time(self, now: float) -> list[Command]:
        """Move on in time: whoever waited too long goes back."""
        self.now = now
        if not len(self.waiting):
            # Whoever was spoken for is settled at once, so that nobody is left to settle.
            return []
        for uid, plugin in self.waiting.overdue(now):
            underway, held = self._underway.get(uid), self.waiting.get(uid)
            if underway is not None and held is not None:
                self.abandon(underway, _timed_out(plugin, held.deadlines[plugin] - held.since))
        return self.settle()

    def work_done(self, uid: PodUid, plugin: str, attempt: int) -> list[Command]:
        """Go on after the work *plugin* asked for; a stale answer is ignored."""
        underway = self._underway.get(uid)
        if underway is None or not self._works_for(underway, plugin, attempt):
            return []
        underway.prepared += 1
        return self._go_on(underway)

    def work_failed(self, uid: PodUid, plugin: str, attempt: int, reason: str) -> None:
        """Send a pod back whose work failed; a stale answer is ignored."""
        underway = self._underway.get(uid)
        if underway is not None and self._works_for(underway, plugin, attempt):
            self.abandon(underway, failed(reason).of(plugin))

    def bound(self, uid: PodUid) -> BindingCycle | None:
        """Finish a pod whose binding was accepted; None when it was not being bound."""
        underway = self._underway.get(uid)
        if underway is None or underway.stage != "binding":
            return None
        del self._underway[uid]
        underway.state.now = self.now
        for plugin in underway.queued.profile.post_bind:
            self._call_after("post_bind", plugin, underway)
        return underway

    def drop(self, uid: PodUid) -> BindingCycle | None:
        """Take a pod off its way because it is gone or went elsewhere; nothing is queued again."""
        underway = self._underway.pop(uid, None)
        if underway is not None:
            self.waiting.release(uid)
            self._undo(underway)
        return underway

    def abandon(self, underway: BindingCycle, status: Status) -> None:
        """Send a pod back."""
        self.drop(underway.queued.pod.uid)
        self._give_up(underway, status)

    def snapshot(self) -> tuple[BindingCycleSnapshot, ...]:
        """Return the pods on their way, oldest first, as data."""
        return tuple(self._saved(underway) for underway in self._underway.values())

    def _saved(self, underway: BindingCycle) -> BindingCycleSnapshot:
        waiting = self.waiting.get(underway.queued.pod.uid)
        return BindingCycleSnapshot(
            queued=underway.queued.snapshot(),
            node=underway.node,
            decision=underway.decision,
            changes=underway.changes,
            stage=underway.stage,
            reserved=underway.reserved,
            prepared=underway.prepared,
            latest=underway.latest,
            deadlines=None if waiting is None else dict(waiting.deadlines),
            since=0.0 if waiting is None else waiting.since,
        )

    def restore(self, now: float, saved: tuple[BindingCycleSnapshot, ...], labels: ShapeNumbers) -> None:
        """Have the pods on their way that the snapshot was taken of; what plugins wrote down for them is lost."""
        self.now = now
        held: list[WaitingPod] = []
        for one in saved:
            queued = restored(one.queued, labels)
            self._underway[queued.pod.uid] = BindingCycle(
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

    def _go_on(self, underway: BindingCycle) -> list[Command]:
        """Prepare and bind a pod; a plugin that raises costs the pod its node, not everybody the scheduler."""
        try:
            return self._prepare(underway)
        except Exception as error:  # noqa: BLE001 - whatever a plugin raises is told to the pod's owner
            self.abandon(underway, raised(error))
            return []

    def _prepare(self, underway: BindingCycle) -> list[Command]:
        pod, profile = underway.queued.pod, underway.queued.profile
        underway.stage = "preparing"
        underway.state.now = self.now
        while underway.prepared < len(profile.pre_bind):
            plugin = profile.pre_bind[underway.prepared]
            answer = plugin.pre_bind(underway.state, pod, underway.node)
            if isinstance(answer, Work):
                return [DoWork(pod, underway.node, plugin.name, underway.queued.attempts, answer.task)]
            if answer is not None and not answer.ok:
                self.abandon(underway, answer.of(plugin.name))
                return []
            underway.prepared += 1
        for binder in profile.bind:
            command = binder.bind(underway.state, pod, underway.node)
            if isinstance(command, Bind):
                underway.stage = "binding"
                return [Bind(command.pod, command.node, underway.decision)]
            if command.code is not Code.SKIP:
                self.abandon(underway, command.of(binder.name))
                return []
        self.abandon(underway, failed(NO_BINDER))
        return []

    def _works_for(self, underway: BindingCycle, plugin: str, attempt: int) -> bool:
        steps = underway.queued.profile.pre_bind
        return (
            underway.stage == "preparing"
            and underway.queued.attempts == attempt
            and underway.prepared < len(steps)
            and steps[underway.prepared].name == plugin
        )

    def _undo(self, underway: BindingCycle) -> None:
        underway.state.now = self.now
        for plugin in reversed(underway.queued.profile.reserve[: underway.reserved]):
            self._call_after("unreserve", plugin, underway)
        underway.reserved = 0

    def _call_after(self, point: str, plugin: Plugin, underway: BindingCycle) -> None:
        """Call a method on which nothing depends any more; if it raises, the others are called all the same."""
        pod = underway.queued.pod
        try:
            getattr(plugin, point)(underway.state, pod, underway.node)
        except Exception as error:  # noqa: BLE001 - the pod is bound, or gives its node back, whatever a plugin raises
            self._raised_after(pod, plugin.name, point, raised(error))
