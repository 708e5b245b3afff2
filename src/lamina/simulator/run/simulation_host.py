"""
The host of a simulated run: feeds the scheduler what the cluster tells, and performs its commands in virtual time.

Everything that happens at one instant is collected first and fed together; then the scheduler decides. What its commands
cause at the same instant is fed in another round of that instant. While it thinks (see `latency`) what happens waits.

    cluster --record--> trace, observer, meters
       |  --event---> inbox --end of the instant--> decider.feed --commands--> cluster
       +<----------------------------------------------------------------------+
"""

from collections.abc import Callable
from typing import Final

import msgspec

from lamina.model.decision import Decision
from lamina.model.events import BindDone, BindFailed, Event, PodSeen, TimePassed, WorkFailed
from lamina.model.pod import PodUid
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
from lamina.simulator.engine import Environment, Timer
from lamina.simulator.engine.environment import INFINITY
from lamina.simulator.run.decider import Decider
from lamina.simulator.run.latency import DecisionTimer
from lamina.simulator.run.run_counters import RecordHandlers
from lamina.trace.trace_records import PodDecided, TraceRecord

DECIDE: Final = 10
"""Priority of the scheduler among what is due at one instant: after the cluster's own 0."""

STALL_SECONDS: Final = 3600.0
"""
Seconds after which pods are given up that keep failing while nothing else happens.

A plugin that breaks at every attempt, or asks for another time whenever it is asked, would otherwise keep a run going for
ever. A time that a plugin asked for before is waited for, however far it is: see `Decider.asked_until`.
"""

MOST_ERRORS: Final = 100
"""Errors of plugins that are kept."""

NO_WORKER: Final = "nobody does the work of plugin {} in a simulation"


class SimulationHost:
    """Stands between one decider and one cluster; `connect` them before anything happens."""

    def __init__(
        self,
        environment: Environment,
        decider: Decider,
        concerns: RecordHandlers,
        bind_delay: float,
        thinking: DecisionTimer | None = None,
    ) -> None:
        """Feed *decider*, for whom deciding is free without *thinking*; *concerns* says who counts which records."""
        self._environment = environment
        self._decider = decider
        self._concern = concerns.get
        self._bind_delay = bind_delay
        self._thinking = thinking
        self._cluster: VirtualCluster | None = None
        self._inbox: list[Event] = []
        self._deciding: Timer | None = None
        self._wake: Timer | None = None
        self._told = self._free_at = -INFINITY
        self._promised = self._promised_at = -INFINITY
        self.watchers: list[Callable[[TraceRecord], object]] = []
        """Get every record, in this order; empty while nobody looks."""
        self.decisions: list[Decision] | None = None
        """Every decision it was told of, in order, if there is a list for them."""
        self.told = 0
        """How many attempts it was told of."""
        self.chosen: dict[PodUid, float] = {}
        """When the attempt began that found each pod a node."""
        self.messages: dict[PodUid, str] = {}
        """Why each pod was not placed when it was last tried; those that were placed since are not here."""
        self.plugin_errors: list[str] = []
        """What plugins raised where no attempt could fail for it; the first ones."""
        self.last_at = 0.0
        """When something was last written down."""

    def connect(self, cluster: VirtualCluster) -> None:
        """Perform commands on this cluster, which has this host as its witness."""
        self._cluster = cluster

    # -- what the cluster says ---------------------------------------------------------------------------------------

    def note(self, record: TraceRecord) -> None:
        """Take a record."""
        self.last_at = record.at
        concern = self._concern(type(record))
        if concern is not None:
            concern(record)
        for watcher in self.watchers:
            watcher(record)

    def tell(self, event: Event) -> None:
        """Keep an event for the end of this instant, or until the scheduler has thought."""
        self._inbox.append(event)
        if self._deciding is None:
            environment = self._environment
            at = environment.now if self._free_at < environment.now else self._free_at
            self._deciding = environment.at(at, self._decide, priority=DECIDE)
            if at > environment.now:
                # Whatever comes of it will happen then; that it will be heard is nothing that happens.
                environment.excuse(self._deciding)

    # -- what the scheduler wants --------------------------------------------------------------------------------------

    def _decide(self) -> None:
        self._deciding = None
        now, happened = self._environment.now, self._inbox
        self._inbox = []
        if now > self._told:
            happened.insert(0, TimePassed(now))
            self._told = now
        if self._thinking is None:
            for command in self._decider.feed(*happened):
                self._perform(command, now)
        else:
            self._think(now, happened, self._thinking)

    def _think(self, now: float, happened: list[Event], thinking: DecisionTimer) -> None:
        """Feed now, and let the answers come when they would."""
        thought = thinking.feed(happened)
        self._free_at = now + thought.seconds
        for began, done, command in thought.steps:
            if done > 0.0:
                self._environment.at(now + done, self._perform, command, now + began, priority=DECIDE)
            else:
                self._perform(command, now)

    def _perform(self, command: Command, began: float) -> None:
        match command:
            case Bind(pod, node, decision):
                # A pod that had to wait for permission was decided on at an earlier feed.
                earlier = decision is not None and decision.at < self._told
                self.chosen[pod.uid] = decision.at if decision is not None and earlier else began
                self.messages.pop(pod.uid, None)
                self._decided(decision)
                if self._bind_delay:
                    self._environment.after(self._bind_delay, self._bind, pod.uid, node)
                else:
                    self._bind(pod.uid, node)
            case ReportUnschedulable(pod, decision):
                self.chosen.pop(pod.uid, None)
                self.messages[pod.uid] = decision.message
                self._decided(decision)
            case WakeAt(at):
                if self._wake is not None:
                    self._environment.cancel(self._wake)
                self._wake = self._environment.at(max(at, self._environment.now), self._wake_up, priority=DECIDE)
                self._environment.excuse(self._wake)
            case DoWork(pod, _, plugin, attempt, _):
                self.tell(WorkFailed(pod.uid, plugin, attempt, NO_WORKER.format(plugin)))
            case Evict(pod, _, _):
                self._at_work.remove(pod.uid, None)
            case ReportPluginError(plugin, point, message, _):
                if len(self.plugin_errors) < MOST_ERRORS:
                    self.plugin_errors.append(f"{plugin}.{point}: {message}")
            case Nominate(pod, node):
                self.tell(PodSeen(msgspec.structs.replace(pod, nominated_node=node)))

    def _bind(self, uid: PodUid, node: str) -> None:
        refused = self._at_work.bind(uid, node)
        self.tell(BindFailed(uid, refused) if refused else BindDone(uid))

    def _decided(self, decision: Decision | None) -> None:
        self.told += 1
        if decision is not None:
            if self.decisions is not None:
                self.decisions.append(decision)
            self.note(PodDecided(self._environment.now, decision))

    def _wake_up(self) -> None:
        """Let time pass for the scheduler, unless that is all that is left and would change nothing."""
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
        """Whether an idle run has come to its end: time would change nothing more, or nothing but vain attempts."""
        if not self._decider.trying:
            return True
        if self._promised_at != self.last_at:
            # Once after something happened: what is asked for later comes of trying in vain.
            self._promised_at, self._promised = self.last_at, self._decider.asked_until or -INFINITY
        return self._environment.now > max(self.last_at + STALL_SECONDS, self._promised)

    @property
    def _at_work(self) -> VirtualCluster:
        assert self._cluster is not None, "a host is connected before anything happens"
        return self._cluster
