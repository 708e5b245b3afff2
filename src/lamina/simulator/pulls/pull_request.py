"""One request for one image, and who is told about it."""

from collections.abc import Callable
from typing import Literal, Protocol

from lamina.model.image import Image, Layer
from lamina.simulator.engine import Timer, Transfer
from lamina.simulator.pulls.pull_plan import PullPlan
from lamina.simulator.pulls.runtime_image import RuntimeImage

RemovalReason = Literal["collected", "pressure"]


class BlobDownload:
    """A blob on its way to a node."""

    __slots__ = ("headed", "layer", "pull", "transfer", "waiters")

    def __init__(self, layer: Layer, pull: "ImagePullRequest", index: int) -> None:
        """Download *layer* because it is this layer of *pull*."""
        self.layer = layer
        self.pull = pull
        self.transfer: Transfer | None = None
        self.headed = False
        """Whether as much is there as a lazy start needs."""
        self.waiters: list[tuple[ImagePullRequest, int]] = [(pull, index)]
        """Which layers of which pulls wait for it; each has a download slot, as a thread that waits for a lock has."""


class ImagePullRequest:
    """
    One request for one image.

    Whoever asked reads what has a docstring; the rest belongs to the puller. Times are None until they have come.
    """

    __slots__ = (
        "args",
        "asked_at",
        "backoff",
        "began_at",
        "busy",
        "committed",
        "done_at",
        "failures",
        "fetched_at",
        "first",
        "image",
        "landed",
        "next",
        "on_ready",
        "plan",
        "queued",
        "recipe",
        "retry_at",
        "stream",
        "tails",
        "there",
        "threads",
        "timer",
        "unpacked",
        "waiters",
        "work",
    )

    def __init__(
        self,
        image: Image,
        recipe: RuntimeImage,
        asked_at: float,
        on_ready: Callable[..., object],
        args: tuple[object, ...] = (),
    ) -> None:
        """Ask for *image*; *on_ready* is called with *args* when it is there."""
        self.image = image
        self.asked_at = asked_at
        self.began_at: float | None = None
        """When its turn came; of several attempts, the last."""
        self.fetched_at: float | None = None
        """When the last byte was there that had to be."""
        self.done_at: float | None = None
        """When everything was unpacked."""
        self.failures = 0
        """How often it failed."""
        self.on_ready: Callable[..., object] | None = on_ready
        self.args = args

        # Bytes of layers that arrived and are counted; while it is a stream, more may have.
        self.landed = 0
        self.plan: PullPlan | None = None
        self.stream: Transfer | None = None
        self.recipe = recipe
        self.queued = False
        self.timer: Timer | None = None
        self.backoff = 0.0
        self.retry_at = 0.0

    @property
    def downloaded(self) -> int:
        """Bytes of the layers that arrived because of this request."""
        return self.landed + sum([layer.size for layer in self.arrived]) if self.stream else self.landed

    @property
    def arrived(self) -> tuple[Layer, ...]:
        """The layers that are there of a stream that is under way."""
        return () if self.plan is None or self.stream is None else self.plan.arrived(self.stream.moved)

    def begin(self) -> None:
        """Get ready for an attempt that goes layer by layer."""
        self.plan = None
        # Index of the first layer that is this pull's to unpack, and of the next one to look at.
        self.first = 0
        self.next = 0
        # Download slots it holds.
        self.busy = 0
        # When each layer from the first is, or will be, committed; as far as that is known.
        self.committed: list[float] = []
        # Layers whose blob is there and which are not committed; with several threads, when each will be unpacked.
        self.there: dict[int, float] = {}
        # Layers being unpacked on a disk that is shared.
        self.work: dict[int, Timer | Transfer] = {}
        # Set by the unpackers that need it: when each thread is free; layers that are unpacked and wait for one below.
        self.threads: list[float]
        self.unpacked: set[int]
        # Pulls that wait for a layer of this one, by its index.
        self.waiters: dict[int, list[ImagePullRequest]] = {}
        # What is left to download after a lazy start.
        self.tails: list[BlobDownload] = []

    def retire(self) -> None:
        """Keep what others read and nothing else: a run remembers all its pulls."""
        self.args = ()
        del self.committed
        if self.plan is None:
            del self.there, self.work, self.waiters, self.tails
        self.plan = None


class PullWatcher(Protocol):
    """Told by a puller what happens, when it happens. May be called from inside `Puller.ask`."""

    def pull_began(self, pull: ImagePullRequest, missing: tuple[Layer, ...]) -> None:
        """The turn of *pull* has come; *missing* is what will be downloaded, perhaps nothing."""
        ...

    def layer_pulled(self, layer: Layer) -> None:
        """The layer is on the node now."""
        ...

    def pull_done(self, pull: ImagePullRequest, *, news: bool) -> None:
        """The image is on the node now; *news* is false when it had come by an earlier pull."""
        ...

    def pull_failed(self, pull: ImagePullRequest, reason: str, retry_at: float) -> None:
        """The pull has failed and what it brought is gone; it is tried again at *retry_at* at the earliest."""
        ...

    def images_removed(self, images: tuple[Image, ...], freed: int, why: RemovalReason) -> None:
        """These images are gone from the node, which has *freed* more bytes of room."""
        ...

    def disk_pressure(self, on: bool) -> None:
        """
        Say how it stands with the disk.

        On: all unused images are gone and there still is too little room, so pods have to go; said again at every look
        of the eviction manager at which that is so. Off: there is room again.
        """
        ...
