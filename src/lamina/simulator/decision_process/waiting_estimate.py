"""Estimate of a job's waiting time, which Batsim may ask for."""

from collections.abc import Iterable
from typing import Final

import msgspec

from lamina.simulator.decision_process.followed_job import ONE_CPU, FollowedJob
from lamina.simulator.decision_process.mirrored_cluster import MirroredCluster
from lamina.wire.batsim.job_states import RUNNING
from lamina.wire.batsim.messages import ProtocolError

ESTIMATE: Final = "estimate_waiting_time"
UNKNOWN: Final = -1.0
"""Estimate where jobs without a walltime hold the resources."""


class _AskedJob(msgspec.Struct, frozen=True):
    res: int


class _WaitingQuestion(msgspec.Struct, frozen=True):
    job_id: str
    job: _AskedJob


class WaitingEstimate(msgspec.Struct, frozen=True):
    """The answer."""

    job_id: str
    estimated_waiting_time: float


def estimate_waiting_time(
    arguments: msgspec.Raw, cluster: MirroredCluster, jobs: Iterable[FollowedJob], now: float
) -> WaitingEstimate:
    """
    Return how long a job would wait if every running job used its walltime, and nothing waited before it.

    The job is counted in resources of one cpu. Raises ProtocolError.
    """
    try:
        asked = msgspec.json.decode(arguments, type=_WaitingQuestion)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"data.requests.{ESTIMATE}: {error}") from error
    free = cluster.places(ONE_CPU)
    running = [job for job in jobs if job.state == RUNNING]
    ends = sorted((job.started_at + job.known.walltime, job.known.res) for job in running if job.known.walltime > 0)
    wait = 0.0
    for end, res in ends:
        if free >= asked.job.res:
            break
        free += res
        wait = max(0.0, end - now)
    return WaitingEstimate(asked.job_id, wait if free >= asked.job.res else UNKNOWN)
