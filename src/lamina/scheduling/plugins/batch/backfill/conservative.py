"""
Conservative backfill: every waiting job has a reservation, and no job delays the reservation of another.

A job gets the earliest time at which nodes are free for all of its walltime, beside the running pods and all other
reservations. Reservations are kept from decision to decision. If pods end early, the jobs move to earlier times one
after the other; none moves to a later one. A job whose nodes leave, or are still in use when its time comes, is planned
anew.

Cost of a decision with N nodes, R resources, S segments and d jobs: O(d·S·N·R). S is at most `MOST_STEPS` and two for
each of the d jobs.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from lamina.scheduling.plugins.batch.backfill.args import JobOrder
from lamina.scheduling.plugins.batch.backfill.availability import Availability
from lamina.scheduling.plugins.batch.backfill.running_pods import PodEnds
from lamina.scheduling.plugins.batch.backfill.waiting_jobs import (
    ChosenRows,
    Room,
    Schedule,
    WaitingJob,
    ordered,
    place_job,
)


def schedule_conservative(
    jobs: Sequence[WaitingJob],
    room: Room,
    ends: PodEnds,
    now: float,
    depth: int,
    order: JobOrder,
    reserved: Mapping[str, tuple[float, ChosenRows]],
) -> Schedule:
    """Return which of *jobs*, given in queue order, start now, and reservations for the others; *reserved* are kept."""
    schedule = Schedule()
    plan = Availability(room, ends, now)
    known = [job for job in jobs if job.name in reserved]
    kept: dict[str, tuple[float, ChosenRows]] = {}
    for job in sorted(known, key=lambda job: reserved[job.name][0]):
        start, rows = reserved[job.name]
        start = max(start, now)
        if plan.keep(job, start, rows):
            kept[job.name] = start, rows
    for job in ordered(_considered(jobs, kept, depth), order):
        before = kept.get(job.name)
        if before is not None:
            plan.vacate(job, *before)
        found = plan.earliest(job, np.inf if before is None else before[0]) or before
        if found is None:
            continue
        plan.occupy(job, *found)
        if found[0] <= now:
            schedule.started.append((job, found[1]))
            continue
        schedule.reserved[job.name] = found
        if place_job(job, room, now=True) is not None:
            schedule.held_back.add(job.name)
    return schedule


def _considered(jobs: Sequence[WaitingJob], kept: Mapping[str, object], depth: int) -> list[WaitingJob]:
    """Return the jobs with a reservation, and the first others up to the depth."""
    left = depth - len(kept)
    found: list[WaitingJob] = []
    for job in jobs:
        if job.name not in kept:
            left -= 1
            if left < 0:
                continue
        found.append(job)
    return found
