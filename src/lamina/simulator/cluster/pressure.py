"""
Node-pressure eviction: a node that is short of memory or disk, and the pods it evicts.

Memory: pods with stages can use more than their requests. When the usage of all pods exceeds the node's allocatable
memory, the kubelet evicts pods above their request, one by one, until the rest fits. It checks only nodes with such
pods, and only when a pod starts there or a stage begins.

Disk: when removing all unused images was not enough, the node rejects new pods for at least five minutes. At each check
of the eviction manager it evicts one pod, until enough images are unused and could be removed.
"""

from collections.abc import Callable
from typing import Final

from lamina.model.resources import MEMORY
from lamina.model.taints import NO_SCHEDULE, Taint
from lamina.simulator.cluster.admission import CRITICAL
from lamina.simulator.cluster.node_reporter import VirtualNodeReporter
from lamina.simulator.cluster.virtual_node import VirtualNode
from lamina.simulator.cluster.virtual_pod import VirtualPod
from lamina.simulator.engine import Environment, Timer

DISK_PRESSURE: Final = Taint("node.kubernetes.io/disk-pressure", effect=NO_SCHEDULE)
LOW_ON: Final = "The node was low on resource: {}."
STORAGE: Final = "ephemeral-storage"
RELIEF: Final = 300.0
"""Seconds from the end of disk pressure until the taint is removed (``evictionPressureTransitionPeriod``)."""


class NodePressure:
    """Memory and disk pressure of one node."""

    __slots__ = ("_environment", "_evict", "_evicting", "_node", "_relief", "_reporter", "staged")

    def __init__(
        self,
        environment: Environment,
        node: VirtualNode,
        reporter: VirtualNodeReporter,
        evict: Callable[[VirtualPod, str], None],
    ) -> None:
        """Monitor *node*; *evict* ends a pod with a reason."""
        self._environment = environment
        self._node = node
        self._reporter = reporter
        self._evict = evict
        self._relief: Timer | None = None
        self._evicting: Timer | None = None
        self.staged = 0
        """Number of running pods with stages."""

    # -- memory ------------------------------------------------------------------------------------------------------

    def began(self, pod: VirtualPod) -> None:
        """Check the memory after a pod has started; schedule the pod's stages if it has any."""
        if pod.life.stages and pod.since is not None:
            self.staged += 1
            self._await_stage(pod, 0, pod.since, 0.0)
        self.check()

    def ended(self, pod: VirtualPod) -> None:
        """Cancel the stages of a pod that does not run any more."""
        self.staged -= 1
        if pod.stage is not None:
            self._environment.cancel(pod.stage)
            pod.stage = None

    def _await_stage(self, pod: VirtualPod, index: int, since: float, seconds: float) -> None:
        stages = pod.life.stages
        pod.stage = None
        if index + 1 < len(stages):
            seconds += stages[index].seconds
            pod.stage = self._environment.at(since + seconds, self._enter_stage, pod, index + 1, since, seconds)

    def _enter_stage(self, pod: VirtualPod, index: int, since: float, seconds: float) -> None:
        self._await_stage(pod, index, since, seconds)
        if self._node.meter is not None:
            self._node.meter.changed(self._environment.now)
        self.check()

    def check(self) -> None:
        """Evict pods while they use more memory than is allocatable; do nothing if the kubelet has failed."""
        node, now = self._node, self._environment.now
        most = node.allocatable.get(MEMORY)
        while most is not None and self.staged and not node.failed:
            uses = [(_memory(pod.using(now)), pod) for pod in node.pods.values() if pod.since is not None]
            if sum([use for use, _ in uses]) <= most:
                return
            greedy = [
                (pod.pod.priority, _memory(pod.pod.requests) - use, -place, pod)
                for place, (use, pod) in enumerate(uses)
                if use > _memory(pod.pod.requests) and pod.pod.priority < CRITICAL
            ]
            if not greedy:
                return
            self._evict(min(greedy)[-1], LOW_ON.format(MEMORY))

    # -- disk --------------------------------------------------------------------------------------------------------

    def disk(self, on: bool) -> None:
        """Begin, continue or end disk pressure. While it lasts, each call evicts one pod."""
        if not on:
            self._relieve()
            return
        if self._relief is not None:
            self._environment.cancel(self._relief)
            self._relief = None
        if not self._node.disk_pressure:
            self._node.disk_pressure = True
            self._node.taint(DISK_PRESSURE)
            self._reporter.node_changed()
        if self._evicting is None:
            # By an event, because the caller is in the middle of a garbage collection.
            self._evicting = self._environment.after(0.0, self._evict_one)

    def leave(self) -> None:
        """Cancel all timers, because the node is gone."""
        for timer in (self._relief, self._evicting):
            if timer is not None:
                self._environment.cancel(timer)

    def _evict_one(self) -> None:
        """
        Evict the pod with the lowest priority, and of several the newest.

        As in the kubelet, pods without images on the disk are evicted after all others.
        """
        self._evicting = None
        ranked = [
            (not pod.ready_images, pod.pod.priority, -place, pod)
            for place, pod in enumerate(self._node.pods.values())
            if pod.pod.priority < CRITICAL
        ]
        if ranked:
            self._evict(min(ranked)[-1], LOW_ON.format(STORAGE))

    def _relieve(self) -> None:
        if self._evicting is not None:
            self._environment.cancel(self._evicting)
            self._evicting = None
        if self._relief is None and self._node.disk_pressure:
            self._relief = self._environment.after(RELIEF, self._forget)

    def _forget(self) -> None:
        self._relief = None
        self._node.disk_pressure = False
        self._node.untaint(DISK_PRESSURE)
        self._reporter.node_changed()


def _memory(amounts: tuple[tuple[str, int], ...]) -> int:
    for name, amount in amounts:
        if name == MEMORY:
            return amount
    return 0
