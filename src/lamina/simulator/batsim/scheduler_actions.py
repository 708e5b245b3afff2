"""
What the events of a decision process do in the cluster.

Each event is performed at its timestamp. One that is impossible, such as executing a job twice, raises ProtocolError,
where Batsim would abort.
"""

import math
from collections.abc import Callable
from typing import Final

import msgspec

from lamina.model.duration import LONGEST
from lamina.model.plain import shown
from lamina.scheduling.contract.commands import Bind
from lamina.simulator.batsim.job_table import KillRequest, RunJob
from lamina.simulator.batsim.run_state import BatsimRunState
from lamina.simulator.cluster.virtual_pod import ENDED
from lamina.wire.batsim.interval_sets import read_intervals, write_intervals
from lamina.wire.batsim.job_states import REJECTED, RUNNING, SUBMITTED
from lamina.wire.batsim.messages import ProtocolError, SchedulerEvent
from lamina.wire.batsim.scheduler_events import (
    AnswerEvent,
    CallMeLater,
    ExecuteJob,
    ExecuteJobData,
    KillJob,
    NoticeData,
    NotifyEvent,
    QueryEvent,
    RegisterJob,
    RegisterProfile,
    RejectJob,
    SetJobMetadata,
)
from lamina.wire.batsim.simulator_events import (
    ABSENT,
    JobCompleted,
    JobCompletedData,
    JobKilled,
    JobKilledData,
    JobSubmitted,
    JobSubmittedData,
    RequestedCall,
)

NO_ENERGY: Final = -1.0
"""The consumed energy in answers, as in tables: energy is not simulated."""
ENERGY: Final = "consumed_energy"
FINISHED: Final = "registration_finished"
CONTINUE: Final = "continue_registration"
MOST_CALLS: Final = 100_000
"""Most calls that may be pending at one time."""
MOST_METADATA: Final = 4096
"""Longest metadata of a job in characters."""

RING: Final = 10
"""Event priority of a requested call: after what happens in the cluster at that time."""


