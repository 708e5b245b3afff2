"""
Backfill: jobs start in order, and later ones start early where they delay no job with a reservation.

The plugin decides about all pods of its profile, so the ordinary cycle sees only those that no node could run even if
it were empty. Jobs that wait are remembered from batch to batch; their reservations hold for jobs that arrive alone.
"""

from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np

from lamina.model.pod import Pod, PodUid
from lamina.model.resources import PODS
from lamina.model.walltime import walltime_of, walltime_problem
from lamina.scheduling.contract.placement import PlaceCandidate, Placement
from lamina.scheduling.contract.status import Status, unschedulable
from lamina.scheduling.plugins.batch.backfill.args import NAME, BackfillArgs
from lamina.scheduling.plugins.batch.backfill.conservative import schedule_conservative
from lamina.scheduling.plugins.batch.backfill.easy import schedule_easy
from lamina.scheduling.plugins.batch.backfill.job_list import JobList
from lamina.scheduling.plugins.batch.backfill.running_pods import ClusterRoom, RunningPods
from lamina.scheduling.plugins.batch.backfill.waiting_jobs import AlikePods, ChosenRows, Schedule, WaitingJob
from lamina.scheduling.state.cluster_changes import ChangeKind, ClusterChange
from lamina.scheduling.state.columns import LARGEST, Ints
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView

BATCH: Final = 100_000
FREEING: Final = frozenset(
    {ChangeKind.NODE_ADDED, ChangeKind.NODE_ALLOCATABLE, ChangeKind.NODE_TAINTS, ChangeKind.POD_REMOVED}
)
"""Changes after which jobs that wait for room are tried again."""

SOON: Final = 1.0
"""Seconds after a job left until the others are tried again."""

RESERVED: Final = "the job waits for room and has a reservation"
HELD_BACK: Final = "starting the job now would delay a job with a reservation"
NO_ROOM: Final = "not enough free resources for the job"


