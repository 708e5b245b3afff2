"""
The jobs of a run, each a gang of pods, and their states as the decision process knows them.

    SUBMITTED --EXECUTE_JOB--> RUNNING --all pods have ended--> COMPLETED_*
        |
        +------REJECT_JOB----> REJECTED

A pod that ends badly ends its job: the other pods are removed. Only the decider changes jobs.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from lamina.model.conversion import suggest
from lamina.model.plain import shown
from lamina.model.pod import PodUid
from lamina.simulator.cluster import VirtualCluster, VirtualPod
from lamina.simulator.cluster.pod_runner import DEADLINE
from lamina.simulator.workloads.imports.batsim_job import BatsimJob
from lamina.wire.batsim.job_states import FAILED, KILLED, RUNNING, SUBMITTED, SUCCESS, WALLTIME
from lamina.wire.batsim.messages import ProtocolError

ENDED_BY_BATSIM: Final = -1
"""Return code of jobs that were killed or reached their walltime, as in Batsim."""
MOST_NAMED: Final = 5


class RunJob:
    """One job."""

    __slots__ = ("alloc", "failing_code", "kill_requested", "killed", "known", "left", "name", "pods", "state")

    def __init__(self, name: str, pods: list[PodUid], known: BatsimJob) -> None:
        """Create the job *name* (``workload!job``) of *pods*; *known* is what the workload says about it."""
        self.name = name
        self.pods = pods
        self.known = known
        self.state = SUBMITTED
        self.alloc: tuple[int, ...] = ()
        """Numbers of its nodes."""
        self.left = len(pods)
        """Number of pods that have not ended."""
        self.kill_requested = False
        """Whether a KILL_JOB named it."""
        self.killed = False
        """Whether it ends, or ended, because it was killed."""
        self.failing_code = 1
        """What it returns if it fails."""

    @property
    def exit_code(self) -> int:
        """The return code of a completed job."""
        if self.state == SUCCESS:
            return 0
        return self.failing_code if self.state == FAILED else ENDED_BY_BATSIM


class KillRequest(msgspec.Struct):
    """One KILL_JOB that is not answered yet."""

    names: tuple[str, ...]
    left: set[str]
    """Jobs that have not ended."""
    progress: dict[str, dict[str, object]]
    """Of the jobs that the request ends."""


class JobTable:
    """All jobs that were submitted."""

    def __init__(self, cluster: VirtualCluster) -> None:
        """Look up pods in *cluster*."""
        self._cluster = cluster
        self._jobs: dict[str, RunJob] = {}
        self._of_pods: dict[PodUid, RunJob] = {}
        self._waiting: dict[str, None] = {}
        self.running = 0
        """Number of jobs that were executed and have not ended."""

    @property
    def waiting(self) -> int:
        """Number of jobs that were neither executed nor rejected."""
        return len(self._waiting)

    def named_waiting(self) -> str:
        """Return the first waiting jobs, for a message."""
        names = [name for name, _ in zip(self._waiting, range(MOST_NAMED), strict=False)]
        return ", ".join(names) + (", …" if self.waiting > MOST_NAMED else "")

    def __contains__(self, name: object) -> bool:
        """Return whether there is a job with this name."""
        return name in self._jobs

    def get(self, name: str) -> RunJob:
        """Return a job. Raises ProtocolError if there is none."""
        job = self._jobs.get(name)
        if job is None:
            known = suggest(name, self._jobs)
            raise ProtocolError(f"job_id: there is no job {shown(name)}" + (f"; {known}" if known else ""))
        return job

    def of_pod(self, uid: PodUid) -> RunJob | None:
        """Return the job of a pod that has not ended; None if it has none."""
        return self._of_pods.get(uid)

    def submit(self, job: RunJob) -> None:
        """Add a job that waits."""
        self._jobs[job.name] = job
        self._waiting[job.name] = None
        for uid in job.pods:
            self._of_pods[uid] = job

    def execute(self, job: RunJob, alloc: tuple[int, ...]) -> None:
        """Record that a waiting job was executed."""
        del self._waiting[job.name]
        job.state, job.alloc = RUNNING, alloc
        self.running += 1

    def drop(self, job: RunJob, state: str) -> None:
        """Record that a waiting job will never run."""
        self._waiting.pop(job.name, None)
        job.state = state
        for uid in job.pods:
            self._of_pods.pop(uid, None)

    def pod_ended(self, uid: PodUid) -> RunJob | None:
        """Record that a pod has ended; return its job."""
        job = self._of_pods.pop(uid, None)
        if job is not None:
            job.left -= 1
        return job

    def complete(self, job: RunJob) -> None:
        """Record that all pods of a running job have ended."""
        self.running -= 1
        job.state = self._final_state(job)

    def pods_of(self, job: RunJob) -> Iterator[VirtualPod]:
        """Yield the pods of a job, in order."""
        for uid in job.pods:
            yield self._cluster.pods[uid]

    def progress(self, job: RunJob, now: float) -> dict[str, object]:
        """Return how far a running job has come, as Batsim tells it for a profile without parts."""
        (first, *_) = self.pods_of(job)
        length = first.life.length
        since = first.since
        share = 0.0 if since is None or not length else min(1.0, (now - since) / length)
        return {"profile": job.known.profile, "progress": share}

    def _final_state(self, job: RunJob) -> str:
        if job.killed:
            return KILLED
        pods = list(self.pods_of(job))
        if all(pod.phase == "finished" for pod in pods):
            return SUCCESS
        return WALLTIME if any(pod.reason == DEADLINE for pod in pods) else FAILED
