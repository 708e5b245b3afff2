"""
Decider of a run whose scheduler is a decision process of Batsim's.

    cluster --events--> feed --request--> exchange --reply--> SchedulerActions --Bind, kill, …--> cluster

Time stands still during an exchange. The decision process says in its reply when each of its decisions is made and when
it has finished. Decisions of later times are performed then, and what happens until it has finished waits for its next
message, as in Batsim. `exchange` is a function of the caller: it sends a message and returns the answer.

The first message has SIMULATION_BEGINS alone, the last one SIMULATION_ENDS. A run ends when all jobs have ended, no
call is pending, and no job can come any more. If jobs wait and nothing can happen, the run is deadlocked.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

import msgspec

from lamina.model.duration import LONGEST
from lamina.model.events import BindFailed, Event, NodeGone, NodeSeen, PodGone, PodSeen
from lamina.model.plain import plural
from lamina.model.pod import Pod, PodUid
from lamina.scheduling.contract.commands import Command
from lamina.simulator.batsim.batsim_settings import BatsimSettings
from lamina.simulator.batsim.dynamic_jobs import DynamicJobs
from lamina.simulator.batsim.external_notices import ExternalNotices
from lamina.simulator.batsim.host_table import HostTable
from lamina.simulator.batsim.job_descriptions import JobDescriptions
from lamina.simulator.batsim.job_table import JobTable, RunJob
from lamina.simulator.batsim.run_state import BatsimRunState
from lamina.simulator.batsim.scheduler_actions import SchedulerActions
from lamina.simulator.cluster import VirtualCluster
from lamina.simulator.cluster.virtual_pod import ENDED
from lamina.simulator.decider import RunStoppedError
from lamina.simulator.engine import Environment
from lamina.simulator.engine.environment import INFINITY
from lamina.simulator.workloads import Scenario
from lamina.simulator.workloads.imports.batsim_job import BatsimJob
from lamina.wire.batsim.interval_sets import write_intervals
from lamina.wire.batsim.job_states import RUNNING
from lamina.wire.batsim.messages import ProtocolError, SchedulerEvent, decode_reply, encode_message
from lamina.wire.batsim.scheduler_events import CallMeLater, NoticeData
from lamina.wire.batsim.simulator_events import (
    BatsimConfig,
    BatsimEvent,
    RequestedCall,
    SimulationBegins,
    SimulationBeginsData,
    SimulationEnds,
)

NAME: Final = "batsim"
"""Scheduler name of the pods that a decision process places."""
ACT: Final = 10
"""Event priority of decisions whose time has come: that of the host's own decisions."""
MOST_AT_ONE_TIME: Final = 100_000
"""Most messages without virtual time passing, and most calls in a row that had no effect."""

Exchange = Callable[[bytes], bytes]
"""Sends a message and returns the answer. Raises RunStoppedError if there is none."""


