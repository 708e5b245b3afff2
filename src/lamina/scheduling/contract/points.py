"""
Extension points, one Protocol each. A plugin's methods determine which ones it implements.

For one pod the points are called in this order; `M` marks those that can keep the pod waiting:

    pre_enqueue → sort_key → [place] → pre_filter → filter → post_filter (no node fits)
        → pre_score → score → normalize → reserve → permit (M) → pre_bind (M) → bind (M) → post_bind
                                             unreserve, last reserved first, if anything after reserve fails

Every point up to `normalize` returns a result for *all nodes at once*. The result must depend only on the pod's
signature (`sign`) and on the facets of the node columns that the plugin declares in `reads`. The runtime therefore
caches results: for a pod with a known signature, it evaluates only the rows that changed since. A plugin without
`sign` or `reads` is called for every pod; its results are the same, only slower.

`place` sees many pods at once; its protocol is in `placement.py`.

Wherever a configuration enables `filter` or `score`, the plugin's `pre_filter` or `pre_score` is enabled with it. If
a plugin raises, the pod's attempt fails and the pod's event names the error. In `post_bind`, `unreserve` and outside
of attempts, an exception is only reported to the operator.

Plugins do no I/O and read no clock. From `post_filter` on, `state.now` is the time in seconds. A plugin that acts at
certain times implements `TimedPlugin`. A plugin that needs the history of pods implements `PodFollower`. Actions
outside of the process are returned as `Work` or as commands; an event reports how they ended.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from lamina.model.cluster_objects import ClusterObject
from lamina.model.decision import Refusal
from lamina.model.pod import Pod, PodUid
from lamina.scheduling.contract.commands import Bind, ProposedVictims
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.status import Status
from lamina.scheduling.contract.waiting_pods import WaitingPods
from lamina.scheduling.state.cluster_changes import ChangeKind, ClusterChange
from lamina.scheduling.state.columns import Bools, Ints
from lamina.scheduling.state.view import NodeRow, NodeView

MAX_SCORE = 100


class Reads(msgspec.Struct, frozen=True):
    """
    Facets of the node columns that a plugin's results depend on.

    Everything that `pre_filter` and `pre_score` read belongs to *whole*: the runtime does not repeat them for single
    rows.
    """

    rows: frozenset[int] = frozenset()
    """A node's result depends on these facets of the same node only."""
    whole: frozenset[int] = frozenset()
    """A node's result, and whether the plugin applies at all, depend on these facets of all nodes."""
    others: frozenset[int] = frozenset()
    """
    A node's result depends on these facets of all nodes, but whether the plugin applies depends on the pod alone.

    When one changes, the runtime calls this plugin for all nodes again and keeps the results of the other plugins.
    """


class Verdicts(msgspec.Struct, frozen=True):
    """
    A filter's result: one code per node of the view, 0 where the node passes. Booleans suffice for a single reason.

    *tell* returns the reasons for a code. The runtime calls it once per distinct code, and only for an explanation.
    """

    codes: Ints | Bools
    tell: Callable[[int], Refusal]


class PreFilterResult(msgspec.Struct, frozen=True):
    """`pre_filter` restricts the evaluation to these nodes."""

    nodes: frozenset[str]


class Wait(msgspec.Struct, frozen=True):
    """`permit` holds the pod for at most *timeout* seconds; the loop then refuses it."""

    timeout: float


class Work(msgspec.Struct, frozen=True):
    """`pre_bind` asks the host to perform *task* first. The loop passes *task* on unread."""

    task: object


class PostFilterResult(msgspec.Struct, frozen=True):
    """`post_filter` found a node that fits once the victims are deleted."""

    node: str
    victims: tuple[Pod, ...] = ()


class QueuedPod(Protocol):
    """A queued pod as `sort_key` sees it. Times are in seconds."""

    pod: Pod
    arrived_at: float
    queued_at: float
    attempts: int


@runtime_checkable
class Plugin(Protocol):
    """Any class with a name. Configurations and explanations use that name."""

    name: str


@runtime_checkable
class SignPlugin(Protocol):
    """Declares which properties of a pod its results depend on."""

    def sign(self, pod: Pod) -> Hashable:
        """Return a key of the pod. Pods with equal keys must have equal results, up to and including `normalize`."""
        ...


@runtime_checkable
class SubsetPlugin(Protocol):
    """
    Declares whether the plugin can be called with a view of some nodes only, as the extender does.

    Matters for plugins that read more than single rows: their result for a node can depend on nodes outside of the
    view.
    """

    among_asked: bool


@runtime_checkable
class VersionedSignPlugin(SignPlugin, Protocol):
    """Has signatures that change with the cluster; cached signatures are then computed again."""

    edition: int
    """Increases whenever `sign` can return another value than before."""


@runtime_checkable
class RetryPlugin(Protocol):
    """Declares which changes can lift its refusal. Without `retry_on`, every change does."""

    retry_on: frozenset[ChangeKind]


