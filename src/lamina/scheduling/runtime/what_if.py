"""
Checks whether a node would accept a pod if some pods were gone and others present.

Runs every filter of a profile for nodes of a hypothetical cluster, without caches. Nominations, preemption and
what-if requests all use it, so that they cannot disagree.

As upstream, a plugin that does not apply to the pod in the cluster as it is stays out of every hypothesis. So a
nominated pod's anti-affinity keeps another pod away only if InterPodAffinity has a reason to look at that pod anyway.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

import numpy as np

from lamina.model.decision import Refusal
from lamina.model.pod import Pod
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.points import PreFilterResult, Verdicts
from lamina.scheduling.contract.status import Code
from lamina.scheduling.runtime.profile import EVERYTHING, Profile
from lamina.scheduling.runtime.shape_evaluation import ShapeEvaluation
from lamina.scheduling.state.columns import NodeColumns
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.hypothesis import Hypothesis, as_if
from lamina.scheduling.state.view import everything

NONE_SKIPPED: Final[frozenset[str]] = frozenset()
FIXED: Final = frozenset({Facet.TAINTS, Facet.LABELS, Facet.IMAGES, Facet.CATALOG, Facet.ANNOTATIONS, Facet.VOLUMES})
"""Facets that pods on nodes do not change."""


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
    return _refusals(profile, supposed, pod, [row], skipped).get(row)


def refusals_beside(
    profile: Profile, columns: NodeColumns, pod: Pod, ahead: Mapping[int, Sequence[Pod]], skipped: AbstractSet[str]
) -> dict[int, Refusal]:
    """
    Return the first refusal of each node that would refuse a pod beside the pods *ahead*, given by row.

    Each node is examined as if pods were added to that node only. Filters that judge a node by itself examine all of
    them at once.
    """
    if _by_themselves(profile, skipped):
        supposed = as_if(columns, there=[(row, one) for row, pods in ahead.items() for one in pods])
        return _refusals(profile, supposed, pod, list(ahead), skipped)
    found: dict[int, Refusal] = {}
    for row, pods in ahead.items():
        supposed = as_if(columns, there=[(row, one) for one in pods])
        found |= _refusals(profile, supposed, pod, [row], skipped)
    return found


def _by_themselves(profile: Profile, skipped: AbstractSet[str]) -> bool:
    """Return whether the pods on one node do not matter to the verdict on another one."""
    plugins = [*profile.pre_filter, *(part.plugin for part in profile.filters)]
    reads = [getattr(plugin, "reads", EVERYTHING) for plugin in plugins if plugin.name not in skipped]
    return all((one.whole | one.others) <= FIXED for one in reads)


def _refusals(
    profile: Profile, supposed: Hypothesis, pod: Pod, rows: Sequence[int], skipped: AbstractSet[str]
) -> dict[int, Refusal]:
    """Return the first refusal of each of *rows* that a filter refuses."""
    found: dict[int, Refusal] = {}
    state, everywhere, here = CycleState(), supposed.view(), supposed.view(rows)
    silent: set[str] = set(skipped)
    for plugin in profile.pre_filter:
        if plugin.name in skipped:
            continue
        answer = plugin.pre_filter(state, pod, everywhere)
        if isinstance(answer, PreFilterResult):
            outside = Refusal(plugin.name, (f"node(s) didn't satisfy plugin(s) [{plugin.name}]",), final=True)
            for row in rows:
                node = supposed.columns.nodes[row]
                if node is None or node.name not in answer.nodes:
                    found.setdefault(row, outside)
        elif answer is not None and answer.code is Code.SKIP:
            silent.add(plugin.name)
        elif answer is not None and not answer.ok:
            refused = Refusal(plugin.name, answer.reasons, answer.code is Code.UNRESOLVABLE)
            return dict.fromkeys(rows, refused) | found
    for part in profile.filters:
        verdicts = None if part.name in silent else part.plugin.filter(state, pod, here)
        if verdicts is not None:
            _take(found, rows, verdicts)
    return found


def _take(found: dict[int, Refusal], rows: Sequence[int], verdicts: Verdicts) -> None:
    """Add a filter's refusals to those of the filters before it."""
    told: dict[int, Refusal] = {}
    for place in np.flatnonzero(verdicts.codes).tolist():
        row, code = rows[place], int(verdicts.codes[place])
        if row not in found:
            if code not in told:
                told[code] = verdicts.tell(code)
            found[row] = told[code]
