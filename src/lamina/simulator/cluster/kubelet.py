"""
A virtual kubelet: takes the pods that are bound to its node, or refuses them, and sees them through.

Images are pulled if they are not there, one after the other in the order of the pod's containers, init containers
first; what init containers do takes no time here. What happens once containers run is `running`'s business, and what a
node does that is short of something is `pressure`'s.

A kubelet that has failed does nothing and says nothing. Containers go on without it: what they did meanwhile is seen
when it is back.
"""

from collections.abc import Callable

from lamina.model.image import Image, Layer
from lamina.simulator.cluster.admission import EVICTED, refusal
from lamina.simulator.cluster.image_reports import image_name
from lamina.simulator.cluster.kubelet_context import KubeletContext
from lamina.simulator.cluster.node_reporter import VirtualNodeReporter
from lamina.simulator.cluster.pod_runner import PodRunner
from lamina.simulator.cluster.pressure import NodePressure
from lamina.simulator.cluster.virtual_node import VirtualNode
from lamina.simulator.cluster.virtual_pod import ENDED, Phase, VirtualPod
from lamina.simulator.pulls import ImagePullRequest, LayerSource, Puller
from lamina.trace.trace_records import (
    ImagesRemoved,
    LayerPulled,
    PodEvicted,
    PodRejected,
    PullDone,
    PullFailed,
    PullStarted,
)


