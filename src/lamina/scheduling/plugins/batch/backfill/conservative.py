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

from lamina.scheduling.plugins.batch.backfill.args import BackfillArgs
from lamina.scheduling.plugins.batch.backfill.availability import Availability
from lamina.scheduling.plugins.batch.backfill.running_pods import ClusterRoom
from lamina.scheduling.plugins.batch.backfill.waiting_jobs import (
    ChosenRows,
    Schedule,
    WaitingJob,
    ordered,
    place_job,
)


def schedule_conservative(
    jobs: Sequence[WaitingJob],
    cluster: ClusterRoom,
    args: BackfillArgs,
    reserved: Mapping[str, tuple[float, ChosenRows]],
) -> Schedule:
    """Return which of *jobs*, given in queue order, start now, and reservations for the others; *reserved* are kept."""
    schedule, now = Schedule(), cluster.now
    plan = Availability(cluster.room, cluster.ends, now)
    known = [job for job in jobs if job.name in reserved]
    kept: dict[str, tuple[float, ChosenRows]] = {}
    for job in sorted(known, key=lambda job: reserved[job.name][0]):
        start, rows = reserved[job.name]
        start = max(start, now)
        if plan.keep(job, start, rows):
            kept[job.name] = start, rows
    # Jobs that count for the depth: those that wait, and those that had a reservation and are not settled yet.
    waiting = len(kept)
    for job in ordered(jobs, args.order):
        before = kept.get(job.name)
        if before is not None:
            plan.vacate(job, *before)
        elif waiting >= args.depth:
            continue
        else:
            waiting += 1
        found = plan.earliest(job, np.inf if before is None else before[0]) or before
        if found is None:
            continue
        plan.occupy(job, *found)
        if found[0] <= now:
            schedule.started.append((job, found[1]))
            waiting -= 1
            continue
        schedule.reserved[job.name] = found
        if place_job(job, cluster.room, now=True) is not None:
            schedule.held_back.add(job.name)
    return schedule
