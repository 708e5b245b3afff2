"""
Room for a pod that fits on no node: post-filter plugins propose victims, extenders may change that, the loop evicts.

    post_filter ──> victims ──────────────────────────────────────────> evicted
    propose ──> victims on several nodes ──> AskExtenders ──> answer ──> choose ──> evicted

The second line is for pods in which an extender with a preempt verb is interested, and for plugins that implement
`VictimProposer`. The pod waits for the answer like one about nodes. When the answer is used, the cluster may have
changed: nodes that left and nodes that lost an allowed victim are dropped, and the plugin checks the others again.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from lamina.model.decision import Refusal
from lamina.model.extender_answer import AllowedVictims, ExtenderRefusal
from lamina.scheduling.contract.commands import AskExtenders, ProposedVictims
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.extender_chain import NAME
from lamina.scheduling.contract.points import PostFilterPlugin, PostFilterResult, RetryTimePlugin, VictimProposer
from lamina.scheduling.contract.status import Status
from lamina.scheduling.loop.evictions import EVICTIONS_OFF, preempt
from lamina.scheduling.loop.extender_waits import ExtenderWait
from lamina.scheduling.loop.loop_state import LoopState
from lamina.scheduling.loop.queued_pod import QueuedPodInfo
from lamina.scheduling.runtime.dry_run import DRY_RUN, DryRun
from lamina.scheduling.runtime.explanation import node_name, resolvable_rows
from lamina.scheduling.runtime.shape_evaluation import ShapeEvaluation
from lamina.scheduling.state.columns import Bools
from lamina.scheduling.state.view import NodeView, everything

EXTENDERS_FAILED: Final = "preemption: {}"
"""As upstream, after the reasons of the nodes."""


PluginAnswer = Status | PostFilterResult | tuple[ProposedVictims, ...]
"""A refusal, victims to evict, or proposed victims about which extenders are asked."""


class RoomResult(msgspec.Struct, frozen=True):
    """What came of an attempt to make room."""

    said: str = ""
    """The reasons of the plugins that found no victims."""
    waits: bool = False
    """Whether the pod waits for extenders, so that the attempt has not ended."""
    refused_by: frozenset[str] = frozenset()
    """Plugins that found no victims and know when to try again."""
    again: bool = False
    """Whether the pod is worth another attempt after its back-off, without a change of the cluster."""


class MakingRoom:
    """Calls the post-filter plugins of pods that fit on no node."""

    def __init__(self, state: LoopState) -> None:
        """Work on *state*."""
        self._state = state

    def run(self, queued: QueuedPodInfo, evaluation: ShapeEvaluation, wait: ExtenderWait | None = None) -> RoomResult:
        """
        Call the post-filter plugins in order until one makes room; return the reasons of the others.

        *wait* is a wait for extenders about victims that has ended: its plugin chooses among what they allow, and the
        plugins before it are not called again.
        """
        state, pod, plugins = self._state, queued.pod, queued.profile.post_filter
        if not plugins or state.cluster.columns.count == 0:
            return RoomResult()
        if state.evictions_off:
            return RoomResult(EVICTIONS_OFF)
        if wait is not None and wait.answer is not None and wait.answer.error:
            # No change of the cluster shows that the extender works again.
            return RoomResult(EXTENDERS_FAILED.format(wait.answer.error), again=True)
        asked = _Question(
            # A copy: the evaluation outlives the dry run.
            state=evaluation.state.copy(),
            nodes=everything(state.cluster.columns),
            resolvable=resolvable_rows(evaluation),
            extenders=state.chain.preempting(pod) if state.chain.extenders else (),
        )
        asked.state.now = state.now
        asked.state[DRY_RUN] = DryRun(queued.profile, state.cluster, pod, evaluation)
        said: list[str] = []
        refused_by: set[str] = set()
        for plugin in _from(plugins, wait):
            answer: PluginAnswer
            if wait is not None and plugin.name == wait.plugin:
                answer = self._choose(plugin, queued, asked, wait)
            else:
                answer = self._call(plugin, queued, asked)
            if isinstance(answer, PostFilterResult):
                preempt(state, pod, answer.node, answer.victims)
                return RoomResult()
            if isinstance(answer, tuple):
                self._ask(queued, evaluation, plugin.name, answer, asked.extenders)
                return RoomResult(waits=True)
            if answer.reasons:
                said.append(answer.message)
            if isinstance(plugin, RetryTimePlugin):
                refused_by.add(plugin.name)
        # The extenders left victims that are of no use by now: others may be, and no change of the cluster shows it.
        again = wait is not None and wait.answer is not None and len(wait.answer.victims) > 0
        return RoomResult(" ".join(said), refused_by=frozenset(refused_by), again=again)

    def _call(self, plugin: PostFilterPlugin, queued: QueuedPodInfo, asked: "_Question") -> PluginAnswer:
        if asked.extenders and isinstance(plugin, VictimProposer):
            return plugin.propose(asked.state, queued.pod, asked.nodes, asked.resolvable)
        return plugin.post_filter(asked.state, queued.pod, asked.nodes, asked.resolvable)

    def _choose(
        self, plugin: PostFilterPlugin, queued: QueuedPodInfo, asked: "_Question", wait: ExtenderWait
    ) -> Status | PostFilterResult:
        assert isinstance(plugin, VictimProposer), "it proposed the victims"
        assert wait.answer is not None, "only answered pods are decided"
        allowed = [found for one in wait.answer.victims if (found := self._placed(one)) is not None]
        return plugin.choose(asked.state, queued.pod, asked.nodes, asked.resolvable, allowed)

    def _placed(self, allowed: AllowedVictims) -> ProposedVictims | None:
        """Return the pods of an answer; None if the node or one of them left."""
        if self._state.cluster.row(allowed.node) < 0:
            return None
        there = {pod.uid: pod for pod in self._state.cluster.cache.on(allowed.node)}
        if not all(uid in there for uid in allowed.uids):
            return None
        pods = tuple([there[uid] for uid in dict.fromkeys(allowed.uids)])
        return ProposedVictims(allowed.node, pods, allowed.violations)

    def _ask(
        self,
        queued: QueuedPodInfo,
        evaluation: ShapeEvaluation,
        plugin: str,
        proposed: tuple[ProposedVictims, ...],
        extenders: tuple[str, ...],
    ) -> None:
        """Let the pod wait for the extenders."""
        state, nodes = self._state, tuple([one.node for one in proposed])
        wait = ExtenderWait(
            queued,
            state.waits.next_number(),
            nodes,
            state.now + state.chain.preempt_timeout,
            plugin=plugin,
            refused=_refused_by_extenders(evaluation),
        )
        state.waits.start(wait)
        state.do(AskExtenders(queued.pod, queued.attempts, wait.number, nodes, extenders, proposed))


class _Question(msgspec.Struct, frozen=True, eq=False):
    """What the plugins are asked with."""

    state: CycleState
    nodes: NodeView
    resolvable: Bools
    extenders: tuple[str, ...]
    """Names of the extenders to ask about victims."""


def _from(plugins: Sequence[PostFilterPlugin], wait: ExtenderWait | None) -> Sequence[PostFilterPlugin]:
    """Return the plugins to call: from the one that proposed victims on."""
    if wait is None:
        return plugins
    place = next(place for place, plugin in enumerate(plugins) if plugin.name == wait.plugin)
    return plugins[place:]


def _refused_by_extenders(evaluation: ShapeEvaluation) -> tuple[ExtenderRefusal, ...]:
    """Return the nodes that the extenders refused in this attempt, grouped by reason."""
    found: dict[Refusal, list[str]] = {}
    for row, refusal in evaluation.withheld.items():
        if refusal.plugin == NAME:
            found.setdefault(refusal, []).append(node_name(evaluation, row))
    return tuple([ExtenderRefusal(tuple(nodes), one.reasons, one.final) for one, nodes in found.items()])
