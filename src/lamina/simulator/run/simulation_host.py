"""
Host of a simulation run: feeds the cluster's events to the scheduler and performs its commands in virtual time.

All events of one time are collected and fed together. Events that the commands cause at the same time are fed in
another round at that time. During the scheduler's decision latency (`latency`), events wait.

    cluster --record--> trace, observer, meters
       |  --event---> inbox --end of the time step--> decider.feed --commands--> cluster
       +<------------------------------------------------------------------------+
"""

from collections.abc import Callable
from typing import Final

import msgspec

from lamina.model.decision import Decision
from lamina.model.events import BindDone, BindFailed, Event, PodSeen, TimePassed, WorkFailed
from lamina.model.pod import PodUid
from lamina.model.volumes import BindVolumes
from lamina.scheduling.contract.commands import (
    Bind,
    Command,
    DoWork,
    Evict,
    Nominate,
    ReportPluginError,
    ReportUnschedulable,
    WakeAt,
)
from lamina.simulator.cluster import VirtualCluster
from lamina.simulator.decider import Decider
from lamina.simulator.engine import Environment, Timer
from lamina.simulator.engine.environment import INFINITY
from lamina.simulator.run.latency import DecisionTimer
from lamina.simulator.run.run_counters import RecordHandlers
from lamina.simulator.run.volume_work import VolumeWork
from lamina.trace.trace_records import PodDecided, TraceRecord

DECIDE: Final = 10
"""Event priority of the scheduler: after the cluster's events (0) of the same time."""

STALL_SECONDS: Final = 3600.0
"""
Seconds without a trace record after which the run ends although the scheduler still retries pods.

Otherwise a plugin that raises at every attempt, or always requests another wake-up, would keep a run alive for ever.
The host still waits for a wake-up that was requested before, however late: see `Decider.asked_until`.
"""

MOST_ERRORS: Final = 100
"""Number of plugin errors that are kept."""

NO_WORKER: Final = "plugin {} requested background work, which a simulation does not perform"


