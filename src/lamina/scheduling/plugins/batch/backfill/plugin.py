"""
Backfill: jobs start in order, and later ones start early where they delay no job with a reservation.

The plugin decides about all pods of its profile, so the ordinary cycle sees only those that no node could run even if
it were empty. All pods are one group: a job that arrives is decided together with those that wait before it.
"""

from collections.abc import Collection, Hashable, Sequence
from typing import ClassVar, Final

import msgspec
import numpy as np

from lamina.model.pod import Pod, PodUid
from lamina.model.pod_groups import PodGroup, Workload
from lamina.model.resources import PODS, Amounts
from lamina.model.walltime import walltime_of, walltime_problem
from lamina.scheduling.contract.placement import PlaceCandidate, Placement
from lamina.scheduling.contract.status import Status, unschedulable
from lamina.scheduling.plugins.batch.backfill.args import NAME, BackfillArgs
from lamina.scheduling.plugins.batch.backfill.conservative import schedule_conservative
from lamina.scheduling.plugins.batch.backfill.easy import schedule_easy
from lamina.scheduling.plugins.batch.backfill.running_pods import ClusterRoom, RunningPodEnds
from lamina.scheduling.plugins.batch.backfill.waiting_jobs import (
    AlikePods,
    ChosenRows,
    Schedule,
    WaitingJob,
    count_places,
)
from lamina.scheduling.plugins.batch.backfill.waiting_list import Turn, WaitingList
from lamina.scheduling.runtime.gang_directory import GangDirectory
from lamina.scheduling.state.cluster_changes import ChangeKind, ClusterChange
from lamina.scheduling.state.columns import LARGEST, Ints
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView

BATCH: Final = 100_000
FREEING: Final = frozenset(
    {ChangeKind.NODE_ADDED, ChangeKind.NODE_ALLOCATABLE, ChangeKind.NODE_TAINTS, ChangeKind.POD_REMOVED}
)
"""Changes after which jobs that wait for room are tried again."""

SPARE: Final = 100
"""Jobs of a batch beyond twice the depth: some of them start, and those behind them move up."""
SOON: Final = 1.0
"""Seconds after a job left until the others are tried again."""

RESERVED: Final = "the job waits for room and has a reservation"
HELD_BACK: Final = "starting the job now would delay a job with a reservation"
INCOMPLETE: Final = "the gang of the pod lacks pods that could start with it"
NO_ROOM: Final = "not enough free resources for the job"


