"""
A node's image puller: the kubelet's queue in front, the runtime behind.

    ask --> queued --its turn--> resolving --> waiting for chains --> downloading, unpacking --> done --> on_ready
               ^                                  of other pulls          |
               +-----------back-off------------ failed <------------------+  no room; or too many pulls at its turn

Pulls have their turn first come, first served, one at a time or several (`RuntimeSpec.parallel_pulls`). A pull that is
cancelled while it is queued or rests is gone; once it has begun the runtime carries it through.

A runtime looks from the bottom which layers are unpacked. Those that another pull is just unpacking it waits for; from the
first that nobody has, everything is its own: it downloads the blobs that are not there and unpacks bottom up while later
ones arrive. So no chain is ever unpacked twice at once, and no blob downloaded twice at once. Where images are pulled one
at a time, nobody is ever waited for, and a pull is a single download (`streaming`) unless the disk has no room for all of it.

A pull that failed for lack of room while nothing else was under way fails again until an image comes, goes or falls out of
use. A kubelet tries all the same; here such attempts are left out, so that a run in which nothing else happens has an end.

Called by the kubelet of `lamina.simulator.cluster`. Never decides what is pulled.
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
    """Brings images to one node."""

    def __init__(
        self,
        environment: Environment,
        network: Network,
        store: NodeImageStore,
        spec: RuntimeSpec,
        source: LayerSource,
        watcher: PullWatcher,
    ) -> None:
        """Fill *store* from *source*, and keep it from filling up if it has a disk."""
        self._environment = environment
        self._store = store
        self._source = source
        self._watcher = watcher
        self._resolve = spec.resolve
        self._most = spec.parallel_pulls
        self._starts = TokenBucket(spec.pull_qps, spec.pull_burst)
        self._fetcher = LayerDownloader(environment, network, store, spec, source)
        self._unpacker = unpacker(environment, network, spec, self._progressed)
        self._fetcher.on_there = self._unpacker.arrived
        self._fetcher.on_pulled = self._layer_pulled
        self._fetcher.on_full = self._full
        self._fetcher.on_drained = self._drained
        self._streamer = WholeImageDownloader(environment, network, store, spec, source) if is_alone(spec) else None
        if self._streamer is not None:
            self._streamer.on_pulled = self._layers_pulled
            self._streamer.on_there = self._streamed
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
        # Images for which there was no room although nothing else was under way, and the store's edition at that time.
        self._too_large: dict[Digest, int] = {}
        # Which pull is going to commit a chain.
        self._unpacking: dict[ChainId, ImagePullRequest] = {}
        self._landed = 0
        self.pulled_images = 0
        """Images that were not on the node and came by a pull."""
        self._serve()

    @property
    def pulled_bytes(self) -> int:
        """Bytes of all layers that arrived."""
        return self._landed + sum([layer.size for pull in self._active for layer in pull.arrived])

    @property
    def current(self) -> ImagePullRequest | None:
        """The request that is being worked on; of several, the first."""
        return next(iter(self._active), None)

    @property
    def waiting(self) -> int:
        """How many requests wait for their turn."""
        return len(self._waiting)

    def ask(self, image: Image, on_ready: Callable[[*Arguments], object], *args: *Arguments) -> ImagePullRequest:
        """
        Queue a request.

        *on_ready* is called once with *args*, from an event of its own, and never from inside this method. Whether the image has
        come in the meantime is looked at when the request's turn comes: then there is nothing left to download.
        """
        pull = ImagePullRequest(image, self._store.recipe(image), self._environment.now, on_ready, args)
        if not self._serving:
            self._serve()
        self._queue(pull)
        return pull

    def cancel(self, pull: ImagePullRequest) -> None:
        """Lose interest in a request: it leaves the queue, but once it has begun the runtime carries it through."""
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
        Break off, because the node is gone; what was under way never arrives.

        If the node comes back, it has its images and nothing of what it was pulling, and may be asked again.
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
            self._let_go(pull)
        self._fetcher.stop()
        for pull in self._draining:
            self._store.drop(pull.recipe)
        self._draining.clear()
        if self._collector is not None:
            self._collector.stop()
        if self._peers:
            self._store.board = None
            self._source.withdraw(self._store.blobs)
        self._serving = False

    # -- turns -------------------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        self._serving = True
        if self._collector is not None:
            self._collector.start()
        if self._peers:
            self._store.board = self._source
            self._source.offer(self._store.blobs)

    def _queue(self, pull: ImagePullRequest) -> None:
        pull.queued = True
        self._waiting.append(pull)
        self._begin_next()

    def _begin_next(self) -> None:
        """Begin what may begin; one that fails at once makes room for the next, so this is a loop and never nested."""
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
        self._store.use(pull.recipe)
        if self._streamer is None:
            pull.begin()
            missing, step = self._missing(pull), self._walk
        else:
            missing, step = self._streamer.plan(pull).missing, self._stream
        self._watcher.pull_began(pull, missing)
        if self._resolve:
            pull.timer = self._environment.after(self._resolve, step, pull)
        else:
            step(pull)

    def _missing(self, pull: ImagePullRequest) -> tuple[Layer, ...]:
        """List what a pull will download if those before it succeed."""
        store, coming, unpacking = self._store, self._fetcher.fetches, self._unpacking
        first = store.prefix(pull.recipe)
        if unpacking:
            chains = pull.recipe.chains
            while first < len(chains) and (chains[first] in unpacking or chains[first] in store.chains):
                first += 1
        blobs = store.blobs
        wanted = {layer.digest: layer for layer in pull.recipe.layers[first:]}
        return tuple([one for digest, one in wanted.items() if digest not in blobs and digest not in coming])

    def _stream(self, pull: ImagePullRequest) -> None:
        """Do all of a pull at once; layer by layer if there is no room for it, so that it fails where it would."""
        plan, now = pull.plan, self._environment.now
        assert plan is not None and self._streamer is not None, "a stream has a plan"
        pull.timer, pull.fetched_at = None, now
        if plan.first == len(pull.recipe.chains):
            # By an event as well: whoever asked has to hear of the request before of its end.
            pull.timer = self._environment.after(0.0, self._complete, pull)
        elif not self._streamer.begin(pull, plan):
            pull.begin()
            self._walk(pull)

    def _streamed(self, pull: ImagePullRequest) -> None:
        pull.timer = self._environment.at(max(self._environment.now, pull.committed[-1]), self._complete, pull)

    # -- from the bottom up ------------------------------------------------------------------------------------------

    def _walk(self, pull: ImagePullRequest) -> None:
        """Pass over chains that are there, wait for those of others, and begin with the first that nobody has."""
        pull.timer = None
        chains, there, now = pull.recipe.chains, self._store.chains, self._environment.now
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
        pull.fetched_at = now
        if index == len(chains):
            # By an event as well: whoever asked has to hear of the request before of its end.
            pull.timer = self._environment.after(0.0, self._complete, pull)
            return
        for chain in chains[index:]:
            self._unpacking[chain] = pull
        self._unpacker.begin(pull)
        self._fetcher.feed(pull)

    def _wait_for(self, owner: ImagePullRequest, index: int, pull: ImagePullRequest) -> None:
        """Let *pull* go on when *owner* has committed this layer and all above it that both have."""
        chains, unpacking = pull.recipe.chains, self._unpacking
        while index + 1 < len(chains) and unpacking.get(chains[index + 1]) is owner:
            index += 1
        # A chain is at the same height in all images that have it.
        height = index - owner.first
        if height < len(owner.committed):
            pull.timer = self._environment.at(owner.committed[height], self._walk, pull)
        else:
            owner.waiters.setdefault(index, []).append(pull)

    def _settle(self, pull: ImagePullRequest) -> int:
        """Put the chains that a pull has committed by now into the store; return how many."""
        committed, now = pull.committed, self._environment.now
        done = len(committed) if committed and committed[-1] <= now else bisect_right(committed, now)
        first, last = pull.first, pull.first + done
        chains, unpacked = pull.recipe.chains[first:last], pull.recipe.unpacked[first:last]
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
        if height == len(pull.recipe.chains):
            pull.timer = self._environment.at(max(now, committed[-1]), self._complete, pull)

    def _complete(self, pull: ImagePullRequest) -> None:
        recipe, store, now, args = pull.recipe, self._store, self._environment.now, pull.args
        pull.timer, pull.done_at = None, now
        del self._active[pull]
        if pull.plan is not None:
            first = pull.first
            store.put_chains(recipe.chains[first:], recipe.unpacked[first:])
            news = store.finish(recipe, now)
            pull.retire()
        else:
            self._settle(pull)
            if pull.tails:
                news = store.put_image(recipe, now)
                self._draining[pull] = None
                self._fetcher.drain(pull)
            else:
                news = store.finish(recipe, now)
                pull.retire()
        self.pulled_images += news
        self._watcher.pull_done(pull, news=news)
        if self._parked:
            self._unpark()
        # The next in line first: whoever is told now may ask again, and has to wait behind those that were waiting.
        self._begin_next()
        if pull.on_ready is not None:
            pull.on_ready(*args)

    def _drained(self, pull: ImagePullRequest) -> None:
        del self._draining[pull]
        self._store.drop(pull.recipe)
        pull.retire()

    # -- when it goes wrong ------------------------------------------------------------------------------------------

    def _full(self, pull: ImagePullRequest) -> None:
        del self._active[pull]
        self._clear_timer(pull)
        self._let_go(pull)
        if not self._active and not self._fetcher.fetches:
            # Nobody was in its way.
            self._too_large[pull.image.digest] = self._store.edition
        self._rest(pull, NO_SPACE)
        if self._collector is not None:
            self._collector.starved()
        self._fetcher.deal()
        self._begin_next()

    def _let_go(self, pull: ImagePullRequest) -> None:
        """Give up what a pull has claimed; what it had unpacked stays if another pull counts on it."""
        recipe, store, plan = pull.recipe, self._store, pull.plan
        if plan is not None and self._streamer is not None:
            if pull.next:
                self._settle(pull)
                self._streamer.abandon(pull, plan)
            store.drop(recipe)
            return
        self._fetcher.abandon(pull)
        self._unpacker.abandon(pull)
        self._settle(pull)
        for index in range(pull.first, len(recipe.chains)):
            chain = recipe.chains[index]
            if self._unpacking.get(chain) is not pull:
                break
            del self._unpacking[chain]
            if index < pull.next:
                store.unreserve(recipe.unpacked[index])
        store.drop(recipe)
        self._fetcher.sweep()
        for waiters in pull.waiters.values():
            for waiter in waiters:
                waiter.timer = self._environment.after(0.0, self._walk, waiter)
        # Whoever is just giving it slots finds that it wants no more.
        pull.next = len(recipe.layers)

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
        # Somebody else's pull has brought it, and a kubelet looks before it asks.
        pull.began_at = pull.fetched_at = pull.done_at = self._environment.now
        self._watcher.pull_done(pull, news=False)
        if pull.on_ready is not None:
            pull.on_ready(*pull.args)

    def _is_too_large(self, pull: ImagePullRequest) -> bool:
        return self._too_large.get(pull.image.digest) == self._store.edition

    def _relieved(self) -> None:
        if self._parked:
            self._unpark()
        # Asked here, because this is called whenever a pod ends.
        if self._collector is not None and self._collector.pressure:
            self._collector.relieved()

    def _unpark(self) -> None:
        """Let those try again, when their back-off comes round, for whom something has changed."""
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
