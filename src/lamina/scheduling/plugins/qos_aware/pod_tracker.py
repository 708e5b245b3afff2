"""
Measures all pods: turns what the plugin is called with into facts for the QoS engine.

    pods seen and gone ──facts_of_change──> engine        reserve, pre_bind, post_bind ──facts──> engine
    history of an earlier process ──adopt──> a new engine, with the facts of the pods that are known

All profiles of a process share one tracker. A pod that is seen again unchanged makes no fact, so it does not matter how
many of them call it.
"""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from lamina.model.pod import Pod, PodUid
from lamina.qos.controller_snapshot import QosSnapshot
from lamina.qos.engine import QosEngine
from lamina.qos.life_cycle_facts import (
    ControllerResized,
    PodDeleted,
    PodReserved,
    PodUnreserved,
    PodWasBound,
    QosFact,
)
from lamina.qos.owner_directory import OwnerDirectory
from lamina.qos.pod_changes import facts_of_change
from lamina.qos.promise import ControllerKey, Promise
from lamina.qos.promise_sources import ANNOTATIONS, ResolvedPromise, resolve_promise
from lamina.qos.qos_summary import QosSummary
from lamina.scheduling.plugins.qos_aware.args import QosAwareArgs


class ToldPromise(NamedTuple):
    """What the engine was last told about a controller with pods."""

    replicas: int | None
    promise: Promise
    since: float
    """When the pod was created that states the promise; 0 after it is gone: then the next pod that changes states it."""


class TrackerSnapshot(msgspec.Struct, frozen=True):
    """Serializable form of a `PodTracker`."""

    engine: QosSnapshot
    pods: tuple[Pod, ...]
    binding: tuple[tuple[PodUid, float], ...]
    told: tuple[tuple[ControllerKey, ToldPromise], ...]