@runtime_checkable
class QueueingHintPlugin(RetryPlugin, Protocol):
    """Checks whether a change can lift a refusal before the queue retries the pod."""

    def worth_retrying(self, pod: Pod, change: ClusterChange) -> bool:
        """Return whether *change* may make *pod* acceptable; True when in doubt."""
        ...


@runtime_checkable
class AmountHintPlugin(QueueingHintPlugin, Protocol):
    """
    Refuses pods for lack of amounts; the queue finds those that the amounts of a changed node could satisfy.

    The queue calls `worth_retrying` only for pods whose needs the node offers in full. Needs and offers are necessary
    conditions for a retry, not sufficient ones.
    """

    def needs(self, pod: Pod) -> Mapping[str, int]:
        """
        Return the amounts that a node must offer at least, by name. Depends on the pod alone.

        Amounts of 0 and below are ignored. Without a positive amount, the queue checks the pod after every change.
        """
        ...

    def offers(self, row: int) -> Mapping[str, int]:
        """Return what the node in *row* offers now, by the names of `needs`; a missing name means 0."""
        ...


@runtime_checkable
class AmountFilterPlugin(AmountHintPlugin, Protocol):
    """
    Refuses exactly the nodes whose free amounts are below `needs`; a pod that leaves frees what it requests.

    Evictions can then be compared on all nodes at once. A profile uses the first such filter for that.
    """

    amounts_suffice: bool
    """True. A filter with further reasons does not have it."""


@runtime_checkable
class RetryTimePlugin(Protocol):
    """Knows when a refused pod is worth a retry without any change in the cluster."""

    def retry_at(self, pod: Pod, now: float) -> float | None:
        """
        Return the time (in seconds, as *now*) at which to retry *pod*; None if time alone does not help.

        The queue calls it after each refusal by the plugin, including refusals in `pre_enqueue`. The queue never
        retries before the pod's back-off ends, or within one second. It retries any refused pod after five minutes,
        except pods that `pre_enqueue` refused.
        """
        ...


@runtime_checkable
class ObjectReaderPlugin(Plugin, Protocol):
    """Reads disruption budgets or other cluster objects (`PluginContext.objects`); a host watches only those."""

    objects: frozenset[type[ClusterObject]]


@runtime_checkable
class PreEnqueuePlugin(Plugin, Protocol):
    """Keeps pods out of the queue until they can be scheduled."""

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Return None to admit the pod, or a refusal."""
        ...


@runtime_checkable
class QueueSortPlugin(Plugin, Protocol):
    """Orders the active queue. A set of profiles has exactly one."""

    changes_with_time: bool
    """Whether keys change with time; if so, the queue sorts again when time passes."""

    def sort_key(self, queued: QueuedPod, now: float) -> tuple[float, ...]:
        """Return the pod's sort key; smaller keys come first. Equal keys keep their order of arrival in the queue."""
        ...


@runtime_checkable
class PreFilterPlugin(Plugin, Protocol):
    """Prepares data for filters before any node is evaluated, or refuses the pod."""

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | PreFilterResult | None:
        """Return None to continue, SKIP to disable this plugin's filter, a refusal, or the nodes to evaluate."""
        ...


@runtime_checkable
class FilterPlugin(Plugin, Protocol):
    """Determines which nodes cannot run the pod."""

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
        """Return a code per node of the view, in a new array, or None if all nodes pass."""
        ...


@runtime_checkable
class FilterNodePlugin(Plugin, Protocol):
    """The filter for a single node; optional, and only beside `filter`."""

    def filter_node(self, state: CycleState, pod: Pod, node: NodeRow) -> int:
        """Return the code that `filter` returns for this node."""
        ...


@runtime_checkable
class PostFilterPlugin(Plugin, Protocol):
    """Runs when no node passed the filters; can propose pods to evict."""

    def post_filter(self, state: CycleState, pod: Pod, nodes: NodeView, resolvable: Bools) -> Status | PostFilterResult:
        """
        Return the node and its victims, or why there are none.

        *resolvable* marks nodes where eviction could help.
        """
        ...


@runtime_checkable
class VictimProposer(PostFilterPlugin, Protocol):
    """
    Lets extenders of other vendors take part in its choice of victims.

    If an extender with a preempt verb is interested in the pod, the loop calls `propose` instead of `post_filter`, asks
    the extenders, and calls `choose` with what they left.
    """

    def propose(
        self, state: CycleState, pod: Pod, nodes: NodeView, resolvable: Bools
    ) -> Status | tuple[ProposedVictims, ...]:
        """Return at least one node with its victims, or why there is none."""
        ...

    def choose(
        self,
        state: CycleState,
        pod: Pod,
        nodes: NodeView,
        resolvable: Bools,
        allowed: Sequence[ProposedVictims],
    ) -> Status | PostFilterResult:
        """
        Return one of *allowed*, or why none of them helps any more.

        Extenders can remove nodes and add victims, and the cluster can have changed. The victims are on their nodes
        now; everything else must be checked again.
        """
        ...


