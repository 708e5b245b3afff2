"""
Virtual kubelet: admits or rejects the pods bound to its node, pulls their images and runs them.

Missing images are pulled one after the other in the order of the pod's containers, init containers first. Init
containers take no time. `pod_runner` models running containers; `pressure` models a node that is short of memory or
disk.

A failed kubelet does nothing and reports nothing. Containers keep running; the kubelet processes their changes when it
recovers.
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
    """Kubelet of one node. It also receives the events of the node's puller."""

    def __init__(
        self, context: KubeletContext, node: VirtualNode, source: LayerSource, reporter: VirtualNodeReporter
    ) -> None:
        """Manage *node*, whose images come from *source*."""
        self._environment = context.environment
        self._delays = context.delays
        self._reporter = reporter
        self._sink = context.sink
        self._note = context.note
        self._draw = context.draw
        self.node = node
        self.puller = Puller(context.environment, context.network, node.store, node.spec.runtime, source, self)
        self._unseen: dict[VirtualPod, None] = {}
        self._held: list[tuple[Callable[[VirtualPod], None], Phase, VirtualPod]] = []
        self._pressure = NodePressure(context.environment, node, reporter, self._evict)
        self._runner = PodRunner(context, self, self._pressure)

    # -- admission ---------------------------------------------------------------------------------------------------

    @property
    def pods(self) -> tuple[VirtualPod, ...]:
        """All pods bound to the node that have not ended, including those the kubelet has not seen yet."""
        return (*self.node.pods.values(), *self._unseen)

    def accept(self, pod: VirtualPod) -> None:
        """Admit or reject a pod that was bound to this node."""
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
                pod.pulls = [*pod.pulls, self.puller.request(image, self._pull_next, pod)]
                return
            store.acquire(image, self._environment.now)
            pod.ready_images += 1
        pod.phase = "starting"
        lag = self._delays.start
        if isinstance(lag, tuple):
            lag = self._draw(lag, "start", pod.pod.uid)
        pod.timer = self._environment.after(lag, self._runner.start, pod)

    # -- removal -----------------------------------------------------------------------------------------------------

    def stop(self, pod: VirtualPod) -> None:
        """Stop a pod that is being deleted, within its grace period; it keeps its resources until then."""
        if not self.node.failed:
            self._runner.stop(pod)

    def release(self, pod: VirtualPod) -> None:
        """Free the resources of a pod at once, whatever its phase."""
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
        """Record that a pod has ended by itself or was rejected."""
        pod.phase, pod.ended, pod.reason = phase, self._environment.now, reason
        self._sink.pod_ended(pod)

    def stopped(self, pod: VirtualPod) -> None:
        """Report a pod that has stopped because it is being deleted."""
        self._sink.pod_stopped(pod)

    def started(self, pod: VirtualPod) -> None:
        """Report a pod that runs for the first time."""
        self._sink.pod_started(pod)

    def finish(self, pod: VirtualPod, *, failed: bool) -> None:
        """End a pod as if its containers had ended by themselves."""
        self._runner.finish(pod, failed=failed)

    def withdraw(self, pod: VirtualPod) -> None:
        """Cancel the pod's queued pull; a running pull still completes."""
        if pod.phase == "pulling" and pod.pulls:
            self.puller.cancel(pod.pulls[-1])

    def _evict(self, pod: VirtualPod, reason: str) -> None:
        if pod.grace is not None:
            # It is being deleted already; the eviction only ends the grace period.
            self._sink.pod_stopped(pod)
            return
        self.release(pod)
        self._note(PodEvicted(self._environment.now, pod.key, pod.node, reason))
        self.end(pod, "failed", EVICTED)

    def leave(self) -> None:
        """Cancel all pulls and timers, because the node is gone."""
        self.puller.stop()
        self._pressure.leave()

    # -- failure -----------------------------------------------------------------------------------------------------

    def fail(self) -> None:
        """Stop working: cancel all pulls and stop reporting."""
        self.node.failed = True
        self.puller.stop()
        self.node.pulling.clear()
        self._pressure.disk(False)
        self._reporter.pause()

    def hold(self, step: Callable[[VirtualPod], None], pod: VirtualPod) -> None:
        """Keep a step of a pod until the kubelet recovers."""
        self._held.append((step, pod.phase, pod))

    def recover(self) -> None:
        """Resume work: stop deleted pods, process kept steps, restart pulls, admit new pods."""
        self.node.failed = False
        self._reporter.resume()
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
        self._pressure.check()
        for pod in unseen:
            # A watcher may have removed it in reaction to the steps above.
            if pod.phase in ENDED:
                continue
            if pod.grace is not None:
                self._sink.pod_stopped(pod)
            else:
                self.accept(pod)

    # -- images ------------------------------------------------------------------------------------------------------

    def pull_began(self, pull: ImagePullRequest, missing: tuple[Layer, ...]) -> None:
        """Record the start of a pull and what it will download."""
        size = sum([layer.size for layer in missing])
        self.node.pulling[pull.image.digest] = (pull, size)
        self._note(PullStarted(self._environment.now, self.node.name, image_name(pull.image), size, len(missing)))

    def layer_pulled(self, layer: Layer) -> None:
        """Record that the node holds a new layer."""
        self._note(LayerPulled(self._environment.now, self.node.name, layer.digest, layer.size))

    def pull_done(self, pull: ImagePullRequest, *, news: bool) -> None:
        """Record the end of a pull; report the image if the node did not hold it before."""
        now = self._environment.now
        self.node.pulling.pop(pull.image.digest, None)
        self._note(PullDone(now, self.node.name, image_name(pull.image), pull.downloaded, now - pull.requested_at))
        if news:
            self.node.gained(pull.image)
            self._reporter.images_changed()

    def pull_failed(self, pull: ImagePullRequest, reason: str, retry_at: float) -> None:
        """Record a failed attempt; the puller retries."""
        self.node.pulling.pop(pull.image.digest, None)
        now = self._environment.now
        self._note(PullFailed(now, self.node.name, image_name(pull.image), reason, retry_at))

    def images_removed(self, images: tuple[Image, ...], freed: int, why: str) -> None:
        """Record and report that images were removed."""
        self.node.lost(images)
        names = tuple([image_name(image) for image in images])
        self._note(ImagesRemoved(self._environment.now, self.node.name, names, freed, why))
        self._reporter.images_changed()

    def disk_pressure(self, on: bool) -> None:
        """Begin, continue or end disk pressure: reject new pods and evict pods until there is space."""
        self._pressure.disk(on and not self.node.failed)
