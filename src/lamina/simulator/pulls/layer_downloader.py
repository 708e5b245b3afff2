"""
Layer-by-layer downloads of one node: running downloads, the pulls that wait for them, and the download slots.

    requested --blob held--------------------> unpacked
        |     --another pull downloads it----> waits for that download
        +-----slot free--> downloading ------> held

A pull takes its layers bottom first, with one slot for each. A layer that waits for another pull's download also takes
a slot, because runtimes take the slot before the lock. If the slots belong to the node, pulls take turns. Space is
reserved when a layer gets its slot. Lazy pulls first download the head of every layer; the tails follow when the pull
is done.
"""

from collections import deque
from collections.abc import Callable

from lamina.model.digest import Digest
from lamina.model.image import Layer
from lamina.simulator.engine import Environment, Link, Network
from lamina.simulator.pulls.image_store import NodeImageStore
from lamina.simulator.pulls.layer_source import LayerSource
from lamina.simulator.pulls.pull_request import BlobDownload, ImagePullRequest
from lamina.simulator.pulls.runtime_spec import RuntimeSpec


class LayerDownloader:
    """Downloads the blobs for the pulls of one node."""

    __slots__ = (
        "_busy",
        "_connection_rate",
        "_connections",
        "_environment",
        "_lazy",
        "_network",
        "_per_node",
        "_queue",
        "_slots",
        "_source",
        "_store",
        "downloads",
        "on_drained",
        "on_full",
        "on_pulled",
        "on_there",
    )

    on_there: Callable[[ImagePullRequest, int], None]
    """Called with a pull and a layer index when the blob is held; with lazy pulls, when its head is."""
    on_pulled: Callable[[Layer], None]
    """Called when a blob is complete."""
    on_full: Callable[[ImagePullRequest], None]
    """Called when there is no space for a pull's next layer."""
    on_drained: Callable[[ImagePullRequest], None]
    """Called when all tails of a lazy pull are held."""

    def __init__(
        self, environment: Environment, network: Network, store: NodeImageStore, spec: RuntimeSpec, source: LayerSource
    ) -> None:
        """Download from *source* into *store*. The caller must set the four callbacks."""
        self._environment = environment
        self._network = network
        self._store = store
        self._source = source
        self._slots = spec.slots
        self._per_node = spec.slots_per == "node"
        self._lazy = spec.lazy
        self._connection_rate = spec.connection_rate
        # A connection is a link with at most one download.
        self._connections: list[Link] = []
        self.downloads: dict[Digest, BlobDownload] = {}
        """The running downloads."""
        # Pulls with layers left that wait for a slot of the node.
        self._queue: deque[ImagePullRequest] = deque()
        self._busy = 0

    def feed(self, pull: ImagePullRequest) -> None:
        """Start the downloads of a pull, as many as there are slots."""
        if self._per_node:
            self._queue.append(pull)
            self.deal()
        else:
            self._fill(pull)

    def deal(self) -> None:
        """Give the node's free slots to the waiting pulls in turns (round robin)."""
        queue, slots = self._queue, self._slots
        while queue and (self._busy < slots or not slots):
            pull = queue.popleft()
            self._step(pull)
            if pull.next < len(pull.runtime_image.layers):
                queue.append(pull)

    def abandon(self, pull: ImagePullRequest) -> None:
        """Cancel the downloads that only this pull needs; other pulls keep those that they wait for."""
        for download in tuple(self.downloads.values()):
            others = [waiter for waiter in download.waiters if waiter[0] is not pull]
            self._busy -= len(download.waiters) - len(others)
            download.waiters = others
            if download.pull is not pull:
                continue
            if others:
                download.pull = others[0][0]
            elif download.headed and self._store.references(download.layer.digest) > 1:
                # Another lazy pull uses the head that is held, so the tail is still needed.
                self._begin_tail(download, self._landed)
            else:
                self._cancel(download)
        pull.busy = 0
        if pull in self._queue:
            self._queue.remove(pull)

    def sweep(self) -> None:
        """Cancel tail downloads that no image or pull references any more, because their pulls failed."""
        for download in tuple(self.downloads.values()):
            if download.headed and not self._store.references(download.layer.digest):
                self._cancel(download)

    def drain(self, pull: ImagePullRequest) -> None:
        """Download the tails of a lazy pull, with as many slots as an image has."""
        while pull.tails and (pull.busy < self._slots or not self._slots):
            pull.busy += 1
            self._begin_tail(pull.tails.pop(0), self._drained)

    def stop(self) -> None:
        """Cancel all downloads."""
        for download in tuple(self.downloads.values()):
            self._cancel(download)
        self._queue.clear()
        self._busy = 0

    # ----------------------------------------------------------------------------------------------------------------

    def _fill(self, pull: ImagePullRequest) -> None:
        # If a step fails, the pull's `next` is set to the end, which ends this loop.
        slots, total = self._slots, len(pull.runtime_image.layers)
        while pull.next < total and (pull.busy < slots or not slots):
            self._step(pull)

    def _step(self, pull: ImagePullRequest) -> None:
        """Start or join the download of the pull's next layer, or report the layer if its blob is held."""
        index, runtime_image, store = pull.next, pull.runtime_image, self._store
        layer = runtime_image.layers[index]
        digest = layer.digest
        here = digest in store.blobs
        download = None if here else self.downloads.get(digest)
        room = runtime_image.unpacked[index] if here or download else runtime_image.unpacked[index] + layer.size
        if not store.reserve(room):
            self.on_full(pull)
            return
        pull.next = index + 1
        if here or (download is not None and download.headed):
            self.on_there(pull, index)
            return
        pull.busy += 1
        self._busy += 1
        if download is not None:
            download.waiters.append((pull, index))
            return
        download = self.downloads[digest] = BlobDownload(layer, pull, index)
        size = layer.size if self._lazy is None else layer.size * self._lazy
        download.transfer = self._network.start(self._path(layer), size, self._arrived, download)

    def _path(self, layer: Layer) -> tuple[Link, ...]:
        path = self._source.path(layer)
        if not self._connection_rate:
            return path
        idle = self._connections
        return (*path, idle.pop() if idle else self._network.link(self._connection_rate))

    def _hang_up(self, download: BlobDownload) -> None:
        """Return the connection, so that another download can use it."""
        if self._connection_rate and download.transfer is not None:
            self._connections.append(download.transfer.path[-1])
        # Breaks a reference cycle: the transfer refers to this download. Otherwise only Python's GC would free both.
        download.transfer = None

    def _arrived(self, download: BlobDownload) -> None:
        if self._lazy is None:
            self._landed(download)
        else:
            self._hang_up(download)
            download.headed = True
            download.pull.tails.append(download)
        now = self._environment.now
        waiters, download.waiters = download.waiters, []
        for pull, index in waiters:
            pull.busy -= 1
            self._busy -= 1
            pull.downloaded_at = now
            self.on_there(pull, index)
        if self._per_node:
            self.deal()
        else:
            for pull, _ in waiters:
                self._fill(pull)

    def _begin_tail(self, download: BlobDownload, on_done: Callable[[BlobDownload], None]) -> None:
        assert self._lazy is not None
        size = download.layer.size - download.layer.size * self._lazy
        download.transfer = self._network.start(self._path(download.layer), size, on_done, download)

    def _drained(self, download: BlobDownload) -> None:
        pull = download.pull
        self._landed(download)
        pull.busy -= 1
        self.drain(pull)
        if not pull.busy:
            self.on_drained(pull)

    def _landed(self, download: BlobDownload) -> None:
        layer = download.layer
        self._hang_up(download)
        del self.downloads[layer.digest]
        if self._store.references(layer.digest):
            self._store.put_blob(layer)
            download.pull.landed += layer.size
            self.on_pulled(layer)
        else:
            self._store.unreserve(layer.size)

    def _cancel(self, download: BlobDownload) -> None:
        if download.transfer is not None:
            self._network.cancel(download.transfer)
            self._hang_up(download)
        del self.downloads[download.layer.digest]
        self._store.unreserve(download.layer.size)