@runtime_checkable
class PreScorePlugin(Plugin, Protocol):
    """Prepares data for scoring."""

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | None:
        """Return None to continue, or SKIP to disable this plugin's score (0 for every node)."""
        ...


@runtime_checkable
class ScorePlugin(Plugin, Protocol):
    """Ranks nodes."""

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """
        Return one score per node of the view: 0..100, or any int64 if the plugin also normalises.

        Return a new array each time: the runtime can cache it for other pods with the same signature.
        """
        ...


@runtime_checkable
class ScoreNodePlugin(Plugin, Protocol):
    """The score for a single node; optional, only beside `score`, and not for plugins that normalise."""

    def score_node(self, state: CycleState, pod: Pod, node: NodeRow) -> int:
        """Return the score that `score` returns for this node."""
        ...


@runtime_checkable
class NormalizePlugin(Plugin, Protocol):
    """Converts its raw scores to 0..100, given all nodes that passed the filters."""

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, feasible: Bools) -> Ints:
        """
        Return the final scores, one per raw score.

        Only *feasible* nodes may influence the result; the runtime ignores the values of other nodes. If all raw scores
        are equal and none is negative, the result must not depend on which nodes are feasible: the runtime then passes
        a single node. A negative raw score marks a score that can only be computed with all nodes.
        """
        ...


@runtime_checkable
class FactsPlugin(Plugin, Protocol):
    """Reports the facts behind its scores; called for the detail ``full``."""

    def facts(self, state: CycleState, pod: Pod, nodes: NodeView) -> Sequence[dict[str, int]]:
        """Return one small mapping per node of the view."""
        ...


@runtime_checkable
class ExplainPlugin(Plugin, Protocol):
    """Adds a part of its own to a decision; called for the details ``savings`` and ``full``."""

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
        Explain the choice of row best[0] over the runner-up, row best[1], which is -1 if no other node was feasible.

        Return a frozen struct, which the trace stores as JSON, or None to add nothing. Without *full*, return only what
        a live scheduler can afford for every pod.
        """
        ...


@runtime_checkable
class NotesPlugin(Plugin, Protocol):
    """Reports problems of a pod without refusing it."""

    def notes(self, pod: Pod) -> str:
        """Return the problem in one line; empty if there is none."""
        ...


@runtime_checkable
class TimedPlugin(Plugin, Protocol):
    """Asks the loop to call it at a certain time."""

    wake_at: float | None
    """Time of the next call in seconds; the loop reads it after every feed and calls `wake` once per value."""

    def wake(self, now: float) -> bool:
        """Act, and return whether pods that this plugin refused are worth a retry."""
        ...


@runtime_checkable
class PodFollower(Plugin, Protocol):
    """
    Follows the lifecycle of all pods, regardless of their scheduler.

    `Pod` has the times: `created_at`, `bound_at`, `started_at`, `ready_at`, `deleting_since`, `ended_at`, and `failed`.
    The loop calls it in the order of the events, before the queue receives the same event.
    """

    def pod_seen(self, pod: Pod, now: float) -> None:
        """Handle a new or changed pod; *pod* is its current state."""
        ...

    def pod_gone(self, uid: PodUid, now: float) -> None:
        """Handle a deleted pod; `pod_seen` may have reported its end before."""
        ...


@runtime_checkable
class ReservePlugin(Plugin, Protocol):
    """Keeps state of its own about chosen nodes."""

    def reserve(self, state: CycleState, pod: Pod, node: str) -> Status | None:
        """Record that *pod* goes to *node*. A refusal undoes the reservations of all plugins."""
        ...

    def unreserve(self, state: CycleState, pod: Pod, node: str) -> None:
        """Undo `reserve`, even if it refused. Must not raise."""
        ...


@runtime_checkable
class PermitPlugin(Plugin, Protocol):
    """Decides whether a pod with a chosen node proceeds to binding."""

    def permit(self, state: CycleState, pod: Pod, node: str, waiting: WaitingPods) -> Status | Wait | None:
        """Return None to proceed, Wait to hold the pod, or a refusal. Can allow or refuse other *waiting* pods."""
        ...


@runtime_checkable
class PreBindPlugin(Plugin, Protocol):
    """Prepares the node for the pod."""

    def pre_bind(self, state: CycleState, pod: Pod, node: str) -> Status | Work | None:
        """Return None to proceed, Work for the host to do first, or a refusal."""
        ...


@runtime_checkable
class BindPlugin(Plugin, Protocol):
    """Determines how the pod is bound; the first bind plugin that does not return SKIP decides."""

    def bind(self, state: CycleState, pod: Pod, node: str) -> Bind | Status:
        """Return the binding to perform, SKIP to defer to the next plugin, or a failure."""
        ...


@runtime_checkable
class PostBindPlugin(Plugin, Protocol):
    """Runs after the pod was bound."""

    def post_bind(self, state: CycleState, pod: Pod, node: str) -> None:
        """Clean up. The pod is bound, whatever happens here."""
        ...
