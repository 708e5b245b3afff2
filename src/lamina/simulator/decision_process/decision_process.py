"""
The decision process: answers messages of a simulator with what a scheduler of Kubernetes decides.

    request --> mirrored cluster: pods come and go --> scheduler binds --> EXECUTE_JOB, REJECT_JOB, KILL_JOB --> reply

A job is executed when all of its pods are bound. Decisions take no time, so every reply has the time of its request. If
the scheduler wants to try again later, the simulator is asked for a call.
"""

import math
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from lamina.model.pod import PodUid
from lamina.model.resources import Amounts
from lamina.simulator.cluster.virtual_pod import ENDED, VirtualPod
from lamina.simulator.decision_process.followed_job import FollowedJob, followed_job
from lamina.simulator.decision_process.gang_turns import GangPolicy, GangTurns
from lamina.simulator.decision_process.mirrored_cluster import MirroredCluster, gang_pod, in_gang
from lamina.simulator.decision_process.waiting_estimate import ESTIMATE, estimate_waiting_time
from lamina.simulator.engine.environment import INFINITY
from lamina.simulator.run.run_parts import DeciderFactory
from lamina.simulator.workloads.imports.pod_drafts import UniqueNames
from lamina.wire.batsim.interval_sets import read_intervals, write_intervals
from lamina.wire.batsim.job_states import REJECTED, RUNNING, SUBMITTED, SUCCESS
from lamina.wire.batsim.messages import ProtocolError, SimulatorEvent, decode_request, encode_message
from lamina.wire.batsim.scheduler_events import (
    AnswerEvent,
    CallMeLater,
    CallTimeData,
    ExecuteJob,
    ExecuteJobData,
    JobIdData,
    JobIdsData,
    KillJob,
    NoticeData,
    NotifyEvent,
    QueryEvent,
    RejectJob,
)
from lamina.wire.batsim.simulator_events import (
    BatsimEvent,
    JobCompleted,
    JobCompletedData,
    JobSubmitted,
    JobSubmittedData,
    RequestedCall,
    SimulationBegins,
    SimulationBeginsData,
    SimulationEnds,
)

FINISHED: Final = "registration_finished"
UNAVAILABLE: Final = "event_machine_unavailable"
AVAILABLE: Final = "event_machine_available"
MOST_RESOURCES: Final = 1_000_000


