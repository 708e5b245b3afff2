"""
Model of a pull that has the node's link to itself, as a single download of all its missing layers.

If a node pulls one image at a time, the download slots share the pull's rate equally. So a layer is complete when the
pull has moved a fixed number of bytes (`pull_plan`), whatever its rate. These numbers are the marks of one transfer.
When its last byte has arrived, the network reports the time of each mark, and the commit times follow. A pull costs
three events, whatever its number of layers.

On a full link, max-min fairness then applies per pull and not per layer. The puller uses `layer_downloader` where this
model does not apply.
"""

from collections.abc import Callable, Sequence

from lamina.model.image import Layer
from lamina.simulator.engine import Environment, Network
from lamina.simulator.pulls.image_store import NodeImageStore
from lamina.simulator.pulls.layer_source import LayerSource
from lamina.simulator.pulls.pull_plan import PullPlan
from lamina.simulator.pulls.pull_request import ImagePullRequest
from lamina.simulator.pulls.runtime_spec import RuntimeSpec


def is_alone(spec: RuntimeSpec) -> bool:
    """Return whether pulls on this runtime never overlap: each has the node's link and one thread to itself."""
    alone = spec.parallel_pulls == 1 and spec.unpack_threads <= 1 and not spec.disk_rate
    return alone and spec.lazy is None and not spec.peers and not spec.connection_rate


class WholeImageDownloader:
    """Downloads the images of one node, one at a time."""

    __slots__ = (
        "_environment",
        "_network",
        "_overhead",
        "_rate",
        "_slots",
        "_source",
        "_store",
        "on_pulled",
        "on_there",
    )

    on_pulled: Callable[[Sequence[Layer], int], None]
    """Called with the downloaded blobs and their bytes, when a pull completes or is cancelled."""
    on_there: Callable[[ImagePullRequest], None]
    """Called when all blobs of a pull are held and its commit times are known."""

    def __init__(
        self, environment: Environment, network: Network, store: NodeImageStore, spec: RuntimeSpec, source: LayerSource
    ) -> None:
        """Download from *source* into *store*. The caller must set the two callbacks."""
        self._environment = environment
        self._network = network
        self._store = store
        self._source = source
        self._slots = spec.slots
        self._rate = spec.unpack_rate
        self._overhead = spec.layer_overhead

    def plan(self, pull: ImagePullRequest) -> PullPlan:
        """Return the plan of a pull. It stays valid, because no other pull runs at the same time."""
        store, runtime_image = self._store, pull.runtime_image
        plan = pull.plan = runtime_image.plan(store.prefix(runtime_image), store.blobs, self._slots)
        pull.first, pull.next, pull.committed = plan.first, 0, []
        return plan

    def begin(self, pull: ImagePullRequest, plan: PullPlan) -> bool:
        """Start the download; do nothing and return False if there is no space for the whole image."""
        if not self._store.reserve(plan.room):
            return False
        pull.next = len(pull.runtime_image.layers)
        if plan.missing:
            path = self._source.path(plan.missing[0])
            pull.transfer = self._network.start(path, plan.size, self._arrived, pull, plan, marks=plan.marks)
        else:
            self._unpack(pull, plan, [self._environment.now] * len(plan.marks))
        return True

    def abandon(self, pull: ImagePullRequest, plan: PullPlan) -> None:
        """Cancel a pull: report its complete layers as downloaded, and release the rest of its reserved space."""
        if pull.transfer is not None:
            arrived = pull.arrived
            self._network.cancel(pull.transfer)
            pull.transfer = None
            self._land(pull, arrived)
            self._store.unreserve(plan.size - sum([layer.size for layer in arrived]))
        self._store.unreserve(sum(pull.runtime_image.unpacked[pull.first :]))

    def _arrived(self, pull: ImagePullRequest, plan: PullPlan) -> None:
        transfer = pull.transfer
        assert transfer is not None, "a download that has arrived was running"
        # Breaks a reference cycle: the transfer refers to this pull. Otherwise only Python's GC would free both.
        pull.transfer = None
        pull.downloaded_at = self._environment.now
        self._land(pull, plan.missing)
        self._unpack(pull, plan, transfer.reached)

    def _land(self, pull: ImagePullRequest, layers: tuple[Layer, ...]) -> None:
        size = self._store.put_blobs(layers)
        pull.landed += size
        self.on_pulled(layers, size)

    def _unpack(self, pull: ImagePullRequest, plan: PullPlan, there: list[float]) -> None:
        """Compute the commit time of each layer: bottom up, by one thread."""
        unpacked, rate, overhead = pull.runtime_image.unpacked, self._rate, self._overhead
        index, end = plan.first, 0.0
        committed = pull.committed = []
        for at in there:
            if at > end:  # noqa: PLR1730 - a call of max costs more than the comparison
                end = at
            end += overhead + unpacked[index] / rate if rate else overhead
            committed.append(end)
            index += 1
        self.on_there(pull)
