"""
The QoS engine: facts about the life of pods in, standings of their controllers out.

A scheduler plugin, a simulation or a replay feeds facts (`lamina.qos.life_cycle_facts`) in the order in which it
observes them, each with the time of observation. Queries take the time as well; the engine reads no clock. A fact
costs the same however many pods wait. Memory is bounded by the pods and controllers that exist, plus
`QosSettings.most_idle` controllers without pods.
"""

import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from lamina.model.pod import PodUid
from lamina.qos.controller_record import ControllerRecord
from lamina.qos.controller_snapshot import QosSnapshot, controller_snapshot, restored_controller
from lamina.qos.host_notes import HostNotes
from lamina.qos.incarnation import FinishedIncarnation, finished_incarnation
from lamina.qos.life_cycle_facts import (
    ControllerGone,
    ControllerResized,
    PodCreated,
    PodDeleted,
    PodEnded,
    PodFact,
    PodIsReady,
    PodIsTerminating,
    PodIsUnready,
    PodReserved,
    PodRuns,
    PodUnreserved,
    PodWasBound,
    QosFact,
)
from lamina.qos.order_table import HOPELESS, OrderTable, Rows, RunningPods
from lamina.qos.pod_record import PodRecord
from lamina.qos.promise import ControllerKey, Promise, QosApproach, QosSettings, RunningFrom
from lamina.qos.qos_summary import QosSummary, adopted_controller, summary_of_records
from lamina.qos.replica_slots import ReplicaSlot
from lamina.qos.row_keys import RowKeys
from lamina.qos.standing import QosTimes, Standing
from lamina.qos.time_sums import BINDING, DISCARDED, EFFECTIVE
from lamina.qos.window_checkpoints import PARTS

NO_METRIC: Final = -math.inf
"""The metric of pods that the engine ignores: they go first."""


