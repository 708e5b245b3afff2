"""
Schedules of contiguous first-fit, filling and EASY backfilling, computed independently of Lamina.

They are what PyBatsim's schedulers `schedFcfs`, `schedFiller` and `easyBackfill` are meant to do: a job gets neighbouring
resources, and every single event lets the scheduler decide once. Events of one time come in this order: arrivals, jobs
that end by themselves, jobs that are stopped at their walltime; and the ends in the order in which the jobs started.

EASY backfilling has rules of its own about where in a gap a job goes:

    a job goes to the low end of a gap; to the high end if the gap grew upwards last
    the first waiting job has a reservation: where and when it fits if all running jobs use their walltime
    later jobs may not use the gaps at the two ends of the reservation for longer than until it begins
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Protocol


@dataclass(frozen=True)
class Job:
    """A job of a workload; without a walltime, a decision process reads -1."""

    id: str
    at: float
    res: int
    seconds: float
    walltime: float = -1.0

    @property
    def length(self) -> float:
        """How long it runs."""
        return self.walltime if self.is_stopped else self.seconds

    @property
    def is_stopped(self) -> bool:
        """Whether it reaches its walltime."""
        return 0 < self.walltime <= self.seconds


@dataclass
class Start:
    """A job that started, and its resources."""

    job: Job
    at: float
    first: int
    last: int


class Policy(Protocol):
    """Decides after every event."""

    def arrive(self, job: Job) -> None:
        """A job arrived."""
        ...

    def end(self, start: Start) -> None:
        """A job ended."""
        ...

    def decide(self, now: float) -> list[Start]:
        """Return the jobs that start now."""
        ...


def schedule(policy: Policy, jobs: Sequence[Job]) -> dict[str, Start]:
    """Return when and where each job starts, by its id; jobs that never start are left out."""
    arrivals = sorted(jobs, key=lambda job: job.at)
    running: list[tuple[float, bool, int, Start]] = []
    started: dict[str, Start] = {}
    number = 0
    while number < len(arrivals) or running:
        if number < len(arrivals) and (not running or arrivals[number].at <= running[0][0]):
            now = arrivals[number].at
            policy.arrive(arrivals[number])
            number += 1
        else:
            now, _, _, ended = heapq.heappop(running)
            policy.end(ended)
        for one in policy.decide(now):
            started[one.job.id] = one
            heapq.heappush(running, (now + one.job.length, one.job.is_stopped, len(started), one))
    return started


class FirstFit:
    """Jobs in order of arrival, on the lowest neighbouring resources; later jobs may overtake if *filling*."""

    def __init__(self, resources: int, *, filling: bool) -> None:
        self._free = [True] * resources
        self._filling = filling
        self._waiting: list[Job] = []

    def arrive(self, job: Job) -> None:
        self._waiting.append(job)

    def end(self, start: Start) -> None:
        self._free[start.first : start.last + 1] = [True] * start.job.res

    def decide(self, now: float) -> list[Start]:
        started = []
        for job in list(self._waiting):
            first = self._lowest(job.res)
            if first is not None:
                self._waiting.remove(job)
                self._free[first : first + job.res] = [False] * job.res
                started.append(Start(job, now, first, first + job.res - 1))
            elif not self._filling:
                break
        return started

    def _lowest(self, count: int) -> int | None:
        run = 0
        for place, free in enumerate(self._free):
            run = run + 1 if free else 0
            if run == count:
                return place - count + 1
        return None


@dataclass
class Gap:
    """Neighbouring free resources."""

    first: int
    last: int
    from_low: bool = True
    """Whether the next job goes to its low end."""
    seconds: float = inf
    """For how long it may be used."""
    twin: "Gap | None" = None
    """Another gap that shares resources with it, while there is a reservation."""

    @property
    def size(self) -> int:
        return self.last - self.first + 1


@dataclass
class Gaps:
    """All gaps, from low to high; a gap's part outside of a reservation directly follows it."""

    found: list[Gap] = field(default_factory=list)

    def copied(self) -> "Gaps":
        return Gaps([replace(gap) for gap in self.found])

    def take(self, gap: Gap, count: int) -> tuple[int, int]:
        """Use *count* resources of a gap."""
        if gap.from_low:
            taken = gap.first, gap.first + count - 1
            gap.first += count
            if gap.twin is not None:
                gap.twin.first = max(gap.twin.first, taken[1] + 1)
        else:
            taken = gap.last - count + 1, gap.last
            gap.last -= count
            if gap.twin is not None:
                gap.twin.last = min(gap.twin.last, taken[0] - 1)
        self.found = [one for one in self.found if one.size > 0]
        return taken

    def give_back(self, first: int, last: int) -> Gap:
        """Free resources; return the gap that they are in."""
        below = next((gap for gap in self.found if gap.last == first - 1), None)
        above = next((gap for gap in self.found if gap.first == last + 1), None)
        if below is not None and above is not None:
            below.last = above.last
            self.found.remove(above)
            return below
        if below is not None:
            below.last, below.from_low = last, False
            return below
        if above is not None:
            above.first, above.from_low = first, True
            return above
        fresh = Gap(first, last)
        self.found = sorted([*self.found, fresh], key=lambda gap: gap.first)
        return fresh


