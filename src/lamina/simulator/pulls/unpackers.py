"""
Models of unpacking: the layers of an image bottom up, while layers above them are still being downloaded.

If threads do not compete, a layer's commit time is known as soon as its blob has arrived, and no event is needed. If
they share a disk, each layer is a transfer over the disk's link. In both cases layers are committed in order.
"""

from collections.abc import Callable
from heapq import heapreplace
from typing import Protocol

from lamina.simulator.engine import Environment, Link, Network, Transfer
from lamina.simulator.pulls.page_cache import PageCache
from lamina.simulator.pulls.pull_request import ImagePullRequest
from lamina.simulator.pulls.runtime_spec import RuntimeSpec

UnpackCallback = Callable[[ImagePullRequest], None]
"""
Called when `ImagePullRequest.committed` has more layers.

An unpacker may skip the call if no other pull waits and the last layer is not among them.
"""


class Unpacker(Protocol):
    """Unpacks blobs into chains."""

    def begin(self, pull: ImagePullRequest) -> None:
        """Prepare *pull* for unpacking."""
        ...

    def arrived(self, pull: ImagePullRequest, index: int) -> None:
        """Called when the blob of layer *index* has arrived."""
        ...

    def abandon(self, pull: ImagePullRequest) -> None:
        """Cancel the unpacking of a pull."""
        ...


def unpacker(environment: Environment, network: Network, spec: RuntimeSpec, progress: UnpackCallback) -> Unpacker:
    """Return the simplest unpacker that can model *spec*."""
    if spec.disk_rate:
        return SharedUnpacker(environment, network, spec, progress)
    if spec.unpack_threads > 1:
        return ThreadedUnpacker(environment, spec, progress)
    return SingleUnpacker(environment, spec, progress)


class SingleUnpacker:
    """Unpacker with one thread per image."""

    __slots__ = ("_environment", "_overhead", "_progress", "_rate")

    def __init__(self, environment: Environment, spec: RuntimeSpec, progress: UnpackCallback) -> None:
        """Unpack with the rates and threads of *spec*; report commit times to *progress*."""
        self._environment = environment
        self._rate = spec.unpack_rate
        self._overhead = spec.layer_overhead
        self._progress = progress

    def begin(self, pull: ImagePullRequest) -> None:
        """Do nothing: this unpacker has no state per pull."""

    def arrived(self, pull: ImagePullRequest, index: int) -> None:
        """Compute the commit times of this layer and of those above it that waited for it."""
        there, committed = pull.there, pull.committed
        cursor = pull.first + len(committed)
        if index != cursor:
            there[index] = 0.0
            return
        end = self._environment.now
        if committed and committed[-1] > end:
            end = committed[-1]
        unpacked, rate = pull.runtime_image.unpacked, self._rate
        while True:
            end += self._overhead + unpacked[cursor] / rate if rate else self._overhead
            committed.append(end)
            cursor += 1
            if there.pop(cursor, None) is None:
                break
        if pull.waiters or cursor == len(unpacked):
            self._progress(pull)

    def abandon(self, pull: ImagePullRequest) -> None:
        """Do nothing: this unpacker schedules no events."""

    def _seconds(self, size: int) -> float:
        return self._overhead + size / self._rate if self._rate else self._overhead


class ThreadedUnpacker(SingleUnpacker):
    """Unpacker with several threads per image, which take blobs in the order of their arrival."""

    __slots__ = ("_threads",)

    def __init__(self, environment: Environment, spec: RuntimeSpec, progress: UnpackCallback) -> None:
        """Unpack with the rates and threads of *spec*; report commit times to *progress*."""
        super().__init__(environment, spec, progress)
        self._threads = spec.unpack_threads

    def begin(self, pull: ImagePullRequest) -> None:
        """Mark all threads of the pull as free."""
        pull.threads = [0.0] * self._threads

    def arrived(self, pull: ImagePullRequest, index: int) -> None:
        """Give the blob to the thread that is free first, and compute the commit times known by now."""
        now = self._environment.now
        end = max(now, pull.threads[0]) + self._seconds(pull.runtime_image.unpacked[index])
        heapreplace(pull.threads, end)
        there, committed = pull.there, pull.committed
        there[index] = end
        cursor = pull.first + len(committed)
        if index != cursor:
            return
        last = committed[-1] if committed else now
        while cursor in there:
            last = max(last, there.pop(cursor))
            committed.append(last)
            cursor += 1
        self._progress(pull)


class SharedUnpacker:
    """Unpacker whose threads, of all images, share the rate of the node's disk."""

    __slots__ = ("_cache", "_disk", "_environment", "_idle", "_network", "_overhead", "_progress", "_rate", "_threads")

    def __init__(self, environment: Environment, network: Network, spec: RuntimeSpec, progress: UnpackCallback) -> None:
        """Unpack with the rates and threads of *spec*; report commit times to *progress*."""
        self._environment = environment
        self._network = network
        self._disk = network.link(spec.disk_rate)
        self._rate = spec.unpack_rate
        self._cache = (
            PageCache(environment, self._disk, spec.write_cache, spec.unpack_rate)
            if spec.write_cache and spec.unpack_rate
            else None
        )
        self._overhead = spec.layer_overhead
        self._threads = max(1, spec.unpack_threads)
        self._progress = progress
        # A thread is a link with at most one transfer.
        self._idle: list[Link] = []

    def begin(self, pull: ImagePullRequest) -> None:
        """Start with no unpacked layers."""
        pull.unpacked = set()

    def arrived(self, pull: ImagePullRequest, index: int) -> None:
        """Unpack the layer as soon as a thread is free."""
        pull.there[index] = self._environment.now
        self._start(pull)

    def abandon(self, pull: ImagePullRequest) -> None:
        """Cancel the pull's writes."""
        for work in pull.work.values():
            if isinstance(work, Transfer):
                self._network.cancel(work)
                self._give_back(work.path)
            else:
                self._environment.cancel(work)
        pull.work.clear()

    def _start(self, pull: ImagePullRequest) -> None:
        while len(pull.work) < self._threads:
            index = self._next(pull)
            if index is None:
                return
            pull.work[index] = self._environment.after(self._overhead, self._write, pull, index)

    def _next(self, pull: ImagePullRequest) -> int | None:
        """Return the layer to unpack next: one thread works bottom up, several take layers in order of arrival."""
        if self._threads == 1:
            cursor = pull.first + len(pull.committed)
            return cursor if cursor in pull.there and cursor not in pull.work else None
        begun = pull.work.keys() | pull.unpacked
        return next((index for index in pull.there if index not in begun), None)

    def _write(self, pull: ImagePullRequest, index: int) -> None:
        if self._cache is not None:
            self._cache.writers(1)
        thread = self._idle.pop() if self._idle else self._network.link(self._rate or float("inf"))
        path = (thread, self._disk)
        pull.work[index] = self._network.start(path, pull.runtime_image.unpacked[index], self._written, pull, index)

    def _written(self, pull: ImagePullRequest, index: int) -> None:
        work = pull.work.pop(index)
        assert isinstance(work, Transfer)
        self._give_back(work.path)
        pull.unpacked.add(index)
        before = len(pull.committed)
        cursor = pull.first + before
        while cursor in pull.unpacked:
            del pull.there[cursor]
            pull.committed.append(self._environment.now)
            cursor += 1
        self._start(pull)
        if len(pull.committed) > before:
            self._progress(pull)

    def _give_back(self, path: tuple[Link, ...]) -> None:
        self._idle.append(path[0])
        if self._cache is not None:
            self._cache.writers(-1)
