"""
The host of a simulated run: feeds the loop what the cluster tells, and performs its commands in virtual time.

Everything that happens at one instant is collected first and fed together; then the loop decides. What its commands
cause at the same instant is fed in another round of that instant.

    cluster --record--> trace, observer
       |  --event---> inbox --end of the instant--> loop.feed --commands--> cluster
       +<----------------------------------------------------------------------+
"""

from collections.abc import Callable
from typing import Final

import msgspec

from lamina.model.decision import Decision
from lamina.model.events import BindDone, BindFailed, Event, PodSeen, TimePassed, WorkFailed
from lamina.model.pod import Pod
from lamina.scheduling.framework.commands import Bind, Command, DoWork, Evict, Nominate, TellPending, WakeAt
from lamina.scheduling.loop.loop import Loop
from lamina.simulator.cluster import Cluster
from lamina.simulator.engine import Environment, Timer
from lamina.simulator.engine.environment import INFINITY
from lamina.trace.records import Decided, Record

DECIDE: Final = 10
"""Priority of the scheduler among what is due at one instant: after the cluster's own 0."""

PATIENCE: Final = 3600.0
"""
Seconds after which pods are given up that keep failing while nothing else happens.

A plugin that breaks at every attempt would otherwise keep a run going for ever. Longer than any permit may wait.
"""

NO_WORKER: Final = "nobody does the work of plugin {} in a simulation"


class Host:
    """Stands between one loop and one cluster; `connect` them before anything happens."""

    def __init__(
        self, environment: Environment, loop: Loop, watch: Callable[[Record], None], bind_delay: float
    ) -> None:
        """Feed *loop*; *watch* gets every record."""
        self._environment = environment
        self._loop = loop
        self._watch = watch
        self._bind_delay = bind_delay
        self._cluster: Cluster | None = None
        self._inbox: list[Event] = []
        self._deciding: Timer | None = None
        self._wake: Timer | None = None
        self._told = -INFINITY
        self.decisions: list[Decision] = []
        """Every decision the loop told of, in order."""
        self.last_at = 0.0
        """When something was last written down."""

    def connect(self, cluster: Cluster) -> None:
        """Perform commands on this cluster, which has this host as its witness."""
        self._cluster = cluster

    # -- what the cluster says ---------------------------------------------------------------------------------------

    def note(self, record: Record) -> None:
        """Take a record."""
        self.last_at = record.at
        self._watch(record)

    def tell(self, event: Event) -> None:
        """Keep an event for the end of this instant."""
        self._inbox.append(event)
        if self._deciding is None:
            self._deciding = self._environment.after(0.0, self._decide, priority=DECIDE)

    # -- what the loop wants -----------------------------------------------------------------------------------------

    def _decide(self) -> None:
        self._deciding = None
        now, happened = self._environment.now, self._inbox
        self._inbox = []
        if now > self._told:
            happened.insert(0, TimePassed(now))
            self._told = now
        for command in self._loop.feed(*happened):
            self._perform(command)

    def _perform(self, command: Command) -> None:
        match command:
            case Bind(pod, node, decision):
                self._decided(decision)
                self._environment.after(self._bind_delay, self._bind, pod, node)
            case TellPending(_, decision):
                self._decided(decision)
            case WakeAt(at):
                if self._wake is not None:
                    self._environment.cancel(self._wake)
                self._wake = self._environment.at(max(at, self._environment.now), self._wake_up, priority=DECIDE)
            case DoWork(pod, _, plugin, attempt, _):
                self.tell(WorkFailed(pod.uid, plugin, attempt, NO_WORKER.format(plugin)))
            case Evict(pod, _, _):
                self._at_work.remove(pod.uid)
            case Nominate(pod, node):
                self.tell(PodSeen(msgspec.structs.replace(pod, nominated_node=node)))

    def _bind(self, pod: Pod, node: str) -> None:
        refused = self._at_work.bind(pod.uid, node)
        self.tell(BindFailed(pod.uid, refused) if refused else BindDone(pod.uid))

    def _decided(self, decision: Decision | None) -> None:
        if decision is not None:
            self.decisions.append(decision)
            self.note(Decided(self._environment.now, decision))

    def _wake_up(self) -> None:
        """Let time pass in the loop, unless that is all that is left and would change nothing."""
        self._wake = None
        only_this = self._environment.peek() == INFINITY
        if only_this and (not self._trying() or self._environment.now > self.last_at + PATIENCE):
            return
        self._decide()

    def _trying(self) -> bool:
        """Whether the loop will do something by itself; pods that fit nowhere only wait for a change."""
        counts = self._loop.state.queue.counts()
        return counts["active"] + counts["backoff"] + len(self._loop.state.bindings) > 0

    @property
    def _at_work(self) -> Cluster:
        assert self._cluster is not None, "a host is connected before anything happens"
        return self._cluster
