"""
Image puller of a node: the kubelet's queue of pulls, and the runtime that executes them.

    request --> queued --its turn--> resolving --> waiting for chains --> downloading, unpacking --> done --> on_ready
                   ^                                  of other pulls          |
                   +-----------back-off------------ failed <------------------+  no space; or pull QPS exceeded

Pulls start in FIFO order, one or several at once (`RuntimeSpec.parallel_pulls`). A pull that is cancelled while it is
queued or in back-off is dropped. Once it has started, the runtime completes it.

The runtime checks the layers from the bottom. It skips unpacked layers and waits for layers that another pull is
unpacking. From the first other layer on, it downloads the missing blobs and unpacks bottom up while later blobs arrive.
So no chain is unpacked twice at once, and no blob is downloaded twice at once. If a node pulls one image at a time,
pulls never wait for each other. Such a pull is modelled as one download (`whole_image_download`), unless the disk has
no space for all of it.

A pull that failed for lack of space while no other pull was running fails again until an image arrives, is removed or
becomes unused. A real kubelet retries anyway. The simulator skips these retries, so that a run can end.

The kubelet of `lamina.simulator.cluster` calls the puller and decides what is pulled.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, TypeVarTuple

from lamina.model.digest import Digest
from lamina.model.image import Image, Layer
from lamina.model.token_bucket import TokenBucket
from lamina.simulator.engine import Environment, Network
from lamina.simulator.pulls.image_gc import NodeImageGC
from lamina.simulator.pulls.image_store import NodeImageStore
from lamina.simulator.pulls.layer_downloader import LayerDownloader
from lamina.simulator.pulls.layer_source import LayerSource
from lamina.simulator.pulls.pull_backoff import next_backoff
from lamina.simulator.pulls.pull_request import ImagePullRequest, PullWatcher
from lamina.simulator.pulls.runtime_image import ChainId
from lamina.simulator.pulls.runtime_spec import RuntimeSpec
from lamina.simulator.pulls.unpackers import unpacker
from lamina.simulator.pulls.whole_image_download import WholeImageDownloader, is_alone

Arguments = TypeVarTuple("Arguments")

NO_SPACE: Final = "no space left on device"
TOO_MANY: Final = "pull QPS exceeded"


class Puller:
    """Pulls images to one node."""

    def __init__(
        self,
        environment: Environment,
        network: Network,
        store: NodeImageStore,
        spec: RuntimeSpec,
        source: LayerSource,
        watcher: PullWatcher,
    ) -> None:
        """Pull from *source* into *store*; run image garbage collection if the store has a disk."""
        self._environment = environment
        self._store = store
        self._source = source
        self._watcher = watcher
        self._resolve = spec.resolve
        self._most = spec.parallel_pulls
        self._starts = TokenBucket(spec.pull_qps, spec.pull_burst)
        self._downloader = LayerDownloader(environment, network, store, spec, source)
        self._unpacker = unpacker(environment, network, spec, self._progressed)
        self._downloader.on_there = self._unpacker.arrived
        self._downloader.on_pulled = self._layer_pulled
        self._downloader.on_full = self._full
        self._downloader.on_drained = self._drained
        self._whole_image = WholeImageDownloader(environment, network, store, spec, source) if is_alone(spec) else None
        if self._whole_image is not None:
            self._whole_image.on_pulled = self._layers_pulled
            self._whole_image.on_there = self._whole_image_arrived
        self._collector = (
            None if store.disk is None else NodeImageGC(environment, store, store.disk, source.name, watcher)
        )
        store.on_relief = self._relieved
        self._serving = False
        self._peers = spec.peers
        self._waiting: deque[ImagePullRequest] = deque()
        self._beginning = False
        self._active: dict[ImagePullRequest, None] = {}
        self._resting: dict[ImagePullRequest, None] = {}
        self._parked: dict[ImagePullRequest, None] = {}
        self._draining: dict[ImagePullRequest, None] = {}
        # Images without enough space although no other pull was running, and the store's edition at that time.
        self._too_large: dict[Digest, int] = {}
        # The pull that will commit each chain.
        self._unpacking: dict[ChainId, ImagePullRequest] = {}
        self._landed = 0
        self.pulled_images = 0
        """Number of pulls that brought an image the node did not hold."""
        self._serve()

    @property
    def pulled_bytes(self) -> int:
        """Bytes of all layers that have arrived."""
        return self._landed + sum([layer.size for pull in self._active for layer in pull.arrived])

    @property
    def current(self) -> ImagePullRequest | None:
        """The running pull that started first; None if there is none."""
        return next(iter(self._active), None)

    @property
    def waiting(self) -> int:
        """Number of queued pulls."""
        return len(self._waiting)

    def request(self, image: Image, on_ready: Callable[[*Arguments], object], *args: *Arguments) -> ImagePullRequest:
        """
        Queue a pull of *image* and return it.

        The puller calls *on_ready* with *args* once, by an event and never from inside this method. If the image
        arrives while the pull is queued, the pull has nothing to download when it starts.
        """
        pull = ImagePullRequest(image, self._store.runtime_image(image), self._environment.now, on_ready, args)
        if not self._serving:
            self._serve()
        self._queue(pull)
        return pull

    def cancel(self, pull: ImagePullRequest) -> None:
        """Cancel a pull that is queued or in back-off; a running pull completes, but without calling *on_ready*."""
        pull.on_ready = None
        if pull.queued:
            self._waiting.remove(pull)
            pull.queued = False
        elif pull in self._resting:
            del self._resting[pull]
            self._parked.pop(pull, None)
            self._clear_timer(pull)

    def stop(self) -> None:
        """
        Cancel all pulls, because the node is gone.

        If the node comes back, it still has its images, but nothing of the cancelled pulls. `request` works again then.
        """
        active = tuple(self._active)
        for pull in active:
            if pull.plan is None:
                pull.waiters.clear()
        for pull in (*active, *self._resting):
            self._clear_timer(pull)
        for pull in self._waiting:
            pull.queued = False
        for pending in (self._waiting, self._active, self._resting, self._parked):
            pending.clear()
        for pull in active:
            self._release(pull)
        self._downloader.stop()
        for pull in self._draining:
            self._store.drop(pull.runtime_image)
        self._draining.clear()
        if self._collector is not None:
            self._collector.stop()
        if self._peers:
            self._store.advertiser = None
            self._source.withdraw(self._store.blobs)
        self._serving = False

    # -- queue -------------------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        self._serving = True
        if self._collector is not None:
            self._collector.start()
        if self._peers:
            self._store.advertiser = self._source
            self._source.offer(self._store.blobs)

    def _queue(self, pull: ImagePullRequest) -> None:
        pull.queued = True
        self._waiting.append(pull)
        self._begin_next()

    def _begin_next(self) -> None:
        """Start queued pulls up to the limit. A pull that fails at once calls this again; nested calls do nothing."""
        if self._beginning:
            return
        self._beginning = True
        waiting, active, most = self._waiting, self._active, self._most
        while waiting and (len(active) < most or not most):
            pull = waiting.popleft()
            pull.queued = False
            pull.began_at = self._environment.now
            if self._starts.take(pull.began_at):
                self._begin(pull)
            else:
                self._rest(pull, TOO_MANY)
        self._beginning = False

    def _begin(self, pull: ImagePullRequest) -> None:
        self._active[pull] = None
        self._store.use(pull.runtime_image)
        if self._whole_image is None:
            pull.begin()
            missing, step = self._missing(pull), self._walk
        else:
            missing, step = self._whole_image.plan(pull).missing, self._download_whole_image
        self._watcher.pull_began(pull, missing)
        if self._resolve:
            pull.timer = self._environment.after(self._resolve, step, pull)
        else:
            step(pull)

    def _missing(self, pull: ImagePullRequest) -> tuple[Layer, ...]:
        """Return the layers that *pull* will download if all pulls before it succeed."""
        store, coming, unpacking = self._store, self._downloader.downloads, self._unpacking
        first = store.prefix(pull.runtime_image)
        if unpacking:
            chains = pull.runtime_image.chains
            while first < len(chains) and (chains[first] in unpacking or chains[first] in store.chains):
                first += 1
        blobs = store.blobs
        wanted = {layer.digest: layer for layer in pull.runtime_image.layers[first:]}
        return tuple([one for digest, one in wanted.items() if digest not in blobs and digest not in coming])

    def _download_whole_image(self, pull: ImagePullRequest) -> None:
        """Download the whole image at once; layer by layer if space is short, so that it fails at the right layer."""
        plan, now = pull.plan, self._environment.now
        assert plan is not None and self._whole_image is not None, "a whole-image download has a plan"
        pull.timer, pull.downloaded_at = None, now
        if plan.first == len(pull.runtime_image.chains):
            # By an event: `request` must return the pull before it ends.
            pull.timer = self._environment.after(0.0, self._complete, pull)
        elif not self._whole_image.begin(pull, plan):
            pull.begin()
            self._walk(pull)

    def _whole_image_arrived(self, pull: ImagePullRequest) -> None:
        pull.timer = self._environment.at(max(self._environment.now, pull.committed[-1]), self._complete, pull)

    # -- layers, bottom up -------------------------------------------------------------------------------------------

    def _walk(self, pull: ImagePullRequest) -> None:
        """Skip chains the node holds, wait for chains of other pulls, and start with the first other chain."""
        pull.timer = None
        chains, there, now = pull.runtime_image.chains, self._store.chains, self._environment.now
        index = pull.first
        while index < len(chains):
            if chains[index] in there:
                index += 1
                continue
            owner = self._unpacking.get(chains[index])
            if owner is None:
                break
            if not self._settle(owner):
                self._wait_for(owner, index, pull)
                return
        pull.first = pull.next = index
        pull.downloaded_at = now
        if index == len(chains):
            # By an event: `request` must return the pull before it ends.
            pull.timer = self._environment.after(0.0, self._complete, pull)
            return
        for chain in chains[index:]:
            self._unpacking[chain] = pull
        self._unpacker.begin(pull)
        self._downloader.feed(pull)

    def _wait_for(self, owner: ImagePullRequest, index: int, pull: ImagePullRequest) -> None:
        """Resume *pull* when *owner* has committed this layer and all layers above it that both images share."""
        chains, unpacking = pull.runtime_image.chains, self._unpacking
        while index + 1 < len(chains) and unpacking.get(chains[index + 1]) is owner:
            index += 1
        # A chain has the same index in all images that contain it.
        height = index - owner.first
        if height < len(owner.committed):
            pull.timer = self._environment.at(owner.committed[height], self._walk, pull)
        else:
            owner.waiters.setdefault(index, []).append(pull)

    def _settle(self, pull: ImagePullRequest) -> int:
        """Add the chains that a pull has committed until now to the store; return how many."""
        committed, now = pull.committed, self._environment.now
        done = len(committed) if committed and committed[-1] <= now else bisect_right(committed, now)
        first, last = pull.first, pull.first + done
        chains, unpacked = pull.runtime_image.chains[first:last], pull.runtime_image.unpacked[first:last]
        if pull.plan is None:
            for chain in chains:
                del self._unpacking[chain]
        self._store.put_chains(chains, unpacked)
        del committed[:done]
        pull.first = last
        return done

    def _layer_pulled(self, layer: Layer) -> None:
        self._landed += layer.size
        self._watcher.layer_pulled(layer)

    def _layers_pulled(self, layers: Sequence[Layer], size: int) -> None:
        self._landed += size
        say = self._watcher.layer_pulled
        for layer in layers:
            say(layer)

    def _progressed(self, pull: ImagePullRequest) -> None:
        committed, first, now = pull.committed, pull.first, self._environment.now
        height = first + len(committed)
        if pull.waiters:
            for index in [one for one in pull.waiters if one < height]:
                for waiter in pull.waiters.pop(index):
                    at = max(now, committed[index - first])
                    waiter.timer = self._environment.at(at, self._walk, waiter)
        if height == len(pull.runtime_image.chains):
            pull.timer = self._environment.at(max(now, committed[-1]), self._complete, pull)

    def _complete(self, pull: ImagePullRequest) -> None:
        runtime_image, store, now, args = pull.runtime_image, self._store, self._environment.now, pull.args
        pull.timer, pull.done_at = None, now
        del self._active[pull]
        if pull.plan is not None:
            first = pull.first
            store.put_chains(runtime_image.chains[first:], runtime_image.unpacked[first:])
            news = store.finish(runtime_image, now)
            pull.retire()
        else:
            self._settle(pull)
            if pull.tails:
                news = store.put_image(runtime_image, now)
                self._draining[pull] = None
                self._downloader.drain(pull)
            else:
                news = store.finish(runtime_image, now)
                pull.retire()
        self.pulled_images += news
        self._watcher.pull_done(pull, news=news)
        if self._parked:
            self._unpark()
        # Before *on_ready*, which may queue another pull: pulls that are queued already go first.
        self._begin_next()
        if pull.on_ready is not None:
            pull.on_ready(*args)

    def _drained(self, pull: ImagePullRequest) -> None:
        del self._draining[pull]
        self._store.drop(pull.runtime_image)
        pull.retire()

    # -- failures ----------------------------------------------------------------------------------------------------

    def _full(self, pull: ImagePullRequest) -> None:
        del self._active[pull]
        self._clear_timer(pull)
        self._release(pull)
        if not self._active and not self._downloader.downloads:
            # No other pull used space, so a retry would fail as well.
            self._too_large[pull.image.digest] = self._store.edition
        self._rest(pull, NO_SPACE)
        if self._collector is not None:
            self._collector.starved()
        self._downloader.deal()
        self._begin_next()

    def _release(self, pull: ImagePullRequest) -> None:
        """Release a failed pull's references and reservations; chains that other pulls reference stay."""
        runtime_image, store, plan = pull.runtime_image, self._store, pull.plan
        if plan is not None and self._whole_image is not None:
            if pull.next:
                self._settle(pull)
                self._whole_image.abandon(pull, plan)
            store.drop(runtime_image)
            return
        self._downloader.abandon(pull)
        self._unpacker.abandon(pull)
        self._settle(pull)
        for index in range(pull.first, len(runtime_image.chains)):
            chain = runtime_image.chains[index]
            if self._unpacking.get(chain) is not pull:
                break
            del self._unpacking[chain]
            if index < pull.next:
                store.unreserve(runtime_image.unpacked[index])
        store.drop(runtime_image)
        self._downloader.sweep()
        for waiters in pull.waiters.values():
            for waiter in waiters:
                waiter.timer = self._environment.after(0.0, self._walk, waiter)
        # Ends the loop that may be giving slots to this pull.
        pull.next = len(runtime_image.layers)

    def _rest(self, pull: ImagePullRequest, reason: str) -> None:
        pull.failures += 1
        pull.backoff = next_backoff(pull.backoff)
        pull.retry_at = self._environment.now + pull.backoff
        if pull.on_ready is not None:
            self._resting[pull] = None
            pull.timer = self._environment.at(pull.retry_at, self._retry, pull)
        self._watcher.pull_failed(pull, reason, pull.retry_at)

    def _retry(self, pull: ImagePullRequest) -> None:
        pull.timer = None
        if self._is_too_large(pull):
            self._parked[pull] = None
            return
        del self._resting[pull]
        if not self._store.holds(pull.image.digest):
            self._queue(pull)
            return
        # Another pull has brought the image; the kubelet checks this before it pulls.
        pull.began_at = pull.downloaded_at = pull.done_at = self._environment.now
        self._watcher.pull_done(pull, news=False)
        if pull.on_ready is not None:
            pull.on_ready(*pull.args)

    def _is_too_large(self, pull: ImagePullRequest) -> bool:
        return self._too_large.get(pull.image.digest) == self._store.edition

    def _relieved(self) -> None:
        if self._parked:
            self._unpark()
        # Checked here to save a call: the store calls this method whenever a pod ends.
        if self._collector is not None and self._collector.pressure:
            self._collector.relieved()

    def _unpark(self) -> None:
        """Schedule the next retry of parked pulls for which the store has changed."""
        now = self._environment.now
        for pull in tuple(self._parked):
            if not self._is_too_large(pull):
                del self._parked[pull]
                while pull.retry_at <= now:
                    pull.backoff = next_backoff(pull.backoff)
                    pull.retry_at += pull.backoff
                pull.timer = self._environment.at(pull.retry_at, self._retry, pull)

    def _clear_timer(self, pull: ImagePullRequest) -> None:
        if pull.timer is not None:
            self._environment.cancel(pull.timer)
            pull.timer = None
