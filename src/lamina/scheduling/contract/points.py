"""
The extension points: one Protocol each. A plugin is what it can do.

For one pod the points are called in this order; `M` marks those that may keep the pod waiting:

    pre_enqueue → sort_key → [place] → pre_filter → filter → post_filter (nothing fits)
        → pre_score → score → normalize → reserve → permit (M) → pre_bind (M) → bind (M) → post_bind
                                             unreserve, last reserved first, if anything after reserve fails

Everything up to `normalize` answers for *all nodes at once* and depends only on the pod's signature and on the facets
of the node columns the plugin names in `reads`. That is what allows answers to be kept: a pod with the signature of an
earlier one is decided by looking at the rows that changed since. A plugin without `sign` or `reads` is asked anew for
every pod; it is slower and just as right.

A plugin that filters or scores brings its `pre_filter` or `pre_score` along, wherever a configuration names it. If a
plugin raises, the pod's attempt fails and the pod's event names the error; after the attempt (`post_bind`, `unreserve`),
and outside of attempts, the operator is told and nothing else happens.

No plugin does I/O or reads a clock. From `post_filter` on, `state.now` is the time. A plugin that acts with time says when
it wants to be woken (`TimedPlugin`); one that needs to know how pods fare follows them (`PodFollower`). What must be done
in the world is returned (`Work`, commands) and its end is fed back as an event.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from lamina.model.decision import Refusal
from lamina.model.pod import Pod, PodUid
from lamina.scheduling.contract.commands import Bind
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.status import Status
from lamina.scheduling.contract.waiting_pods import WaitingPods
from lamina.scheduling.state.cluster_changes import ChangeKind, ClusterChange
from lamina.scheduling.state.columns import Bools, Ints
from lamina.scheduling.state.view import NodeRow, NodeView

MAX_SCORE = 100


class Reads(msgspec.Struct, frozen=True):
    """
    What of the columns a plugin's answers depend on.

    Whatever `pre_filter` and `pre_score` look at belongs to *whole*: they are not called again for single rows.
    """

    rows: frozenset[int] = frozenset()
    """A node's answer depends on this much of that node alone."""
    whole: frozenset[int] = frozenset()
    """A node's answer depends on this much of any node, and so may whether the plugin has anything to say."""
    others: frozenset[int] = frozenset()
    """
    A node's answer depends on this much of any node; whether the plugin has anything to say depends on the pod alone.

    When it changes, this plugin prepares and answers anew for all nodes, and what the other plugins said is kept.
    """


class Verdicts(msgspec.Struct, frozen=True):
    """
    A filter's answer: one code per node in view, 0 where the node passes; flags will do where there is only one reason.

    *tell* turns a code into reasons. It is called for the distinct codes only, and only when somebody wants to know.
    """

    codes: Ints | Bools
    tell: Callable[[int], Refusal]


class PreFilterResult(msgspec.Struct, frozen=True):
    """`pre_filter` knows that only these nodes can be right; the others are not looked at."""

    nodes: frozenset[str]


class Wait(msgspec.Struct, frozen=True):
    """`permit` keeps the pod waiting, at most this long; then it is refused."""

    timeout: float


class Work(msgspec.Struct, frozen=True):
    """`pre_bind` needs something done in the world first; the host knows what to make of *task*."""

    task: object


class PostFilterResult(msgspec.Struct, frozen=True):
    """`post_filter` found a node that would fit once these pods are gone."""

    node: str
    victims: tuple[Pod, ...] = ()


class Placement(msgspec.Struct, frozen=True):
    """
    `place` decided for many pods at once.

    Nodes are positions of the view. A pod in neither mapping goes through the ordinary cycle.
    """

    nodes: dict[PodUid, int]
    refused: dict[PodUid, Status] = {}


class QueuedPod(Protocol):
    """A pod in the queue, as `sort_key` sees it."""

    pod: Pod
    arrived_at: float
    queued_at: float
    attempts: int


@runtime_checkable
class Plugin(Protocol):
    """Anything with a name. The name is what configuration and explanations use."""

    name: str


@runtime_checkable
class SignPlugin(Protocol):
    """Says which of a pod's properties its answers depend on."""

    def sign(self, pod: Pod) -> Hashable:
        """Return something equal for all pods this plugin cannot tell apart before a node is chosen."""
        ...


@runtime_checkable
class SubsetPlugin(Protocol):
    """
    Can be asked about some nodes only, by whoever is asked about some nodes only.

    For a plugin that reads more than single rows, that is not to be taken for granted: what it says of a node may depend on
    nodes that were not asked about.
    """

    among_asked: bool