class SchedulerActions:
    """Performs the events of one decision process."""

    def __init__(self, state: BatsimRunState, request_feed: Callable[[], None]) -> None:
        """Change *state*; *request_feed* is called when the decision process has to be told something."""
        self._state = state
        self._request_feed = request_feed

    def perform(self, event: SchedulerEvent) -> None:
        """Do what an event asks for. Raises ProtocolError."""
        match event:
            case ExecuteJob(data=data):
                self._execute(data)
            case RejectJob(data=data):
                self._reject(data.job_id)
            case KillJob(data=data):
                self._kill(data.job_ids)
            case CallMeLater(data=data, timestamp=asked):
                self._call_at(data.timestamp, asked)
            case RegisterProfile(data=data):
                self._check_dynamic(event)
                self._state.dynamic.add_profile(data)
            case RegisterJob():
                self._check_dynamic(event)
                self._register(event)
            case NotifyEvent(data=data):
                self._notified(data)
            case QueryEvent(data=data):
                self._answer(event, list(data.requests))
            case SetJobMetadata(data=data):
                self._state.jobs.get(data.job_id)
                if len(data.metadata) > MOST_METADATA:
                    raise ProtocolError(f"metadata: longer than {MOST_METADATA} characters")
                self._state.metadata[data.job_id] = data.metadata
            case AnswerEvent():
                raise ProtocolError("answers a question that was not asked")
            case _:
                raise ProtocolError("power states, and states of jobs that are not executed, are not simulated")

    # -- jobs --------------------------------------------------------------------------------------------------------

    def _execute(self, data: ExecuteJobData) -> None:
        state = self._state
        job = state.jobs.get(data.job_id)
        if job.state != SUBMITTED:
            raise ProtocolError(f"job_id: {shown(job.name)} cannot be executed: its state is {job.state}")
        try:
            hosts = read_intervals(data.alloc, len(state.hosts))
        except ValueError as error:
            raise ProtocolError(f"alloc: {error}") from error
        targets = _mapped(job, hosts, data)
        for number in hosts:
            self._check_host(job, number)
        state.jobs.execute(job, hosts)
        state.hosts.occupy(hosts, job.name)
        if job.left < len(job.pods):
            # The scenario has removed a pod of it, which Batsim has no word for.
            job.killed = True
            self.remove_pods(job)
            if not job.left:
                self.complete(job)
            self._request_feed()
            return
        for uid, number in zip(job.pods, targets, strict=True):
            state.binds.append(Bind(state.cluster.pods[uid].pod, state.hosts.names[number]))

    def _check_host(self, job: RunJob, number: int) -> None:
        hosts = self._state.hosts
        if number in hosts.unavailable:
            raise ProtocolError(f"alloc: resource {number} ({hosts.names[number]}) is unavailable")
        busy = hosts.jobs_on(number)
        if busy and not self._state.settings.compute_sharing:
            where = f"resource {number} ({hosts.names[number]}) runs {shown(busy[0])}"
            raise ProtocolError(f"alloc: {where}, so {shown(job.name)} cannot; allow sharing with compute-sharing")

    def remove_pods(self, job: RunJob) -> None:
        """Remove the pods of a job that have not ended."""
        for pod in self._state.jobs.pods_of(job):
            if pod.phase not in ENDED:
                self._state.cluster.remove(pod.pod.uid, 0.0)

    def complete(self, job: RunJob) -> None:
        """Report a job whose pods have all ended, and answer requests to kill it."""
        state = self._state
        state.jobs.complete(job)
        state.hosts.vacate(job.alloc, job.name)
        done = JobCompletedData(
            job_id=job.name,
            job_state=job.state,
            return_code=job.exit_code,
            alloc=write_intervals(job.alloc),
        )
        state.outbox.append(JobCompleted(timestamp=state.now, data=done))
        for request in state.kills:
            request.left.discard(job.name)

    def answer_kills(self) -> None:
        """Answer the requests to kill jobs that have all ended."""
        state = self._state
        for request in state.kills:
            if not request.left:
                data = JobKilledData(job_ids=request.names, job_progress=request.progress)
                state.outbox.append(JobKilled(timestamp=state.now, data=data))
        state.kills = [request for request in state.kills if request.left]

    def _reject(self, name: str) -> None:
        job = self._state.jobs.get(name)
        if job.state != SUBMITTED:
            raise ProtocolError(f"job_id: {shown(name)} cannot be rejected: its state is {job.state}")
        self._state.jobs.drop(job, REJECTED)
        self.remove_pods(job)

    def _kill(self, names: tuple[str, ...]) -> None:
        state = self._state
        jobs = {name: state.jobs.get(name) for name in names}
        for job in jobs.values():
            if job.state in {SUBMITTED, REJECTED}:
                raise ProtocolError(f"job_ids: {shown(job.name)} cannot be killed: its state is {job.state}")
        # A job is killed once, as in Batsim: another request does not name it again.
        fresh = {name: job for name, job in jobs.items() if not job.kill_requested}
        if not fresh:
            return
        for job in fresh.values():
            job.kill_requested = True
        running = {name: job for name, job in fresh.items() if job.state == RUNNING}
        progress = {name: state.jobs.progress(job, state.now) for name, job in running.items()}
        state.kills.append(KillRequest(tuple(fresh), set(running), progress))
        for job in running.values():
            job.killed = True
            self.remove_pods(job)
        self._request_feed()

    # -- the rest ----------------------------------------------------------------------------------------------------

    def _call_at(self, at: float, asked: float) -> None:
        state = self._state
        if not (math.isfinite(at) and at <= LONGEST * 10):
            raise ProtocolError(f"data.timestamp: {at:g} is too far away")
        if at < asked:
            raise ProtocolError(f"data.timestamp: {at:.17g} is in the past; the event is at {asked:.17g}")
        if state.calls >= MOST_CALLS:
            raise ProtocolError(f"more than {MOST_CALLS} calls are pending")
        state.calls += 1
        state.environment.at(max(at, state.now), self._ring, priority=RING)

    def _ring(self) -> None:
        self._state.calls -= 1
        self._state.outbox.append(RequestedCall(timestamp=self._state.now))
        self._request_feed()

    def _check_dynamic(self, event: RegisterJob | RegisterProfile) -> None:
        if not self._state.settings.dynamic_jobs:
            raise ProtocolError("registering is not enabled; start the run with dynamic-jobs")
        if not self._state.registering:
            raise ProtocolError(f"comes after {FINISHED}; send {CONTINUE} before")

    def _register(self, event: RegisterJob) -> None:
        state = self._state
        if event.data.job_id in state.jobs:
            raise ProtocolError(f"job_id: there is a job {shown(event.data.job_id)} already")
        job = state.dynamic.add_job(event.data, state.now)
        job.failing_code = state.descriptions.failing_code(job.known)
        state.jobs.submit(job)
        if state.settings.acknowledge:
            self.report_submission(job)
            self._request_feed()

    def report_submission(self, job: RunJob) -> None:
        """Tell the decision process of a job."""
        state = self._state
        pods = list(state.jobs.pods_of(job))
        profile = state.descriptions.profile(job.known, pods[0].life) if state.settings.forward_profiles else ABSENT
        described = state.descriptions.described(job.name, job.known, pods)
        data = JobSubmittedData(job_id=job.name, job=described, profile=profile)
        state.outbox.append(JobSubmitted(timestamp=state.now, data=data))

    def _notified(self, raw: msgspec.Raw) -> None:
        try:
            data = msgspec.json.decode(raw, type=NoticeData)
        except (ValueError, RecursionError) as error:
            raise ProtocolError(f"data: {error}") from error
        if data.type not in (FINISHED, CONTINUE):
            raise ProtocolError(f"data.type: {shown(data.type)} means nothing here; send {FINISHED} or {CONTINUE}")
        if not self._state.settings.dynamic_jobs:
            return
        self._state.registering = data.type == CONTINUE
        # The run may be over now.
        self._request_feed()

    def _answer(self, event: QueryEvent, names: list[str]) -> None:
        if names != [ENERGY]:
            raise ProtocolError(f"data.requests: {shown(', '.join(names))} cannot be answered; ask for {ENERGY}")
        answer = {ENERGY: msgspec.Raw(msgspec.json.encode(NO_ENERGY))}
        self._state.outbox.append(AnswerEvent(timestamp=self._state.now, data=answer))
        self._request_feed()


def _mapped(job: RunJob, hosts: tuple[int, ...], data: ExecuteJobData) -> list[int]:
    """Return the node of each pod: one after the other, or as the mapping says. Raises ProtocolError."""
    count = len(job.pods)
    if data.mapping is None:
        if len(hosts) != count:
            raise ProtocolError(f"alloc: {shown(job.name)} needs {count} resources and got {len(hosts)}")
        return list(hosts)
    message = f"mapping: send one that maps each executor from 0 to {count - 1} to a position in the allocation"
    try:
        mapping = {int(executor): int(place) for executor, place in data.mapping.items()}
    except ValueError:
        raise ProtocolError(message) from None
    places = [mapping.get(executor, -1) for executor in range(count)]
    if len(mapping) != count or min(places) < 0 or max(places) >= len(hosts):
        raise ProtocolError(message)
    return [hosts[place] for place in places]
