"""
Virtual cluster: nodes with kubelets, pods, and the API server operations on both.

The caller submits, binds and removes pods, and lets nodes join, leave and fail. The cluster passes trace records and
events for a scheduler to a *recorder*. Then it calls the watchers, which may react (controllers do). Watch events have
no delay; node agent reports and node status have one (`node_reporter`). The cluster does not depend on a scheduler or a
scenario.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from msgspec.structs import force_setattr, replace

from lamina.layers.catalog import Catalog
from lamina.model.errors import WiringError
from lamina.model.events import PodGone, PodSeen
from lamina.model.image import Image
from lamina.model.pod import Pod, PodUid
from lamina.model.resources import Amounts
from lamina.model.taints import Taint
from lamina.simulator.cluster.cluster_object_table import ClusterObjectTable
from lamina.simulator.cluster.image_reports import ImageReportCache
from lamina.simulator.cluster.kubelet import VirtualKubelet
from lamina.simulator.cluster.kubelet_context import KubeletContext
from lamina.simulator.cluster.lag import UNSEEDED, DrawLag
from lamina.simulator.cluster.node_reporter import VirtualNodeReporter
from lamina.simulator.cluster.outage import UNREACHABLE, Outage
from lamina.simulator.cluster.pod_lifecycle import RUNS_FOREVER, PodLifecycle
from lamina.simulator.cluster.usage_sampler import NodeUsageSampler, UsageSpec
from lamina.simulator.cluster.virtual_node import Delays, VirtualNode, VirtualNodeSpec
from lamina.simulator.cluster.virtual_pod import ENDED, VirtualPod, distinct_bytes
from lamina.simulator.cluster.watchers import ClusterRecorder, ClusterWatcher
from lamina.simulator.engine import Environment, Network
from lamina.simulator.pulls import LayerSources
from lamina.trace.trace_records import (
    NodeFailed,
    NodeJoined,
    NodeLeft,
    NodeRecovered,
    PodArrived,
    PodBound,
    PodEvicted,
    PodRemoved,
)

REASON_NO_POD: Final = "the pod is gone"
PREEMPTED: Final = "Preempted"
"""Reason of a pod that the scheduler evicted in favour of another one."""
REASON_NO_NODE: Final = "the node is gone"
REASON_BOUND: Final = "the pod is already bound to {}"

DAEMON_SET: Final = "DaemonSet"
# The method that `copy.copy` calls; msgspec's type hints omit it.
_copied: Final[Callable[[Pod], Pod]] = Pod.__copy__  # type: ignore[attr-defined]

NO_UPLINKS: Final[Mapping[str, float]] = {}


class VirtualCluster:
    """All nodes and all pods of a run, including those that have left or ended."""

    def __init__(  # noqa: PLR0913 - what a cluster is made of; the last four are by name and seldom given
        self,
        environment: Environment,
        images: Iterable[Image],
        delays: Delays,
        recorder: ClusterRecorder,
        *,
        draw: DrawLag = UNSEEDED,
        registry: float = 0.0,
        uplinks: Mapping[str, float] = NO_UPLINKS,
        usage: UsageSpec | None = None,
        unknown_image: Callable[[str], Image] | None = None,
    ) -> None:
        """
        Start without nodes. *images* are all images of the registry.

        *registry* and *uplinks* are rates in bytes per second (0: no limit). Without *usage*, usage is not measured.
        *unknown_image* returns an image for a name that the registry does not have; without it, such a name is an error.
        """
        self._unknown_image = unknown_image
        self._environment = environment
        self._note, self._publish = recorder.note, recorder.publish
        network = Network(environment)
        self._sources = LayerSources(network, registry, uplinks)
        self._uplinks = uplinks
        self._context = KubeletContext(environment, network, delays, draw, recorder.note, self)
        self._catalog = Catalog()
        for image in images:
            self._catalog.learn(image)
        self._needs: dict[tuple[str, ...], tuple[tuple[Image, ...], int]] = {}
        self._report_cache = ImageReportCache()
        self.usage_sampler = (
            None if usage is None else NodeUsageSampler(environment, usage, delays, recorder.publish, draw)
        )
        """Measures the usage of the nodes; None: it is not measured."""
        self._reporters: dict[str, VirtualNodeReporter] = {}
        self._outages: dict[str, Outage] = {}
        self.watchers: list[ClusterWatcher] = []
        """Called in this order after every event."""
        self.pod_listeners: list[Callable[[VirtualPod], object]] = []
        """Called in this order after every change of a pod that the scheduler sees."""
        self.objects = ClusterObjectTable(recorder.publish)
        """Objects besides pods and nodes."""
        self.nodes: dict[str, VirtualNode] = {}
        """The present nodes, in the order in which they joined."""
        self.kubelets: dict[str, VirtualKubelet] = {}
        """The kubelets of all nodes, including those that left; of nodes with the same name, the last one."""
        self.pods: dict[PodUid, VirtualPod] = {}
        """All pods in the order of their arrival, including those that ended."""

    # -- nodes -------------------------------------------------------------------------------------------------------

    def join(self, spec: VirtualNodeSpec) -> None:
        """Add a node to the cluster."""
        name = spec.name
        if name in self.nodes:
            raise WiringError(f"a second node {name!r} cannot join")
        source, context = self._sources.for_node(spec), self._context
        node = VirtualNode(spec, self._report_cache, self._uplinks.get(spec.uplink, math.inf))
        reporter = VirtualNodeReporter(self._environment, node, context.delays, self._publish, context.draw)
        self.kubelets[name] = VirtualKubelet(context, node, source, reporter)
        self.nodes[name], self._reporters[name] = node, reporter
        self._note(NodeJoined(self._environment.now, name, dict(spec.allocatable), spec.bandwidth))
        reporter.join()
        if self.usage_sampler is not None:
            self.usage_sampler.join(node)
        for watcher in self.watchers:
            watcher.node_joined(node)

    def cordon(self, name: str) -> None:
        """Mark a node as unschedulable; do nothing if it is gone."""
        self._set_schedulable(name, unschedulable=True)

    def uncordon(self, name: str) -> None:
        """Mark a node as schedulable again; do nothing if it is gone."""
        self._set_schedulable(name, unschedulable=False)

    def change(self, name: str, labels: Mapping[str, str], taints: tuple[Taint, ...], allocatable: Amounts) -> None:
        """Change a node's labels, taints and resources; do nothing if it is gone. Its pods are not evicted."""
        node = self.nodes.get(name)
        if node is not None and node.change(labels, taints, allocatable):
            self._reporters[name].node_changed()

    def drain(self, name: str) -> None:
        """Cordon a node and delete its pods with their grace periods, except those of DaemonSets."""
        self.cordon(name)
        if name in self.nodes:
            for pod in self.kubelets[name].pods:
                if pod.pod.owner is None or pod.pod.owner.kind != DAEMON_SET:
                    self.remove(pod.pod.uid, None)

    def fail(self, name: str) -> None:
        """Let a node's kubelet fail; do nothing if it has failed already or the node is gone."""
        if name in self.nodes and name not in self._outages:
            self._note(NodeFailed(self._environment.now, name))
            self._outages[name] = Outage(
                self._environment, self._context.delays, self.kubelets[name], self._reporters[name], self._evict
            )

    def recover(self, name: str) -> None:
        """End the failure of a node; do nothing if it has not failed."""
        outage = self._outages.pop(name, None)
        if outage is not None:
            self._note(NodeRecovered(self._environment.now, name))
            outage.recover()

    def drop(self, name: str) -> None:
        """Remove a node and its pods; do nothing if it is gone."""
        # Before its pods end, so that watchers do not bind new pods to it.
        node = self.nodes.pop(name, None)
        if node is None:
            return
        outage = self._outages.pop(name, None)
        if outage is not None:
            outage.end()
        kubelet = self.kubelets[name]
        for pod in kubelet.pods:
            self.remove(pod.pod.uid)
        kubelet.leave()
        if self.usage_sampler is not None:
            self.usage_sampler.leave(name)
        self._note(NodeLeft(self._environment.now, name))
        self._reporters[name].leave()
        for watcher in self.watchers:
            watcher.node_left(node)

    def _set_schedulable(self, name: str, *, unschedulable: bool) -> None:
        node = self.nodes.get(name)
        if node is not None and node.unschedulable is not unschedulable:
            node.unschedulable = unschedulable
            self._reporters[name].node_changed()

    # -- pods --------------------------------------------------------------------------------------------------------

    def submit(self, pod: Pod, life: PodLifecycle = RUNS_FOREVER) -> None:
        """Create a pod with this lifecycle; a pod that names a node is bound there without a scheduler."""
        if pod.uid in self.pods:
            raise WiringError(f"a second pod with the uid {pod.uid!r} cannot arrive")
        if life.deadline is not None and pod.deadline is None:
            pod = replace(pod, deadline=life.deadline)
        now = self._environment.now
        need = self._needs.get(pod.images)
        if need is None:
            need = self._needs[pod.images] = self._need(pod.images)
        virtual = self.pods[pod.uid] = VirtualPod(pod, need[0], now, life, need[1])
        self._note(PodArrived(now, virtual.key, pod.uid, pod.namespace, pod.images, dict(pod.requests)))
        self._publish(PodSeen(pod))
        for listener in self.pod_listeners:
            listener(virtual)
        if pod.node_name:
            self.bind(pod.uid, pod.node_name)

    def bind(self, uid: PodUid, node: str) -> str:
        """Bind a pod to a node; return why that is not possible, or an empty string."""
        pod = self.pods.get(uid)
        if pod is None or pod.phase in ENDED:
            return REASON_NO_POD
        if pod.node:
            return REASON_BOUND.format(pod.node)
        if node not in self.nodes:
            return REASON_NO_NODE
        pod.node, pod.bound = node, self._environment.now
        self._note(PodBound(pod.bound, pod.key, node))
        self._show(pod, node_name=node, bound_at=pod.bound)
        self.kubelets[node].accept(pod)
        if self._outages and node in self._outages:
            self._outages[node].bound(pod)
        return ""

    def remove(self, uid: PodUid, grace: float | None = 0.0) -> None:
        """
        Delete a pod; do nothing if it has ended or does not exist.

        With a *grace* of 0, or without a node, it is removed at once. Otherwise it has *grace* seconds to stop (None:
        its own grace period). Until then it keeps its resources and is shown as being deleted.
        """
        pod = self.pods.get(uid)
        if pod is None or pod.phase in ENDED:
            return
        if grace is None:
            grace = pod.life.grace
        if grace <= 0.0 or not pod.node:
            self.pod_stopped(pod)
        elif pod.grace is None:
            pod.grace = grace
            self._show(pod, deleting=True, deleting_since=self._environment.now)
            self.kubelets[pod.node].stop(pod)

    def finish(self, uid: PodUid, *, failed: bool = False) -> None:
        """End a pod as if its containers had ended by themselves; do nothing if it has no node or has ended."""
        pod = self.pods.get(uid)
        if pod is not None and pod.node and pod.phase not in ENDED:
            self.kubelets[pod.node].finish(pod, failed=failed)

    def ungate(self, uid: PodUid) -> None:
        """Remove a pod's scheduling gates; do nothing if it has ended or does not exist."""
        pod = self.pods.get(uid)
        if pod is not None and pod.phase not in ENDED and pod.pod.gates:
            self._show(pod, gates=())

    def preempt(self, uid: PodUid) -> bool:
        """Delete a pod with its grace period, in favour of another one; return whether it was there."""
        pod = self.pods.get(uid)
        if pod is None or pod.phase in ENDED or pod.grace is not None:
            return False
        pod.reason = PREEMPTED
        self._show(pod, preempted=True)
        self.remove(uid, None)
        return True

    def _evict(self, pod: VirtualPod) -> None:
        """Remove a pod from a node that has failed."""
        if pod.phase not in ENDED:
            pod.reason = UNREACHABLE
            self._remove(pod, PodEvicted(self._environment.now, pod.key, pod.node, UNREACHABLE))

    def _remove(self, pod: VirtualPod, record: PodRemoved | PodEvicted) -> None:
        if pod.node:
            self.kubelets[pod.node].release(pod)
        pod.phase, pod.ended = "removed", record.at
        self._note(record)
        self._publish(PodGone(pod.pod.uid))
        for listener in self.pod_listeners:
            listener(pod)
        for watcher in self.watchers:
            watcher.pod_ended(pod)

    # -- events of the kubelets --------------------------------------------------------------------------------------

    def pod_started(self, pod: VirtualPod) -> None:
        """Publish that a pod runs."""
        self._show(pod, started=True, ready=True, ready_at=self._environment.now)
        for watcher in self.watchers:
            watcher.pod_started(pod)

    def pod_ended(self, pod: VirtualPod) -> None:
        """Publish that a pod has finished, failed or was rejected."""
        ended_at = self._environment.now if pod.ended is None else pod.ended
        self._show(pod, finished=True, failed=pod.phase != "finished", ended_at=ended_at, ready=False, ready_at=0.0)
        for watcher in self.watchers:
            watcher.pod_ended(pod)

    def pod_stopped(self, pod: VirtualPod) -> None:
        """Remove a pod that has stopped."""
        self._remove(pod, PodRemoved(self._environment.now, pod.key, pod.node))

    def _show(self, pod: VirtualPod, **changed: str | float | tuple[str, ...]) -> None:
        """Change these fields of a pod and publish it."""
        # Not `replace`, which would compute the pod's images again each time.
        shown = _copied(pod.pod)
        for field, value in changed.items():
            force_setattr(shown, field, value)
        pod.pod = shown
        self._publish(PodSeen(shown))
        for listener in self.pod_listeners:
            listener(pod)

    def _need(self, names: tuple[str, ...]) -> tuple[tuple[Image, ...], int]:
        images = tuple(self._image(name) for name in dict.fromkeys(names))
        return images, distinct_bytes(images)

    def _image(self, name: str) -> Image:
        image = self._catalog.find(name)
        if image is None:
            if self._unknown_image is None:
                raise WiringError(f"no registry has the image {name!r}")
            image = self._unknown_image(name)
            self._catalog.learn(image)
        return image