class QosEngine:
    """Times, standings and order of controllers."""

    def __init__(self, settings: QosSettings, origin: float | None = None) -> None:
        """
        Start without controllers.

        *origin* is the zero of internal times, so that sums stay small and exact; by default the first observation.
        """
        self.settings = settings
        self.origin = origin
        self.now = 0.0
        """Time of the last observation, in seconds since the origin."""
        self._records: dict[ControllerKey, ControllerRecord] = {}
        self._of_pod: dict[PodUid, ControllerRecord] = {}
        self._idle: OrderedDict[ControllerKey, float] = OrderedDict()
        """Controllers without pods, since when; the oldest first."""
        self._table = OrderTable(settings.safety_margin, settings.hopeless_after)
        self._changed: set[ControllerKey] = set()
        """Controllers whose rows are outdated."""
        self._window_number = 0
        self.notes = HostNotes()
        self.facts = 0
        """Number of facts so far."""
        self._row_keys = RowKeys(self._table)

    def __len__(self) -> int:
        """Return the number of controllers, those without pods included."""
        return len(self._records)

    def __contains__(self, uid: PodUid) -> bool:
        """Return whether a pod is known."""
        return uid in self._of_pod

    # ------------------------------------------------------------------------------------------------- facts

    def feed(self, fact: QosFact, now: float) -> tuple[FinishedIncarnation, ...]:
        """
        Take a fact that was observed at *now*, and return the incarnations that it finished.

        Facts about unknown pods are ignored. A time after *now* counts as *now*: clocks of machines differ.
        """
        self.facts += 1
        self._pass_time(now)
        at = min(fact.at - self._zero(), self.now)
        match fact:
            case PodCreated():
                self._create(fact, at)
            case ControllerResized():
                record = self._records.get(fact.controller)
                if record is not None:
                    record.advance(self.now)
                    self._drop_rows(record.resize(fact.replicas, fact.promise, at))
                    self._changed.add(record.key)
            case ControllerGone():
                record = self._records.get(fact.controller)
                if record is not None:
                    record.gone = True
                    if record.key in self._idle:
                        self._forget(record.key)
            case _:
                finished = self._pod_fact(fact, at)
                self.notes.finish(finished)
                return finished
        return ()

    def finish_adoption(self) -> None:
        """End the pods of a summary that do not exist any more; for after the first complete list of pods."""
        for record in self._records.values():
            if record.kept_pods or record.kept_slots:
                record.advance(self.now)
                self._changed.add(record.key)
                self._drop_rows(record.end_missing(self.now))
        for key, record in reversed(self._records.items()):
            if not record.pods:  # The last ones of a summary have had none for longest.
                self._idle.setdefault(key, self.now)

    def _zero(self) -> float:
        return 0.0 if self.origin is None else self.origin

    def _pass_time(self, now: float) -> None:
        if self.origin is None:
            self.origin = now
        self.now = max(self.now, now - self.origin)
        self._forget_idle()

    def _create(self, fact: PodCreated, at: float) -> None:
        if fact.namespace in self.settings.ignored_namespaces or fact.uid in self._of_pod:
            return
        record = self._records.get(fact.controller)
        if record is None:
            record = ControllerRecord(fact.controller, fact.promise, fact.replicas, self.settings.window, self.now)
            self._records[fact.controller] = record
        self._idle.pop(record.key, None)
        record.gone = False
        record.advance(self.now)
        self._drop_rows(record.resize(fact.replicas, fact.promise, at))
        self._changed.add(record.key)
        self._of_pod[fact.uid] = record
        record.add(PodRecord(fact.uid, fact.namespace, fact.name, at), self.now)
        self.notes.changes += 1

    def _pod_fact(self, fact: PodFact, at: float) -> tuple[FinishedIncarnation, ...]:
        record = self._of_pod.get(fact.uid)
        if record is None:
            return ()
        record.advance(self.now)
        self._changed.add(record.key)
        pod = record.pods[fact.uid]
        finished = self._live_pod_fact(record, pod, fact, at) if pod.ended_at is None else ()
        if isinstance(fact, PodDeleted):
            self._delete(record, pod)
        return finished

    def _live_pod_fact(
        self, record: ControllerRecord, pod: PodRecord, fact: PodFact, at: float
    ) -> tuple[FinishedIncarnation, ...]:
        start = self.settings.running_from
        match fact:
            case PodReserved() | PodUnreserved():
                if not (pod.bound or pod.terminating):
                    record.reserve(pod, on=isinstance(fact, PodReserved))
            case PodWasBound():
                self._bind(record, pod, fact.binding_since, at)
            case PodRuns():
                self._bind(record, pod, None, at)
                if start is RunningFrom.RUNNING and pod.state == BINDING:
                    record.enter(pod, EFFECTIVE, at)
            case PodIsReady():
                self._bind(record, pod, None, at)
                if start is not RunningFrom.BINDING and pod.state != EFFECTIVE:
                    record.enter(pod, EFFECTIVE, at)
            case PodIsUnready():
                # A Job's work goes on without readiness.
                job = record.promise.approach is QosApproach.AGGREGATE
                if start is RunningFrom.READY and pod.running and not job:
                    record.enter(pod, DISCARDED, at)
            case PodIsTerminating():
                return self._free_slot(record, pod, at)
            case PodEnded() | PodDeleted():
                return self._end(record, pod, at, succeeded=isinstance(fact, PodEnded) and fact.succeeded)
            case _:
                raise TypeError(f"{type(fact).__name__} is not a fact about a pod")
        return ()

    def _bind(self, record: ControllerRecord, pod: PodRecord, since: float | None, at: float) -> None:
        if pod.bound:
            return
        record.reserve(pod, on=False)
        pod.bound = True
        self.notes.changes += 1
        began = at if since is None else min(since - self._zero(), at)
        record.enter(pod, BINDING, began)
        if self.settings.running_from is RunningFrom.BINDING:
            record.enter(pod, EFFECTIVE, at)

    def _end(
        self, record: ControllerRecord, pod: PodRecord, at: float, *, succeeded: bool
    ) -> tuple[FinishedIncarnation, ...]:
        if pod.terminating:
            record.end(pod, at, succeeded=succeeded)
            return ()
        index = record.shares[pod.uid].index
        dropped = record.leave(pod, at)
        record.end(pod, at, succeeded=succeeded)
        finished = finished_incarnation(record, pod, index, self.now, self._zero())
        self._drop_rows(dropped)
        return (finished,)

    def _free_slot(self, record: ControllerRecord, pod: PodRecord, at: float) -> tuple[FinishedIncarnation, ...]:
        if pod.terminating:
            return ()
        finished = finished_incarnation(record, pod, record.shares[pod.uid].index, self.now, self._zero())
        self._drop_rows(record.leave(pod, at))
        pod.terminating = True
        return (finished,)

    def _delete(self, record: ControllerRecord, pod: PodRecord) -> None:
        del self._of_pod[pod.uid]
        record.remove(pod)
        if pod.victim_row >= 0:
            self._table.remove(pod.victim_row)
        if not record.pods:
            self._idle[record.key] = self.now
            if record.gone:
                self._forget(record.key)

    def _forget_idle(self) -> None:
        """Forget controllers that have had no pods for too long, and the oldest ones if there are too many."""
        while self._idle:
            key, since = next(iter(self._idle.items()))
            if len(self._idle) <= self.settings.most_idle and self.now - since < self.settings.retention:
                break
            self._forget(key)

    def _forget(self, key: ControllerKey) -> None:
        del self._idle[key]
        record = self._records.pop(key)
        self._changed.discard(key)
        self._drop_rows(list(record.slots))
        for row in (record.row, record.victim_row):
            if row >= 0:
                self._table.remove(row)

    def _drop_rows(self, slots: Sequence[ReplicaSlot]) -> None:
        for slot in slots:
            if slot.row >= 0:
                self._table.remove(slot.row)
                slot.row = -1

    # ------------------------------------------------------------------------------------------------- state

    def snapshot(self) -> QosSnapshot:
        """Return the state as data; `restore` continues with the same answers."""
        return QosSnapshot(
            self.origin, self.now, tuple(map(controller_snapshot, self._records.values())), tuple(self._idle.items())
        )

    def restore(self, snapshot: QosSnapshot) -> None:
        """Restore a snapshot into an empty engine with the same settings."""
        self.origin, self.now = snapshot.origin, snapshot.now
        for each in snapshot.controllers:
            self._insert(restored_controller(each, self.settings.window, self.now))
        self._idle = OrderedDict(snapshot.idle)

    def summary(self, now: float, most: int, most_pods: int = 0) -> QosSummary:
        """Return the history of at most *most* controllers, with at most *most_pods* existing pods."""
        t = self.moment(now)
        records = sorted(self.records(now), key=lambda record: self._idle.get(record.key, math.inf), reverse=True)
        # Those with pods first, then those that had pods last.
        return summary_of_records(records[:most], t, max(now, t + self._zero()), most_pods)

    def adopt(self, summary: QosSummary, now: float) -> None:
        """
        Add the history of a summary to an empty engine.

        The caller then feeds the facts of all existing pods, in the order of their creation, and calls
        `finish_adoption`. The times of existing pods are rebuilt from their objects, so nothing counts twice.
        """
        self._pass_time(now)
        written_at = min(summary.at - self._zero(), self.now)
        self.notes.adopted_at = summary.at
        for each in summary.controllers:
            self._insert(adopted_controller(each, self.settings.window, self.now, written_at))

    def _insert(self, record: ControllerRecord) -> None:
        self._records[record.key] = record
        self._of_pod.update(dict.fromkeys(record.pods, record))
        self._changed.add(record.key)

    # ----------------------------------------------------------------------------------------------- answers

    def moment(self, now: float) -> float:
        """Return *now* in seconds since the origin, for the records; never before the last observation."""
        return self.now if self.origin is None else max(self.now, now - self.origin)

    def records(self, now: float) -> Iterator[ControllerRecord]:
        """Yield all controllers, up to date at *now*; for views and summaries, which observe nothing."""
        t = self.moment(now)
        for record in self._records.values():
            record.advance(t)
            yield record

    def standing(self, uid: PodUid, now: float) -> Standing | None:
        """Return the standing of a pod's controller with respect to this pod; None for an unknown or ended pod."""
        self._pass_time(now)
        record = self._of_pod.get(uid)
        if record is None or record.pods[uid].ended_at is not None:
            return None
        record.advance(self.now)
        return record.standing(self.now, record.pods[uid])

    def controller_standing(self, key: ControllerKey, now: float) -> Standing | None:
        """Return the standing of a controller over all its pods; None for an unknown controller."""
        self._pass_time(now)
        record = self._records.get(key)
        if record is None:
            return None
        record.advance(self.now)
        return record.standing(self.now)

    def pod_times(self, uid: PodUid, now: float) -> QosTimes | None:
        """Return a pod's own times over its whole life; None for an unknown pod."""
        self._pass_time(now)
        record = self._of_pod.get(uid)
        return None if record is None else QosTimes(*record.pods[uid].times(self.now))

    def controller_of(self, uid: PodUid) -> ControllerKey | None:
        """Return the controller of a pod; None for an unknown pod."""
        record = self._of_pod.get(uid)
        return None if record is None else record.key

    def promise_of(self, key: ControllerKey) -> Promise | None:
        """Return the promise of a controller; None for an unknown one."""
        record = self._records.get(key)
        return None if record is None else record.promise

    @property
    def time(self) -> float:
        """Time of the last observation, in seconds since 1970."""
        return self.now + self._zero()

    def pods_of(self, key: ControllerKey) -> int:
        """Return the number of a controller's pods that exist."""
        record = self._records.get(key)
        return 0 if record is None else len(record.pods)

    def siblings(self, uid: PodUid) -> tuple[PodUid, ...]:
        """Return the pods of a pod's controller, itself included; none for an unknown pod."""
        record = self._of_pod.get(uid)
        return () if record is None else tuple(record.pods)

    def contributing(self, uid: PodUid) -> bool:
        """Return whether a pod's running time counts: not if replicas must run together and some do not."""
        record = self._of_pod.get(uid)
        if record is None or record.promise.approach is not QosApproach.CONCURRENT:
            return True
        return record.running + record.reserved == record.needed

    def precedes(self, uid: PodUid, other: PodUid, now: float) -> bool:
        """Return whether a pod clearly goes before another one; unknown and ignored pods go first."""
        return self.order_key(uid, now) < self.order_key(other, now)

    def rank(self, standing: Standing) -> float:
        """Return the importance of a controller, which is lower than that of its peers if it is hopeless."""
        importance = standing.promise.importance
        return importance - HOPELESS if standing.metric < -self.settings.hopeless_after else importance

    def order_group(self, uid: PodUid) -> ControllerKey | PodUid:
        """Return what the order of a waiting pod belongs to: its controller, or itself if its slot has its own QoS."""
        record = self._of_pod.get(uid)
        return uid if record is None or record.independent else record.key

    def order_key(self, uid: PodUid, now: float) -> tuple[float, ...]:
        """Return a key of a waiting pod that sorts like `order`, without a rule for equal pods."""
        self._pass_time(now)
        self._refresh()
        row = self._row_of(uid)
        return (0.0, -math.inf, NO_METRIC) if row < 0 else self._row_keys.of(row, self.now, self.facts)

    def order(self, uids: Sequence[PodUid], now: float) -> list[PodUid]:
        """Return waiting pods in the order in which they go; equal ones keep their order, and unknown pods go first."""
        rows = self._rows(uids, now)
        known = np.flatnonzero(rows >= 0)
        first = [uids[position] for position in np.flatnonzero(rows < 0).tolist()]
        return first + [uids[position] for position in known[self._table.order(rows[known], self.now)].tolist()]

    def next_flip(self, ordered: Sequence[PodUid], now: float) -> float:
        """
        Return the next time at which waiting pods, given in their order at *now*, have another order; else infinity.

        It holds until the next fact. With a sliding window it is at most the time at which the window moves.
        """
        rows = self._rows(ordered, now)
        flip = self._table.next_flip(rows[rows >= 0], self.now)
        if self.settings.window:
            step = self.settings.window / PARTS
            flip = min(flip, (math.floor(self.now / step) + 1) * step)
        return flip + self._zero()

    def running_pods(self, uids: Sequence[PodUid], now: float) -> RunningPods:
        """Return what preemption compares of pods on nodes, each as if it alone were taken away."""
        self._pass_time(now)
        self._refresh()
        rows = np.fromiter(map(self._victim_row, uids), dtype=np.intp, count=len(uids))
        known = np.maximum(rows, 0) if len(self._table) else np.zeros(len(uids), dtype=np.intp)
        at = self.now
        ran_from = np.fromiter((self._ran_from(uid) for uid in uids), dtype=np.float64, count=len(uids))
        if not len(self._table):
            nothing = np.zeros(len(uids))
            return RunningPods(rows, nothing, nothing, nothing, nothing, nothing, nothing, ran_from, nothing > 0)
        metrics = np.where(rows >= 0, self._table.metrics(known, at), NO_METRIC)
        with np.errstate(invalid="ignore"):  # infinite metrics stay what they are
            falling = np.nan_to_num(self._table.metrics(known, at + 1.0) - metrics)
        return RunningPods(
            rows,
            metrics,
            falling,
            self._table.ranks(known, at, self.settings.hopeless_after),
            self._table.preemption_overheads(known, at),
            self._table.overhead_limits(known),
            self._table.slos(known),
            ran_from,
            np.fromiter(map(self.contributing, uids), dtype=np.bool_, count=len(uids)),
        )

    def _ran_from(self, uid: PodUid) -> float:
        """Return since when a pod runs, in seconds since the origin; infinity if it does not."""
        record = self._of_pod.get(uid)
        pod = None if record is None else record.pods[uid]
        return pod.ran_from if pod is not None and pod.running and pod.ran_from is not None else math.inf

    def _rows(self, uids: Sequence[PodUid], now: float) -> Rows:
        """Return the order table's rows of pods, up to date; -1 for unknown pods."""
        self._pass_time(now)
        self._refresh()
        return np.fromiter(map(self._row_of, uids), dtype=np.intp, count=len(uids))

    def _row_of(self, uid: PodUid) -> int:
        record = self._of_pod.get(uid)
        if record is None or record.pods[uid].ended_at is not None:
            return -1
        return record.shares[uid].row if record.independent else record.row

    def _refresh(self) -> None:
        """Write the rows of controllers that changed; all of them when the window has moved."""
        changed: Sequence[ControllerRecord]
        number = math.floor(self.now * PARTS / self.settings.window) if self.settings.window else 0
        if number != self._window_number:
            self._window_number = number
            changed = list(self._records.values())
        else:
            changed = [self._records[key] for key in self._changed]
        self._changed.clear()
        for record in changed:
            record.advance(self.now)
            if record.independent:
                for slot in record.slots:
                    if slot.row < 0:
                        slot.row = self._table.add()
                    self._table.put(slot.row, record.order_row(self.now, slot))
            else:
                if record.row < 0:
                    record.row = self._table.add()
                self._table.put(record.row, record.order_row(self.now))
                self._refresh_victims(record)

    def _refresh_victims(self, record: ControllerRecord) -> None:
        """Write the rows of running pods."""
        running = (pod for pod in record.pods.values() if pod.bound and pod.ended_at is None)
        if record.promise.approach is QosApproach.AGGREGATE:
            for pod in running:
                if pod.victim_row < 0:
                    pod.victim_row = self._table.add()
                self._table.put(pod.victim_row, record.order_row(self.now, None, pod))
        elif record.promise.approach is QosApproach.AVERAGE and (first := next(running, None)) is not None:
            if record.victim_row < 0:
                record.victim_row = self._table.add()
            self._table.put(record.victim_row, record.order_row(self.now, None, first))

    def _victim_row(self, uid: PodUid) -> int:
        record = self._of_pod.get(uid)
        if record is None or (pod := record.pods[uid]).ended_at is not None:
            return -1
        if record.promise.approach is QosApproach.AGGREGATE and pod.victim_row >= 0:
            return pod.victim_row
        if record.promise.approach is QosApproach.AVERAGE and pod.running and record.victim_row >= 0:
            return record.victim_row
        return self._row_of(uid)