class VirtualKubelet:
    """Runs pods on one node. Also the watcher of the node's puller."""

    def __init__(
        self, grounds: KubeletContext, node: VirtualNode, source: LayerSource, reporter: VirtualNodeReporter
    ) -> None:
        """Look after *node*, whose images come from *source*."""
        self._environment = grounds.environment
        self._delays = grounds.delays
        self._reporter = reporter
        self._office = grounds.office
        self._note = grounds.note
        self._draw = grounds.draw
        self.node = node
        self.puller = Puller(grounds.environment, grounds.network, node.store, node.spec.runtime, source, self)
        self._unseen: dict[VirtualPod, None] = {}
        self._held: list[tuple[Callable[[VirtualPod], None], Phase, VirtualPod]] = []
        self._pressure = NodePressure(grounds.environment, node, reporter, self._evict)
        self._runner = PodRunner(grounds, self, self._pressure)

    # -- pods come ---------------------------------------------------------------------------------------------------

    @property
    def pods(self) -> tuple[VirtualPod, ...]:
        """All pods that are bound to its node and have not ended, those included that it has not seen yet."""
        return (*self.node.pods.values(), *self._unseen)

    def accept(self, pod: VirtualPod) -> None:
        """Take a pod that was bound to this node."""
        if self.node.failed:
            self._unseen[pod] = None
            return
        reason = refusal(self.node, pod.pod)
        if reason:
            self._note(PodRejected(self._environment.now, pod.key, pod.node, reason))
            self.end(pod, "rejected", reason)
            return
        self.node.take(pod)
        pod.accepted = self._environment.now
        if pod.life.deadline is not None:
            pod.alarm = self._environment.after(pod.life.deadline, self._runner.expire, pod)
        pod.phase = "pulling"
        self._pull_next(pod)

    def _pull_next(self, pod: VirtualPod) -> None:
        images, store = pod.images, self.node.store
        while pod.ready_images < len(images):
            image = images[pod.ready_images]
            if image.digest not in store.images:
                pod.pulls = [*pod.pulls, self.puller.ask(image, self._pull_next, pod)]
                return
            store.acquire(image, self._environment.now)
            pod.ready_images += 1
        pod.phase = "starting"
        lag = self._delays.start
        if isinstance(lag, tuple):
            lag = self._draw(lag, "start", pod.pod.uid)
        pod.timer = self._environment.after(lag, self._runner.start, pod)

    # -- pods go -----------------------------------------------------------------------------------------------------

    def stop(self, pod: VirtualPod) -> None:
        """Stop a pod that is to be removed, within the time it was given; its room is taken until then."""
        if not self.node.failed:
            self._runner.stop(pod)

    def let_go(self, pod: VirtualPod) -> None:
        """Forget a pod at once, wherever it is."""
        if pod.phase == "pulling":
            self.withdraw(pod)
        if pod.timer is not None or pod.alarm is not None or pod.since is not None:
            self._runner.forget(pod)
        self.node.free(pod)
        while pod.ready_images:
            pod.ready_images -= 1
            self.node.store.release(pod.images[pod.ready_images], self._environment.now)
        if self._unseen:
            self._unseen.pop(pod, None)

    def end(self, pod: VirtualPod, phase: Phase, reason: str = "") -> None:
        """Say goodbye to a pod that has ended by itself or was refused."""
        pod.phase, pod.ended, pod.reason = phase, self._environment.now, reason
        self._office.pod_ended(pod)

    def stopped(self, pod: VirtualPod) -> None:
        """Hand in a pod that has stopped because it is to be removed."""
        self._office.pod_stopped(pod)

    def started(self, pod: VirtualPod) -> None:
        """Hand in a pod that runs for the first time."""
        self._office.pod_started(pod)

    def withdraw(self, pod: VirtualPod) -> None:
        """Take back a pod's request for an image; one whose pull has begun arrives all the same."""
        if pod.phase == "pulling" and pod.pulls:
            self.puller.cancel(pod.pulls[-1])

    def _evict(self, pod: VirtualPod, reason: str) -> None:
        if pod.grace is not None:
            # It is on its way out already, and only that is hurried.
            self._office.pod_stopped(pod)
            return
        self.let_go(pod)
        self._note(PodEvicted(self._environment.now, pod.key, pod.node, reason))
        self.end(pod, "failed", EVICTED)

    def leave(self) -> None:
        """Break everything off, because the node is gone."""
        self.puller.stop()
        self._pressure.leave()

    # -- failure -----------------------------------------------------------------------------------------------------

    def fail(self) -> None:
        """Do nothing from now on; pulls break off."""
        self.node.failed = True
        self.puller.stop()
        self.node.pulling.clear()
        self._pressure.disk(False)
        self._reporter.fall_silent()

    def hold(self, step: Callable[[VirtualPod], None], pod: VirtualPod) -> None:
        """Keep what a pod did while nobody looked."""
        self._held.append((step, pod.phase, pod))

    def recover(self) -> None:
        """Go on where everything was left: stop pods, see what others did, pull again, take new ones."""
        self.node.failed = False
        self._reporter.speak_again()
        held, self._held = self._held, []
        unseen, self._unseen = self._unseen, {}
        for pod in tuple(self.node.pods.values()):
            if pod.grace is not None and pod.phase != "stopping":
                self.stop(pod)
        for step, phase, pod in held:
            if pod.phase == phase:
                step(pod)
        for pod in tuple(self.node.pods.values()):
            if pod.phase == "pulling":
                self._pull_next(pod)
        self._pressure.look()
        for pod in unseen:
            # Whoever was told of the others may have removed it by now.
            if pod.phase in ENDED:
                continue
            if pod.grace is not None:
                self._office.pod_stopped(pod)
            else:
                self.accept(pod)

    # -- images ------------------------------------------------------------------------------------------------------

    def pull_began(self, pull: ImagePullRequest, missing: tuple[Layer, ...]) -> None:
        """Write down what a pull is going to download."""
        size = sum([layer.size for layer in missing])
        self.node.pulling[pull.image.digest] = (pull, size)
        self._note(PullStarted(self._environment.now, self.node.name, image_name(pull.image), size, len(missing)))

    def layer_pulled(self, layer: Layer) -> None:
        """Write down that a layer is there."""
        self._note(LayerPulled(self._environment.now, self.node.name, layer.digest, layer.size))

    def pull_done(self, pull: ImagePullRequest, *, news: bool) -> None:
        """Write down that an image is there, and let the cluster know if it was not before."""
        now = self._environment.now
        self.node.pulling.pop(pull.image.digest, None)
        self._note(PullDone(now, self.node.name, image_name(pull.image), pull.downloaded, now - pull.asked_at))
        if news:
            self.node.gained(pull.image)
            self._reporter.images_changed()

    def pull_failed(self, pull: ImagePullRequest, reason: str, retry_at: float) -> None:
        """Write down that an attempt failed; the puller makes the next one."""
        self.node.pulling.pop(pull.image.digest, None)
        now = self._environment.now
        self._note(PullFailed(now, self.node.name, image_name(pull.image), reason, retry_at))

    def images_removed(self, images: tuple[Image, ...], freed: int, why: str) -> None:
        """Write down that images are gone, and let the cluster know."""
        self.node.lost(images)
        names = tuple([image_name(image) for image in images])
        self._note(ImagesRemoved(self._environment.now, self.node.name, names, freed, why))
        self._reporter.images_changed()

    def disk_pressure(self, on: bool) -> None:
        """Take no pods while the disk is full, and evict some until it is not."""
        self._pressure.disk(on and not self.node.failed)