@runtime_checkable
class VersionedSignPlugin(SignPlugin, Protocol):
    """Signs pods differently as the cluster changes; whoever has an older signature asks again."""

    edition: int
    """Grows whenever `sign` may answer differently than before."""


@runtime_checkable
class RetryPlugin(Protocol):
    """Says what could change its refusal. Without this, any change does."""

    retry_on: frozenset[ChangeKind]


@runtime_checkable
class QueueingHintPlugin(RetryPlugin, Protocol):
    """Looks closer at a change before a refused pod is tried again."""

    def worth_retrying(self, pod: Pod, change: ClusterChange) -> bool:
        """Say whether *change* may make *pod* acceptable. When in doubt: yes."""
        ...


@runtime_checkable
class AmountHintPlugin(QueueingHintPlugin, Protocol):
    """
    Refuses pods for amounts, and lets the queue find those that what a changed node offers could satisfy.

    The queue asks `worth_retrying` only about pods of which the node offers everything they need. Both methods say what
    must hold for a yes, not what is enough for one.
    """

    def needs(self, pod: Pod) -> Mapping[str, int]:
        """
        Return what a node must offer at least, by name; depends on the pod alone.

        Amounts of 0 and below are ignored. With none above 0 the queue asks about the pod after every change.
        """
        ...

    def offers(self, row: int) -> Mapping[str, int]:
        """Return what the node in *row* offers now, by the names `needs` uses; a missing name means 0."""
        ...


@runtime_checkable
class RetryTimePlugin(Protocol):
    """Knows when time alone makes a refused pod worth another try."""

    def retry_at(self, pod: Pod, now: float) -> float | None:
        """
        Return the time (in seconds, as *now*) at which to try *pod* again; None if time alone does not help.

        The queue asks each time the plugin refuses the pod, at a gate as well. It never tries the pod sooner than its
        back-off, or one second, allows. Five minutes after a refusal the pod is tried anyway; at a gate it is not.
        """
        ...


@runtime_checkable
class PreEnqueuePlugin(Plugin, Protocol):
    """Keeps pods out of the queue until they are ready to be looked at."""

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Return None to let the pod in, a refusal to keep it out."""
        ...


@runtime_checkable
class QueueSortPlugin(Plugin, Protocol):
    """Orders the active queue; a profile set has exactly one."""

    changes_with_time: bool
    """Whether keys change as time passes; the queue is then re-ordered when it does."""

    def sort_key(self, queued: QueuedPod, now: float) -> tuple[float, ...]:
        """Return the pod's place: smaller is sooner. Ties go by arrival in the queue."""
        ...


@runtime_checkable
class PlacePlugin(Plugin, Protocol):
    """Places many pods at once. Runs before the ordinary cycle; its choices still have to pass the filters."""

    batch: int
    """How many pods to collect at most."""

    def place(self, pods: Sequence[Pod], nodes: NodeView) -> Placement:
        """Choose nodes for as many of *pods* (in queue order) as wanted."""
        ...


@runtime_checkable
class PreFilterPlugin(Plugin, Protocol):
    """Looks at the pod before any node: computes what filters need, or refuses outright."""

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | PreFilterResult | None:
        """Return None to go on, SKIP to leave this plugin's filter out, a refusal, or the nodes to look at."""
        ...


@runtime_checkable
class FilterPlugin(Plugin, Protocol):
    """Says which nodes cannot run the pod."""

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
        """Return a code per node of the view (in a new array each time), or None when all of them pass."""
        ...


@runtime_checkable
class FilterNodePlugin(Plugin, Protocol):
    """The same answer for a single node; optional beside `filter`."""

    def filter_node(self, state: CycleState, pod: Pod, node: NodeRow) -> int:
        """Return the code `filter` would have given."""
        ...


@runtime_checkable
class PostFilterPlugin(Plugin, Protocol):
    """Called when no node passed: may find a way to make room."""

    def post_filter(self, state: CycleState, pod: Pod, nodes: NodeView, resolvable: Bools) -> Status | PostFilterResult:
        """Return what to evict from where, or why that is impossible. *resolvable*: where eviction could help."""
        ...


@runtime_checkable
class PreScorePlugin(Plugin, Protocol):
    """Computes what scoring needs."""

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | None:
        """Return None to go on, SKIP to leave this plugin's score out (0 for every node)."""
        ...


@runtime_checkable
class ScorePlugin(Plugin, Protocol):
    """Ranks nodes."""

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """
        Return one score per node of the view: 0..100, or anything int64 if the plugin also normalises.

        A new array each time: the framework may keep it for other pods that look the same to this plugin.
        """
        ...


