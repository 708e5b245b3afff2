"""
A virtual node: what it can give, who uses it, what it holds, and how it looks from outside.

State only; the kubelet acts on it. Resources are counted exactly as the kubelet's own admission counts them.
"""

import math
from operator import attrgetter
from typing import Final

import msgspec

from lamina.model.digest import Digest
from lamina.model.image import Image
from lamina.model.layer_report import ActivePull as PullReport
from lamina.model.layer_report import HeldImage, LayerReport
from lamina.model.node import Node, NodeImage
from lamina.model.pod import PodUid
from lamina.model.resources import PODS, Amounts
from lamina.model.taints import Taint
from lamina.simulator.cluster.image_reports import ImageReportCache, image_name
from lamina.simulator.cluster.lag import Lag
from lamina.simulator.cluster.load_meter import NodeLoadMeter
from lamina.simulator.cluster.virtual_pod import VirtualPod
from lamina.simulator.pulls import ImagePullRequest, NodeImageStore
from lamina.simulator.pulls.runtime_spec import DiskSpec, RuntimeSpec

# Kubelet's nodeStatusMaxImages. The list is sorted by size before it is cut.
MOST_LISTED: Final = 50
AT_ONCE: Final = 1e11
"""Bytes per second that a report says where something takes no time: as fast as it may say."""

HOSTNAME: Final = "kubernetes.io/hostname"
"""A label that the kubelet gives every node."""


class Delays(msgspec.Struct, frozen=True, kw_only=True):
    """How long things take that are the same on all nodes, in seconds."""

    report: Lag = 1.0
    """Until the scheduler has a node's layer report, after what the node holds has changed."""
    report_gap: float = 0.0
    """At least so long between two reports of a node; agents keep 10 s. What changes in between travels together."""
    status: Lag = 10.0
    """Until the scheduler sees an image in the node's status. A real kubelet takes 10 to 40 seconds."""
    start: Lag = 0.5
    """From the last image to running containers."""
    stop: Lag = 0.0
    """From the end of a pod's containers until its node has the room back and everybody knows."""
    bind: float = 0.0
    """From the scheduler's decision to the accepted binding."""
    restart: float = 10.0
    """Before a container is started again that ended for the second time; doubled each time. The first is at once..."""
    restart_most: float = 300.0
    """...up to this."""
    notice: float = 40.0
    """From a node's failure until it is seen and tainted (``node-monitor-grace-period``)."""
    evict_after: float = 300.0
    """For how long pods are left on a node that failed, unless they tolerate it for another time."""


class VirtualNodeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a node is like when it joins."""

    name: str
    allocatable: Amounts
    bandwidth: float
    """Bytes per second it can download."""
    holds: tuple[Image, ...] = ()
    """Images that are on it from the start."""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    runtime: RuntimeSpec = RuntimeSpec()
    disk: DiskSpec | None = None
    """None: it never fills."""
    uplink: str = ""
    """The shared link between it and the registry; empty: none."""


class VirtualNode:
    """One node and its load."""

    def __init__(self, spec: VirtualNodeSpec, words: ImageReportCache | None = None, rate: float = math.inf) -> None:
        """Start without pods; *rate* is what the links it shares with others let through at most."""
        self.spec = spec
        self.name = spec.name
        self.labels = {HOSTNAME: spec.name, **spec.labels}
        self.allocatable = dict(spec.allocatable)
        self.store = NodeImageStore(spec.runtime, spec.disk, spec.holds)
        self.pods: dict[PodUid, VirtualPod] = {}
        """Pods that take up room, oldest first."""
        self.used: dict[str, int] = {}
        """What its pods ask for, by resource."""
        self.unschedulable = False
        self.failed = False
        """Whether its kubelet does not answer."""
        self.pressed = False
        """Whether its disk is so full that it takes no pods."""
        self.taints = spec.taints
        self.meter: NodeLoadMeter | None = None
        """Follows what its pods really use, where somebody wants to know."""
        self.pulling: dict[Digest, tuple[ImagePullRequest, int]] = {}
        """Pulls that have begun, and the bytes each has to download."""
        self._words = ImageReportCache() if words is None else words
        # What is said of each image in the store, so that a report or a list is put together without asking for each.
        self._held: dict[Digest, HeldImage] = {}
        self._entries: dict[Digest, NodeImage] = {}
        for image in self.store.images.values():
            self.gained(image)
        self._rate = min(spec.bandwidth, rate, _pull_rate(spec.runtime), AT_ONCE)
        self.listed: tuple[NodeImage, ...] = self.images_to_list()
        """The images in its status, as far as that has been published."""
        self._reports = 0

    # -- room --------------------------------------------------------------------------------------------------------

    def short_of(self, requests: Amounts) -> str:
        """Name the first resource a pod with *requests* does not find here; empty when it fits."""
        used, allocatable = self.used, self.allocatable
        if used.get(PODS, 0) >= allocatable.get(PODS, 0):
            return PODS
        for name, amount in requests:
            if amount and used.get(name, 0) + amount > allocatable.get(name, 0):
                return name
        return ""

    def take(self, pod: VirtualPod) -> None:
        """Give a pod its room."""
        self.pods[pod.pod.uid] = pod
        used = self.used
        used[PODS] = used.get(PODS, 0) + 1
        for name, amount in pod.pod.requests:
            used[name] = used.get(name, 0) + amount

    def free(self, pod: VirtualPod) -> None:
        """Take the room back, if the pod had any."""
        if self.pods.pop(pod.pod.uid, None) is not None:
            used = self.used
            used[PODS] -= 1
            for name, amount in pod.pod.requests:
                used[name] -= amount

    def usage(self, now: float) -> dict[str, int]:
        """Add up what its pods really use, whatever they asked for."""
        total: dict[str, int] = {}
        for pod in self.pods.values():
            for name, amount in pod.using(now):
                total[name] = total.get(name, 0) + amount
        return total

    # -- taints ------------------------------------------------------------------------------------------------------

    def taint(self, *taints: Taint) -> None:
        """Put taints on it that it does not have yet."""
        self.taints = (*self.taints, *(taint for taint in taints if taint not in self.taints))

    def untaint(self, *taints: Taint) -> None:
        """Take taints off it; those it joined with stay."""
        gone = [taint for taint in taints if taint not in self.spec.taints]
        self.taints = tuple(taint for taint in self.taints if taint not in gone)

    # -- how it looks ------------------------------------------------------------------------------------------------

    def seen(self) -> Node:
        """Describe the node as the API server would."""
        return Node(
            name=self.name,
            uid=self.name,
            labels=self.labels,
            annotations=self.spec.annotations,
            taints=self.taints,
            unschedulable=self.unschedulable,
            allocatable=self.spec.allocatable,
            images=self.listed,
        )

    def gained(self, image: Image) -> None:
        """Take note that the store has an image more."""
        self._held[image.digest] = self._words.held(image, lazy=self.spec.runtime.lazy is not None)
        self._entries[image.digest] = self._words.listed(image)

    def lost(self, images: tuple[Image, ...]) -> None:
        """Take note that these images are gone from the store."""
        for image in images:
            del self._held[image.digest], self._entries[image.digest]

    def images_to_list(self) -> tuple[NodeImage, ...]:
        """List what the kubelet would put into the node's status now: the largest images, under their full names."""
        return tuple(sorted(self._entries.values(), key=attrgetter("size"), reverse=True)[:MOST_LISTED])

    def report(self, now: float) -> LayerReport:
        """Describe what the node holds as its agent would; each report is newer than the one before."""
        self._reports += 1
        runtime = self.spec.runtime
        return LayerReport(
            node=self.name,
            node_uid=self.name,
            sequence=self._reports,
            observed_at=now,
            images=tuple(self._held.values()),
            reuse=runtime.reuse,
            download_rate=self._rate,
            unpack_rate=_unpack_rate(runtime),
            disk=0 if self.spec.disk is None else self.spec.disk.capacity,
            disk_free=0 if self.spec.disk is None else int(self.store.free),
            pulling=tuple(
                [
                    PullReport(image_name(one.image), one.image.digest, one.downloaded, all_)
                    for one, all_ in self.pulling.values()
                ]
            ),
        )


def _pull_rate(runtime: RuntimeSpec) -> float:
    """Return what the downloads of one pull get at most; with any number of slots there is no such limit."""
    return runtime.connection_rate * runtime.slots if runtime.connection_rate and runtime.slots else AT_ONCE


def _unpack_rate(runtime: RuntimeSpec) -> float:
    """Return the unpacked bytes per second that an agent would see."""
    rate = runtime.unpack_rate * runtime.unpack_threads if runtime.unpack_rate else AT_ONCE
    return min(rate, runtime.disk_rate or AT_ONCE)