class SimulationHost:
    """Connects one decider with one cluster. The caller must call `connect` before the run."""

    def __init__(
        self,
        environment: Environment,
        handlers: RecordHandlers,
        bind_delay: float,
    ) -> None:
        """Record with *handlers*; a binding takes *bind_delay* seconds."""
        self._environment = environment
        self._handler_of = handlers.get
        self._bind_delay = bind_delay
        self._decider: Decider
        self._decision_timer: DecisionTimer | None = None
        self._cluster: VirtualCluster | None = None
        self._inbox: list[Event] = []
        self._deciding: Timer | None = None
        self._wake: Timer | None = None
        self._fed_at = self._free_at = -INFINITY
        self._asked_until = self._asked_at = -INFINITY
        self.watchers: list[Callable[[TraceRecord], object]] = []
        """Receive every record, in this order."""
        self.decisions: list[Decision] | None = None
        """All reported decisions, in order; None: they are not kept."""
        self.volume_work: VolumeWork | None = None
        """Does the work of VolumeBinding; None: such work fails."""
        self.preemptions = 0
        """Number of pods that the scheduler evicted in favour of others."""
        self.attempts = 0
        """Number of reported attempts."""
        self.placed_at: dict[PodUid, float] = {}
        """Start of the attempt that placed each pod."""
        self.messages: dict[PodUid, str] = {}
        """Why the last attempt did not place a pod; only pods that are not placed yet."""
        self.plugin_errors: list[str] = []
        """The first errors that plugins raised outside an attempt."""
        self.last_at = 0.0
        """Time of the last trace record."""

    def connect(self, cluster: VirtualCluster, decider: Decider, decision_timer: DecisionTimer | None = None) -> None:
        """Feed *decider* and perform its commands on *cluster*, whose recorder is this host; see `DecisionTimer`."""
        self._cluster = cluster
        self._decider = decider
        self._decision_timer = decision_timer

    # -- records and events ------------------------------------------------------------------------------------------

    def note(self, record: TraceRecord) -> None:
        """Pass a record to its handler and to the watchers."""
        self.last_at = record.at
        handler = self._handler_of(type(record))
        if handler is not None:
            handler(record)
        for watcher in self.watchers:
            watcher(record)

    def publish(self, event: Event) -> None:
        """Queue an event until the end of this time step, or of the current decision latency."""
        self._inbox.append(event)
        if self._deciding is None:
            environment = self._environment
            at = environment.now if self._free_at < environment.now else self._free_at
            self._deciding = environment.at(at, self._decide, priority=DECIDE)
            if at > environment.now:
                # The feed alone does not keep the run alive; the events that it causes do.
                environment.ignore_when_idle(self._deciding)

    def request_feed(self) -> None:
        """Feed the decider at the current time, even without an event: it has commands of its own."""
        if self._deciding is None:
            self._deciding = self._environment.at(self._environment.now, self._decide, priority=DECIDE)

    # -- commands ------------------------------------------------------------------------------------------------------

    def _decide(self) -> None:
        self._deciding = None
        now, events = self._environment.now, self._inbox
        self._inbox = []
        if now > self._fed_at:
            events.insert(0, TimePassed(now))
            self._fed_at = now
        if self._decision_timer is None:
            for command in self._decider.feed(*events):
                self._perform(command, now)
        else:
            self._decide_timed(now, events, self._decision_timer)

    def _decide_timed(self, now: float, events: list[Event], decision_timer: DecisionTimer) -> None:
        """Feed the decider now, and schedule its commands after their latency."""
        timed = decision_timer.feed(events)
        self._free_at = now + timed.seconds
        for began, done, command in timed.steps:
            if done > 0.0:
                self._environment.at(now + done, self._perform, command, now + began, priority=DECIDE)
            else:
                self._perform(command, now)

    def _perform(self, command: Command, began: float) -> None:
        match command:
            case Bind(pod, node, decision):
                # A pod that waited in Permit was decided in an earlier feed.
                earlier = decision is not None and decision.at < self._fed_at
                self.placed_at[pod.uid] = decision.at if decision is not None and earlier else began
                self.messages.pop(pod.uid, None)
                self._decided(decision)
                if self._bind_delay:
                    self._environment.after(self._bind_delay, self._bind, pod.uid, node)
                else:
                    self._bind(pod.uid, node)
            case ReportUnschedulable(pod, decision):
                self.placed_at.pop(pod.uid, None)
                self.messages[pod.uid] = decision.message
                self._decided(decision)
            case WakeAt(at):
                if self._wake is not None:
                    self._environment.cancel(self._wake)
                self._wake = self._environment.at(max(at, self._environment.now), self._wake_up, priority=DECIDE)
                self._environment.ignore_when_idle(self._wake)
            case DoWork(task=BindVolumes() as task) if self.volume_work is not None:
                self.volume_work.begin(command, task)
            case DoWork(pod, _, plugin, attempt, _):
                self.publish(WorkFailed(pod.uid, plugin, attempt, NO_WORKER.format(plugin)))
            case Evict(pod, _, _):
                self.preemptions += self._connected.preempt(pod.uid)
            case ReportPluginError(plugin, point, message, _):
                if len(self.plugin_errors) < MOST_ERRORS:
                    self.plugin_errors.append(f"{plugin}.{point}: {message}")
            case Nominate(pod, node):
                self.publish(PodSeen(msgspec.structs.replace(pod, nominated_node=node)))

    def _bind(self, uid: PodUid, node: str) -> None:
        reason = self._connected.bind(uid, node)
        self.publish(BindFailed(uid, reason) if reason else BindDone(uid))

    def _decided(self, decision: Decision | None) -> None:
        self.attempts += 1
        if decision is not None:
            if self.decisions is not None:
                self.decisions.append(decision)
            self.note(PodDecided(self._environment.now, decision))

    def _wake_up(self) -> None:
        """Feed the current time to the scheduler, unless the run is over."""
        self._wake = None
        if self._environment.idle and self._over:
            return
        if self._deciding is not None:
            return
        if self._free_at > self._environment.now:
            self._deciding = self._environment.at(self._free_at, self._decide, priority=DECIDE)
        else:
            self._decide()

    @property
    def _over(self) -> bool:
        """Whether an idle run has ended: time has no effect any more, or causes failing attempts only."""
        if not self._decider.trying:
            return True
        if self._asked_at != self.last_at:
            # Read once after each record: later requests come from failing attempts.
            self._asked_at, self._asked_until = self.last_at, self._decider.asked_until or -INFINITY
        return self._environment.now > max(self.last_at + STALL_SECONDS, self._asked_until)

    @property
    def _connected(self) -> VirtualCluster:
        assert self._cluster is not None, "connect must be called before the run"
        return self._cluster
