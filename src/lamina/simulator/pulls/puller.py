"""
A node's image puller, as a kubelet with its default settings works: one image at a time, first come, first served.

    ask --> waiting --its turn--> pulling --last layer--> done --> on_ready is called
               |                     |
               +--cancel--> gone     +--cancel--> goes on; on_ready is not called

An image's missing layers are downloaded bottom first, each at the full rate of the node's link. A runtime that loads
several layers of an image side by side is done at the same time, since the link is the bottleneck. Pulls of one node
never overlap, so a layer that two images share is downloaded by the first and found by the second. Unpacking, the
registry and the time to resolve a manifest cost nothing here.

Called by the kubelet of `lamina.simulator.cluster`. Never decides what is pulled.
"""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from lamina.model.image import Image, Layer
from lamina.simulator.engine import Environment, FairLink, Flow
from lamina.simulator.pulls.store import Store


class Pull:
    """One request for one image."""

    __slots__ = ("asked_at", "began_at", "downloaded", "image", "on_ready")

    def __init__(self, image: Image, asked_at: float, on_ready: Callable[[], object]) -> None:
        """Ask for *image*; *on_ready* wants to know when it is there."""
        self.image = image
        self.asked_at = asked_at
        self.began_at: float | None = None
        """When its turn came."""
        self.downloaded = 0
        """Bytes of the layers that arrived because of this request."""
        self.on_ready: Callable[[], object] | None = on_ready


class Watcher(Protocol):
    """Told by a puller what happens, when it happens."""

    def pull_began(self, pull: Pull, missing: tuple[Layer, ...]) -> None:
        """The turn of *pull* has come; *missing* is what will be downloaded, perhaps nothing."""
        ...

    def layer_pulled(self, layer: Layer) -> None:
        """The layer is on the node now."""
        ...

    def pull_done(self, pull: Pull, *, news: bool) -> None:
        """The image is on the node now; *news* is false when it had come by an earlier pull."""
        ...


class Puller:
    """Brings images to one node."""

    def __init__(self, environment: Environment, store: Store, bandwidth: float, watcher: Watcher) -> None:
        """Fill *store* at *bandwidth* bytes per second."""
        self._environment = environment
        self._store = store
        self._link = FairLink(environment, bandwidth)
        self._watcher = watcher
        self._waiting: deque[Pull] = deque()
        self._current: Pull | None = None
        self._flow: Flow | None = None
        self._left: deque[Layer] = deque()
        self.pulled_bytes = 0
        """Bytes of all layers that arrived."""
        self.pulled_images = 0
        """Images that were not on the node and came by a pull."""

    @property
    def current(self) -> Pull | None:
        """The request whose image is being pulled."""
        return self._current

    @property
    def waiting(self) -> int:
        """How many requests wait for their turn."""
        return len(self._waiting)

    def ask(self, image: Image, on_ready: Callable[[], object]) -> Pull:
        """
        Queue a request.

        *on_ready* is called once, from an event of its own, and never from inside this method. Whether the image has
        come in the meantime is looked at when the request's turn comes: then there is nothing left to download.
        """
        pull = Pull(image, self._environment.now, on_ready)
        self._waiting.append(pull)
        if self._current is None:
            self._begin_next()
        return pull

    def cancel(self, pull: Pull) -> None:
        """Lose interest in a request: it leaves the queue, but once it has begun the runtime carries it through."""
        pull.on_ready = None
        if pull in self._waiting:
            self._waiting.remove(pull)

    def stop(self) -> None:
        """Break off, because the node is gone; a layer that was under way never arrives."""
        self._waiting.clear()
        self._left.clear()
        self._current = None
        if self._flow is not None:
            self._link.cancel(self._flow)
            self._flow = None

    def _begin_next(self) -> None:
        if not self._waiting:
            self._current = None
            return
        pull = self._current = self._waiting.popleft()
        pull.began_at = self._environment.now
        missing = self._store.missing(pull.image)
        self._left.extend(missing)
        self._watcher.pull_began(pull, missing)
        self._fetch_next(pull)

    def _fetch_next(self, pull: Pull) -> None:
        if self._left:
            layer = self._left.popleft()
            self._flow = self._link.start(layer.size, self._arrived, pull, layer)
        else:
            # Nothing left is done by an event as well: whoever asked has to hear of the request before of its end.
            self._flow = self._link.start(0, self._complete, pull)

    def _arrived(self, pull: Pull, layer: Layer) -> None:
        self._store.put_layer(layer)
        pull.downloaded += layer.size
        self.pulled_bytes += layer.size
        self._watcher.layer_pulled(layer)
        if self._left:
            self._fetch_next(pull)
        else:
            self._complete(pull)

    def _complete(self, pull: Pull) -> None:
        news = pull.image.digest not in self._store.images
        self._flow = None
        self._store.put_image(pull.image)
        self.pulled_images += news
        self._watcher.pull_done(pull, news=news)
        # The next in line first: whoever is told now may ask again, and has to wait behind those that were waiting.
        self._begin_next()
        if pull.on_ready is not None:
            pull.on_ready()
