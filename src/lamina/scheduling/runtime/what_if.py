"""
Checks whether a node would accept a pod if some pods were gone and others present.

Runs every filter of a profile for one node of a hypothetical cluster, without caches. Nominations, preemption and
what-if requests all use it, so that they cannot disagree.

As upstream, a plugin that does not apply to the pod in the cluster as it is stays out of every hypothesis. So a
nominated pod's anti-affinity keeps another pod away only if InterPodAffinity has a reason to look at that pod anyway.
"""

from collections.abc import Set as AbstractSet
from typing import Final

from lamina.model.decision import Refusal
from lamina.model.pod import Pod
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.points import PreFilterResult
from lamina.scheduling.contract.status import Code
from lamina.scheduling.runtime.profile import Profile
from lamina.scheduling.runtime.shape_evaluation import ShapeEvaluation
from lamina.scheduling.state.columns import NodeColumns
from lamina.scheduling.state.hypothesis import Hypothesis
from lamina.scheduling.state.view import everything

NONE_SKIPPED: Final[frozenset[str]] = frozenset()


def skipped_plugins(profile: Profile, pod: Pod, columns: NodeColumns) -> frozenset[str]:
    """Return the filters that do not apply to a pod in the cluster as it is."""
    nodes, state = everything(columns), CycleState()
    answers = ((plugin.name, plugin.pre_filter(state, pod, nodes)) for plugin in profile.pre_filter)
    return frozenset(
        name
        for name, answer in answers
        if answer is not None and not isinstance(answer, PreFilterResult) and answer.code is Code.SKIP
    )


def skipped_in(evaluation: ShapeEvaluation) -> frozenset[str]:
    """Return the same from an evaluation of the pod's shape that ran the filters."""
    parts = zip(evaluation.profile.filters, evaluation.silent, strict=True)
    return frozenset(part.name for part, silent in parts if silent)


def refusal_if(
    profile: Profile, supposed: Hypothesis, pod: Pod, row: int, skipped: AbstractSet[str] = NONE_SKIPPED
) -> Refusal | None:
    """
    Return the first refusal of the node in *row*; None if every filter passes.

    *skipped* are the filters that do not apply to the pod as the cluster is. They matter only if the hypothesis adds pods.
    """
    state, everywhere, here = CycleState(), supposed.view(), supposed.view([row])
    silent: set[str] = set(skipped)
    for plugin in profile.pre_filter:
        if plugin.name in skipped:
            continue
        answer = plugin.pre_filter(state, pod, everywhere)
        if answer is None:
            continue
        if isinstance(answer, PreFilterResult):
            node = supposed.columns.nodes[row]
            if node is None or node.name not in answer.nodes:
                return Refusal(plugin.name, (f"node(s) didn't satisfy plugin(s) [{plugin.name}]",), final=True)
        elif answer.code is Code.SKIP:
            silent.add(plugin.name)
        elif not answer.ok:
            return Refusal(plugin.name, answer.reasons, answer.code is Code.UNRESOLVABLE)
    for part in profile.filters:
        if part.name in silent:
            continue
        verdicts = part.plugin.filter(state, pod, here)
        if verdicts is not None and verdicts.codes[0]:
            return verdicts.tell(int(verdicts.codes[0]))
    return None