class Backfill:
    """EASY and conservative backfill."""

    name: ClassVar = NAME
    Args: ClassVar = BackfillArgs
    batch: ClassVar = BATCH
    retry_on: ClassVar = frozenset(ChangeKind)

    def __init__(self, context: PluginContext, args: BackfillArgs) -> None:
        """Follow the running pods that have a walltime."""
        self._args = args
        self._context = context
        self._running = context.register(RunningPods())
        self._list = JobList()
        self._resources: dict[str, int] = {PODS: 0}
        """Line of each resource that a waiting job needs."""
        self._promises: dict[str, tuple[float, tuple[tuple[str, ...], ...]]] = {}
        """Start of each reservation, in seconds, and the names of its nodes."""
        self._filtered: set[str] = set()
        """Jobs that a filter keeps from nodes for other reasons than resources."""
        self._near: set[str] = set()
        """Jobs that a decision may look at next."""
        self.wake_at: float | None = None

    # -- decisions ---------------------------------------------------------------------------------------------------

    def place(self, candidates: Sequence[PlaceCandidate], nodes: NodeView, now: float) -> Placement:
        """Start what fits and delays no reservation; refuse all others."""
        batch = {candidate.pod.uid for candidate in candidates}
        for candidate in candidates:
            self._learn(candidate)
        jobs = self._list.in_order(len(self._resources), len(nodes))
        schedule = self._schedule(jobs, nodes, now)
        self._remember(jobs, schedule, nodes)
        placed: dict[PodUid, int] = {}
        for job, rows in schedule.started:
            uids = [uid for part in job.parts for uid in part.uids]
            if batch.issuperset(uids):
                placed.update(zip(uids, np.concatenate(rows).tolist(), strict=True))
                self._list.remove(job.name)
        self._running.fact.begin(placed, now)
        refused = {uid: self._reason(uid, schedule) for uid in batch - placed.keys() if self._list.job_of(uid)}
        return Placement(placed, refused)

    def _learn(self, candidate: PlaceCandidate) -> None:
        """Remember a candidate with its evaluation, unless no node could run it."""
        pod = candidate.pod
        if not candidate.possible.any():
            self._list.remove(pod.uid)
            return
        part = AlikePods((pod.uid,), self._needs(pod), candidate.feasible, candidate.possible, candidate.scores)
        job = WaitingJob(pod.uid, (part,), walltime_of(pod))
        self._list.put(job, pod.priority, candidate.arrived_at)

    def _needs(self, pod: Pod) -> Ints:
        if not len(self._list):
            self._resources = {PODS: 0}
        asked = {PODS: 1, **{name: min(amount, LARGEST) for name, amount in pod.requests if amount and name != PODS}}
        for name in asked:
            self._resources.setdefault(name, len(self._resources))
        return np.array([asked.get(name, 0) for name in self._resources], dtype=np.int64)

    def _schedule(self, jobs: Sequence[WaitingJob], nodes: NodeView, now: float) -> Schedule:
        args, names = self._args, tuple(self._resources)
        room = np.array([nodes.free(name) for name in names], dtype=np.int64)
        cluster = ClusterRoom(now, room, nodes.fact(self._running).ends(names, now))
        if args.reservations == "first":
            return schedule_easy(jobs, cluster, args)
        kept = {
            name: (start, rows)
            for name, (start, chosen) in self._promises.items()
            if (rows := self._rows(chosen)) is not None
        }
        return schedule_conservative(jobs, cluster, args, kept)

    def _rows(self, chosen: tuple[tuple[str, ...], ...]) -> ChosenRows | None:
        """Return the rows of nodes; None if one has left."""
        rows = tuple(np.array([self._context.row(node) for node in names], dtype=np.int64) for names in chosen)
        return None if any((part < 0).any() for part in rows) else rows

    def _remember(self, jobs: Sequence[WaitingJob], schedule: Schedule, nodes: NodeView) -> None:
        """Keep what the next decisions need to know."""
        self._promises = {
            name: (start, tuple(tuple(_name(nodes, row) for row in part.tolist()) for part in rows))
            for name, (start, rows) in schedule.reserved.items()
        }
        first = jobs[: 2 * self._args.depth + 100]
        self._near = {job.name for job in first}
        self._filtered = {
            job.name
            for job in first
            if any((part.possible & ~part.fits).any() and not part.fits.any() for part in job.parts)
        }

    def _reason(self, uid: PodUid, schedule: Schedule) -> Status:
        name = self._list.job_of(uid) or ""
        if name in schedule.reserved:
            return unschedulable(RESERVED)
        return unschedulable(HELD_BACK if name in schedule.held_back else NO_ROOM)

    # -- retries -----------------------------------------------------------------------------------------------------

    def worth_retrying(self, pod: Pod, change: ClusterChange) -> bool:
        """Return whether a change can let a job start."""
        name = self._list.job_of(pod.uid)
        if name is None or name not in self._near:
            return name is None
        return change.kind in FREEING or name in self._filtered

    def pod_seen(self, pod: Pod, now: float) -> None:
        """Forget a job with a pod that waits no longer."""
        if pod.node_name or pod.finished or pod.deleting:
            self.pod_gone(pod.uid, now)

    def pod_gone(self, uid: PodUid, now: float) -> None:
        """Forget the job of a pod; others may start in its place."""
        name = self._list.job_of(uid)
        if name is not None:
            self._list.remove(name)
            self._promises.pop(name, None)
            self.wake_at = now + SOON

    def wake(self, now: float) -> bool:
        """Try the jobs again that waited behind one that left."""
        self.wake_at = None
        return True

    def notes(self, pod: Pod) -> str:
        """Report a walltime that cannot be read."""
        return walltime_problem(pod)


def _name(nodes: NodeView, row: int) -> str:
    node = nodes.node(row)
    return "" if node is None else node.name
