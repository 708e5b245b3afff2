"""
A virtual kubelet: takes the pods that are bound to its node, or refuses them, and sees them through.

It counts resources once more when a pod comes, because two schedulers, or one with old news, may have given the same
room away twice. Images are pulled if they are not there, one after the other in the order of the pod's containers,
init containers first; what init containers do takes no time here.
"""

from typing import Final, Protocol

from lamina.model.image import Layer
from lamina.simulator.cluster.node import Delays, VirtualNode
from lamina.simulator.cluster.pod import Phase, VirtualPod
from lamina.simulator.cluster.reporting import Reporter
from lamina.simulator.engine import Environment
from lamina.simulator.pulls import Pull, Puller
from lamina.trace.records import (
    LayerPulled,
    PodFinished,
    PodRejected,
    PodStarted,
    PullDone,
    PullStarted,
    Record,
)

OUT_OF: Final = "OutOf{}"
"""Why a pod was refused, in kubelet's words: ``OutOfcpu``, ``OutOfpods``."""


class Office(Protocol):
    """Where a kubelet hands in what happened on its node."""

    def note(self, record: Record) -> None:
        """Write it down."""
        ...

    def pod_started(self, pod: VirtualPod) -> None:
        """The pod runs, so everything it needs is on its node."""
        ...

    def pod_ended(self, pod: VirtualPod) -> None:
        """The pod does not run any more, and its room is free."""
        ...


class Kubelet:
    """Runs pods on one node. Also the watcher of the node's puller."""

    def __init__(
        self, environment: Environment, node: VirtualNode, delays: Delays, reporter: Reporter, office: Office
    ) -> None:
        """Look after *node*."""
        self._environment = environment
        self._delays = delays
        self._reporter = reporter
        self._office = office
        self.node = node
        self.puller = Puller(environment, node.store, node.spec.bandwidth, self)

    # -- pods --------------------------------------------------------------------------------------------------------

    def accept(self, pod: VirtualPod) -> None:
        """Take a pod that was bound to this node."""
        short_of = self.node.short_of(pod.pod.requests)
        if short_of:
            reason = OUT_OF.format(short_of)
            self._office.note(PodRejected(self._environment.now, pod.pod.key, self.node.name, reason))
            self._end(pod, "rejected")
            return
        self.node.take(pod)
        pod.phase = "pulling"
        self._pull_next(pod)

    def remove(self, pod: VirtualPod) -> None:
        """Let go of a pod, wherever it is; an image whose pull has begun arrives all the same."""
        for pull in pod.pulls:
            self.puller.cancel(pull)
        if pod.timer is not None:
            self._environment.cancel(pod.timer)
        self.node.free(pod)

    def _pull_next(self, pod: VirtualPod) -> None:
        while pod.to_pull:
            image = pod.to_pull.popleft()
            if image.digest not in self.node.store.images:
                pod.pulls.append(self.puller.ask(image, lambda: self._pull_next(pod)))
                return
        pod.phase = "starting"
        pod.timer = self._environment.after(self._delays.start, self._start, pod)

    def _start(self, pod: VirtualPod) -> None:
        pod.phase, pod.started, pod.timer = "running", self._environment.now, None
        if pod.duration is not None:
            pod.timer = self._environment.after(pod.duration, self._finish, pod)
        self._office.note(PodStarted(pod.started, pod.pod.key, self.node.name))
        self._office.pod_started(pod)

    def _finish(self, pod: VirtualPod) -> None:
        self.node.free(pod)
        self._office.note(PodFinished(self._environment.now, pod.pod.key, self.node.name))
        self._end(pod, "finished")

    def _end(self, pod: VirtualPod, phase: Phase) -> None:
        pod.phase, pod.ended, pod.timer = phase, self._environment.now, None
        self._office.pod_ended(pod)

    # -- images ------------------------------------------------------------------------------------------------------

    def pull_began(self, pull: Pull, missing: tuple[Layer, ...]) -> None:
        """Write down what a pull is going to download."""
        size = sum(layer.size for layer in missing)
        self._office.note(PullStarted(self._environment.now, self.node.name, _name(pull), size, len(missing)))

    def layer_pulled(self, layer: Layer) -> None:
        """Write down that a layer is there."""
        self._office.note(LayerPulled(self._environment.now, self.node.name, layer.digest, layer.size))

    def pull_done(self, pull: Pull, *, news: bool) -> None:
        """Write down that an image is there, and let the cluster know if it was not before."""
        now = self._environment.now
        self._office.note(PullDone(now, self.node.name, _name(pull), pull.downloaded, now - pull.asked_at))
        if news:
            self._reporter.images_changed()


def _name(pull: Pull) -> str:
    return pull.image.names[0] if pull.image.names else pull.image.digest