class PodTracker:
    """The pods of a cluster and the QoS of their controllers."""

    def __init__(self, args: QosAwareArgs, owners: OwnerDirectory, namespaces: Mapping[str, Mapping[str, str]]) -> None:
        """Start without pods; *namespaces* has the annotations of namespaces."""
        self.args = args
        self.engine = QosEngine(args.settings)
        self.edition = 0
        """Increases with every fact."""
        self._owners = owners
        self._namespaces = namespaces
        self._defaults = args.defaults
        self._pods: dict[PodUid, Pod] = {}
        """All pods as they were last seen, restricted to what is read."""
        self._binding: dict[PodUid, float] = {}
        """When the current binding of a pod began."""
        self._told: dict[ControllerKey, ToldPromise] = {}
        """Of controllers with pods, by the engine's key: that of a pod stays what it was at its creation."""

    # ------------------------------------------------------------------------------------------------------- pods

    def seen(self, pod: Pod, now: float) -> None:
        """Take the current state of a pod."""
        if pod.namespace in self.args.ignored_namespaces:
            return
        before = self._pods.get(pod.uid)
        kept = _kept(pod)
        if before == kept:
            return
        self._pods[pod.uid] = kept
        self._tell(before, kept, now)

    def gone(self, uid: PodUid, now: float) -> None:
        """Take the end of a pod object."""
        pod = self._pods.pop(uid, None)
        if pod is None:
            return
        self._binding.pop(uid, None)
        controller = self.engine.controller_of(uid)
        self._feed(PodDeleted(now, uid), now)
        told = None if controller is None else self._told.get(controller)
        if controller is None or told is None:
            return
        if not self.engine.pods_of(controller):
            del self._told[controller]
        elif pod.created_at >= told.since:
            self._told[controller] = told._replace(since=0.0)

    def reserve(self, uid: PodUid, now: float) -> None:
        """Note that a pod has a node."""
        self._feed(PodReserved(now, uid), now)

    def unreserve(self, uid: PodUid, now: float) -> None:
        """Note that a pod lost its node before it was bound."""
        self._binding.pop(uid, None)
        self._feed(PodUnreserved(now, uid), now)

    def begin_binding(self, uid: PodUid, now: float) -> None:
        """Note when the binding of a pod began; the fact follows when it is bound."""
        self._binding[uid] = now

    def bound(self, uid: PodUid, now: float) -> None:
        """Note that a pod was bound, unless it was seen on its node before."""
        since = self._binding.pop(uid, None)
        if since is not None:
            self._feed(PodWasBound(now, uid, since), now)

    def resolved(self, pod: Pod) -> tuple[ResolvedPromise, int | None]:
        """Return the controller of a pod with its promise, and its number of replicas."""
        facts = self._owners.controller_of(pod)
        promise = resolve_promise(pod, facts, self._namespaces.get(pod.namespace, {}), self._defaults)
        return promise, facts.replicas

    def _tell(self, before: Pod | None, pod: Pod, now: float) -> None:
        resolved, replicas = self.resolved(pod)
        controller = self.engine.controller_of(pod.uid) or resolved.controller
        known = self._told.get(controller)
        since = pod.created_at
        if known is not None and since < known.since:
            # A newer pod states the promise.
            resolved, since = resolved._replace(promise=known.promise), known.since
        for fact in facts_of_change(before, pod, resolved, replicas, now):
            if isinstance(fact, PodWasBound) and (began := self._binding.pop(pod.uid, None)) is not None:
                # This process bound it: the moment of the observation is more exact than the API's seconds.
                fact = PodWasBound(now, pod.uid, began)
            self._feed(fact, now)
        if pod.uid not in self.engine:
            return
        if before is not None and known is not None and known[:2] != (replicas, resolved.promise):
            self._feed(ControllerResized(now, controller, replicas, resolved.promise), now)
        self._told[controller] = ToldPromise(replicas, resolved.promise, since)

    def _feed(self, fact: QosFact, now: float) -> None:
        self.edition += 1
        self.engine.feed(fact, now)

    # ---------------------------------------------------------------------------------------------------- history

    def adopt(self, summary: QosSummary, now: float) -> None:
        """Begin anew with the history of a summary and with the pods that exist, all of which are known."""
        finished = self.engine.notes.finished
        self.engine = QosEngine(self.args.settings)
        self.engine.adopt(summary, now)
        self._told.clear()
        for pod in sorted(self._pods.values(), key=lambda one: (one.created_at, one.uid)):
            self._tell(None, pod, now)
        self.engine.finish_adoption()
        self.edition += 1
        # Pods that had ended are not reported again.
        self.engine.notes.finished = finished

    # -------------------------------------------------------------------------------------------------- snapshots

    def snapshot(self) -> TrackerSnapshot:
        """Return the state as data, without finished incarnations."""
        return TrackerSnapshot(
            self.engine.snapshot(),
            tuple(self._pods.values()),
            tuple(self._binding.items()),
            tuple(self._told.items()),
        )

    def restore(self, snapshot: TrackerSnapshot) -> None:
        """Restore a snapshot; what is known so far is lost."""
        self.engine = QosEngine(self.args.settings)
        self.engine.restore(snapshot.engine)
        self.edition += 1
        self._pods = {pod.uid: pod for pod in snapshot.pods}
        self._binding = dict(snapshot.binding)
        self._told = dict(snapshot.told)


def _kept(pod: Pod) -> Pod:
    """Return what is read of a pod."""
    return Pod(
        uid=pod.uid,
        name=pod.name,
        namespace=pod.namespace,
        labels=pod.labels,
        annotations={key: text for key, text in pod.annotations.items() if key in ANNOTATIONS},
        node_name=pod.node_name,
        owner=pod.owner,
        created_at=pod.created_at,
        bound_at=pod.bound_at,
        started=pod.started,
        started_at=pod.started_at,
        ready=pod.ready,
        ready_at=pod.ready_at,
        finished=pod.finished,
        failed=pod.failed,
        ended_at=pod.ended_at,
        deleting=pod.deleting,
        deleting_since=pod.deleting_since,
    )
