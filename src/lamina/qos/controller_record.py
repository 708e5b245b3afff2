"""
One controller: its promise, its pods, its replica slots, and the sums of their times.

The engine (`lamina.qos.engine`) calls it with facts in order of arrival. Every fact changes a few numbers; nothing is
done while pods only wait. Times are seconds since the engine's origin.
"""

from lamina.model.pod import PodUid
from lamina.qos.concurrent_sweep import ConcurrentSweep
from lamina.qos.order_table import OrderRow
from lamina.qos.pod_record import PodRecord
from lamina.qos.promise import ControllerKey, Promise, QosApproach
from lamina.qos.remembered_pod import RememberedPod
from lamina.qos.replica_slots import ReplicaSlot, ReplicaSlots
from lamina.qos.standing import (
    QosTimes,
    ReplicaCounts,
    Standing,
    overhead_estimate,
    preemption_overhead,
    qos_metric,
)
from lamina.qos.time_sums import BINDING, DISCARDED, EFFECTIVE, KINDS, WAITING, Line, TimeSums


class ControllerRecord:
    """The state of one controller. Its approach stays what it was when the controller was first seen."""

    def __init__(self, key: ControllerKey, promise: Promise, replicas: int | None, window: float, now: float) -> None:
        """Start without pods."""
        self.key = key
        self.promise = promise
        self.replicas = replicas
        self.window = window
        self.sums = TimeSums(window, now)
        self.sweep = (
            ConcurrentSweep(max(replicas or 1, 1), window, now) if promise.approach is QosApproach.CONCURRENT else None
        )
        self.pods: dict[PodUid, PodRecord] = {}
        """Pods whose objects exist, in order of arrival."""
        self.slots = ReplicaSlots()
        self.shares: dict[PodUid, ReplicaSlot] = {}
        """Slot whose sums contain a pod's times; for each pod."""
        self.incarnations = 0
        self.succeeded = 0
        self.running = 0
        """Slots whose pod runs."""
        self.held = 0
        """Slots with a pod."""
        self.reserved = 0
        """Held slots whose pod has a node and is not bound yet."""
        self.gone = False
        self.row = -1
        self.victim_row = -1
        """Row of its running pods; Jobs have one for each pod."""
        self.kept_slots: dict[PodUid, int] = {}
        """Slots that pods had according to a summary and still have to take."""
        self.kept_pods: dict[PodUid, RememberedPod] = {}
        """Pods that existed according to a summary, until all existing pods are known."""
        self.kept_at = 0.0
        """When that summary was written."""

    @property
    def independent(self) -> bool:
        """Whether each slot has its own QoS."""
        return self.promise.approach is QosApproach.INDEPENDENT

    @property
    def needed(self) -> int:
        """Number of replicas that should run: the number of pods if it is unknown, and at least 1."""
        return max(self.held if self.replicas is None else self.replicas, 1)

    @property
    def counts(self) -> ReplicaCounts:
        """Replicas that run and that wait."""
        return ReplicaCounts(self.running, self.held - self.running, self.needed)

    # ------------------------------------------------------------------------------------------------- facts

    def advance(self, now: float) -> None:
        """Let sliding windows follow the time."""
        if not self.window:
            return
        self.sums.advance(now)
        if self.sweep is not None:
            self.sweep.advance(now)
        for slot in self.slots:
            if slot.sums is not None:
                slot.sums.advance(now)

    def add(self, pod: PodRecord, now: float) -> None:
        """Add a new pod, which waits, and give it a slot."""
        self.pods[pod.uid] = pod
        self.incarnations += 1
        slot = self._slot_for(pod.uid, now)
        slot.holder = pod.uid
        slot.incarnations += 1
        slot.members.add(pod.uid)
        self.shares[pod.uid] = slot
        self.held += 1
        self._start(pod, WAITING, pod.created_at)
        self._resize_sweep(pod.created_at)

    def enter(self, pod: PodRecord, state: int, at: float) -> None:
        """Let a pod change its state; a time before the last change counts as that time."""
        kept = self.kept_pods.get(pod.uid)
        at = max(at if kept is None else kept.entered(state, pod.created_at, at), pod.since)
        was_running = pod.running
        pod.spent[pod.state] += at - pod.since
        self._stop(pod, pod.state, at)
        pod.state, pod.since = state, at
        self._start(pod, state, at)
        if state == EFFECTIVE and pod.ran_from is None:
            pod.ran_from = at
        if not pod.terminating:
            self.running += pod.running - was_running

    def end(self, pod: PodRecord, at: float, *, succeeded: bool) -> None:
        """End a pod; its slot must be free already."""
        at = max(at, pod.since)
        pod.spent[pod.state] += at - pod.since
        self._stop(pod, pod.state, at)
        pod.ended_at, pod.succeeded = at, succeeded
        self.succeeded += succeeded
        if self.promise.approach is QosApproach.AGGREGATE and not succeeded and pod.ran_from is not None:
            lost = pod.spent[EFFECTIVE]
            self.sums.move(EFFECTIVE, DISCARDED, at - lost, at)
            pod.spent[EFFECTIVE], pod.spent[DISCARDED] = 0.0, pod.spent[DISCARDED] + lost

    def remove(self, pod: PodRecord) -> None:
        """Remove a pod that has ended; its times remain in the sums."""
        del self.pods[pod.uid]
        self.shares.pop(pod.uid).members.discard(pod.uid)
        self.kept_pods.pop(pod.uid, None)

    def leave(self, pod: PodRecord, at: float) -> list[ReplicaSlot]:
        """Free the slot of a pod that is terminating or about to end; return the slots that were dropped."""
        slot = self.shares[pod.uid]
        if slot.holder != pod.uid:
            return []
        self.held -= 1
        self.running -= pod.running
        self.reserve(pod, on=False)
        members = slot.members
        dropped, mover = self.slots.release(slot, self.replicas)
        if mover is not None:
            self.shares.update(dict.fromkeys(members, mover))
        self._resize_sweep(at)
        return dropped

    def reserve(self, pod: PodRecord, *, on: bool) -> None:
        """Record whether the scheduler has a node for a pod that is not bound."""
        if pod.reserved != on:
            pod.reserved = on
            self.reserved += 1 if on else -1

    def resize(self, replicas: int | None, promise: Promise | None, at: float) -> list[ReplicaSlot]:
        """Change the number of replicas and the promise, except its approach; return the slots that were dropped."""
        if promise is not None:
            self.promise = Promise(promise.slo, promise.importance, self.promise.approach, promise.overhead_limit)
        if replicas is None or replicas == self.replicas:
            return []
        self.replicas = replicas
        self._resize_sweep(at)
        return self.slots.trim(replicas)

    def end_missing(self, now: float) -> list[ReplicaSlot]:
        """
        End the pods of a summary that do not exist any more; return the slots that were dropped.

        When they ended is not known. A controller replaces a pod at once, so each of them ended when one of the pods
        was created that the summary does not have; without such a pod, now.
        """
        newcomers = iter(sorted(pod.created_at for uid, pod in self.pods.items() if uid not in self.kept_pods))
        dropped: list[ReplicaSlot] = []
        for uid, kept in self.kept_pods.items():
            if uid not in self.pods:
                end = self.kept_at if kept.ended else min(max(next(newcomers, now), self.kept_at), now)
                dropped += self._end_missing(kept, end)
        self.kept_pods.clear()
        self.kept_slots.clear()
        return dropped

    def _end_missing(self, kept: RememberedPod, end: float) -> list[ReplicaSlot]:
        amounts = kept.times.amounts
        if not kept.ended:
            amounts[kept.state] += end - self.kept_at
        if self.sweep is not None:
            # The running time of all pods until the summary is in the sweep already.
            amounts[EFFECTIVE] = amounts[DISCARDED] = 0.0
            if kept.state == EFFECTIVE and not kept.ended:
                self.sweep.change(self.kept_at, 1)
                self.sweep.change(end, -1)
        elif self.promise.approach is QosApproach.AGGREGATE and not kept.succeeded:
            amounts[EFFECTIVE], amounts[DISCARDED] = 0.0, amounts[EFFECTIVE] + amounts[DISCARDED]
        self.sums.add_past(amounts)
        self.incarnations += 1
        self.succeeded += kept.succeeded
        index = self.kept_slots.get(kept.uid)
        if index is None or index >= len(self.slots) or self.slots[index].holder is not None:
            return []
        slot = self.slots[index]
        slot.incarnations += 1
        if slot.sums is not None:
            slot.sums.add_past(amounts)
        members = slot.members
        dropped, mover = self.slots.release(slot, self.replicas)
        if mover is not None:
            self.shares.update(dict.fromkeys(members, mover))
        return dropped

    def _slot_for(self, uid: PodUid, now: float) -> ReplicaSlot:
        kept = self.kept_slots.pop(uid, None)
        if kept is not None and kept < len(self.slots) and self.slots[kept].holder is None:
            return self.slots[kept]
        slot = self.slots.first_free()
        while slot is not None and slot.index in self.kept_slots.values():
            # Pods that a summary assigned to slots have not been seen yet; a new slot leaves theirs free.
            slot = None
        return slot or self.slots.add(TimeSums(self.window, now) if self.independent else None)

    def _start(self, pod: PodRecord, kind: int, since: float) -> None:
        if self.sweep is not None and kind == EFFECTIVE:
            self.sweep.change(since, 1)
        else:
            self.sums.start(kind, since)
        own = self.shares[pod.uid].sums
        if own is not None:
            own.start(kind, since)

    def _stop(self, pod: PodRecord, kind: int, until: float) -> None:
        if self.sweep is not None and kind == EFFECTIVE:
            self.sweep.change(until, -1)
        else:
            self.sums.stop(kind, until)
        own = self.shares[pod.uid].sums
        if own is not None:
            own.stop(kind, until)

    def _resize_sweep(self, at: float) -> None:
        if self.sweep is not None and self.sweep.needed != self.needed:
            self.sweep.resize(at, self.needed)

    # ----------------------------------------------------------------------------------------------- answers

    def lines(self, now: float, slot: ReplicaSlot | None = None) -> list[Line]:
        """Return the four sums as functions of time, of the controller or of an independent slot."""
        if slot is not None and slot.sums is not None:
            return slot.sums.lines(now)
        lines = self.sums.lines(now)
        if self.sweep is not None:
            for kind, line in zip((EFFECTIVE, DISCARDED), self.sweep.lines(now), strict=True):
                lines[kind] = Line(lines[kind].slope + line.slope, lines[kind].offset + line.offset)
        return lines

    def order_row(self, now: float, slot: ReplicaSlot | None = None, running: PodRecord | None = None) -> OrderRow:
        """
        Return what the metric of a pod depends on; *slot* is the pod's slot if replicas are independent.

        Of a *running* pod it is the metric without this pod. It is the same for all running pods of a controller, except
        that the run of a Job's pod would be lost.
        """
        lines = self.lines(now, slot)
        counts = self.counts
        aggregate = self.promise.approach is QosApproach.AGGREGATE
        if running is not None:
            counts = ReplicaCounts(max(counts.running - 1, 0), counts.pending + 1, counts.needed)
        if running is not None and aggregate and running.running:
            since = max(running.since, self._begin(now))
            effective, discarded = lines[EFFECTIVE], lines[DISCARDED]
            lines[EFFECTIVE] = Line(effective.slope - 1, effective.offset + since)
            lines[DISCARDED] = Line(discarded.slope + 1, discarded.offset - since)
        lost = lines[BINDING]
        if aggregate:
            lost = Line(lost.slope + lines[DISCARDED].slope, lost.offset + lines[DISCARDED].offset)
        placed = [lines[kind] for kind in (BINDING, EFFECTIVE, DISCARDED)]
        sums = self.sums if slot is None or slot.sums is None else slot.sums
        return OrderRow(
            self.promise,
            lines[EFFECTIVE],
            Line(sum(line.slope for line in lines), sum(line.offset for line in lines)),
            Line(sums.counts[BINDING], sums.offsets[BINDING]),
            self.incarnations if slot is None else slot.incarnations,
            counts,
            lost,
            Line(sum(line.slope for line in placed), sum(line.offset for line in placed)),
        )

    def standing(self, t: float, pod: PodRecord | None = None) -> Standing:
        """Return the standing of the controller, or with respect to one of its pods."""
        slot = self.shares[pod.uid] if pod is not None and self.independent else None
        times = [max(line.at(t), 0.0) for line in self.lines(t, slot)]
        running = pod is not None and pod.running
        if pod is not None and running and self.promise.approach is QosApproach.AGGREGATE:
            # Its run is lost if it is preempted.
            own = pod.run_within(self._begin(t), t)
            times[EFFECTIVE], times[DISCARDED] = max(times[EFFECTIVE] - own, 0.0), times[DISCARDED] + own
        spent = QosTimes(*times)
        sums = self.sums if slot is None or slot.sums is None else slot.sums
        overhead = overhead_estimate(sums.at(t)[BINDING], self.incarnations if slot is None else slot.incarnations)
        counts = self.counts
        return Standing(
            spent,
            self.promise,
            qos_metric(self.promise, spent, overhead, counts, running=running),
            overhead,
            preemption_overhead(self.promise.approach, spent),
            counts,
        )

    def _begin(self, t: float) -> float:
        return float("-inf") if self.sums.window is None else self.sums.window.start(t)

    def past(self, t: float, slot: ReplicaSlot | None = None) -> list[float]:
        """
        Return the times of pods that do not exist any more, of the controller or of an independent slot.

        Running time of replicas that run together cannot be split by pod, so it is the time of all pods.
        """
        totals = [line.at(t) for line in self.lines(t, slot)]
        begin = self._begin(t)
        for uid in self.pods if slot is None else slot.members:
            pod = self.pods[uid]
            times = pod.times_since(begin, t) if self.window else pod.times(t)
            for kind in range(KINDS) if self.sweep is None else (WAITING, BINDING):
                totals[kind] -= times[kind]
        return [max(total, 0.0) for total in totals]
