"""
EASY backfill: the first job that waits for room has a reservation, and no later job delays it.

Jobs start in order while they fit. The first one that does not fit gets a reservation at the *shadow time*: the earliest
time at which it fits if every running pod uses its walltime. A later job starts now if it fits and either ends before
the shadow time, or leaves enough places for the reserved job then. The reservation holds a number of places, not
certain nodes, so a later job may use any node as long as enough places remain.

A job that fits at no such time, because pods without a walltime are in its way, has no reservation and delays none.

Cost of a decision with N nodes, R resources, E running pods and d jobs: O(E log E + (E + N)·R·log E) for the reservation,
and O(N·R) for each of the d jobs, times its pods if it ends after the shadow time.
"""

from collections.abc import Sequence

import numpy as np

from lamina.scheduling.plugins.batch.backfill.args import BackfillArgs
from lamina.scheduling.plugins.batch.backfill.running_pods import ClusterRoom, PodEnds, add_amounts
from lamina.scheduling.plugins.batch.backfill.waiting_jobs import (
    AlikePods,
    ChosenRows,
    Room,
    Schedule,
    WaitingJob,
    choose_nodes,
    count_places,
    end_of,
    occupy,
    occupy_all,
    ordered,
    place_job,
)
from lamina.scheduling.state.columns import Ints


class Reservation:
    """
    The places of one job at its shadow time.

    If its pods differ, the places of most of them are counted, and the others have certain nodes.
    """

    def __init__(self, job: WaitingJob, at: float, room: Room) -> None:
        """Reserve places for *job*, which fits into *room* at time *at*; *room* is changed from then on."""
        self.job = job
        self.at = at
        self._room = room
        counted = max(range(len(job.parts)), key=lambda index: job.parts[index].count)
        self._counted = job.parts[counted]
        for index, part in enumerate(job.parts):
            if index != counted:
                rows = choose_nodes(part.places(room, part.possible), part.scores, part.count)
                assert rows is not None, "the job fits"
                occupy(room, part.needs, rows)
        self._places = self._count(slice(None))
        self._surplus = int(self._places.sum()) - self._counted.count

    def try_place(self, part: AlikePods, room: Room) -> Ints | None:
        """
        Choose nodes for pods that run beyond the shadow time, and take their places; None if there are too few.

        Takes them from *room* as well. Each pod gets the node with the best score among those with the fewest pods of
        this call. The caller must `undo` what it does not use.
        """
        places = np.minimum(part.places(room, part.fits), part.places(self._room, part.fits))
        used, rows = np.zeros(len(places), dtype=np.int64), []
        lost = self._lost(part.needs)
        for _ in range(part.count):
            open_rows = np.flatnonzero((places > 0) & (lost <= self._surplus))
            if not len(open_rows):
                break
            open_rows = open_rows[used[open_rows] == used[open_rows].min()]
            row = int(open_rows[np.argmax(part.scores[open_rows])])
            rows.append(row)
            used[row] += 1
            places[row] -= 1
            self._surplus -= int(lost[row])
            self._take(part.needs, row, 1)
            room[:, row] -= part.needs
            lost[row] = self._lost(part.needs, slice(row, row + 1))[0]
        found = np.array(rows, dtype=np.int64)
        if len(rows) == part.count:
            return found
        self.undo(part, found, room)
        return None

    def undo(self, part: AlikePods, rows: Ints, room: Room) -> None:
        """Give back the places of pods."""
        for row in rows.tolist():
            self._take(part.needs, row, -1)
            room[:, row] += part.needs
        self._surplus = int(self._places.sum()) - self._counted.count

    def _take(self, needs: Ints, row: int, times: int) -> None:
        self._room[:, row] -= times * needs
        one = slice(row, row + 1)
        self._places[one] = self._count(one)

    def _count(self, rows: slice, less: Ints | None = None) -> Ints:
        room = self._room[:, rows]
        if less is not None:
            room = room - less[:, np.newaxis]
        counted = self._counted
        return count_places(counted.needs, counted.count, room, counted.possible[rows])

    def _lost(self, needs: Ints, rows: slice = slice(None)) -> Ints:
        """Return how many places a pod would take on each node."""
        return self._places[rows] - self._count(rows, needs)


