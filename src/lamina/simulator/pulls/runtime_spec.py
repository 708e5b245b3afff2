"""Settings of a node's kubelet and runtime for pulls, and of the disk that holds the images."""

from typing import Literal

import msgspec

Reuse = Literal["prefix", "set"]
Per = Literal["image", "node"]
Accounting = Literal["reported", "real"]


class RuntimeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """
    Settings for image pulls on a node.

    With the defaults only the network takes time. A scenario without settings gets `CONTAINERD` instead.
    """

    parallel_pulls: int = 1
    """Images pulled at once; 1 is the kubelet's ``serializeImagePulls``; 0: no limit."""
    pull_qps: float = 0.0
    """Average rate limit of pull starts per second (``registryPullQPS``); pulls above it fail and back off; 0: none."""
    pull_burst: int = 10
    slots: int = 3
    """Layers downloaded at once; 0: no limit."""
    slots_per: Per = "image"
    """``image``: slots per image (containerd up to 2.0, CRI-O); ``node``: shared by all images (containerd 2.1 on)."""
    connection_rate: float = 0.0
    """Largest rate of one download in bytes per second; 0: only the links limit it."""
    resolve: float = 0.0
    """Seconds to fetch the manifest, before the first layer is downloaded."""
    unpack_rate: float = 0.0
    """Unpacked bytes per second that one thread writes; 0: unpacking takes no time."""
    unpack_threads: int = 1
    """Layers of one image unpacked at once; they are still committed in order."""
    disk_rate: float = 0.0
    """Unpacked bytes per second that all threads of the node write together; 0: no limit."""
    write_cache: int = 0
    """Page cache in bytes: threads write at their own rate until it is full. Needs `unpack_rate` and `disk_rate`."""
    layer_overhead: float = 0.0
    """Fixed seconds per layer in the unpacking thread, in addition to its bytes."""
    ratio: float = 2.3
    """Unpacked bytes per compressed byte, for layers of unknown unpacked size."""
    reuse: Reuse = "set"
    """``set``: blobs are kept and never downloaded again; ``prefix``: blobs are discarded once unpacked."""
    lazy: float | None = None
    """Share of the bytes needed before a container starts; the rest is downloaded later. None: no lazy pulling."""
    peers: bool = False
    """Whether layers that another node holds are downloaded from that node instead of the registry."""


class DiskSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The image file system, and the thresholds of garbage collection and eviction."""

    capacity: int
    """Capacity in bytes."""
    high: float = 0.85
    """Used share from which garbage collection removes images."""
    low: float = 0.80
    """Used share at which garbage collection stops, by its own accounting."""
    every: float = 300.0
    """Seconds between runs of garbage collection."""
    min_age: float = 120.0
    """Age in seconds below which an image is not removed."""
    evict_below: float = 0.15
    """Free share below which the kubelet removes all unused images and then evicts pods; 0: never."""
    evict_every: float = 10.0
    """Seconds between checks of the eviction manager."""
    accounting: Accounting = "reported"
    """Bytes counted per removed image: ``reported``: its compressed size, as in the kubelet; ``real``: bytes freed."""


CONTAINERD = RuntimeSpec(
    pull_qps=5.0,
    resolve=0.2,
    unpack_rate=100e6,
    layer_overhead=0.04,
)
"""containerd with default settings: serial pulls, three downloads at once, one unpacking thread."""