class ContiguousEasy:
    """EASY backfilling on neighbouring resources."""

    def __init__(self, resources: int) -> None:
        self._gaps = Gaps([Gap(0, resources - 1)])
        self._waiting: list[Job] = []
        self._running: list[Start] = []

    def arrive(self, job: Job) -> None:
        self._waiting.append(job)

    def end(self, start: Start) -> None:
        self._running.remove(start)
        self._gaps.give_back(start.first, start.last)

    def decide(self, now: float) -> list[Start]:
        started = []
        while self._waiting and (begun := self._begin(self._waiting[0], now, limited=False)):
            started.append(begun)
        if len(self._waiting) > 1:
            started += self._backfill(now)
        return started

    def _begin(self, job: Job, now: float, *, limited: bool) -> Start | None:
        for gap in self._gaps.found:
            if job.res <= gap.size and not (limited and job.walltime > gap.seconds):
                start = Start(job, now, *self._gaps.take(gap, job.res))
                self._waiting.remove(job)
                self._running.append(start)
                return start
        return None

    def _backfill(self, now: float) -> list[Start]:
        (first, last), begins = self._reservation(self._waiting[0])
        bounded = list(self._bound(first, last, begins - now))
        others = self._waiting[1:]
        started = [start for job in others if (start := self._begin(job, now, limited=True)) is not None]
        extra = [gap for gap, outside in bounded if outside]
        self._gaps.found = [gap for gap in self._gaps.found if all(gap is not one for one in extra)]
        for gap, outside in bounded:
            gap.twin = None
            if not outside:
                gap.seconds, gap.from_low = inf, True
        return started

    def _reservation(self, job: Job) -> tuple[tuple[int, int], float]:
        """Return resources and time of the earliest start of a job, if all running jobs use their walltime."""
        gaps = self._gaps.copied()
        for start in sorted(self._running, key=lambda one: one.at + one.job.walltime):
            gap = gaps.give_back(start.first, start.last)
            if job.res <= gap.size:
                return gaps.take(gap, job.res), start.at + start.job.walltime
        raise AssertionError("a job larger than the machine")

    def _bound(self, first: int, last: int, seconds: float) -> Iterator[tuple[Gap, bool]]:
        """Limit the gaps at both ends of a reservation; yield them, and their parts outside of it as gaps of their own."""
        for gap in list(self._gaps.found):
            if gap.first <= first <= gap.last:
                gap.seconds = seconds
                yield gap, False
                if gap.first < first:
                    yield self._outside(gap, Gap(gap.first, first - 1, from_low=True)), True
            if gap.first <= last <= gap.last:
                gap.seconds = seconds
                yield gap, False
                if gap.last > last:
                    yield self._outside(gap, Gap(last + 1, gap.last, from_low=False)), True

    def _outside(self, gap: Gap, part: Gap) -> Gap:
        gap.twin, part.twin, gap.from_low = part, gap, not part.from_low
        place = next(index for index, one in enumerate(self._gaps.found) if one is gap)
        self._gaps.found.insert(place + 1, part)
        return part
