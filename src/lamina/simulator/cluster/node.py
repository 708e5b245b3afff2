"""
A virtual node: what it can give, who uses it, what it holds, and how it looks from outside.

State only; the kubelet acts on it. Resources are counted exactly as the kubelet's own admission counts them.
"""

from typing import Final

import msgspec

from lamina.model import resources
from lamina.model.digest import Digest
from lamina.model.image import Image
from lamina.model.node import Node, NodeImage
from lamina.model.pod import Pod, PodUid
from lamina.model.reference import parse_reference
from lamina.model.reports import HeldImage, LayerReport
from lamina.model.resources import PODS, Amounts
from lamina.model.taints import Taint
from lamina.simulator.cluster.pod import VirtualPod
from lamina.simulator.pulls import Store

# Kubelet's nodeStatusMaxImages. The list is sorted by size before it is cut.
MOST_LISTED: Final = 50
# Unpacking takes no time here, and an agent would see that: as fast as a report may say.
AT_ONCE: Final = 1e11

HOSTNAME: Final = "kubernetes.io/hostname"
"""A label that the kubelet gives every node."""


class Delays(msgspec.Struct, frozen=True, kw_only=True):
    """How long things take that are the same on all nodes, in seconds."""

    report: float = 1.0
    """Until the scheduler has a node's layer report, after what the node holds has changed."""
    status: float = 10.0
    """Until the scheduler sees an image in the node's status. A real kubelet takes 10 to 40 seconds."""
    start: float = 0.5
    """From the last image to running containers."""
    bind: float = 0.0
    """From the scheduler's decision to the accepted binding."""


class NodeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a node is like when it joins."""

    name: str
    allocatable: Amounts
    bandwidth: float
    """Bytes per second it can download."""
    holds: tuple[Image, ...] = ()
    """Images that are on it from the start."""
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()


class VirtualNode:
    """One node and its load."""

    def __init__(self, spec: NodeSpec) -> None:
        """Start without pods."""
        self.spec = spec
        self.name = spec.name
        self.labels = {HOSTNAME: spec.name, **spec.labels}
        self.allocatable = dict(spec.allocatable)
        self.store = Store(spec.holds)
        self.pods: dict[PodUid, VirtualPod] = {}
        """Pods that take up room, oldest first."""
        self.used: dict[str, int] = {}
        self.unschedulable = False
        self._entries: dict[Digest, NodeImage] = {}
        self.listed: tuple[NodeImage, ...] = self.images_to_list()
        """The images in its status, as far as that has been published."""
        self._reports = 0

    def short_of(self, requests: Amounts) -> str:
        """Name the first resource a pod with *requests* does not find here; empty when it fits."""
        for name, amount in _asked(requests):
            if amount and self.used.get(name, 0) + amount > self.allocatable.get(name, 0):
                return name
        return ""

    def take(self, pod: VirtualPod) -> None:
        """Give a pod its room."""
        self.pods[pod.pod.uid] = pod
        self._use(pod.pod, 1)

    def free(self, pod: VirtualPod) -> None:
        """Take the room back, if the pod had any."""
        if self.pods.pop(pod.pod.uid, None) is not None:
            self._use(pod.pod, -1)

    def seen(self) -> Node:
        """Describe the node as the API server would."""
        return Node(
            name=self.name,
            uid=self.name,
            labels=self.labels,
            taints=self.spec.taints,
            unschedulable=self.unschedulable,
            allocatable=self.spec.allocatable,
            images=self.listed,
        )

    def images_to_list(self) -> tuple[NodeImage, ...]:
        """List what the kubelet would put into the node's status now: the largest images, under their full names."""
        for digest, image in self.store.images.items():
            if digest not in self._entries:
                # Once: spelling a name out costs more than all the rest of this.
                self._entries[digest] = NodeImage(_listed_names(image), image.size)
        entries = [self._entries[digest] for digest in self.store.images]
        return tuple(sorted(entries, key=lambda entry: -entry.size)[:MOST_LISTED])

    def report(self, now: float) -> LayerReport:
        """Describe what the node holds as its agent would; each report is newer than the one before."""
        self._reports += 1
        return LayerReport(
            node=self.name,
            node_uid=self.name,
            sequence=self._reports,
            observed_at=now,
            images=tuple(HeldImage(image.digest, image.size, image.names) for image in self.store.images.values()),
            # The puller fetches no layer that is there, whatever lies below it.
            reuse="set",
            download_rate=self.spec.bandwidth,
            unpack_rate=AT_ONCE,
        )

    def _use(self, pod: Pod, sign: int) -> None:
        for name, amount in _asked(pod.requests):
            self.used[name] = self.used.get(name, 0) + sign * amount


def _asked(requests: Amounts) -> Amounts:
    return resources.add(requests, ((PODS, 1),))


def _listed_names(image: Image) -> tuple[str, ...]:
    """
    Spell names as a runtime does: digests first, then tags, always in full.

    A pod that asks for ``nginx`` therefore does not find ``docker.io/library/nginx:latest`` by ImageLocality, which
    compares text. That is so in real clusters too.
    """
    references = [parse_reference(name) for name in image.names]
    digests = dict.fromkeys(f"{one.name}@{image.digest}" for one in references)
    tags = dict.fromkeys(f"{one.name}:{one.tag}" for one in references if one.tag)
    return (*digests, *tags)