class Backfill:
    """EASY and conservative backfill."""

    name: ClassVar = NAME
    Args: ClassVar = BackfillArgs
    batch: ClassVar = BATCH
    objects: ClassVar = frozenset({PodGroup, Workload})
    retry_on: ClassVar = frozenset(ChangeKind)

    def __init__(self, context: PluginContext, args: BackfillArgs) -> None:
        """Follow the running pods that have a walltime."""
        self._args = args
        self._context = context
        self._running = context.register(RunningPodEnds())
        self._waiting = WaitingList()
        self._gangs = GangDirectory(context.objects)
        self._promises: dict[str, tuple[float, tuple[tuple[str, ...], ...]]] = {}
        """Start of each reservation, in seconds, and the names of its nodes."""
        self._promised: tuple[PodUid, ...] = ()
        """Pods with a reservation."""
        self._resources: tuple[str, ...] = ()
        """What the pods of the current batch request."""
        self._kinds: list[AlikePods] = []
        """Pods of the current batch that differ in their needs or in their evaluation."""
        self._filtered = False
        """Whether a filter keeps a job from its nodes for other reasons than resources."""
        self.wake_at: float | None = None

    # -- batches -----------------------------------------------------------------------------------------------------

    def group(self, pod: Pod) -> str:
        """Return one name for all pods of a profile: jobs are decided with those that wait before them."""
        return pod.scheduler_name

    def members(self, group: str) -> Collection[PodUid]:
        """Return the pods of the jobs that a decision may look at."""
        first = self._waiting.first(group, 2 * self._args.depth + SPARE)
        return tuple(dict.fromkeys([*first, *self._promised]))

    def place(self, candidates: Sequence[PlaceCandidate], nodes: NodeView, now: float) -> Placement:
        """Start what fits and delays no reservation; refuse all others."""
        jobs = self._jobs(candidates)
        schedule = self._schedule(jobs, nodes, now)
        self._remember(jobs, schedule, nodes, now)
        placed: dict[PodUid, int] = {}
        for job, rows in schedule.started:
            for part, used in zip(job.parts, rows, strict=True):
                placed.update(zip(part.uids, used.tolist(), strict=True))
        self._running.fact.begin(placed, now)
        for candidate in candidates:
            if candidate.pod.uid in placed:
                self._waiting.remove(candidate.pod.uid)
                self._gangs.reserve(candidate.pod)
        reasons = {uid: _reason(job, schedule) for job in jobs for part in job.parts for uid in part.uids}
        waiting = [one.pod.uid for one in candidates if one.pod.uid in self._waiting]
        return Placement(placed, {uid: reasons.get(uid, unschedulable(INCOMPLETE)) for uid in waiting})

    def _jobs(self, candidates: Sequence[PlaceCandidate]) -> list[WaitingJob]:
        """Return the jobs of a batch in order; a pod that no node could run is left to the ordinary cycle."""
        resources = {PODS: 0}
        for candidate in candidates:
            for name, amount in candidate.pod.requests:
                if amount:
                    resources.setdefault(name, len(resources))
        self._resources = tuple(resources)
        kinds: dict[tuple[Hashable, Amounts], AlikePods] = {}
        found: list[tuple[Turn, WaitingJob]] = []
        for name, unit in self._units(candidates).items():
            parts: dict[tuple[Hashable, Amounts], list[PodUid]] = {}
            for one in unit:
                kind = one.key, one.pod.requests
                if kind not in kinds:
                    kinds[kind] = AlikePods((), self._needs(one.pod), one.feasible, one.possible, one.scores)
                parts.setdefault(kind, []).append(one.pod.uid)
            uids, pod = [one.pod.uid for one in unit], unit[0].pod
            turn = self._waiting.put(uids, pod.priority, min(one.arrived_at for one in unit))
            gang = self._gangs.gang_of(pod)
            if gang is None or name == pod.uid or len(unit) == self._gangs.lacks(gang):
                alike = tuple(msgspec.structs.replace(kinds[kind], uids=tuple(uids)) for kind, uids in parts.items())
                found.append((turn, WaitingJob(name, alike, max(walltime_of(one.pod) for one in unit))))
        self._kinds = list(kinds.values())
        return [job for _, job in sorted(found, key=lambda one: one[0])]

    def _units(self, candidates: Sequence[PlaceCandidate]) -> dict[str, list[PlaceCandidate]]:
        """
        Return the candidates that start together, by the name of their job.

        The first pods of a gang, as many as it lacks, are one job; every other pod is a job of its own.
        """
        units: dict[str, list[PlaceCandidate]] = {}
        for candidate in candidates:
            pod = candidate.pod
            if not candidate.possible.any():
                self._waiting.remove(pod.uid)
                continue
            gang = self._gangs.gang_of(pod)
            if gang is not None:
                # It waits, so it has no node.
                gang.placed.discard(pod.uid)
                name = f"gang {gang.key}"
                if len(units.get(name, ())) < self._gangs.lacks(gang):
                    units.setdefault(name, []).append(candidate)
                    continue
            units[pod.uid] = [candidate]
        return units

    def _needs(self, pod: Pod) -> Ints:
        asked = {**dict(pod.requests), PODS: 1}
        return np.array([min(asked.get(name, 0), LARGEST) for name in self._resources], dtype=np.int64)

    def _schedule(self, jobs: Sequence[WaitingJob], nodes: NodeView, now: float) -> Schedule:
        args, names = self._args, self._resources
        room = np.array([nodes.free(name) for name in names], dtype=np.int64)
        self._filtered = any(
            count_places(kind.needs, 1, room, kind.possible & ~kind.fits).any() for kind in self._kinds
        )
        cluster = ClusterRoom(now, room, nodes.fact(self._running).ends(names, now))
        if args.reservations == "first":
            return schedule_easy(jobs, cluster, args)
        # Other pods of a gang may be the first ones now, and the rows of a promise are those of its parts.
        counts = {job.name: [part.count for part in job.parts] for job in jobs}
        kept = {
            name: (start, rows)
            for name, (start, chosen) in self._promises.items()
            if list(map(len, chosen)) == counts.get(name) and (rows := self._rows(chosen)) is not None
        }
        return schedule_conservative(jobs, cluster, args, kept)

    def _rows(self, chosen: tuple[tuple[str, ...], ...]) -> ChosenRows | None:
        """Return the rows of nodes; None if one has left."""
        rows = tuple(np.array([self._context.row(node) for node in names], dtype=np.int64) for names in chosen)
        return None if any((part < 0).any() for part in rows) else rows

    def _remember(self, jobs: Sequence[WaitingJob], schedule: Schedule, nodes: NodeView, now: float) -> None:
        """Keep what the next decisions need to know."""
        self._promises = {
            name: (start, tuple(tuple(_name(nodes, row) for row in part.tolist()) for part in rows))
            for name, (start, rows) in schedule.reserved.items()
        }
        self._promised = tuple(
            uid for job in jobs if job.name in schedule.reserved for part in job.parts for uid in part.uids
        )
        if schedule.started and len(self._waiting) > sum(job.pods for job in jobs):
            # Jobs that wait further behind may be among the first now.
            self.wake_at = now + SOON

    # -- retries -----------------------------------------------------------------------------------------------------

    def worth_retrying(self, pod: Pod, change: ClusterChange) -> bool:
        """Return whether a change can let a job start."""
        return change.kind in FREEING or self._filtered

    def pod_seen(self, pod: Pod, now: float) -> None:
        """Note a pod that waits, and forget one that waits no longer."""
        self._gangs.seen(pod)
        if pod.node_name or pod.finished or pod.deleting:
            self._leave(pod.uid, now)
        else:
            self._waiting.see(pod)

    def pod_gone(self, uid: PodUid, now: float) -> None:
        """Forget a pod; other jobs may start in its place."""
        self._gangs.gone(uid)
        self._leave(uid, now)

    def _leave(self, uid: PodUid, now: float) -> None:
        if self._waiting.remove(uid):
            self.wake_at = now + SOON

    def wake(self, now: float) -> bool:
        """Try the jobs again that waited behind one that left."""
        self.wake_at = None
        return True

    def notes(self, pod: Pod) -> str:
        """Report a walltime that cannot be read."""
        return walltime_problem(pod)


def _reason(job: WaitingJob, schedule: Schedule) -> Status:
    if job.name in schedule.reserved:
        return unschedulable(RESERVED)
    return unschedulable(HELD_BACK if job.name in schedule.held_back else NO_ROOM)


def _name(nodes: NodeView, row: int) -> str:
    node = nodes.node(row)
    return "" if node is None else node.name
