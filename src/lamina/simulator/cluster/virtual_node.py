"""
Virtual node: its resources, pods, images and taints, and its representation in API objects and reports.

It holds state only; the kubelet changes it. Resources are counted as in the kubelet's admission.
"""

import math
from collections.abc import Mapping
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
"""Rate in bytes per second that a report gives where something takes no time: the largest that reports allow."""

HOSTNAME: Final = "kubernetes.io/hostname"
"""Label that the kubelet sets on every node."""


class Delays(msgspec.Struct, frozen=True, kw_only=True):
    """Delays in seconds that are the same on all nodes."""

    report: Lag = 1.0
    """From a change of a node's images until the scheduler has the layer report."""
    report_gap: float = 0.0
    """Shortest time between two reports of a node, which then combine several changes; the node agent uses 10 s."""
    status: Lag = 10.0
    """From a change of a node's images until its status shows it to the scheduler; a real kubelet takes 10 to 40 s."""
    start: Lag = 0.5
    """From the pod's last image to its running containers."""
    stop: Lag = 0.0
    """From the end of a pod's containers until its resources are free and the end is published."""
    bind: float = 0.0
    """From the scheduler's decision to the accepted binding."""
    provision: float = 0.0
    """From a claim's request until its volume is made and bound."""
    restart: float = 10.0
    """Back-off before the second restart of a container, doubled with every restart; the first restart is at once."""
    restart_most: float = 300.0
    """Longest restart back-off."""
    notice: float = 40.0
    """From a node's failure until the node is tainted (``node-monitor-grace-period``)."""
    evict_after: float = 300.0
    """Time that pods stay on an unreachable node, unless their own tolerations say otherwise."""


class VirtualNodeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A node when it joins."""

    name: str
    allocatable: Amounts
    bandwidth: float
    """Download rate in bytes per second."""
    holds: tuple[Image, ...] = ()
    """Images that it holds when it joins."""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    runtime: RuntimeSpec = RuntimeSpec()
    disk: DiskSpec | None = None
    """The image file system; None: unlimited."""
    uplink: str = ""
    """Name of the shared link between it and the registry; empty: none."""


class VirtualNode:
    """State of one node: pods, resources, images and taints."""

    def __init__(
        self, spec: VirtualNodeSpec, report_cache: ImageReportCache | None = None, rate: float = math.inf
    ) -> None:
        """Start without pods; *rate* is the rate of its uplink in bytes per second."""
        self.spec = spec
        self.name = spec.name
        self.labels = {HOSTNAME: spec.name, **spec.labels}
        self.allocatable = dict(spec.allocatable)
        self.store = NodeImageStore(spec.runtime, spec.disk, spec.holds)
        self.pods: dict[PodUid, VirtualPod] = {}
        """Admitted pods that have not ended, oldest first."""
        self.used: dict[str, int] = {}
        """Sum of its pods' requests, by resource."""
        self.unschedulable = False
        self.failed = False
        """Whether its kubelet has failed."""
        self.disk_pressure = False
        """Whether it has disk pressure and rejects pods."""
        self.taints = spec.taints
        self.meter: NodeLoadMeter | None = None
        """Records its usage; None: usage is not measured."""
        self.pulling: dict[Digest, tuple[ImagePullRequest, int]] = {}
        """Running pulls, each with the bytes it downloads."""
        self._report_cache = ImageReportCache() if report_cache is None else report_cache
        # Report and status entries of all images in the store, so that a report needs no lookups.
        self._held: dict[Digest, HeldImage] = {}
        self._entries: dict[Digest, NodeImage] = {}
        for image in self.store.images.values():
            self.gained(image)
        self._rate = min(spec.bandwidth, rate, _pull_rate(spec.runtime), AT_ONCE)
        self.listed: tuple[NodeImage, ...] = self.images_to_list()
        """The image list that was published last in its status."""
        self._reports = 0

    # -- resources ---------------------------------------------------------------------------------------------------

    def short_of(self, requests: Amounts) -> str:
        """Return the first resource that is insufficient for *requests*; empty if the pod fits."""
        used, allocatable = self.used, self.allocatable
        if used.get(PODS, 0) >= allocatable.get(PODS, 0):
            return PODS
        for name, amount in requests:
            if amount and used.get(name, 0) + amount > allocatable.get(name, 0):
                return name
        return ""

    def take(self, pod: VirtualPod) -> None:
        """Add a pod and its requests."""
        self.pods[pod.pod.uid] = pod
        used = self.used
        used[PODS] = used.get(PODS, 0) + 1
        for name, amount in pod.pod.requests:
            used[name] = used.get(name, 0) + amount

    def free(self, pod: VirtualPod) -> None:
        """Remove a pod and its requests; do nothing if it was not admitted."""
        if self.pods.pop(pod.pod.uid, None) is not None:
            used = self.used
            used[PODS] -= 1
            for name, amount in pod.pod.requests:
                used[name] -= amount

    def usage(self, now: float) -> dict[str, int]:
        """Return the sum of its pods' actual usage, by resource."""
        total: dict[str, int] = {}
        for pod in self.pods.values():
            for name, amount in pod.using(now):
                total[name] = total.get(name, 0) + amount
        return total

    # -- taints ------------------------------------------------------------------------------------------------------

    def taint(self, *taints: Taint) -> None:
        """Add taints that it does not have yet."""
        self.taints = (*self.taints, *(taint for taint in taints if taint not in self.taints))

    def untaint(self, *taints: Taint) -> None:
        """Remove taints, except those it joined with."""
        gone = [taint for taint in taints if taint not in self.spec.taints]
        self.taints = tuple(taint for taint in self.taints if taint not in gone)

    def change(self, labels: Mapping[str, str], taints: tuple[Taint, ...], allocatable: Amounts) -> bool:
        """Replace labels, taints and resources; return whether anything changed."""
        labels = {HOSTNAME: self.name, **labels}
        if labels == self.labels and taints == self.taints and allocatable == self.spec.allocatable:
            return False
        self.labels, self.taints, self.allocatable = labels, taints, dict(allocatable)
        self.spec = msgspec.structs.replace(self.spec, labels=labels, taints=taints, allocatable=allocatable)
        return True

    # -- representation ----------------------------------------------------------------------------------------------

    def seen(self) -> Node:
        """Return the node as the API server shows it."""
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
        """Add the entries of an image that the store now holds."""
        self._held[image.digest] = self._report_cache.held(image, lazy=self.spec.runtime.lazy is not None)
        self._entries[image.digest] = self._report_cache.listed(image)

    def lost(self, images: tuple[Image, ...]) -> None:
        """Drop the entries of images that were removed from the store."""
        for image in images:
            del self._held[image.digest], self._entries[image.digest]

    def images_to_list(self) -> tuple[NodeImage, ...]:
        """Return the kubelet's image list for the node's status: the largest images, fully qualified."""
        return tuple(sorted(self._entries.values(), key=attrgetter("size"), reverse=True)[:MOST_LISTED])

    def report(self, now: float) -> LayerReport:
        """Return the node agent's layer report; sequence numbers increase with every call."""
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
    """Return the largest download rate of one pull; unlimited slots mean no such limit."""
    return runtime.connection_rate * runtime.slots if runtime.connection_rate and runtime.slots else AT_ONCE


def _unpack_rate(runtime: RuntimeSpec) -> float:
    """Return the unpack rate, in unpacked bytes per second, that a node agent would measure."""
    rate = runtime.unpack_rate * runtime.unpack_threads if runtime.unpack_rate else AT_ONCE
    return min(rate, runtime.disk_rate or AT_ONCE)
