"""
GangScheduling: the pods of a gang start together or not at all, and queues get their shares.

    gated ──enough pods seen──> planned as a whole ──all have a node──> bound
      ^                           │        ^              │ one fails: all give their nodes back
      └──────a pod leaves─────────┤        └──────────────┘
                                  └──no room──> waits; after a while, nodes are kept free for the gang

Planning a gang as a whole, and giving all nodes back together, is what prevents dead-locks between half-placed gangs. Where
binding itself takes time, `permit` holds the first pods until the gang is complete, at most for its time-out.
"""

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import ClassVar, Final

import msgspec
import numpy as np

from lamina.model.pod import Pod, PodUid
from lamina.model.pod_groups import PodGroup, Queue, Workload, group_of
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.placement import PlaceCandidate, Placement
from lamina.scheduling.contract.points import PostFilterResult, Wait
from lamina.scheduling.contract.status import Status, unresolvable, unschedulable
from lamina.scheduling.contract.waiting_pods import WaitingPods
from lamina.scheduling.plugins.batch.gangs.args import GangSchedulingArgs
from lamina.scheduling.plugins.batch.gangs.evictions import MayLeave, room_by_evictions
from lamina.scheduling.plugins.batch.gangs.fair_shares import FairJob, FairOrder
from lamina.scheduling.plugins.batch.gangs.free_room import FreeRoom, classes_of
from lamina.scheduling.plugins.batch.gangs.queue_usage import QueueUsage, job_of
from lamina.scheduling.plugins.batch.gangs.reservation import GangReservation, suitable
from lamina.scheduling.runtime.gang_directory import Gang, GangDirectory
from lamina.scheduling.state.cluster_changes import ChangeKind, ClusterChange
from lamina.scheduling.state.columns import Bools, Floats
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView

NAME: Final = "GangScheduling"
GIVEN_BACK: Final = "another pod of the gang found no node"


class Unit(msgspec.Struct, frozen=True, eq=False):
    """Candidates that are placed together: the pods of a gang that are in the batch, or one pod."""

    pods: list[PlaceCandidate]
    gang: Gang | None

    @property
    def first(self) -> PlaceCandidate:
        """The candidate that comes first in the queue."""
        return self.pods[0]


