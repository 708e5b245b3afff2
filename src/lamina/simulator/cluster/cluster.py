"""
A virtual cluster: nodes with kubelets, pods, and the part of an API server that both depend on.

Whoever runs it submits pods, binds them to nodes, removes them, and makes nodes come and go. Everything that happens
goes to a *witness*: as records for a trace, and as events for a scheduler. Watches have no delay of their own; what a
node's agent and status say has (see `reporting`). Knows no scheduler and no scenario.
"""

from collections.abc import Iterable
from typing import Final, Protocol

import msgspec

from lamina.layers.catalog import Catalog
from lamina.model.errors import WiringError
from lamina.model.events import Event, PodGone, PodSeen
from lamina.model.image import Image
from lamina.model.pod import Pod, PodUid
from lamina.simulator.cluster.kubelet import Kubelet
from lamina.simulator.cluster.node import Delays, NodeSpec, VirtualNode
from lamina.simulator.cluster.pod import ENDED, VirtualPod
from lamina.simulator.cluster.reporting import Reporter
from lamina.simulator.engine import Environment
from lamina.trace.records import NodeJoined, NodeLeft, PodArrived, PodBound, PodRemoved, Record

REASON_NO_POD: Final = "the pod is gone"
REASON_NO_NODE: Final = "the node is gone"
REASON_BOUND: Final = "the pod is already bound to {}"


class Witness(Protocol):
    """Told everything that happens."""

    def note(self, record: Record) -> None:
        """Take down what happened."""
        ...

    def tell(self, event: Event) -> None:
        """Take note of what a scheduler would see happening."""
        ...


class Member(msgspec.Struct, frozen=True):
    """A node of the cluster and those who act for it."""

    kubelet: Kubelet
    reporter: Reporter


class Cluster:
    """All nodes and all pods that ever were."""

    def __init__(self, environment: Environment, images: Iterable[Image], delays: Delays, witness: Witness) -> None:
        """Start without nodes; *images* is all there is to pull."""
        self._environment = environment
        self._delays = delays
        self._witness = witness
        self._registry = Catalog()
        for image in images:
            self._registry.learn(image)
        self._members: dict[str, Member] = {}
        self.kubelets: dict[str, Kubelet] = {}
        """Of every node that ever was, in the order they joined."""
        self.pods: dict[PodUid, VirtualPod] = {}
        """Every pod that ever arrived, in that order."""

    @property
    def nodes(self) -> dict[str, VirtualNode]:
        """The nodes that are there, in the order they joined."""
        return {name: member.kubelet.node for name, member in self._members.items()}

    # -- nodes -------------------------------------------------------------------------------------------------------

    def join(self, spec: NodeSpec) -> None:
        """Let a node join."""
        if spec.name in self.kubelets:
            raise WiringError(f"a second node {spec.name!r} cannot join")
        node = VirtualNode(spec)
        reporter = Reporter(self._environment, node, self._delays, self._witness.tell)
        kubelet = self.kubelets[spec.name] = Kubelet(self._environment, node, self._delays, reporter, self)
        self._members[spec.name] = Member(kubelet, reporter)
        self.note(NodeJoined(self._environment.now, spec.name, dict(spec.allocatable), spec.bandwidth))
        reporter.join()

    def cordon(self, name: str) -> None:
        """Let no more pods be placed on a node; nothing happens if it is gone."""
        member = self._members.get(name)
        if member is not None:
            member.kubelet.node.unschedulable = True
            member.reporter.node_changed()

    def drop(self, name: str) -> None:
        """Let a node leave, and its pods with it; nothing happens if it is gone."""
        member = self._members.get(name)
        if member is None:
            return
        for pod in tuple(member.kubelet.node.pods.values()):
            self.remove(pod.pod.uid)
        member.kubelet.puller.stop()
        del self._members[name]
        self.note(NodeLeft(self._environment.now, name))
        member.reporter.leave()

    # -- pods --------------------------------------------------------------------------------------------------------

    def submit(self, pod: Pod, duration: float | None) -> None:
        """Let a pod arrive that will run for *duration* seconds (None: until it is removed)."""
        now = self._environment.now
        images = tuple(self._image(name) for name in dict.fromkeys(pod.images))
        self.pods[pod.uid] = VirtualPod(pod, images, now, duration)
        self.note(PodArrived(now, pod.key, pod.uid, pod.namespace, pod.images, dict(pod.requests)))
        self._witness.tell(PodSeen(pod))

    def bind(self, uid: PodUid, node: str) -> str:
        """Bind a pod to a node; return why that is not possible, empty when it was done."""
        pod = self.pods.get(uid)
        if pod is None or pod.phase in ENDED:
            return REASON_NO_POD
        if pod.node:
            return REASON_BOUND.format(pod.node)
        member = self._members.get(node)
        if member is None:
            return REASON_NO_NODE
        pod.node, pod.bound = node, self._environment.now
        pod.pod = msgspec.structs.replace(pod.pod, node_name=node)
        self.note(PodBound(pod.bound, pod.pod.key, node))
        self._witness.tell(PodSeen(pod.pod))
        member.kubelet.accept(pod)
        return ""

    def remove(self, uid: PodUid) -> None:
        """Delete a pod at once; nothing happens if it has ended or never was."""
        pod = self.pods.get(uid)
        if pod is None or pod.phase in ENDED:
            return
        if pod.node:
            self._members[pod.node].kubelet.remove(pod)
        pod.phase, pod.ended = "removed", self._environment.now
        self.note(PodRemoved(pod.ended, pod.pod.key, pod.node))
        self._witness.tell(PodGone(uid))

    # -- what kubelets hand in ---------------------------------------------------------------------------------------

    def note(self, record: Record) -> None:
        """Pass a record on."""
        self._witness.note(record)

    def pod_started(self, pod: VirtualPod) -> None:
        """Show everybody that a pod runs."""
        pod.pod = msgspec.structs.replace(pod.pod, started=True)
        self._witness.tell(PodSeen(pod.pod))

    def pod_ended(self, pod: VirtualPod) -> None:
        """Show everybody that a pod has finished or failed."""
        pod.pod = msgspec.structs.replace(pod.pod, finished=True)
        self._witness.tell(PodSeen(pod.pod))

    def _image(self, name: str) -> Image:
        image = self._registry.find(name)
        if image is None:
            raise WiringError(f"no registry has the image {name!r}")
        return image
