"""A pull of one image for one pod, and the protocol through which a puller reports its events."""

from collections.abc import Callable
from typing import Literal, Protocol

from lamina.model.image import Image, Layer
from lamina.simulator.engine import Timer, Transfer
from lamina.simulator.pulls.pull_plan import PullPlan
from lamina.simulator.pulls.runtime_image import RuntimeImage

RemovalReason = Literal["collected", "pressure"]


class BlobDownload:
    """A running download of one blob."""

    __slots__ = ("headed", "layer", "pull", "transfer", "waiters")

    def __init__(self, layer: Layer, pull: "ImagePullRequest", index: int) -> None:
        """Download *layer*, which is number *index* of *pull*."""
        self.layer = layer
        self.pull = pull
        self.transfer: Transfer | None = None
        self.headed = False
        """Whether the head is held: as much as a lazy start needs."""
        self.waiters: list[tuple[ImagePullRequest, int]] = [(pull, index)]
        """The pulls and layer indexes that wait for it. Each holds a download slot while it waits."""


class ImagePullRequest:
    """
    A pull of one image, requested for one pod.

    Callers read the attributes with a docstring; the rest is internal to the puller. Times are None until they are
    known.
    """

    __slots__ = (
        "args",
        "backoff",
        "began_at",
        "busy",
        "committed",
        "done_at",
        "downloaded_at",
        "failures",
        "first",
        "image",
        "landed",
        "next",
        "on_ready",
        "plan",
        "queued",
        "requested_at",
        "retry_at",
        "runtime_image",
        "tails",
        "there",
        "threads",
        "timer",
        "transfer",
        "unpacked",
        "waiters",
        "work",
    )

    def __init__(
        self,
        image: Image,
        runtime_image: RuntimeImage,
        requested_at: float,
        on_ready: Callable[..., object],
        args: tuple[object, ...] = (),
    ) -> None:
        """Request *image*; the puller calls *on_ready* with *args* when the node holds it."""
        self.image = image
        self.requested_at = requested_at
        self.began_at: float | None = None
        """Start of the last attempt."""
        self.downloaded_at: float | None = None
        """Time at which the last byte needed for the start had arrived."""
        self.done_at: float | None = None
        """Time at which all layers were unpacked."""
        self.failures = 0
        """Number of failed attempts."""
        self.on_ready: Callable[..., object] | None = on_ready
        self.args = args

        # Bytes of the layers in the store. During a whole-image download more layers may have arrived: see `arrived`.
        self.landed = 0
        self.plan: PullPlan | None = None
        self.transfer: Transfer | None = None
        self.runtime_image = runtime_image
        self.queued = False
        self.timer: Timer | None = None
        self.backoff = 0.0
        self.retry_at = 0.0

    @property
    def downloaded(self) -> int:
        """Bytes of the layers that arrived because of this pull."""
        return self.landed + sum([layer.size for layer in self.arrived]) if self.transfer else self.landed

    @property
    def arrived(self) -> tuple[Layer, ...]:
        """The layers of a running whole-image download that are complete."""
        return () if self.plan is None or self.transfer is None else self.plan.arrived(self.transfer.moved)

    def begin(self) -> None:
        """Reset the state for an attempt that downloads layer by layer."""
        self.plan = None
        # Index of the first layer that this pull unpacks, and of the next layer to download.
        self.first = 0
        self.next = 0
        # Download slots it holds.
        self.busy = 0
        # Commit times, past or future, of the layers from *first* on, as far as known.
        self.committed: list[float] = []
        # Layers whose blob is held but which are not committed; with several threads, the time each is unpacked.
        self.there: dict[int, float] = {}
        # Layers being unpacked on a shared disk.
        self.work: dict[int, Timer | Transfer] = {}
        # Set by some unpackers: when each thread is free; unpacked layers that wait for a layer below them.
        self.threads: list[float]
        self.unpacked: set[int]
        # Pulls that wait for a layer of this one, by layer index.
        self.waiters: dict[int, list[ImagePullRequest]] = {}
        # Downloads whose tail is missing after a lazy start.
        self.tails: list[BlobDownload] = []

    def retire(self) -> None:
        """Drop all internal state to save memory: a run keeps all its pulls."""
        self.args = ()
        del self.committed
        if self.plan is None:
            del self.there, self.work, self.waiters, self.tails
        self.plan = None


class PullWatcher(Protocol):
    """Receives the events of a puller, also from inside `Puller.request`."""

    def pull_began(self, pull: ImagePullRequest, missing: tuple[Layer, ...]) -> None:
        """Called when *pull* starts; *missing* is what it will download, perhaps nothing."""
        ...

    def layer_pulled(self, layer: Layer) -> None:
        """Called when the node holds a new layer."""
        ...

    def pull_done(self, pull: ImagePullRequest, *, news: bool) -> None:
        """Called when the node holds the image; *news* is False if an earlier pull had brought it."""
        ...

    def pull_failed(self, pull: ImagePullRequest, reason: str, retry_at: float) -> None:
        """Called when a pull failed and its layers were dropped; it is retried at *retry_at* at the earliest."""
        ...

    def images_removed(self, images: tuple[Image, ...], freed: int, why: RemovalReason) -> None:
        """Called when images were removed from the node, which freed *freed* bytes."""
        ...

    def disk_pressure(self, on: bool) -> None:
        """
        Called when disk pressure begins, continues or ends.

        On: all unused images are removed and space is still short, so pods must be evicted. The eviction manager
        repeats this call at every check. Off: there is space again.
        """
        ...