class GangScheduling:
    """Places gangs as a whole, in queue order or in the order of fair shares."""

    name: ClassVar = NAME
    Args: ClassVar = GangSchedulingArgs
    batch: ClassVar = 10_000
    objects: ClassVar = frozenset({PodGroup, Workload, Queue})
    retry_on: ClassVar = frozenset(
        {
            ChangeKind.NODE_ADDED,
            ChangeKind.NODE_ALLOCATABLE,
            ChangeKind.NODE_TAINTS,
            ChangeKind.NODE_LABELS,
            ChangeKind.POD_PLACED,
            ChangeKind.POD_REMOVED,
            ChangeKind.POD_UPDATED,
            ChangeKind.POD_GROUP,
            ChangeKind.QUEUE,
        }
    )

    def __init__(self, context: PluginContext, args: GangSchedulingArgs) -> None:
        """Read PodGroups, queues and placed pods from *context*."""
        self._context = context
        self._args = args
        self._gangs = GangDirectory(context.objects)
        self._reservation = GangReservation(context, args.reserve_after)
        self._waiting: WaitingPods | None = None
        self._order = FairOrder((), np.zeros(0), lambda _: 0.0, {})
        self._leaving: dict[str, list[PodUid]] = {}
        """By job: the pods whose eviction was planned for it."""

    # -- membership --------------------------------------------------------------------------------------------------

    def pod_seen(self, pod: Pod, now: float) -> None:
        """Note the pod's gang."""
        self._gangs.seen(pod)

    def pod_gone(self, uid: PodUid, now: float) -> None:
        """Forget the pod."""
        self._gangs.gone(uid)

    def group(self, pod: Pod) -> str:
        """Return the pod's gang."""
        gang = self._gangs.gang_of(pod)
        return "" if gang is None else gang.key

    def members(self, group: str) -> Collection[PodUid]:
        """Return the pods of a gang that have no node."""
        gang = self._gangs.get(group)
        return () if gang is None else [uid for uid in gang.members if uid not in gang.placed]

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Hold the pods of a gang until enough of them are there."""
        gang = self._gangs.gang_of(pod)
        if gang is None or gang.started:
            return None
        least = self._gangs.least(gang)
        if least is None:
            return unresolvable(f'waiting for the PodGroup "{gang.key}"')
        if len(gang.members) < least:
            return unresolvable(f'gang "{gang.key}" has {len(gang.members)} of {least} pods')
        return None

    def worth_retrying(self, pod: Pod, change: ClusterChange) -> bool:
        """Return whether a change may help the pod: its own PodGroup does, and room does if the gang has enough pods."""
        if change.kind is ChangeKind.POD_GROUP and change.found is not None:
            ref = group_of(pod)
            return ref is not None and (ref.namespace, ref.name) == (change.found.namespace, change.found.name)
        if change.kind is ChangeKind.POD_UPDATED:
            return True
        gang = self._gangs.gang_of(pod)
        if change.kind is ChangeKind.POD_PLACED and (
            gang is None or gang.started or change.pod is None or change.pod.uid not in gang.members
        ):
            # A pod takes room. It helps only as one of the gang: after a restart, bound pods can be seen last.
            return False
        return gang is None or self.pre_enqueue(pod) is None

    def retry_at(self, pod: Pod, now: float) -> float | None:
        """Return when nodes may be kept for the pod's gang: no change of the cluster announces that."""
        gang = self._gangs.gang_of(pod)
        return None if gang is None else self._reservation.due(gang.key, now)

    # -- placing -----------------------------------------------------------------------------------------------------

    def place(self, candidates: Sequence[PlaceCandidate], nodes: NodeView, now: float) -> Placement:
        """Plan gangs, and with an order of shares all pods; other pods are left to the ordinary cycle."""
        self._review_leaving()
        self._reservation.forget(now, lambda key: self._gangs.get(key) is not None)
        units = self._units(candidates)
        holder = self._gangs.get(self._reservation.gang)
        if holder is None or not self._gangs.lacks(holder):
            self._reservation.end(self._reservation.gang)
        if not units and not self._reservation.gang:
            return Placement({})
        room = FreeRoom(nodes, candidates)
        plan = Placement({})
        usage: QueueUsage | None = None
        if self._args.order != "queue":
            pending = self._gangs.waiting(candidates[0].pod.scheduler_name)
            by_queue = self._args.order == "proportion"
            usage = QueueUsage(self._context.objects, self._gangs, nodes, pending, by_queue=by_queue)
            for pod in self._evicted():
                usage.evicted(pod)
        for unit in self._ordered(units, usage):
            self._decide(unit, room, nodes, now, usage, plan)
        holder = self._gangs.get(self._reservation.gang)
        # Also if the gang is planned now: pods that the ordinary cycle decides before it must not take its room.
        waiting = [] if holder is None else [uid for uid in holder.members if uid not in holder.placed]
        if waiting:
            plan.kept[waiting[0]] = self._reservation.rows()
        return plan

    def _decide(
        self, unit: Unit, room: FreeRoom, nodes: NodeView, now: float, usage: QueueUsage | None, plan: Placement
    ) -> None:
        """Plan one unit and write the result into *plan*."""
        gang, key = unit.gang, "" if unit.gang is None else unit.gang.key
        least = 1 if gang is None else max(1, self._gangs.lacks(gang))
        refusal = None if usage is None else usage.refusal(one.pod for one in unit.pods[:least])
        rows: dict[PodUid, int] = {}
        if refusal is None:
            room.close(self._reservation.rows() if self._reservation.gang not in ("", key) else ())
            rows = self._planned(unit, room, nodes, least)
        plan.nodes.update(rows)
        if usage is not None:
            for one in unit.pods:
                if one.pod.uid in rows:
                    self._order.placed(usage.vectors.of(one.pod.requests))
        status = refusal or self._no_room(unit, rows)
        left = [one for one in unit.pods if one.pod.uid not in rows]
        plan.refused.update({one.pod.uid: status for one in left})
        if rows:
            if gang is not None:
                gang.failing = False
        elif left and refusal is None:
            if gang is not None:
                self._reservation.want(key, unit.pods, least, nodes, now)
            plan.room.update(self._evictions(unit, nodes, usage, least))

    def _units(self, candidates: Sequence[PlaceCandidate]) -> list[Unit]:
        """Group the candidates by gang, in queue order; without an order of shares, other pods are left out."""
        units: dict[str, Unit] = {}
        for one in candidates:
            gang = self._gangs.gang_of(one.pod)
            if gang is not None:
                units.setdefault(f"gang {gang.key}", Unit([], gang)).pods.append(one)
            elif self._args.order != "queue":
                units[one.pod.uid] = Unit([one], None)
        return list(units.values())

    def _ordered(self, units: list[Unit], usage: QueueUsage | None) -> Iterator[Unit]:
        """Yield the units in the configured order; with *usage*, `_order` follows what is planned."""
        if usage is None:
            yield from units
            return
        jobs: dict[str, FairJob] = {}
        for number, unit in enumerate(units):
            pod = unit.first.pod
            name = job_of(pod)
            if name not in jobs:
                jobs[name] = FairJob(name, usage.queue_of(pod), usage.job_has(name), deque())
            jobs[name].units.append(number)
        self._order = FairOrder(jobs.values(), usage.vectors.total, usage.share, usage.has)
        for number in self._order:
            yield units[number]

    def _planned(self, unit: Unit, room: FreeRoom, nodes: NodeView, least: int) -> dict[PodUid, int]:
        """Return nodes for the pods of a unit; empty if fewer fit than must start together."""
        if len(unit.pods) < least:
            return {}
        needed = () if unit.gang is None or unit.gang.started else self._gangs.min_resources(unit.gang)
        if any(int(np.maximum(nodes.free(name), 0)[nodes.alive].sum()) < amount for name, amount in needed):
            return {}
        return room.plan(classes_of(unit.pods, partial(self._seconds, height=nodes.height)), least)

    def _no_room(self, unit: Unit, rows: dict[PodUid, int]) -> Status:
        gang = unit.gang
        if gang is None:
            return unschedulable("no node has room for the pod")
        if rows:
            return unschedulable(
                f'gang "{gang.key}" has {len(gang.placed) + len(rows)} pods on nodes; no room for more'
            )
        return unschedulable(f'gang "{gang.key}" needs room for {max(1, self._gangs.lacks(gang))} pods at once')

    def _seconds(self, pod: Pod, height: int) -> Floats | None:
        """Return the seconds until the pod's images are ready on each node; the mean where a node is unknown."""
        cache = self._context.inventory.readiness_cache
        ready = cache.readiness(pod.images) if pod.images else None
        if ready is None:
            return None
        cache.look(ready, height)
        seconds = ready.seconds[:height]
        known = ~np.isnan(seconds)
        if not known.any():
            return None
        return np.where(known, seconds, seconds[known].mean())

    # -- evictions ---------------------------------------------------------------------------------------------------

    def _evictions(
        self, unit: Unit, nodes: NodeView, usage: QueueUsage | None, least: int
    ) -> dict[PodUid, PostFilterResult]:
        """Return victims that make room for a unit: of lower priority, or of queues above their shares."""
        pod, name = unit.first.pod, job_of(unit.first.pod)
        if name in self._leaving:
            return {}
        gone = {one.uid for one in self._evicted()}
        where, wanted = suitable(pod, nodes), unit.pods[:least]

        def found(rule: MayLeave) -> dict[PodUid, PostFilterResult]:
            def may_leave(one: Pod) -> bool:
                return not one.deleting and one.uid not in gone and rule(one)

            return room_by_evictions(self._context, self._gangs, nodes, wanted, where, may_leave)

        if self._args.preempt and pod.preempts:
            room = found(lambda one: one.priority < pod.priority)
            if self._leave(name, room, usage):
                return room
        if self._args.reclaim and usage is not None and usage.may_reclaim(one.pod for one in wanted):
            room = found(usage.reclaimable)
            if usage.within_shares(_victims(room)) and self._leave(name, room, usage):
                return room
        return {}

    def _leave(self, job: str, room: dict[PodUid, PostFilterResult], usage: QueueUsage | None) -> bool:
        """Note the victims of a job; return whether there are any."""
        victims = _victims(room)
        if victims:
            self._leaving[job] = [victim.uid for victim in victims]
        if usage is not None:
            for victim in victims:
                usage.evicted(victim)
        return bool(victims)

    def _evicted(self) -> list[Pod]:
        """Return the pods that are evicted and still on their nodes."""
        found = [self._gangs.node_pod(uid) for uids in self._leaving.values() for uid in uids]
        return [pod for pod in found if pod is not None]

    def _review_leaving(self) -> None:
        """Forget victims that left, and those that stay: an eviction can fail, or is not allowed at all."""
        for job, uids in list(self._leaving.items()):
            self._leaving[job] = [
                uid for uid in uids if (pod := self._gangs.node_pod(uid)) is not None and self._context.leaves(pod)
            ]
            if not self._leaving[job]:
                del self._leaving[job]

    # -- together ----------------------------------------------------------------------------------------------------

    def reserve(self, state: CycleState, pod: Pod, node: str) -> None:
        """Note that the pod has a node."""
        self._gangs.reserve(pod)

    def unreserve(self, state: CycleState, pod: Pod, node: str) -> None:
        """Give back the nodes of the gang if it is no longer complete."""
        gang = self._gangs.unreserve(pod)
        if gang is not None:
            self._give_back(gang)

    def permit(self, state: CycleState, pod: Pod, node: str, waiting: WaitingPods) -> Status | Wait | None:
        """Hold the pod until its gang is complete, and then let all of them go."""
        self._waiting = waiting
        gang = self._gangs.gang_of(pod)
        if gang is None:
            return None
        if gang.failing:
            return unschedulable(GIVEN_BACK)
        if self._gangs.lacks(gang):
            return Wait(self._gangs.timeout(gang) or self._args.schedule_timeout)
        for one in waiting:
            if one.pod.uid in gang.members:
                waiting.allow(one.pod.uid, NAME)
        return None

    def post_filter(self, state: CycleState, pod: Pod, nodes: NodeView, resolvable: Bools) -> Status:
        """Give back the nodes of the gang: one of its pods found none, although the gang was planned."""
        gang = self._gangs.gang_of(pod)
        if gang is not None:
            self._give_back(gang)
        return unschedulable()

    def _give_back(self, gang: Gang) -> None:
        if gang.failing or not self._gangs.lacks(gang):
            return
        gang.failing = True
        waiting = self._waiting
        if waiting is None:
            return
        for one in waiting:
            if one.pod.uid in gang.members:
                waiting.refuse(one.pod.uid, NAME, GIVEN_BACK)


def _victims(room: dict[PodUid, PostFilterResult]) -> list[Pod]:
    return [victim for one in room.values() for victim in one.victims]