@runtime_checkable
class ScoreNodePlugin(Plugin, Protocol):
    """The same score for a single node; optional beside `score`, and not for plugins that normalise."""

    def score_node(self, state: CycleState, pod: Pod, node: NodeRow) -> int:
        """Return the score `score` would have given."""
        ...


@runtime_checkable
class NormalizePlugin(Plugin, Protocol):
    """Turns its own raw scores into 0..100, knowing all nodes that passed the filters."""

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, feasible: Bools) -> Ints:
        """
        Return the final scores, as long as *scores*.

        Only nodes that are *feasible* may influence them, and what is answered for the others is ignored. Where all raw
        scores are equal and none is negative, the answer must not depend on which nodes are feasible; it is then asked
        for a single one. A negative raw score says that it takes all of them to know.
        """
        ...


@runtime_checkable
class FactsPlugin(Plugin, Protocol):
    """Can tell what its scores were made of; asked where savings are told."""

    def facts(self, state: CycleState, pod: Pod, nodes: NodeView) -> Sequence[dict[str, int]]:
        """Return one small mapping per node of the view."""
        ...


@runtime_checkable
class ExplainPlugin(Plugin, Protocol):
    """Can add a part of its own to a decision, in its own terms; asked in the details ``savings`` and ``full``."""

    def explain(
        self,
        state: CycleState,
        pod: Pod,
        nodes: NodeView,
        best: tuple[int, int],
        feasible: Bools,
        *,
        full: bool = True,
    ) -> msgspec.Struct | None:
        """
        Explain the choice of the first row of *best*; the second is the runner-up, or -1 if no other node was feasible.

        Return a frozen struct of the plugin's own, which is written into the trace as JSON, or None for no part. Without
        *full*, return what a live scheduler can afford for every pod.
        """
        ...


@runtime_checkable
class NotesPlugin(Plugin, Protocol):
    """Can tell what is wrong with a pod without refusing it."""

    def notes(self, pod: Pod) -> str:
        """Say it in one line; empty when nothing is."""
        ...


@runtime_checkable
class TimedPlugin(Plugin, Protocol):
    """Asks to be woken at a time."""

    wake_at: float | None
    """When; read after every feed. A time that has passed counts as None until the plugin sets another."""

    def wake(self, now: float) -> bool:
        """Act; return whether pods that this plugin refused are worth another try."""
        ...


@runtime_checkable
class PodFollower(Plugin, Protocol):
    """
    Follows the lives of all pods, whichever scheduler places them.

    `Pod` says what became of it and when: `created_at`, `bound_at`, `started_at`, `ready_at`, `deleting_since`,
    `ended_at`, and `failed` if it ended badly. Called in the order of the events, before the queue sees the same one.
    """

    def pod_seen(self, pod: Pod, now: float) -> None:
        """A pod appeared or changed; *pod* is how it is now."""
        ...

    def pod_gone(self, uid: PodUid, now: float) -> None:
        """A pod was deleted; it may have been seen to end before."""
        ...


@runtime_checkable
class ReservePlugin(Plugin, Protocol):
    """Keeps books of its own about chosen nodes."""

    def reserve(self, state: CycleState, pod: Pod, node: str) -> Status | None:
        """Note that *pod* is going to *node*; a refusal undoes all reservations."""
        ...

    def unreserve(self, state: CycleState, pod: Pod, node: str) -> None:
        """Undo `reserve`, also one that refused. Must not fail."""
        ...


@runtime_checkable
class PermitPlugin(Plugin, Protocol):
    """Decides whether a placed pod may go on to binding."""

    def permit(self, state: CycleState, pod: Pod, node: str, waiting: WaitingPods) -> Status | Wait | None:
        """Return None to go on, Wait to hold the pod, or a refusal. May release or refuse other *waiting* pods."""
        ...


@runtime_checkable
class PreBindPlugin(Plugin, Protocol):
    """Prepares the node for the pod."""

    def pre_bind(self, state: CycleState, pod: Pod, node: str) -> Status | Work | None:
        """Return None to go on, Work to be done first, or a refusal."""
        ...


@runtime_checkable
class BindPlugin(Plugin, Protocol):
    """Says how the pod is bound; the first that does not skip decides."""

    def bind(self, state: CycleState, pod: Pod, node: str) -> Bind | Status:
        """Return the binding to perform, SKIP to leave it to the next plugin, or a failure."""
        ...


@runtime_checkable
class PostBindPlugin(Plugin, Protocol):
    """Is told that the pod was bound."""

    def post_bind(self, state: CycleState, pod: Pod, node: str) -> None:
        """Clean up; nothing depends on it any more."""
        ...
