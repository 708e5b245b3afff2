"""
Core of the extender: a cluster state, and the scheduling agents that evaluate pods for another scheduler.

It receives the same events as the loop, but queues, decides and assumes nothing. Each request names a verb, a pod and
nodes, and is answered from the current state. Nodes that no event has reported yet are never refused, and get the mean
level of the other nodes in the request.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Final, Generic, TypeVar, cast

import msgspec
import numpy as np
import numpy.typing as npt

from lamina.model.decision import Refusal
from lamina.model.events import ClusterEvent, Event
from lamina.model.pod import Pod, PodUid
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import PluginArgs, PluginRegistry
from lamina.scheduling.contract.points import MAX_SCORE, FilterPlugin, Plugin, PreFilterResult, ScorePlugin, Verdicts
from lamina.scheduling.contract.scheduling_agent import SchedulingAgent
from lamina.scheduling.contract.status import Code, Status
from lamina.scheduling.runtime.plugin_results import PluginResultCache
from lamina.scheduling.runtime.pod_followers import PodFollowers
from lamina.scheduling.runtime.profile import FilterPart, ScorePart
from lamina.scheduling.state.cluster_state import ClusterState
from lamina.scheduling.state.columns import Ints
from lamina.scheduling.state.hypothesis import as_if
from lamina.scheduling.state.view import NodeView, everything

UNKNOWN: Final = -1
"""Row of a node that no event has reported."""
MOST_TRIED: Final = 500
"""Maximum number of nodes evaluated one by one for a filter that reads several nodes; further nodes are accepted."""
NARROWED_OUT: Final = ("node(s) didn't satisfy the agent",)

Rows = npt.NDArray[np.intp]
Part = TypeVar("Part")


class AgentError(Exception):
    """A plugin of a scheduling agent raised or returned an invalid result."""


class ExtenderVerb(Generic[Part]):
    """A verb of the extender: a plugin with precomputed properties, and the levels for its scores."""

    __slots__ = ("among", "levels", "name", "part")

    def __init__(self, name: str, part: Part, plugin: Plugin, levels: tuple[int, ...]) -> None:
        """Inspect the plugin once."""
        self.name = name
        self.part = part
        self.levels: Ints = np.array(levels, dtype=np.int64)
        self.among = bool(getattr(plugin, "among_asked", False))
        """Whether the plugin can be called with only the nodes of the request."""


class NodeVictims(msgspec.Struct, frozen=True):
    """Pods that would be evicted from one node, by uid."""

    node: str
    uids: tuple[str, ...]


class ExtenderCore:
    """Scheduling agents and the cluster state they read."""

    def __init__(self, agents: Sequence[SchedulingAgent], args: Mapping[str, PluginArgs] | None = None) -> None:
        """Create the plugins of *agents*; *args* are their arguments by name, default arguments otherwise."""
        self.cluster = ClusterState()
        self._results = PluginResultCache(self.cluster.columns)
        self.unknown = 0
        """Number of nodes in the last request that no event has reported."""
        registry = PluginRegistry(*dict.fromkeys(plugin for agent in agents for plugin in agent.plugins))
        context = self.cluster.context
        made = {name: registry.make(name, context, (args or {}).get(name)) for name in registry}
        self._followers = PodFollowers(made.values(), self._plugin_raised)
        self.cluster.columns.fact_raised = self._fact_raised
        self.plugin_errors: Counter[str] = Counter()
        """Number of exceptions of each plugin as a pod follower, and of each node fact."""
        self.predicates: dict[str, ExtenderVerb[FilterPart]] = {}
        self.priorities: dict[str, ExtenderVerb[ScorePart]] = {}
        for agent in agents:
            for verb, name in agent.predicates.items():
                filters = FilterPart(cast("FilterPlugin", made[name]))
                self.predicates[verb] = ExtenderVerb(verb, filters, made[name], agent.levels)
            for verb, name in agent.priorities.items():
                scores = ScorePart(cast("ScorePlugin", made[name]), 1)
                self.priorities[verb] = ExtenderVerb(verb, scores, made[name], agent.levels)

    def take(self, *happened: Event) -> None:
        """Apply events about the cluster; ignore reports about a loop's commands."""
        for event in happened:
            if isinstance(event, ClusterEvent):
                self._followers.notice(event, self.cluster.now)
                self.cluster.apply(event)

    def _plugin_raised(self, pod: Pod | None, plugin: str, point: str, status: Status) -> None:
        self.plugin_errors[plugin] += 1

    def _fact_raised(self, fact: str, method: str, error: Exception) -> None:
        self.plugin_errors[fact] += 1

    # -- filter ------------------------------------------------------------------------------------------------------

    def filter(self, verb: str, pod: Pod, names: Sequence[str]) -> list[tuple[int, Refusal]]:
        """Return (index in *names*, refusal) for each refused node."""
        rows = self._rows(names)
        try:
            return self._refused(self.predicates[verb].part, pod, rows)
        except Exception as error:
            raise AgentError(f"predicate {verb!r} raised {type(error).__name__}: {error}") from error

    def _refused(
        self, part: FilterPart, pod: Pod, rows: Rows, supposed: NodeView | None = None
    ) -> list[tuple[int, Refusal]]:
        """
        Return (index in *rows*, refusal) for each row that a filter refuses.

        With *supposed*, evaluate that hypothetical cluster without the cache.
        """
        state, nodes = CycleState(), supposed or everything(self.cluster.columns)
        known = rows >= 0
        if not known.any():
            return []
        left_out: list[tuple[int, Refusal]] = []
        if part.prepares is not None:
            said = part.prepares.pre_filter(state, pod, nodes)
            if isinstance(said, PreFilterResult):
                left_out = self._left_out(part.name, said.nodes, rows)
                known[[place for place, _ in left_out]] = False
            elif said is not None and said.code is Code.SKIP:
                return []
            elif said is not None and not said.ok:
                _no_error(said)
                refusal = _checked(Refusal(part.name, said.reasons, said.code is Code.UNRESOLVABLE))
                return [(place, refusal) for place in np.flatnonzero(known).tolist()]
        ask = self._results.filter if supposed is None else _filter_uncached
        verdicts = ask(part, state, pod, nodes)
        if verdicts is None:
            return left_out
        codes = np.where(known, verdicts.codes[rows], 0)
        places = np.flatnonzero(codes)
        words = {code: _checked(verdicts.tell(code)) for code in set(codes[places].tolist())}
        refused = [(place, words[codes.item(place)]) for place in places.tolist()]
        return sorted([*left_out, *refused], key=itemgetter(0)) if left_out else refused

    def _left_out(self, plugin: str, left: frozenset[str], rows: Rows) -> list[tuple[int, Refusal]]:
        inside = {self.cluster.columns.rows.get(name, UNKNOWN) for name in left}
        refusal = Refusal(plugin, NARROWED_OUT, final=True)
        return [(place, refusal) for place, row in enumerate(rows.tolist()) if row >= 0 and row not in inside]

    # -- prioritize --------------------------------------------------------------------------------------------------

    def prioritize(self, verb: str, pod: Pod, names: Sequence[str]) -> list[int]:
        """Return a level from 0 to 10 for each of *names*; all 0 if the plugin returns SKIP."""
        rows = self._rows(names)
        if not len(rows):
            return []
        known = rows >= 0
        complete = not self.unknown
        levels = self._levels(verb, pod, rows if complete else rows[known])
        if levels is None:
            return [0] * len(rows)
        if not complete:
            mean = int(levels.mean() + 0.5) if len(levels) else 0
            every = np.full(len(rows), mean, dtype=np.int64)
            every[known] = levels
            levels = every
        answer: list[int] = levels.tolist()
        return answer

    def prioritize_rows(self, verb: str, pod: Pod, rows: Rows) -> Ints | None:
        """Return a level from 0 to 10 for each row of a known node; None if the plugin returns SKIP."""
        self.unknown = 0
        return self._levels(verb, pod, rows)

    def _levels(self, verb: str, pod: Pod, rows: Rows) -> Ints | None:
        asked = self.priorities[verb]
        try:
            scores = self._scores(asked, pod, rows)
            return None if scores is None else asked.levels.take(scores)
        except Exception as error:
            raise AgentError(f"priority {verb!r} raised {type(error).__name__}: {error}") from error

    def _scores(self, asked: ExtenderVerb[ScorePart], pod: Pod, rows: Rows) -> Ints | None:
        """Return scores from 0 to 100 for each row; None if the plugin returns SKIP."""
        part, columns, state = asked.part, self.cluster.columns, CycleState()
        places: Rows | slice = slice(None)
        if asked.among:
            among = np.zeros(columns.size, dtype=np.bool_)
            among[rows] = True
            if np.count_nonzero(among) < len(rows):
                # A node that is named twice must count once in comparisons with the other nodes.
                rows, places = np.unique(rows, return_inverse=True)
        nodes = NodeView(columns, rows, len(rows)) if asked.among else everything(columns)
        if part.prepares is not None:
            said = part.prepares.pre_score(state, pod, nodes)
            if said is not None and said.code is Code.SKIP:
                return None
            if said is not None:
                _no_error(said)
        scores = part.plugin.score(state, pod, nodes) if asked.among else self._results.score(part, state, pod, nodes)
        if part.normalizer is not None:
            feasible = np.zeros(len(nodes), dtype=np.bool_)
            feasible[slice(None) if asked.among else rows] = True
            scores = part.normalizer.normalize(state, pod, scores, feasible)
        if scores.shape != (len(nodes),):
            raise ValueError(f"scores of shape {scores.shape} for {len(nodes)} nodes")
        scores = scores[places] if asked.among else scores[rows]
        if len(scores) and not (scores.min() >= 0 and scores.max() <= MAX_SCORE):
            raise ValueError(f"scores outside 0..{MAX_SCORE}")
        return scores

    # -- preempt -----------------------------------------------------------------------------------------------------

    def preempt(self, verb: str, pod: Pod, candidates: Sequence[NodeVictims]) -> list[str]:
        """
        Return the nodes of *candidates* whose victims are still worth evicting.

        A priority verb accepts all of them. A predicate is evaluated again without the victims: a node that it still
        refuses is dropped, because the eviction would not help.
        """
        asked = self.predicates.get(verb)
        if asked is None:
            return [one.node for one in candidates]
        # If the filter reads each node by itself, one evaluation covers all nodes.
        single = bool(asked.part.as_one)
        groups = [[one] for one in candidates[:MOST_TRIED]] if single else [candidates]
        untried = [one.node for one in candidates[MOST_TRIED:]] if single else []
        try:
            return [node for group in groups for node in self._accepting(asked.part, pod, group)] + untried
        except Exception as error:
            raise AgentError(f"predicate {verb!r} raised {type(error).__name__}: {error}") from error

    def _accepting(self, part: FilterPart, pod: Pod, candidates: Sequence[NodeVictims]) -> list[str]:
        """Return the candidates that would accept the pod with all their victims gone."""
        rows = self._rows([one.node for one in candidates])
        supposed = as_if(self.cluster.columns, gone=list(self._victims(candidates)))
        refused = {place for place, _ in self._refused(part, pod, rows, supposed.view())}
        return [one.node for place, one in enumerate(candidates) if place not in refused]

    def _victims(self, candidates: Sequence[NodeVictims]) -> Iterator[tuple[int, Pod]]:
        """Yield the victims that are on the stated node, each once, with their rows."""
        seen: set[str] = set()
        for one in candidates:
            for uid in one.uids:
                placed = self.cluster.cache.get(PodUid(uid))
                row = self.cluster.row(one.node)
                if placed is not None and placed.node == one.node and row >= 0 and uid not in seen:
                    seen.add(uid)
                    yield row, placed.pod

    def _rows(self, names: Sequence[str]) -> Rows:
        known = self.cluster.columns.rows
        self.unknown = 0
        try:
            return np.fromiter(map(known.__getitem__, names), np.intp, len(names))
        except KeyError:
            rows = [known.get(name, UNKNOWN) for name in names]
            self.unknown = rows.count(UNKNOWN)
            return np.array(rows, dtype=np.intp)


def _filter_uncached(part: FilterPart, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
    """Run a filter without the cache."""
    return part.plugin.filter(state, pod, nodes)


def _checked(refusal: Refusal) -> Refusal:
    """Raise TypeError now if a reason is not a string."""
    ", ".join(refusal.reasons)
    return refusal


def _no_error(status: Status) -> None:
    if status.code is Code.ERROR:
        raise ValueError(status.message)
