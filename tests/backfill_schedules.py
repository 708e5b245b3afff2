"""
EASY and conservative backfill, computed independently of Lamina with plain lists.

A machine is a list of nodes, each a list of amounts. All pods of a job need the same. Pods go to nodes in the order of the
list, and no node takes a second pod before every node that has room took one. Jobs are stopped by the caller: `finish`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf


@dataclass(frozen=True)
class BatchJob:
    """A job; `seconds` is hidden from the scheduler."""

    name: str
    at: float
    pods: int
    needs: tuple[int, ...]
    seconds: float
    walltime: float = inf


@dataclass
class Use:
    """A job on its nodes, for as long as its walltime says."""

    job: BatchJob
    start: float
    end: float
    nodes: list[int]


ORDERS: dict[str, Callable[[BatchJob], tuple[float, ...]]] = {
    "queue": lambda job: (),
    "shortestFirst": lambda job: (job.walltime,),
    "smallestFirst": lambda job: (job.pods, job.walltime),
    "largestFirst": lambda job: (-job.pods, job.walltime),
}


def ending(start: float, job: BatchJob) -> float:
    """Return the planned end of a job; ends are planned in microseconds."""
    return round(start + job.walltime, 6) if job.walltime < inf else inf


def spread(room: list[list[int]], job: BatchJob) -> list[int] | None:
    """Return nodes for all pods of a job."""
    left = [fitting(amounts, job) for amounts in room]
    nodes: list[int] = []
    while len(nodes) < job.pods:
        turn = [node for node, count in enumerate(left) if count > 0][: job.pods - len(nodes)]
        if not turn:
            return None
        for node in turn:
            left[node] -= 1
        nodes += turn
    return nodes


def fitting(amounts: list[int], job: BatchJob) -> int:
    return max(0, min(have // need for have, need in zip(amounts, job.needs, strict=True) if need))


def less(room: list[list[int]], job: BatchJob, nodes: list[int]) -> list[list[int]]:
    found = [list(amounts) for amounts in room]
    for node in nodes:
        found[node] = [have - need for have, need in zip(found[node], job.needs, strict=True)]
    return found


@dataclass
class Machine:
    """What both policies share: the queue, and which jobs run."""

    nodes: list[list[int]]
    order: str = "queue"
    depth: int = 100
    waiting: list[BatchJob] = field(default_factory=list)
    running: list[Use] = field(default_factory=list)

    def arrive(self, job: BatchJob) -> None:
        self.waiting.append(job)

    def finish(self, name: str) -> None:
        self.running = [use for use in self.running if use.job.name != name]

    def free(self, running: list[Use]) -> list[list[int]]:
        room = self.nodes
        for use in running:
            room = less(room, use.job, use.nodes)
        return room

    def start(self, job: BatchJob, now: float, nodes: list[int]) -> Use:
        use = Use(job, now, ending(now, job), nodes)
        self.running.append(use)
        self.waiting.remove(job)
        return use

    def planned(self, now: float) -> list[Use]:
        """Return the running jobs with the ends that a plan expects: a job that is overdue ends next."""
        return [Use(use.job, use.start, max(use.end, now + SOON), use.nodes) for use in self.running]


class Easy(Machine):
    """Only the first job that does not fit has a reservation."""

    def decide(self, now: float) -> list[Use]:
        started: list[Use] = []
        stuck = 0
        for job in list(self.waiting):
            nodes = spread(self.free(self.running), job)
            if nodes is not None:
                started.append(self.start(job, now, nodes))
            elif (shadow := self.shadow(job, now)) is not None:
                others = self.waiting[self.waiting.index(job) + 1 :]
                return started + self.backfill(job, shadow, others[: max(0, self.depth - stuck)], now)
            else:
                stuck += 1
                if stuck > self.depth:
                    break
        return started

    def shadow(self, job: BatchJob, now: float) -> float | None:
        """Return the earliest estimated end at which a job fits."""
        plan = self.planned(now)
        for end in sorted({use.end for use in plan if use.end < inf}):
            if spread(self.free([use for use in plan if use.end > end]), job) is not None:
                return end
        return None

    def backfill(self, head: BatchJob, shadow: float, others: list[BatchJob], now: float) -> list[Use]:
        started = []
        for job in sorted(others, key=ORDERS[self.order]):
            nodes = spread(self.free(self.running), job)
            if nodes is not None and ending(now, job) > shadow:
                nodes = self.beside(job, head, shadow, now)
            if nodes is not None:
                started.append(self.start(job, now, nodes))
        return started

    def beside(self, job: BatchJob, head: BatchJob, shadow: float, now: float) -> list[int] | None:
        """Place pods one after the other so that enough places remain for the head at its shadow time."""
        later = self.free([use for use in self.planned(now) if use.end > shadow])
        room = self.free(self.running)
        nodes: list[int] = []
        for _ in range(job.pods):
            allowed = [
                node
                for node in range(len(room))
                if fitting(room[node], job)
                and fitting(later[node], job)
                and sum(min(head.pods, fitting(amounts, head)) for amounts in less(later, job, [node])) >= head.pods
            ]
            if not allowed:
                return None
            chosen = min(allowed, key=lambda node: (nodes.count(node), node))
            nodes.append(chosen)
            room, later = less(room, job, [chosen]), less(later, job, [chosen])
        return nodes


@dataclass
class Conservative(Machine):
    """Every job has a reservation; those of earlier decisions are kept, or moved to an earlier time."""

    reserved: dict[str, Use] = field(default_factory=dict)

    def decide(self, now: float) -> list[Use]:
        plan, kept = self.planned(now), dict[str, Use]()
        known = [self.reserved[job.name] for job in self.waiting if job.name in self.reserved]
        for use in sorted(known, key=lambda use: use.start):
            start = max(use.start, now)
            moved = Use(use.job, start, ending(start, use.job), use.nodes)
            room = less(self.lowest(plan, start, moved.end), use.job, use.nodes)
            if all(min(room[node]) >= 0 for node in use.nodes):
                plan.append(moved)
                kept[use.job.name] = moved
        self.reserved, started = {}, []
        count = len(kept)
        for job in sorted(self.waiting, key=ORDERS[self.order]):
            if job.name not in kept and count == self.depth:
                continue
            count += job.name not in kept
            plan = [use for use in plan if use is not kept.get(job.name)]
            found = self.earliest(plan, job, now)
            if found is None:
                continue
            plan.append(found)
            if found.start == now:
                started.append(self.start(job, now, found.nodes))
                count -= 1
            else:
                self.reserved[job.name] = found
        return started

    def earliest(self, plan: list[Use], job: BatchJob, now: float) -> Use | None:
        """Return the first time at which nodes are free for all of a job's walltime."""
        for start in sorted({now, *(use.end for use in plan if now < use.end < inf)}):
            nodes = spread(self.lowest(plan, start, ending(start, job)), job)
            if nodes is not None:
                return Use(job, start, ending(start, job), nodes)
        return None

    def lowest(self, plan: list[Use], start: float, end: float) -> list[list[int]]:
        """Return the least that is free on each node at any time from *start* until *end*."""
        moments = [start, *(use.start for use in plan if start < use.start < end)]
        rooms = [self.free([use for use in plan if use.start <= at < use.end]) for at in moments]
        return [[min(amounts) for amounts in zip(*nodes, strict=True)] for nodes in zip(*rooms, strict=True)]


def run(
    machine: Easy | Conservative, jobs: list[BatchJob], *, single: bool = False
) -> dict[str, tuple[float, list[int]]]:
    """Return start and nodes of every job that starts; a decision follows all events of a time, or every *single* one."""
    events: list[tuple[float, int, BatchJob]] = [(job.at, number, job) for number, job in enumerate(jobs)]
    found: dict[str, tuple[float, list[int]]] = {}
    while events:
        now = min(events)[0]
        for one in sorted(one for one in events if one[0] == now)[: 1 if single else None]:
            events.remove(one)
            if one[2].name in found:
                machine.finish(one[2].name)
            else:
                machine.arrive(one[2])
        for use in machine.decide(now):
            found[use.job.name] = (now, use.nodes)
            events.append((now + use.job.seconds, len(jobs) + len(found), use.job))
    return found


SOON = 2.0**-30
"""Shorter than any time between two events."""
