"""
A virtual cluster: nodes with kubelets, pods, and the part of an API server that both depend on.

Whoever runs it submits pods, binds them to nodes, removes them, and makes nodes come, go and fail. Everything that
happens goes to a *witness*: as records for a trace, and as events for a scheduler; and then to the watchers, which may
act on it (controllers do). Watches have no delay of their own; what a node's agent and status say has (see
`reporting`). Knows no scheduler and no scenario.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from msgspec.structs import force_setattr

from lamina.layers.catalog import Catalog
from lamina.model.errors import WiringError
from lamina.model.events import PodGone, PodSeen
from lamina.model.image import Image
from lamina.model.pod import Pod, PodUid
from lamina.simulator.cluster.image_reports import ImageReportCache
from lamina.simulator.cluster.kubelet import VirtualKubelet
from lamina.simulator.cluster.kubelet_context import KubeletContext
from lamina.simulator.cluster.lag import UNSEEDED, DrawLag
from lamina.simulator.cluster.node_reporter import VirtualNodeReporter
from lamina.simulator.cluster.outage import UNREACHABLE, Outage
from lamina.simulator.cluster.pod_lifecycle import RUNS_FOREVER, PodLifecycle
from lamina.simulator.cluster.usage_sampler import NodeUsageSampler, UsageSpec
from lamina.simulator.cluster.virtual_node import Delays, VirtualNode, VirtualNodeSpec
from lamina.simulator.cluster.virtual_pod import ENDED, VirtualPod, wanted
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
REASON_NO_NODE: Final = "the node is gone"
REASON_BOUND: Final = "the pod is already bound to {}"

DAEMON_SET: Final = "DaemonSet"
# What `copy.copy` would call in the end; msgspec's type hints leave it out.
_copied: Final[Callable[[Pod], Pod]] = Pod.__copy__  # type: ignore[attr-defined]

NO_UPLINKS: Final[Mapping[str, float]] = {}


class VirtualCluster:
    """All nodes and all pods that ever were."""

    def __init__(  # noqa: PLR0913 - what a cluster is made of; the last four are by name and seldom given
        self,
        environment: Environment,
        images: Iterable[Image],
        delays: Delays,
        witness: ClusterRecorder,
        *,
        draw: DrawLag = UNSEEDED,
        registry: float = 0.0,
        uplinks: Mapping[str, float] = NO_UPLINKS,
        usage: UsageSpec | None = None,
    ) -> None:
        """
        Start without nodes; *images* is all there is to pull, over these links (0: without a limit).

        What nodes are really used for is measured and told if *usage* says how.
        """
        self._environment = environment
        self._note, self._tell = witness.note, witness.tell
        network = Network(environment)
        self._sources = LayerSources(network, registry, uplinks)
        self._uplinks = uplinks
        self._grounds = KubeletContext(environment, network, delays, draw, witness.note, self)
        self._catalog = Catalog()
        for image in images:
            self._catalog.learn(image)
        self._needs: dict[tuple[str, ...], tuple[tuple[Image, ...], int]] = {}
        self._words = ImageReportCache()
        self.metering = None if usage is None else NodeUsageSampler(environment, usage, delays, witness.tell, draw)
        """Who measures what nodes are really used for; None: nobody."""
        self._reporters: dict[str, VirtualNodeReporter] = {}
        self._outages: dict[str, Outage] = {}
        self.watchers: list[ClusterWatcher] = []
        """Called in this order."""
        self.nodes: dict[str, VirtualNode] = {}
        """The nodes that are there, in the order they joined."""
        self.kubelets: dict[str, VirtualKubelet] = {}
        """Of every node that ever was, in the order they joined."""
        self.pods: dict[PodUid, VirtualPod] = {}
        """Every pod that ever arrived, in that order."""

    # -- nodes -------------------------------------------------------------------------------------------------------

    def join(self, spec: VirtualNodeSpec) -> None:
        """Let a node join."""
        name = spec.name
        if name in self.kubelets:
            raise WiringError(f"a second node {name!r} cannot join")
        source, grounds = self._sources.for_node(spec), self._grounds
        node = VirtualNode(spec, self._words, self._uplinks.get(spec.uplink, math.inf))
        reporter = VirtualNodeReporter(self._environment, node, grounds.delays, self._tell, grounds.draw)
        self.kubelets[name] = VirtualKubelet(grounds, node, source, reporter)
        self.nodes[name], self._reporters[name] = node, reporter
        self._note(NodeJoined(self._environment.now, name, dict(spec.allocatable), spec.bandwidth))
        reporter.join()
        if self.metering is not None:
            self.metering.join(node)
        for watcher in self.watchers:
            watcher.node_joined(node)

    def cordon(self, name: str) -> None:
        """Let no more pods be placed on a node; nothing happens if it is gone."""
        self._set_schedulable(name, unschedulable=True)

    def uncordon(self, name: str) -> None:
        """Let pods be placed on a node again; nothing happens if it is gone."""
        self._set_schedulable(name, unschedulable=False)

    def drain(self, name: str) -> None:
        """Cordon a node and remove its pods, each with its own grace, but for those of DaemonSets."""
        self.cordon(name)
        if name in self.nodes:
            for pod in self.kubelets[name].pods:
                if pod.pod.owner is None or pod.pod.owner.kind != DAEMON_SET:
                    self.remove(pod.pod.uid, None)

    def fail(self, name: str) -> None:
        """Let a node's kubelet stop; nothing happens if it has, or if the node is gone."""
        if name in self.nodes and name not in self._outages:
            self._note(NodeFailed(self._environment.now, name))
            self._outages[name] = Outage(
                self._environment, self._grounds.delays, self.kubelets[name], self._reporters[name], self._evict
            )

    def recover(self, name: str) -> None:
        """Let a node that has failed work again; nothing happens if it has not."""
        outage = self._outages.pop(name, None)
        if outage is not None:
            self._note(NodeRecovered(self._environment.now, name))
            outage.recover()

    def drop(self, name: str) -> None:
        """Let a node leave, and its pods with it; nothing happens if it is gone."""
        # First, so that whoever is told of the pods' ends puts nothing new on it.
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
        if self.metering is not None:
            self.metering.leave(name)
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
        """Let a pod arrive that will live so; one that names a node needs no scheduler and goes there."""
        if pod.uid in self.pods:
            raise WiringError(f"a second pod with the uid {pod.uid!r} cannot arrive")
        now = self._environment.now
        need = self._needs.get(pod.images)
        if need is None:
            need = self._needs[pod.images] = self._need(pod.images)
        virtual = self.pods[pod.uid] = VirtualPod(pod, need[0], now, life, need[1])
        self._note(PodArrived(now, virtual.key, pod.uid, pod.namespace, pod.images, dict(pod.requests)))
        self._tell(PodSeen(pod))
        if pod.node_name:
            self.bind(pod.uid, pod.node_name)

    def bind(self, uid: PodUid, node: str) -> str:
        """Bind a pod to a node; return why that is not possible, empty when it was done."""
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
        Delete a pod; nothing happens if it has ended or never was.

        At once when *grace* is 0 or it has no node yet. Otherwise it has *grace* seconds to stop, or its own (None);
        until it has stopped, its room is taken and it is seen as being deleted.
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

    def _evict(self, pod: VirtualPod) -> None:
        """Remove a pod from a node that has failed."""
        if pod.phase not in ENDED:
            pod.reason = UNREACHABLE
            self._remove(pod, PodEvicted(self._environment.now, pod.key, pod.node, UNREACHABLE))

    def _remove(self, pod: VirtualPod, record: PodRemoved | PodEvicted) -> None:
        if pod.node:
            self.kubelets[pod.node].let_go(pod)
        pod.phase, pod.ended = "removed", record.at
        self._note(record)
        self._tell(PodGone(pod.pod.uid))
        for watcher in self.watchers:
            watcher.pod_ended(pod)

    # -- what kubelets hand in ---------------------------------------------------------------------------------------

    def pod_started(self, pod: VirtualPod) -> None:
        """Show everybody that a pod runs."""
        self._show(pod, started=True, ready=True, ready_at=self._environment.now)
        for watcher in self.watchers:
            watcher.pod_started(pod)

    def pod_ended(self, pod: VirtualPod) -> None:
        """Show everybody that a pod has finished, failed or was refused."""
        ended_at = self._environment.now if pod.ended is None else pod.ended
        self._show(pod, finished=True, failed=pod.phase != "finished", ended_at=ended_at, ready=False, ready_at=0.0)
        for watcher in self.watchers:
            watcher.pod_ended(pod)

    def pod_stopped(self, pod: VirtualPod) -> None:
        """Remove a pod that has stopped."""
        self._remove(pod, PodRemoved(self._environment.now, pod.key, pod.node))

    def _show(self, pod: VirtualPod, **changed: str | float) -> None:
        """Let everybody see the fields of a pod that have *changed*."""
        # Not `replace`, which would work out the pod's images again each time.
        shown = _copied(pod.pod)
        for field, value in changed.items():
            force_setattr(shown, field, value)
        pod.pod = shown
        self._tell(PodSeen(shown))

    def _need(self, names: tuple[str, ...]) -> tuple[tuple[Image, ...], int]:
        images = tuple(self._image(name) for name in dict.fromkeys(names))
        return images, wanted(images)

    def _image(self, name: str) -> Image:
        image = self._catalog.find(name)
        if image is None:
            raise WiringError(f"no registry has the image {name!r}")
        return image
