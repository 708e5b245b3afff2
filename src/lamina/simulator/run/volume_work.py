"""
Work of VolumeBinding in virtual time: requests the volumes of a pod, then waits until its claims are bound.

    DoWork --reserve volumes, select nodes--> awaited --all claims are bound--> WorkDone
              |                                  |
              +--refused-------------------------+--undone, or too late--> WorkFailed

The rules are those of the live scheduler (`lamina.model.volume_progress`). A controller of the run binds the claims.
"""

import msgspec

from lamina.model.cluster_objects import ClusterObject, ObjectKey
from lamina.model.events import WorkDone, WorkFailed
from lamina.model.pod import PodUid
from lamina.model.volume_progress import VolumeWorkError, all_bound, may_reserve, may_select
from lamina.model.volumes import BindVolumes, ClaimRef, PersistentVolume, PersistentVolumeClaim
from lamina.scheduling.contract.commands import DoWork
from lamina.simulator.cluster import VirtualCluster
from lamina.simulator.cluster.cluster_object_table import SYNC
from lamina.simulator.cluster.watchers import ClusterRecorder
from lamina.simulator.engine import Environment, Timer

TOO_LATE = "binding volumes: context deadline exceeded"


class AwaitedVolumes(msgspec.Struct, frozen=True, eq=False):
    """Work whose writes are done."""

    command: DoWork
    task: BindVolumes
    timer: Timer


class VolumeWork:
    """Does the work of VolumeBinding for all pods of one run."""

    def __init__(self, environment: Environment, cluster: VirtualCluster, recorder: ClusterRecorder) -> None:
        """Write to the objects of *cluster*; *recorder* receives the answers."""
        self._environment = environment
        self._objects = cluster.objects
        self._publish = recorder.publish
        self._awaited: dict[PodUid, AwaitedVolumes] = {}
        self._scheduled = False
        self._objects.listeners.append(self._changed)

    def begin(self, command: DoWork, task: BindVolumes) -> None:
        """Do the work of a command; the answer is an event."""
        uid = command.pod.uid
        self._end(uid)
        try:
            for reservation in task.reservations:
                volume = self._volume(reservation.volume)
                if volume is None:
                    raise VolumeWorkError(f'persistentvolume "{reservation.volume}" not found')
                if may_reserve(volume, reservation.claim):
                    self._objects.put(msgspec.structs.replace(volume, claim=reservation.claim))
            for wanted in task.provisions:
                self._select(wanted, task.node)
        except VolumeWorkError as error:
            self._fail(command, str(error))
            return
        timer = self._environment.after(task.timeout, self._late, uid, priority=SYNC)
        self._environment.ignore_when_idle(timer)
        self._awaited[uid] = AwaitedVolumes(command, task, timer)
        self._check_soon()

    def _select(self, wanted: ClaimRef, node: str) -> None:
        claim = self._claim(wanted.namespace, wanted.name)
        if claim is None:
            raise VolumeWorkError(f'persistentvolumeclaim "{wanted.name}" not found')
        if may_select(claim, wanted, node):
            self._objects.put(msgspec.structs.replace(claim, selected_node=node))

    def _changed(self, key: ObjectKey, _: ClusterObject | None) -> None:
        if self._awaited and key.kind in {PersistentVolume.__name__, PersistentVolumeClaim.__name__}:
            self._check_soon()

    def _check_soon(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            # After the controller, which changes claim and volume one after the other.
            self._environment.after(0.0, self._check, priority=SYNC + 1)

    def _check(self) -> None:
        self._scheduled = False
        for uid, awaited in list(self._awaited.items()):
            command = awaited.command
            try:
                if all_bound(awaited.task, self._volume, self._claim):
                    self._end(uid)
                    self._publish(WorkDone(uid, command.plugin, command.attempt))
            except VolumeWorkError as error:
                self._end(uid)
                self._fail(command, str(error))

    def _late(self, uid: PodUid) -> None:
        awaited = self._awaited.pop(uid, None)
        if awaited is not None:
            self._fail(awaited.command, TOO_LATE)

    def _end(self, uid: PodUid) -> None:
        awaited = self._awaited.pop(uid, None)
        if awaited is not None:
            self._environment.cancel(awaited.timer)

    def _fail(self, command: DoWork, reason: str) -> None:
        self._publish(WorkFailed(command.pod.uid, command.plugin, command.attempt, reason))

    def _volume(self, name: str) -> PersistentVolume | None:
        return self._objects.get(PersistentVolume, "", name)

    def _claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        return self._objects.get(PersistentVolumeClaim, namespace, name)
