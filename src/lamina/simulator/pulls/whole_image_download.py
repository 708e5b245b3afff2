"""
Pulls that nobody on their node can get in the way of, each as one download of all that it lacks.

Where a node pulls one image at a time, how far a layer has come follows from how far the pull has come: its slots share
whatever the pull gets in equal parts, so a layer is there when the pull has moved so many bytes, at whatever rate. These
numbers are worked out when the pull begins. When its last byte is there, the network says when each of them was reached,
and from that follows when everything is unpacked: three events for a pull, however many layers it has.

On links that are full, pulls share fairly in this way, and not their layers. Called by the puller, which downloads layer by
layer where this cannot be done (`fetching`).
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
    """Tell whether pulls of this runtime never meet: each has the node's link and its one thread for itself."""
    alone = spec.parallel_pulls == 1 and spec.unpack_threads <= 1 and not spec.disk_rate
    return alone and spec.lazy is None and not spec.peers and not spec.connection_rate


class WholeImageDownloader:
    """Downloads for one node, one image at a time."""

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
    """These blobs of so many bytes are there; said when all of a pull are, or when it is broken off."""
    on_there: Callable[[ImagePullRequest], None]
    """All of a pull's blobs are there, and when it is unpacked is known."""

    def __init__(
        self, environment: Environment, network: Network, store: NodeImageStore, spec: RuntimeSpec, source: LayerSource
    ) -> None:
        """Download from *source* into *store*. Whoever makes it sets the two callbacks."""
        self._environment = environment
        self._network = network
        self._store = store
        self._source = source
        self._slots = spec.slots
        self._rate = spec.unpack_rate
        self._overhead = spec.layer_overhead

    def plan(self, pull: ImagePullRequest) -> PullPlan:
        """Look what a pull lacks; that stays so while it is the only one."""
        store, recipe = self._store, pull.recipe
        plan = pull.plan = recipe.plan(store.prefix(recipe), store.blobs, self._slots)
        pull.first, pull.next, pull.committed = plan.first, 0, []
        return plan

    def begin(self, pull: ImagePullRequest, plan: PullPlan) -> bool:
        """Download what a pull lacks; false, and nothing is done, when there is no room for all of it."""
        if not self._store.reserve(plan.room):
            return False
        pull.next = len(pull.recipe.layers)
        if plan.missing:
            path = self._source.path(plan.missing[0])
            pull.stream = self._network.start(path, plan.size, self._arrived, pull, plan, marks=plan.marks)
        else:
            self._unpack(pull, plan, [self._environment.now] * len(plan.marks))
        return True

    def abandon(self, pull: ImagePullRequest, plan: PullPlan) -> None:
        """Break a pull off. What is there by now has arrived, even if nobody keeps it; the rest of its room is free."""
        if pull.stream is not None:
            arrived = pull.arrived
            self._network.cancel(pull.stream)
            pull.stream = None
            self._land(pull, arrived)
            self._store.unreserve(plan.size - sum([layer.size for layer in arrived]))
        self._store.unreserve(sum(pull.recipe.unpacked[pull.first :]))

    def _arrived(self, pull: ImagePullRequest, plan: PullPlan) -> None:
        stream = pull.stream
        assert stream is not None, "what has arrived was under way"
        # A transfer knows what it is for: without this, only the garbage collector would find that both are done.
        pull.stream = None
        pull.fetched_at = self._environment.now
        self._land(pull, plan.missing)
        self._unpack(pull, plan, stream.reached)

    def _land(self, pull: ImagePullRequest, layers: tuple[Layer, ...]) -> None:
        size = self._store.put_blobs(layers)
        pull.landed += size
        self.on_pulled(layers, size)

    def _unpack(self, pull: ImagePullRequest, plan: PullPlan, there: list[float]) -> None:
        """Work out when each layer is committed: bottom up, by one thread."""
        unpacked, rate, overhead = pull.recipe.unpacked, self._rate, self._overhead
        index, end = plan.first, 0.0
        committed = pull.committed = []
        for at in there:
            if at > end:  # noqa: PLR1730 - a call of max costs more than the comparison
                end = at
            end += overhead + unpacked[index] / rate if rate else overhead
            committed.append(end)
            index += 1
        self.on_there(pull)