class BatsimDecider:
    """Lets a decision process decide."""

    def __init__(
        self,
        environment: Environment,
        cluster: VirtualCluster,
        request_feed: Callable[[], None],
        scenario: Scenario,
        exchange: Exchange,
        settings: BatsimSettings | None = None,
    ) -> None:
        """Decide for the pods of *scenario*; *request_feed* asks the host for another feed."""
        self.names: Collection[str] = (NAME,)
        self.attempts = 0
        """Number of bindings of the last feed."""
        self.trying = False
        """Always False: requested calls are events of the run."""
        self.asked_until: float | None = None
        self.messages = 0
        """Number of messages that were answered."""
        descriptions = JobDescriptions(scenario)
        hosts, jobs = HostTable(scenario), JobTable(cluster)
        self._settings = BatsimSettings() if settings is None else settings
        dynamic = DynamicJobs(scenario, cluster, descriptions, NAME)
        self.state = BatsimRunState(environment, cluster, self._settings, hosts, jobs, descriptions, dynamic)
        self.state.registering = self._settings.dynamic_jobs
        self._environment = environment
        self._cluster = cluster
        self._request_feed = request_feed
        self._scenario = scenario
        self._exchange = exchange
        self._actions = SchedulerActions(self.state, request_feed)
        self._notices = ExternalNotices(self.state, scenario, request_feed)
        self._begun = False
        self.ended = False
        """Whether the decision process was told that the simulation has ended."""
        self._free_at = 0.0
        """When the decision process has finished with the last message."""
        self._here = -1.0
        self._repeated = 0
        """Number of messages at the time `_here`."""
        self._idle_calls = 0
        self._waking = INFINITY
        """Time of the timer that asks for a feed; infinity: there is none."""

    @property
    def over(self) -> bool:
        """Whether all jobs have ended, and nothing more is to come."""
        state = self.state
        rest = state.jobs.waiting, state.jobs.running, state.calls, state.actions, len(state.kills), len(state.outbox)
        return not any(rest) and not state.registering and self._notices.complete and not self._scenario.controllers

    def feed(self, *events: Event) -> Sequence[Command]:
        """Report events to the decision process, unless it is busy; return the bindings of this time."""
        try:
            if self.ended:
                return ()
            self._take(events)
            self._talk()
        except ProtocolError as error:
            raise self._broken(error) from error
        binds = self.state.binds
        self.state.binds = []
        self.attempts = len(binds)
        return binds

    def end(self) -> None:
        """End the simulation for the decision process, if it has not ended. Raises RunStoppedError for a deadlock."""
        if not self._begun or self.ended:
            return
        state, until = self.state, self._scenario.until
        cut = until is not None and self._environment.now >= until
        problem = ""
        if not cut and (state.jobs.waiting or state.registering):
            problem = self._deadlock()
        self.ended = True
        now = max(self._environment.now, self._free_at)
        state.outbox.append(SimulationEnds(timestamp=now))
        try:
            self._send(now)
        except ProtocolError as error:
            raise self._broken(error) from error
        if problem:
            raise RunStoppedError(problem)

    def _deadlock(self) -> str:
        state = self.state
        if state.jobs.waiting:
            waits = f"{plural(state.jobs.waiting, 'job')} will never run ({state.jobs.named_waiting()})"
            return f"deadlock: {waits}: nothing is left to happen, and the scheduler asked for no call"
        return "deadlock: jobs may still be registered, as the scheduler has not sent NOTIFY registration_finished"

    # -- events ------------------------------------------------------------------------------------------------------

    def _take(self, events: Sequence[Event]) -> None:
        """Turn events of the cluster into events for the next message: nodes, then new jobs, then ended ones."""
        if self._begun:
            self._nodes_changed(
                one.node.name if isinstance(one, NodeSeen) else one.name
                for one in events
                if isinstance(one, NodeSeen | NodeGone)
            )
        self._jobs_arrived([one.pod for one in events if isinstance(one, PodSeen)])
        for event in events:
            match event:
                case PodSeen(pod) if pod.finished:
                    self._pod_ended(pod.uid)
                case PodGone(uid):
                    self._pod_ended(uid)
                case BindFailed(uid, _):
                    job = self.state.jobs.of_pod(uid)
                    if job is not None:
                        self._actions.remove_pods(job)
        self._notices.arrived()
        self._actions.answer_kills()

    def _nodes_changed(self, names: Iterable[str]) -> None:
        up, down = self.state.hosts.changed(names, self._cluster)
        for numbers, what in ((down, "event_machine_unavailable"), (up, "event_machine_available")):
            if numbers:
                data = NoticeData(type=what, resources=write_intervals(numbers))
                self._notices.send(msgspec.Raw(msgspec.json.encode(data)))

    def _jobs_arrived(self, pods: Iterable[Pod]) -> None:
        """Submit the jobs of pods that are new."""
        state = self.state
        fresh: dict[str, tuple[BatsimJob, dict[PodUid, None]]] = {}
        seen: dict[PodUid, None] = {}
        for pod in pods:
            if pod.scheduler_name != NAME or pod.node_name or pod.finished or pod.uid in seen:
                continue
            if state.jobs.of_pod(pod.uid) is not None or self._cluster.pods[pod.uid].phase in ENDED:
                continue
            seen[pod.uid] = None
            name, known = state.descriptions.name_of(pod)
            fresh.setdefault(name, (known, {}))[1][pod.uid] = None
        for name, (known, uids) in fresh.items():
            job = RunJob(self._unused(name), list(uids), known)
            job.failing_code = state.descriptions.failing_code(known)
            state.jobs.submit(job)
            self._actions.report_submission(job)

    def _unused(self, name: str) -> str:
        """Return a name for a job: pods that come later than the first pods of their job are another job."""
        number, found = 2, name
        while found in self.state.jobs:
            found, number = f"{name}#{number}", number + 1
        return found

    def _pod_ended(self, uid: PodUid) -> None:
        job = self.state.jobs.pod_ended(uid)
        if job is None or job.state != RUNNING:
            return
        if not job.left:
            self._actions.complete(job)
        elif self._cluster.pods[uid].phase != "finished":
            self._actions.remove_pods(job)

    # -- messages ----------------------------------------------------------------------------------------------------

    def _talk(self) -> None:
        """Send what has happened, unless the decision process is busy."""
        now, state = self._environment.now, self.state
        if now < self._free_at:
            if state.outbox or self.over:
                self._feed_at(self._free_at)
            return
        if not self._begun:
            self._begun = True
            waiting, state.outbox = state.outbox, [self._beginning()]
            self._send(now)
            self._nodes_changed(state.hosts.names)
            state.outbox += waiting
        elif state.outbox:
            self._send(now)
        elif self.over:
            self.ended = True
            state.outbox.append(SimulationEnds(timestamp=now))
            self._send(now)
            return
        if state.outbox or self.over:
            self._feed_at(max(now, self._free_at))

    def _beginning(self) -> SimulationBegins:
        state, settings = self.state, self._settings
        hosts = state.hosts.described()
        data = SimulationBeginsData(
            nb_resources=len(hosts),
            nb_compute_resources=len(hosts),
            allow_compute_sharing=settings.compute_sharing,
            config=BatsimConfig(
                profiles_forwarded_on_submission=settings.forward_profiles,
                dynamic_jobs_enabled=settings.dynamic_jobs,
                dynamic_jobs_acknowledged=settings.acknowledge,
                sched_config=settings.sched_config,
                forward_unknown_events=settings.forward_unknown_events,
            ),
            compute_resources=hosts,
            workloads=state.descriptions.workloads,
            profiles=state.descriptions.profiles,
        )
        return SimulationBegins(timestamp=state.now, data=data)

    def _send(self, now: float) -> None:
        """Send the outbox at time *now*, and plan what the reply says."""
        self._repeated = self._repeated + 1 if now == self._here else 0
        self._here = now
        state, sent = self.state, self.state.outbox
        state.outbox = []
        answer = self._exchange(encode_message(now, sent))
        self.messages += 1
        reply = decode_reply(answer, now)
        if reply.now - now > LONGEST:
            raise ProtocolError(f"now: {reply.now:g} is too far from the request's {now:g}")
        self._free_at = reply.now
        if self.ended:
            # Nothing can be decided after SIMULATION_ENDS.
            return
        self._check_progress(sent, reply.events)
        for event in reply.events:
            if event.timestamp <= now:
                self._actions.perform(event)
            else:
                state.actions += 1
                self._environment.at(event.timestamp, self._act, event, self.messages, priority=ACT)

    def _check_progress(self, sent: Sequence[BatsimEvent], answer: Sequence[SchedulerEvent]) -> None:
        if self._repeated > MOST_AT_ONE_TIME:
            raise ProtocolError(f"more than {MOST_AT_ONE_TIME} messages at {self._here:g} s: time does not move on")
        calls = all(isinstance(one, RequestedCall) for one in sent) and all(
            isinstance(one, CallMeLater) for one in answer
        )
        quiet = calls and not self.state.jobs.running and self._notices.complete
        self._idle_calls = self._idle_calls + 1 if quiet else 0
        if self._idle_calls > MOST_AT_ONE_TIME:
            raise ProtocolError(f"the last {MOST_AT_ONE_TIME} calls changed nothing, and nothing else can happen")

    def _act(self, event: SchedulerEvent, number: int) -> None:
        """Perform a decision whose time has come."""
        self.state.actions -= 1
        try:
            self._actions.perform(event)
        except ProtocolError as error:
            raise self._broken(error, number) from error
        if self.state.binds or self.over:
            self._request_feed()

    def _feed_at(self, time: float) -> None:
        now = self._environment.now
        if time <= now:
            self._request_feed()
        elif not now < self._waking <= time:
            self._waking = time
            self._environment.at(time, self._wake, priority=ACT)

    def _wake(self) -> None:
        self._waking = INFINITY
        self._request_feed()

    def _broken(self, error: ProtocolError, number: int = 0) -> RunStoppedError:
        """Return the end of the run after an invalid reply; *number* is its number, 0 for the last one."""
        return RunStoppedError(f"reply {number or self.messages} at {self._environment.now:g} s: {error.problem}")
