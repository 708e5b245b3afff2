"""
Free amounts on every node over time, for conservative backfill.

The time from now on is cut into segments; within one, nothing changes. The first segment is what is free now, and the
last one has no end.

With many running pods, ends that follow each other are joined at the last of them, so that there are at most
`MOST_STEPS` of them. The plan is then later than necessary, never earlier.

A job's nodes are the same for all of its time.
"""

import bisect
from collections.abc import Sequence
from typing import Final

import numpy as np

from lamina.scheduling.plugins.batch.backfill.running_pods import PodEnds, add_amounts
from lamina.scheduling.plugins.batch.backfill.waiting_jobs import (
    ChosenRows,
    Room,
    WaitingJob,
    end_of,
    occupy_all,
    place_job,
)

MOST_STEPS: Final = 256


class Availability:
    """The segments."""

    def __init__(self, room: Room, ends: PodEnds, now: float) -> None:
        """Start with *room* now, to which running pods add what they free at their *ends*."""
        self.now = now
        self._starts: list[float] = [now]
        self._rooms: list[Room] = [room]
        times, firsts = np.unique(ends.at, return_index=True)
        last = [*firsts[1:].tolist(), len(ends.at)]
        kept = range(len(times))
        if len(times) > MOST_STEPS:
            kept = np.unique(np.linspace(0, len(times) - 1, MOST_STEPS).astype(np.int64)).tolist()
        done = 0
        for step in kept:
            later = self._rooms[-1].copy()
            add_amounts(later, ends.rows[done : last[step]], ends.amounts[:, done : last[step]])
            self._starts.append(float(times[step]))
            self._rooms.append(later)
            done = last[step]

    def earliest(self, job: WaitingJob, latest: float = np.inf) -> tuple[float, ChosenRows] | None:
        """Return the earliest start of a job, *latest* at the latest, and its rows; None if it does not fit until then."""
        for index, start in enumerate(self._starts):
            if start > latest:
                return None
            now = index == 0
            if place_job(job, self._rooms[index], now=now) is None:
                continue
            window = self._window(index, end_of(start, job))
            room = self._rooms[index] if len(window) == 1 else np.minimum.reduce([self._rooms[one] for one in window])
            rows = place_job(job, room, now=now)
            if rows is not None:
                return start, rows
        return None

    def keep(self, job: WaitingJob, start: float, rows: ChosenRows) -> bool:
        """Take what a job needs on certain rows from *start* on; return False if that is not possible any more."""
        allowed = [part.fits if start <= self.now else part.possible for part in job.parts]
        if not all(nodes[used].all() for nodes, used in zip(allowed, rows, strict=True)):
            return False
        self.occupy(job, start, rows)
        asked = np.unique(np.concatenate(rows))
        lines = np.flatnonzero(sum(part.needs for part in job.parts))
        window = self._window(self._index(start), end_of(start, job))
        if all((self._rooms[index][np.ix_(lines, asked)] >= 0).all() for index in window):
            return True
        self.vacate(job, start, rows)
        return False

    def occupy(self, job: WaitingJob, start: float, rows: ChosenRows) -> None:
        """Take what a job needs, from *start* on for as long as it runs."""
        first = self._cut(start)
        self._cut(end_of(start, job))
        for index in self._window(first, end_of(start, job)):
            occupy_all(self._rooms[index], job, rows)

    def vacate(self, job: WaitingJob, start: float, rows: ChosenRows) -> None:
        """Give back what `occupy` took."""
        for index in self._window(self._index(start), end_of(start, job)):
            for part, used in zip(job.parts, rows, strict=True):
                add_amounts(self._rooms[index], used, part.needs[:, np.newaxis])

    def _window(self, first: int, end: float) -> Sequence[int]:
        """Return the segments from *first* on that begin before *end*."""
        return range(first, max(first + 1, bisect.bisect_left(self._starts, end)))

    def _index(self, start: float) -> int:
        """Return the first segment that begins at *start*."""
        return bisect.bisect_left(self._starts, start)

    def _cut(self, at: float) -> int:
        """Let a segment begin at a time; return the first that does."""
        index = self._index(at)
        if at == np.inf:
            return len(self._starts)
        if index == len(self._starts) or self._starts[index] != at:
            self._starts.insert(index, at)
            self._rooms.insert(index, self._rooms[index - 1].copy())
        return index
