"""
The waiting jobs that backfill knows, in the order in which they wait.

A batch has the pods that were popped at one time. Jobs that were refused before wait outside of it; they are remembered
with their last evaluation, because their reservations hold for every batch.

Jobs of a higher priority come first, then those that arrived first.
"""

from typing import TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from lamina.model.pod import PodUid
from lamina.scheduling.plugins.batch.backfill.waiting_jobs import WaitingJob

T = TypeVar("T", bound=np.generic)


class ListedJob(msgspec.Struct, eq=False):
    """A waiting job, with what orders it."""

    priority: int
    arrived_at: float
    number: int
    """In order of arrival at the plugin."""
    job: WaitingJob

    @property
    def place(self) -> tuple[int, float, int]:
        """Sort key."""
        return -self.priority, self.arrived_at, self.number


class JobList:
    """All jobs that wait."""

    def __init__(self) -> None:
        """Start empty."""
        self._jobs: dict[str, ListedJob] = {}
        self._of_pods: dict[PodUid, str] = {}
        self._serial = 0

    def __len__(self) -> int:
        """Return the number of jobs."""
        return len(self._jobs)

    def put(self, job: WaitingJob, priority: int, arrived_at: float) -> None:
        """Add a job, or replace it by its new evaluation."""
        known = self._jobs.get(job.name)
        if known is None:
            self._serial += 1
            number = self._serial
        else:
            number = known.number
            self._forget_pods(known.job)
        self._jobs[job.name] = ListedJob(priority, arrived_at, number, job)
        for part in job.parts:
            self._of_pods.update(dict.fromkeys(part.uids, job.name))

    def remove(self, name: str) -> None:
        """Remove a job that starts or left."""
        known = self._jobs.pop(name, None)
        if known is not None:
            self._forget_pods(known.job)

    def job_of(self, uid: PodUid) -> str | None:
        """Return the name of a pod's job; None if it does not wait."""
        return self._of_pods.get(uid)

    def in_order(self, resources: int, nodes: int) -> list[WaitingJob]:
        """Return all jobs in order; their arrays have one element for each of *resources* or *nodes*."""
        return [_resized(one.job, resources, nodes) for one in sorted(self._jobs.values(), key=lambda one: one.place)]

    def _forget_pods(self, job: WaitingJob) -> None:
        for part in job.parts:
            for uid in part.uids:
                self._of_pods.pop(uid, None)


def _resized(job: WaitingJob, resources: int, nodes: int) -> WaitingJob:
    """Return a job whose arrays cover nodes that were added since; it cannot use them before it is evaluated again."""
    if all(len(part.fits) == nodes and len(part.needs) == resources for part in job.parts):
        return job
    parts = tuple(
        msgspec.structs.replace(
            part,
            needs=_of_length(part.needs, resources),
            fits=_of_length(part.fits, nodes),
            possible=_of_length(part.possible, nodes),
            scores=_of_length(part.scores, nodes),
        )
        for part in job.parts
    )
    return msgspec.structs.replace(job, parts=parts)


def _of_length(array: npt.NDArray[T], length: int) -> npt.NDArray[T]:
    wide: npt.NDArray[T] = np.zeros(length, dtype=array.dtype)
    wide[: len(array)] = array[:length]
    return wide
