"""How a node's kubelet and runtime pull images, and the disk they put them on: plain settings, no behaviour."""

from typing import Literal

import msgspec

Reuse = Literal["prefix", "set"]
Per = Literal["image", "node"]
Accounting = Literal["reported", "real"]


class RuntimeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """
    How images get onto a node.

    As it stands everything but the network is free: what takes time has to be said. `CONTAINERD` is what a scenario
    gets that says nothing.
    """

    parallel_pulls: int = 1
    """Images pulled at once; 1 is the kubelet's ``serializeImagePulls``, 0 means any number."""
    pull_qps: float = 0.0
    """Pulls a kubelet begins per second on average (``registryPullQPS``); those beyond fail and back off. 0: any number."""
    pull_burst: int = 10
    slots: int = 3
    """Layers downloaded at once; 0 means any number."""
    slots_per: Per = "image"
    """Whether each image has its own slots (containerd up to 2.0, CRI-O) or all share the node's (containerd from 2.1)."""
    connection_rate: float = 0.0
    """Bytes per second that one download gets at most, however idle the links are; 0: as much as they give."""
    resolve: float = 0.0
    """Seconds until the manifest is there, before anything is downloaded."""
    unpack_rate: float = 0.0
    """Unpacked bytes per second that one thread writes; 0: unpacking takes no time."""
    unpack_threads: int = 1
    """Layers of one image unpacked at once; they are committed in order all the same."""
    disk_rate: float = 0.0
    """Unpacked bytes per second that all threads of the node write together; 0: the disk is not the limit."""
    write_cache: int = 0
    """Bytes that memory takes in at the threads' own rate before they have to wait for the disk; needs both rates."""
    layer_overhead: float = 0.0
    """Seconds that each layer takes beside its bytes, in the unpacking thread."""
    ratio: float = 2.3
    """Unpacked bytes for each compressed byte, for layers that do not say it themselves."""
    reuse: Reuse = "set"
    """``set``: blobs are kept and no known blob is downloaded again. ``prefix``: blobs are discarded once unpacked."""
    lazy: float | None = None
    """Share of the bytes that has to be there before a container starts; the rest follows. None: no lazy pulling."""
    peers: bool = False
    """Layers that another node holds come from there instead of from the registry."""


class DiskSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The file system images are on, and when the kubelet clears it."""

    capacity: int
    """Bytes."""
    high: float = 0.85
    """From this share on the collector removes images..."""
    low: float = 0.80
    """...until this share is reached, by its own accounting."""
    every: float = 300.0
    """Seconds between looks of the collector."""
    min_age: float = 120.0
    """Seconds for which a new image is left alone."""
    evict_below: float = 0.15
    """Free share below which all unused images go at once, and then pods; 0: never."""
    evict_every: float = 10.0
    """Seconds between looks of the eviction manager."""
    accounting: Accounting = "reported"
    """What a removed image counts as: its whole compressed size, as kubelets count, or the bytes that really became free."""


CONTAINERD = RuntimeSpec(
    pull_qps=5.0,
    resolve=0.2,
    unpack_rate=100e6,
    layer_overhead=0.04,
)
"""A node as it comes: serial pulls, three downloads at once, one thread that unpacks."""
