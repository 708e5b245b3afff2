"""
A node that is short of memory or of disk, and the pods that have to go for it.

Memory: pods may use more than they ask for, in stages. When what they use together is more than the node can give, one
that exceeds its request goes at that moment, and another, until it fits. Only nodes with such pods are looked at, and
only when a pod starts there or a stage begins.

Disk: when clearing all unused images was not enough, the node takes no pods for five minutes at least, and evicts one
after the other, at each look of its eviction manager, until the images that nobody uses any more have made room.
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
"""Seconds for which a node still counts as short of disk after it was not (``evictionPressureTransitionPeriod``)."""


class NodePressure:
    """Looks after one node."""

    __slots__ = ("_environment", "_evict", "_evicting", "_node", "_relief", "_reporter", "staged")

    def __init__(
        self,
        environment: Environment,
        node: VirtualNode,
        reporter: VirtualNodeReporter,
        evict: Callable[[VirtualPod, str], None],
    ) -> None:
        """Watch *node* and end pods by *evict*, which takes a pod and the reason."""
        self._environment = environment
        self._node = node
        self._reporter = reporter
        self._evict = evict
        self._relief: Timer | None = None
        self._evicting: Timer | None = None
        self.staged = 0
        """How many pods run here whose use changes by stages."""

    # -- memory ------------------------------------------------------------------------------------------------------

    def began(self, pod: VirtualPod) -> None:
        """Look at a node on which a pod has begun to run, if any of its pods has stages."""
        if pod.life.stages and pod.since is not None:
            self.staged += 1
            self._await_stage(pod, 0, pod.since, 0.0)
        self.look()

    def ended(self, pod: VirtualPod) -> None:
        """Stop watching a pod that has stages and does not run any more."""
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
        self.look()

    def look(self) -> None:
        """Evict pods for as long as all together use more memory than there is; a kubelet that failed does not."""
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
        """Begin or end to be short of disk; called again as long as it lasts, and each time a pod goes."""
        if not on:
            self._relieve()
            return
        if self._relief is not None:
            self._environment.cancel(self._relief)
            self._relief = None
        if not self._node.pressed:
            self._node.pressed = True
            self._node.taint(DISK_PRESSURE)
            self._reporter.node_changed()
        if self._evicting is None:
            # By an event of its own: whoever says this is in the middle of something.
            self._evicting = self._environment.after(0.0, self._evict_one)

    def leave(self) -> None:
        """Forget everything, because the node is gone."""
        for timer in (self._relief, self._evicting):
            if timer is not None:
                self._environment.cancel(timer)

    def _evict_one(self) -> None:
        """
        End the pod that matters least, of several the one that came last; whoever said "on" will look again.

        As kubelets rank: pods that have nothing on the disk come after all others.
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
        if self._relief is None and self._node.pressed:
            self._relief = self._environment.after(RELIEF, self._forget)

    def _forget(self) -> None:
        self._relief = None
        self._node.pressed = False
        self._node.untaint(DISK_PRESSURE)
        self._reporter.node_changed()


def _memory(amounts: tuple[tuple[str, int], ...]) -> int:
    for name, amount in amounts:
        if name == MEMORY:
            return amount
    return 0
