"""
Waiting jobs as backfill sees them, and the choice of nodes for their pods.

A job is one pod, or a gang whose pods start together. Amounts are arrays with a line for each resource (`Room`: and a
column for each node). Pods of a job that need the same are one `AlikePods`.
"""

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from lamina.model.pod import PodUid
from lamina.scheduling.plugins.batch.backfill.args import JobOrder
from lamina.scheduling.plugins.batch.backfill.running_pods import DECIMALS, add_amounts
from lamina.scheduling.state.columns import Bools, Ints

Room = Ints
"""Free amounts: a line for each resource, a column for each node."""
ChosenRows = tuple[Ints, ...]
"""The rows of a job's pods, for each of its `AlikePods`."""


class AlikePods(msgspec.Struct, frozen=True):
    """Pods of a job with the same needs."""

    uids: tuple[PodUid, ...]
    needs: Ints
    """One amount for each resource."""
    fits: Bools
    """Nodes that pass all filters now."""
    possible: Bools
    """Nodes that could run the pods when resources are free."""
    scores: Ints

    @property
    def count(self) -> int:
        """Number of pods."""
        return len(self.uids)

    def places(self, room: Room, nodes: Bools) -> Ints:
        """Return how many of the pods each of *nodes* has room for; at most all of them."""
        return count_places(self.needs, self.count, room, nodes)


def count_places(needs: Ints, most: int, room: Room, nodes: Bools) -> Ints:
    """Return how many pods each of *nodes* has room for, up to *most*."""
    found = np.where(nodes, most, 0)
    for line in np.flatnonzero(needs > 0).tolist():
        np.minimum(found, room[line] // needs[line], out=found)
    return np.maximum(found, 0, out=found)


class WaitingJob(msgspec.Struct, frozen=True, eq=False):
    """A job that waits."""

    name: str
    parts: tuple[AlikePods, ...]
    walltime: float
    """Seconds; infinity: it may run for ever."""

    @property
    def pods(self) -> int:
        """Number of pods."""
        return sum(part.count for part in self.parts)


class Schedule(msgspec.Struct):
    """What a decision says about the jobs that it looked at."""

    started: list[tuple[WaitingJob, ChosenRows]] = []
    """Jobs that start now, and their rows."""
    reserved: dict[str, tuple[float, ChosenRows]] = {}
    """Start of each job with a reservation, in seconds, and its rows; without rows, it has a number of places."""
    held_back: set[str] = set()
    """Jobs that would fit now and would delay a reservation."""


def choose_nodes(places: Ints, scores: Ints, count: int) -> Ints | None:
    """
    Return the rows of *count* pods, or None if the *places* are too few.

    Nodes with higher scores come first, then lower rows. Each node takes one pod before any takes a second one.
    """
    rows = np.flatnonzero(places)
    if int(places.sum()) < count:
        return None
    rows = rows[np.argsort(-scores[rows], kind="stable")]
    left, chosen = places[rows], []
    while count > 0:
        taken = rows[left > 0][:count]
        chosen.append(taken)
        count -= len(taken)
        left = left - 1
    return np.concatenate(chosen) if chosen else rows[:0]


def place_job(job: WaitingJob, room: Room, *, now: bool) -> ChosenRows | None:
    """Return rows for all pods of a job where *room* suffices, *now* or later; None if there are too few."""
    chosen: list[Ints] = []
    left = room
    for index, part in enumerate(job.parts):
        rows = choose_nodes(part.places(left, part.fits if now else part.possible), part.scores, part.count)
        if rows is None:
            return None
        chosen.append(rows)
        if index + 1 < len(job.parts):
            left = left.copy() if left is room else left
            occupy(left, part.needs, rows)
    return tuple(chosen)


def occupy(room: Room, needs: Ints, rows: Ints) -> None:
    """Take what pods on *rows* need, once for each row in the list."""
    add_amounts(room, rows, -needs[:, np.newaxis])


def occupy_all(room: Room, job: WaitingJob, chosen: ChosenRows) -> None:
    """Take what all pods of a job need."""
    for part, rows in zip(job.parts, chosen, strict=True):
        occupy(room, part.needs, rows)


def ordered(jobs: Sequence[WaitingJob], order: JobOrder) -> list[WaitingJob]:
    """Return jobs in the order in which they are tried; equal ones as they wait."""
    match order:
        case "shortestFirst":
            return sorted(jobs, key=lambda job: job.walltime)
        case "smallestFirst":
            return sorted(jobs, key=lambda job: (job.pods, job.walltime))
        case "largestFirst":
            return sorted(jobs, key=lambda job: (-job.pods, job.walltime))
        case _:
            return list(jobs)


def end_of(now: float, job: WaitingJob) -> float:
    """Return when a job ends at the latest if it starts now."""
    return round(now + job.walltime, DECIMALS) if job.walltime < math.inf else math.inf