class DecisionProcess:
    """One simulation, from SIMULATION_BEGINS to SIMULATION_ENDS."""

    def __init__(self, make_decider: DeciderFactory, gangs: GangPolicy = "one-at-a-time") -> None:
        """Decide with the decider that *make_decider* returns."""
        self._make_decider = make_decider
        self._gangs = gangs
        self._mirror: MirroredCluster | None = None
        self._turns: GangTurns
        self._profiles: dict[str, dict[str, msgspec.Raw]] = {}
        self._jobs: dict[str, FollowedJob] = {}
        self._of_pods: dict[PodUid, FollowedJob] = {}
        self._names = UniqueNames()
        self._bound: dict[str, FollowedJob] = {}
        """Jobs with a pod that was bound since the last reply."""
        self._largest: dict[Amounts, int] = {}
        """How many pods with these requests the empty cluster holds."""
        self._killing: dict[str, FollowedJob] = {}
        """Jobs that the simulator was asked to kill and that have not ended there."""
        self._lost: dict[str, FollowedJob] = {}
        """Jobs with a pod that the scheduler deleted since the last reply."""
        self._answers: list[BatsimEvent] = []
        self._call = INFINITY
        """Time of the pending call; infinity: there is none."""
        self._now = 0.0
        self.messages = 0
        """Number of messages that were answered."""
        self.ended = False
        """Whether the simulation has ended."""

    def answer(self, request: bytes) -> bytes:
        """Return the reply to a message. Raises ProtocolError."""
        message = decode_request(request, self._now)
        self._now = message.now
        self._answers = []
        if self._mirror is None:
            self._take_all(message.events)
        else:
            self._mirror.advance(self._time_of(message.events), lambda: self._take_all(message.events))
        if self._mirror is None:
            raise ProtocolError("comes before SIMULATION_BEGINS")
        if not self.ended:
            self._decide(self._mirror)
        self.messages += 1
        return encode_message(message.now, self._answers)

    def _time_of(self, events: Iterable[SimulatorEvent]) -> float:
        """
        Return the time of a message in the mirrored cluster.

        The scheduler tries no pod twice at one time. If resources become free at the time of an earlier message, that is
        therefore the next number after it.
        """
        now = self._cluster().now
        if now >= self._now and any(isinstance(event, JobCompleted | NotifyEvent) for event in events):
            return math.nextafter(now, math.inf)
        return max(now, self._now)

    # -- events ------------------------------------------------------------------------------------------------------

    def _take_all(self, events: Iterable[SimulatorEvent]) -> None:
        for event in events:
            if self.ended:
                raise ProtocolError("has events after SIMULATION_ENDS")
            self._take(event)

    def _take(self, event: SimulatorEvent) -> None:
        match event:
            case SimulationBegins(data=data):
                self._begin(data)
            case SimulationEnds():
                self.ended = True
            case JobSubmitted(data=data):
                self._submitted(data)
            case JobCompleted(data=data):
                self._completed(data)
            case RequestedCall():
                self._call = INFINITY
            case NotifyEvent(data=data):
                self._notified(data)
            case QueryEvent(data=data):
                for name, arguments in data.requests.items():
                    self._query(name, arguments)
            case _:
                # JOB_KILLED follows JOB_COMPLETED; states of resources are not asked for.
                return

    def _begin(self, data: SimulationBeginsData) -> None:
        if self._mirror is not None:
            raise ProtocolError("a second SIMULATION_BEGINS")
        if data.config.redis_enabled:
            raise ProtocolError("data.config: Redis is not read; start Batsim without it")
        mirror = self._mirror = MirroredCluster(
            data.compute_resources, self._make_decider, sharing=data.allow_compute_sharing, now=self._now
        )
        mirror.follow_pods(self._pod_changed)
        self._turns = GangTurns(mirror)
        self._profiles = data.profiles
        if data.config.dynamic_jobs_enabled:
            self._say(NotifyEvent, msgspec.Raw(msgspec.json.encode(NoticeData(type=FINISHED))))

    def _cluster(self) -> MirroredCluster:
        if self._mirror is None:
            raise ProtocolError("comes before SIMULATION_BEGINS")
        return self._mirror

    def _submitted(self, data: JobSubmittedData) -> None:
        mirror = self._cluster()
        if data.job_id in self._jobs:
            raise ProtocolError(f"job_id: there is a job {data.job_id} already")
        job = self._jobs[data.job_id] = followed_job(data, self._profiles)
        if job.requests not in self._largest:
            self._largest[job.requests] = mirror.places(job.requests, empty=True)
        refused = job.is_gang and self._gangs == "refuse"
        if refused or self._largest[job.requests] < job.known.res:
            job.state = REJECTED
            self._say(RejectJob, JobIdData(job_id=job.name))
            return
        gated = self._gated(job)
        self._create(job, gated=gated)
        if gated:
            self._turns.wait(job)

    def _create(self, job: FollowedJob, *, gated: bool) -> None:
        """Create the pods of a job; gated ones wait for the job's turn."""
        job.tries += 1
        if not job.pod_names:
            name, count = self._names.fresh(job.name), job.known.res
            many = (self._names.fresh(f"{name}-{number}") for number in range(1, count + 1))
            job.pod_names = [name] if count == 1 else list(many)
        job.pods = []
        for name in job.pod_names:
            # No name has an underscore.
            uid = name if job.tries == 1 else f"{name}_{job.tries}"
            pod = gang_pod(uid, name, job.image, job.requests, job.known.written(), gated=gated)
            if job.is_gang and self._gangs == "scheduler":
                pod = in_gang(pod, job.pod_names)
            if job.known.walltime > 0:
                pod = msgspec.structs.replace(pod, deadline=job.known.walltime)
            job.pods.append(pod.uid)
            self._of_pods[pod.uid] = job
            self._cluster().submit(pod)

    def _completed(self, data: JobCompletedData) -> None:
        job = self._jobs.get(data.job_id)
        if job is None or job.state != RUNNING:
            state = "is unknown" if job is None else f"has the state {job.state}"
            raise ProtocolError(f"job_id: {data.job_id} cannot be completed: it {state}")
        job.state = data.job_state
        self._killing.pop(job.name, None)
        for uid in self._forget(job):
            self._cluster().finish(uid, failed=data.job_state != SUCCESS)
        self._turns.room_changed()

    def _forget(self, job: FollowedJob) -> list[PodUid]:
        """Let changes of a job's pods mean nothing any more; return the pods."""
        for uid in job.pods:
            self._of_pods.pop(uid, None)
        return job.pods

    def _notified(self, raw: msgspec.Raw) -> None:
        try:
            data = msgspec.json.decode(raw, type=NoticeData)
        except (ValueError, RecursionError):
            # An external event of a type of the user's.
            return
        if data.type in (AVAILABLE, UNAVAILABLE):
            try:
                numbers = read_intervals(data.resources, MOST_RESOURCES)
            except ValueError as error:
                raise ProtocolError(f"data.resources: {error}") from error
            self._cluster().set_available(numbers, available=data.type == AVAILABLE)
            self._turns.room_changed()

    def _query(self, name: str, arguments: msgspec.Raw) -> None:
        if name != ESTIMATE:
            raise ProtocolError(f"data.requests: {name} cannot be answered; ask for {ESTIMATE}")
        answer = estimate_waiting_time(arguments, self._cluster(), self._jobs.values(), self._now)
        self._say(AnswerEvent, {ESTIMATE: msgspec.Raw(msgspec.json.encode(answer))})

    # -- decisions ---------------------------------------------------------------------------------------------------

    def _pod_changed(self, pod: VirtualPod) -> None:
        job = self._of_pods.get(pod.pod.uid)
        if job is None:
            return
        if pod.phase in ENDED:
            self._lost[job.name] = job
        elif pod.node:
            self._bound[job.name] = job

    def _decide(self, mirror: MirroredCluster) -> None:
        """Let the scheduler decide, and give gangs their turns."""
        self._settle(mirror)
        while (job := self._turns.next()) is not None:
            for uid in job.pods:
                mirror.ungate(uid)
            self._settle(mirror)
            if job.state == SUBMITTED and not all(map(mirror.node_of, job.pods)):
                self._turns.failed(job)
                self._undo(job, mirror)
        wake_up = mirror.wake_up
        if wake_up < self._call:
            self._call = wake_up
            self._say(CallMeLater, CallTimeData(timestamp=wake_up))

    def _settle(self, mirror: MirroredCluster) -> None:
        """Let the scheduler react, and report what it did."""
        mirror.settle()
        self._report_lost(mirror)
        bound, self._bound = self._bound, {}
        for job in bound.values():
            nodes = [mirror.node_of(uid) for uid in job.pods]
            if job.state == SUBMITTED and all(nodes):
                self._execute(job, [mirror.numbers[node] for node in nodes])

    def _execute(self, job: FollowedJob, numbers: list[int]) -> None:
        """Execute a job whose pods are all bound, or hold it back while a job that is being killed has its nodes."""
        if self._gated(job) and job.numbers == []:
            self._turns.leave(job)
        job.numbers = numbers
        if any(not set(numbers).isdisjoint(other.numbers) for other in self._killing.values()):
            self._bound[job.name] = job
            return
        hosts = sorted(set(numbers))
        mapping: dict[str, int | str] | None = None
        if len(hosts) < len(numbers):
            mapping = {str(executor): str(hosts.index(number)) for executor, number in enumerate(numbers)}
        job.state, job.started_at = RUNNING, self._now
        self._say(ExecuteJob, ExecuteJobData(job_id=job.name, alloc=write_intervals(hosts), mapping=mapping))

    def _undo(self, job: FollowedJob, mirror: MirroredCluster) -> None:
        """Take back a gang that did not fit as a whole: bindings cannot be undone, so its pods are replaced."""
        for uid in self._forget(job):
            mirror.remove(uid)
        self._settle(mirror)
        self._create(job, gated=True)
        self._settle(mirror)

    def _report_lost(self, mirror: MirroredCluster) -> None:
        """Reject or kill the jobs whose pods the scheduler deleted."""
        lost, self._lost = self._lost, {}
        for job in lost.values():
            pods = self._forget(job)
            if job.state == RUNNING:
                self._killing[job.name] = job
                self._say(KillJob, JobIdsData(job_ids=(job.name,)))
            elif job.state == SUBMITTED:
                job.state = REJECTED
                if self._gated(job) and job.numbers == []:
                    self._turns.leave(job)
                for uid in pods:
                    mirror.remove(uid)
                self._say(RejectJob, JobIdData(job_id=job.name))

    def _gated(self, job: FollowedJob) -> bool:
        return job.is_gang and self._gangs == "one-at-a-time"

    def _say(self, kind: Callable[..., BatsimEvent], data: object) -> None:
        self._answers.append(kind(timestamp=self._now, data=data))
