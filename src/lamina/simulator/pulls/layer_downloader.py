"""
Downloads of one node: which blob is under way, who waits for it, and how many there may be at once.

    wanted --there--> unpacked
       |  --under way for another pull--> waits for it
       +----a slot is free--> under way --> there

A pull takes its layers bottom first, a slot for each; also a layer that only waits for another pull's download has one,
because a runtime takes the slot before the lock. With slots of the node, pulls take turns. Room is promised when a layer
has its turn. Lazy pulls first download the head of every layer; the rest follows when the pull is done.
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
    """Downloads blobs for the pulls of one node."""

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
        "fetches",
        "on_drained",
        "on_full",
        "on_pulled",
        "on_there",
    )

    on_there: Callable[[ImagePullRequest, int], None]
    """The blob of a pull's layer is there, or as much of it as has to be."""
    on_pulled: Callable[[Layer], None]
    """A blob is there with all its bytes."""
    on_full: Callable[[ImagePullRequest], None]
    """There is no room for a pull's next layer."""
    on_drained: Callable[[ImagePullRequest], None]
    """What followed a lazy start is there."""

    def __init__(
        self, environment: Environment, network: Network, store: NodeImageStore, spec: RuntimeSpec, source: LayerSource
    ) -> None:
        """Download from *source* into *store*. Whoever makes it sets the four callbacks."""
        self._environment = environment
        self._network = network
        self._store = store
        self._source = source
        self._slots = spec.slots
        self._per_node = spec.slots_per == "node"
        self._lazy = spec.lazy
        self._connection_rate = spec.connection_rate
        # A connection is a link that only one download is on.
        self._connections: list[Link] = []
        self.fetches: dict[Digest, BlobDownload] = {}
        """The blobs that are under way."""
        # Pulls that have layers left when the node has no slot.
        self._queue: deque[ImagePullRequest] = deque()
        self._busy = 0

    def feed(self, pull: ImagePullRequest) -> None:
        """Begin with what a pull has to download, as far as there are slots."""
        if self._per_node:
            self._queue.append(pull)
            self.deal()
        else:
            self._fill(pull)

    def deal(self) -> None:
        """Give the node's free slots to the pulls that wait for one, in turns."""
        queue, slots = self._queue, self._slots
        while queue and (self._busy < slots or not slots):
            pull = queue.popleft()
            self._step(pull)
            if pull.next < len(pull.recipe.layers):
                queue.append(pull)

    def abandon(self, pull: ImagePullRequest) -> None:
        """Break off what only this pull needs; what others wait for goes on for them."""
        for fetch in tuple(self.fetches.values()):
            others = [waiter for waiter in fetch.waiters if waiter[0] is not pull]
            self._busy -= len(fetch.waiters) - len(others)
            fetch.waiters = others
            if fetch.pull is not pull:
                continue
            if others:
                fetch.pull = others[0][0]
            elif fetch.headed and self._store.references(fetch.layer.digest) > 1:
                # Another lazy pull counts on the head that is there; the rest follows all the same.
                self._begin_tail(fetch, self._landed)
            else:
                self._cancel(fetch)
        pull.busy = 0
        if pull in self._queue:
            self._queue.remove(pull)

    def sweep(self) -> None:
        """Break off what followed a lazy start for pulls that have all failed since."""
        for fetch in tuple(self.fetches.values()):
            if fetch.headed and not self._store.references(fetch.layer.digest):
                self._cancel(fetch)

    def drain(self, pull: ImagePullRequest) -> None:
        """Download what is left after a lazy start, with as many slots as an image has."""
        while pull.tails and (pull.busy < self._slots or not self._slots):
            pull.busy += 1
            self._begin_tail(pull.tails.pop(0), self._drained)

    def stop(self) -> None:
        """Break everything off."""
        for fetch in tuple(self.fetches.values()):
            self._cancel(fetch)
        self._queue.clear()
        self._busy = 0

    # ----------------------------------------------------------------------------------------------------------------

    def _fill(self, pull: ImagePullRequest) -> None:
        # A pull that fails at a step wants no more of them.
        slots, total = self._slots, len(pull.recipe.layers)
        while pull.next < total and (pull.busy < slots or not slots):
            self._step(pull)

    def _step(self, pull: ImagePullRequest) -> None:
        """Give the pull's next layer its turn."""
        index, recipe, store = pull.next, pull.recipe, self._store
        layer = recipe.layers[index]
        digest = layer.digest
        here = digest in store.blobs
        fetch = None if here else self.fetches.get(digest)
        room = recipe.unpacked[index] if here or fetch else recipe.unpacked[index] + layer.size
        if not store.reserve(room):
            self.on_full(pull)
            return
        pull.next = index + 1
        if here or (fetch is not None and fetch.headed):
            self.on_there(pull, index)
            return
        pull.busy += 1
        self._busy += 1
        if fetch is not None:
            fetch.waiters.append((pull, index))
            return
        fetch = self.fetches[digest] = BlobDownload(layer, pull, index)
        size = layer.size if self._lazy is None else layer.size * self._lazy
        fetch.transfer = self._network.start(self._path(layer), size, self._arrived, fetch)

    def _path(self, layer: Layer) -> tuple[Link, ...]:
        path = self._source.path(layer)
        if not self._connection_rate:
            return path
        idle = self._connections
        return (*path, idle.pop() if idle else self._network.link(self._connection_rate))

    def _hang_up(self, fetch: BlobDownload) -> None:
        """Let another download have the connection."""
        if self._connection_rate and fetch.transfer is not None:
            self._connections.append(fetch.transfer.path[-1])
        # A transfer knows what it is for: without this, only the garbage collector would find that both are done.
        fetch.transfer = None

    def _arrived(self, fetch: BlobDownload) -> None:
        if self._lazy is None:
            self._landed(fetch)
        else:
            self._hang_up(fetch)
            fetch.headed = True
            fetch.pull.tails.append(fetch)
        now = self._environment.now
        waiters, fetch.waiters = fetch.waiters, []
        for pull, index in waiters:
            pull.busy -= 1
            self._busy -= 1
            pull.fetched_at = now
            self.on_there(pull, index)
        if self._per_node:
            self.deal()
        else:
            for pull, _ in waiters:
                self._fill(pull)

    def _begin_tail(self, fetch: BlobDownload, on_done: Callable[[BlobDownload], None]) -> None:
        assert self._lazy is not None
        size = fetch.layer.size - fetch.layer.size * self._lazy
        fetch.transfer = self._network.start(self._path(fetch.layer), size, on_done, fetch)

    def _drained(self, fetch: BlobDownload) -> None:
        pull = fetch.pull
        self._landed(fetch)
        pull.busy -= 1
        self.drain(pull)
        if not pull.busy:
            self.on_drained(pull)

    def _landed(self, fetch: BlobDownload) -> None:
        layer = fetch.layer
        self._hang_up(fetch)
        del self.fetches[layer.digest]
        if self._store.references(layer.digest):
            self._store.put_blob(layer)
            fetch.pull.landed += layer.size
            self.on_pulled(layer)
        else:
            self._store.unreserve(layer.size)

    def _cancel(self, fetch: BlobDownload) -> None:
        if fetch.transfer is not None:
            self._network.cancel(fetch.transfer)
            self._hang_up(fetch)
        del self.fetches[fetch.layer.digest]
        self._store.unreserve(fetch.layer.size)