def schedule_easy(jobs: Sequence[WaitingJob], cluster: ClusterRoom, args: BackfillArgs) -> Schedule:
    """Return which of *jobs*, given in queue order, start now."""
    now, room, ends = cluster.now, cluster.room, cluster.ends
    schedule = Schedule()
    waiting, blocked = iter(jobs), 0
    reservation: Reservation | None = None
    for job in waiting:
        rows = place_job(job, room, now=True)
        if rows is not None:
            occupy_all(room, job, rows)
            schedule.started.append((job, rows))
            ends = _with(ends, job, rows, now)
            continue
        reservation = _reserve(job, room, ends)
        if reservation is not None:
            schedule.reserved[job.name] = (reservation.at, ())
            break
        blocked += 1
        if blocked > args.depth:
            break
    if reservation is None:
        return schedule
    candidates = [job for job, _ in zip(waiting, range(args.depth - blocked), strict=False)]
    for job in ordered(candidates, args.order):
        rows = place_job(job, room, now=True)
        if rows is None:
            continue
        if end_of(now, job) <= reservation.at:
            occupy_all(room, job, rows)
            schedule.started.append((job, rows))
            continue
        found = _beside(job, reservation, room)
        if found is None:
            schedule.held_back.add(job.name)
        else:
            schedule.started.append((job, found))
    return schedule


def _beside(job: WaitingJob, reservation: Reservation, room: Room) -> ChosenRows | None:
    """Place a job that runs beyond the shadow time."""
    chosen: list[Ints] = []
    for part in job.parts:
        rows = reservation.try_place(part, room)
        if rows is None:
            for placed, used in zip(job.parts, chosen, strict=False):
                reservation.undo(placed, used, room)
            return None
        chosen.append(rows)
    return tuple(chosen)


def _with(ends: PodEnds, job: WaitingJob, chosen: ChosenRows, now: float) -> PodEnds:
    """Return the ends with those of a job that starts now."""
    end = end_of(now, job)
    if not np.isfinite(end):
        return ends
    at, rows, amounts = [ends.at], [ends.rows], [ends.amounts]
    for part, used in zip(job.parts, chosen, strict=True):
        at.append(np.full(len(used), end))
        rows.append(used)
        amounts.append(np.repeat(part.needs[:, np.newaxis], len(used), axis=1))
    every = np.concatenate(at)
    sorted_by_time = np.argsort(every, kind="stable")
    return PodEnds(
        every[sorted_by_time],
        np.concatenate(rows)[sorted_by_time],
        np.concatenate(amounts, axis=1)[:, sorted_by_time],
    )


def _reserve(job: WaitingJob, room: Room, ends: PodEnds) -> Reservation | None:
    """Return the reservation of a job; None if no end of a running pod lets it fit."""
    if place_job(job, room, now=False) is not None:
        # A filter refuses it for another reason than resources: no end is known to change that.
        return None
    times, counts = _steps(ends)
    low, high = 0, len(times)
    found: Room | None = None
    while low < high:
        middle = (low + high) // 2
        later = _room_after(room, ends, counts[middle])
        if place_job(job, later, now=False) is None:
            low = middle + 1
        else:
            high, found = middle, later
    return None if found is None else Reservation(job, times[low], found)


def _steps(ends: PodEnds) -> tuple[list[float], list[int]]:
    """Return the distinct times of ends, and how many pods have ended at each."""
    times, firsts = np.unique(ends.at, return_index=True)
    return times.tolist(), [*firsts[1:].tolist(), len(ends.at)]


def _room_after(room: Room, ends: PodEnds, count: int) -> Room:
    later = room.copy()
    add_amounts(later, ends.rows[:count], ends.amounts[:, :count])
    return later
