"""
Jobs of several pods, behind a scheduler that knows no gangs: one after the other, and all of a job's pods or none.

    gated --turn--> open --all pods bound--> executed
      ^               |
      +---- undone ---+   some pods had no room: its pods are deleted and created again, gated

Only jobs whose pods would fit by their requests get a turn, the oldest first. A job that did not fit gets its next turn
when resources have become free; so do jobs with the same pods. Other jobs overtake it.
"""

from collections import OrderedDict, deque
from typing import Literal

from lamina.model.resources import Amounts
from lamina.simulator.decision_process.followed_job import FollowedJob
from lamina.simulator.decision_process.mirrored_cluster import MirroredCluster

GangPolicy = Literal["one-at-a-time", "refuse", "scheduler"]
"""
What happens to jobs of several resources.

    one-at-a-time    the scheduler knows no gangs: each gets a turn
    refuse           they are rejected
    scheduler        the scheduler knows gangs: all pods are shown to it at once
"""

Shape = tuple[Amounts, int]
"""Requests and number of pods; jobs of one shape fit or do not fit together."""


class GangTurns:
    """The order in which waiting gangs are tried."""

    def __init__(self, cluster: MirroredCluster) -> None:
        """Look for room in *cluster*."""
        self._cluster = cluster
        self._waiting: OrderedDict[Shape, deque[tuple[int, FollowedJob]]] = OrderedDict()
        self._serial = 0
        self._tried: dict[Shape, None] = {}
        """Shapes that did not fit since resources became free last."""

    def wait(self, job: FollowedJob) -> None:
        """Add a job that was submitted."""
        self._serial += 1
        self._waiting.setdefault(_shape(job), deque()).append((self._serial, job))

    def room_changed(self) -> None:
        """Try all jobs again: resources have become free."""
        self._tried.clear()

    def next(self) -> FollowedJob | None:
        """Return the oldest job that may fit; None if none does."""
        free: dict[Amounts, int] = {}
        found: tuple[int, FollowedJob] | None = None
        for shape, jobs in self._waiting.items():
            requests, count = shape
            if shape in self._tried or (found is not None and jobs[0][0] > found[0]):
                continue
            if requests not in free:
                free[requests] = self._cluster.places(requests)
            if free[requests] >= count:
                found = jobs[0]
        return None if found is None else found[1]

    def failed(self, job: FollowedJob) -> None:
        """Note that a job did not fit, although its requests would."""
        self._tried[_shape(job)] = None

    def leave(self, job: FollowedJob) -> None:
        """Remove a job that was executed or rejected."""
        shape = _shape(job)
        jobs = self._waiting[shape]
        if jobs[0][1] is job:
            jobs.popleft()
        else:
            self._waiting[shape] = jobs = deque(one for one in jobs if one[1] is not job)
        if not jobs:
            del self._waiting[shape]


def _shape(job: FollowedJob) -> Shape:
    return job.requests, job.known.res
