"""
Dry run of evictions: which pods of a node must go so that a pod fits there.

As upstream (default_preemption.go, ``SelectVictimsOnNode``): all pods that may be evicted are taken off the node. If the
pod then fits, they are put back one by one, the most important first, as long as it still fits. Pods whose disruption
budget would be violated are put back before the others. What cannot be put back are the victims.

Nothing is changed: every step is a hypothesis that the profile's own filters evaluate. The loop makes a `DryRun` for one
attempt of one pod, and post-filter plugins find it in the cycle state under `DRY_RUN`. Which pods may be evicted, and
which are more important, is up to the plugin.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from lamina.model.decision import Refusal
from lamina.model.pod import Pod
from lamina.model.resources import PODS
from lamina.scheduling.contract.cycle_state import StateKey
from lamina.scheduling.runtime.profile import Profile
from lamina.scheduling.runtime.shape_evaluation import ShapeEvaluation
from lamina.scheduling.runtime.what_if import NONE_SKIPPED, refusal_if, skipped_in, skipped_plugins
from lamina.scheduling.state.cluster_state import ClusterState
from lamina.scheduling.state.columns import Ints
from lamina.scheduling.state.hypothesis import as_if
from lamina.scheduling.state.view import NodeView, everything

NO_VICTIMS: Final = Refusal("", ("No preemption victims found for incoming pod",), final=True)


class VictimRules(msgspec.Struct, frozen=True):
    """Rules of a plugin about victims."""

    may_evict: Callable[[Pod], bool]
    order: Callable[[Pod], Any]  # Any: whatever sorts
    """Sort key; more important pods have smaller keys."""
    violating: Callable[[Sequence[Pod]], list[bool]]
    """For pods of one node in that order: whether evicting each, after those before it, violates a budget."""


class Candidate(msgspec.Struct, frozen=True):
    """A node that would accept the pod without the victims."""

    row: int
    victims: tuple[Pod, ...]
    """The most important first."""
    violations: int = 0
    """Number of victims whose disruption budget would be violated."""


class DryRun:
    """Tries evictions for one pod. Valid during one call of a post-filter plugin."""

    def __init__(self, profile: Profile, cluster: ClusterState, pod: Pod, evaluation: ShapeEvaluation) -> None:
        """Try for *pod*, which *evaluation* found no node for."""
        self.profile = profile
        self.cluster = cluster
        self.pod = pod
        stopped = evaluation.stop is not None
        self.silent: list[bool] | None = None if stopped else evaluation.silent
        """For each filter: whether it does not apply to the pod; None if the pod was refused before any filter ran."""
        self.codes = evaluation.codes
        """For each filter: its codes by row as the cluster is, or None where all nodes pass."""
        self.tells = evaluation.tells
        self.ahead: dict[int, list[Pod]] = {}
        """By row: other nominated pods of equal or higher priority, which the pod must fit beside."""
        for node, pods in cluster.nominations.ahead_of(pod):
            row = cluster.row(node)
            if row >= 0:
                self.ahead[row] = pods
        self._skipped = NONE_SKIPPED
        if self.ahead:
            self._skipped = skipped_plugins(profile, pod, cluster.columns) if stopped else skipped_in(evaluation)

    @property
    def nodes(self) -> NodeView:
        """All nodes, as they are."""
        return everything(self.cluster.columns)

    @property
    def nominated_row(self) -> int:
        """Row of the node that the pod is nominated for, or -1."""
        return self.cluster.row(self.cluster.nominations.node_of(self.pod.uid))

    def pods_on(self, row: int) -> tuple[Pod, ...]:
        """List the pods on a row."""
        node = self.cluster.columns.nodes[row]
        return () if node is None else self.cluster.cache.on(node.name)

    def offers(self, names: Sequence[str]) -> list[Ints]:
        """Return the free amounts on each row beside the nominated pods that the pod must fit beside."""
        nodes = self.nodes
        offers = [nodes.free(name).copy() for name in names]
        if self.ahead:
            rows = [row for row, ahead in self.ahead.items() for _ in ahead]
            asked = [{**dict(one.requests), PODS: 1} for ahead in self.ahead.values() for one in ahead]
            for free, name in zip(offers, names, strict=True):
                np.subtract.at(free, rows, [one.get(name, 0) for one in asked])
        return offers

    def leaves(self, victim: Pod) -> bool:
        """Return whether a pod is being evicted in favour of another pod, by this scheduler or an earlier one."""
        return self.cluster.leaves(victim)

    def refusal(self, row: int, gone: Sequence[Pod]) -> Refusal | None:
        """Return the first refusal of a node without the pods *gone*; None if the pod fits there."""
        columns = self.cluster.columns
        placements = [(row, one) for one in gone]
        ahead = self.ahead.get(row)
        if ahead:
            supposed = as_if(columns, gone=placements, there=[(row, one) for one in ahead])
            refusal = refusal_if(self.profile, supposed, self.pod, row, self._skipped)
            if refusal is not None:
                return refusal
        return refusal_if(self.profile, as_if(columns, gone=placements), self.pod, row)

    def victims_on(self, row: int, rules: VictimRules) -> Candidate | Refusal:
        """Return the victims on a node, or why evicting pods there does not help."""
        gone = sorted(filter(rules.may_evict, self.pods_on(row)), key=rules.order)
        if not gone:
            return NO_VICTIMS
        refusal = self.refusal(row, gone)
        if refusal is not None:
            return refusal
        flags = rules.violating(gone)
        spared_first = [one for one, flag in zip(gone, flags, strict=True) if flag]
        others = [one for one, flag in zip(gone, flags, strict=True) if not flag]
        taken = {one.uid for one in gone}
        for one in (*spared_first, *others):
            taken.discard(one.uid)
            if self.refusal(row, [victim for victim in gone if victim.uid in taken]) is not None:
                taken.add(one.uid)
        violations = sum(one.uid in taken for one in spared_first)
        return Candidate(row, tuple(one for one in gone if one.uid in taken), violations)


DRY_RUN: Final[StateKey[DryRun]] = StateKey("dry-run")
"""Where a post-filter plugin finds the dry run of its call."""
