"""
Disruption budgets as a scheduler reads them: which evictions would violate one.

As upstream: a budget without a selector, or with an empty one, protects no pod, and a pod without labels has no budget.
A pod that a budget has counted already (`disrupted_pods`) does not violate it.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from lamina.model.disruption_budget import PodDisruptionBudget
from lamina.model.pod import Pod
from lamina.model.selectors import LabelSelector
from lamina.scheduling.state.cluster_objects import ClusterObjects
from lamina.scheduling.state.placed_pods import Labels, labels_of

MOST_MATCHES: Final = 65_536
"""Matches that are kept; pods of one controller have the same labels."""


class DisruptionBudgets:
    """The budgets of a cluster, and the pods that they protect."""

    def __init__(self, objects: ClusterObjects) -> None:
        """Read the budgets of *objects*."""
        self._objects = objects
        self._edition = -1
        self._selectors: list[tuple[str, str, LabelSelector]] = []
        self._by_namespace: dict[str, list[int]] = {}
        self._matches: dict[Labels, tuple[int, ...]] = {}
        self.budgets: list[PodDisruptionBudget] = []
        """Budgets that can protect a pod, by number."""

    def refresh(self) -> None:
        """Read the budgets again if one changed."""
        edition = self._objects.edition(PodDisruptionBudget)
        if edition == self._edition:
            return
        self._edition = edition
        self.budgets = [one for one in self._objects.all_of(PodDisruptionBudget) if _selects(one.selector)]
        selectors = [(one.namespace, one.name, one.selector) for one in self.budgets if one.selector is not None]
        if selectors != self._selectors:
            # Allowed disruptions change often, and selectors seldom.
            self._selectors = selectors
            self._matches.clear()
            self._by_namespace.clear()
            for number, one in enumerate(self.budgets):
                self._by_namespace.setdefault(one.namespace, []).append(number)

    def matching(self, labels: Labels) -> tuple[int, ...]:
        """Return the numbers of the budgets that protect pods with these labels."""
        known = self._matches.get(labels)
        if known is None:
            namespace, pairs = labels
            held: Mapping[str, str] = dict(pairs)
            among = self._by_namespace.get(namespace, ()) if pairs else ()
            known = tuple(number for number in among if self._selectors[number][2].matches(held))
            if len(self._matches) >= MOST_MATCHES:
                self._matches.clear()
            self._matches[labels] = known
        return known

    def violating(self, victims: Sequence[Pod]) -> list[bool]:
        """Return for each pod whether evicting it, after those before it, violates a budget."""
        self.refresh()
        if not self.budgets:
            return [False] * len(victims)
        left = [one.disruptions_allowed for one in self.budgets]
        flags = []
        for pod in victims:
            violated = False
            for number in self.matching(labels_of(pod)):
                if pod.name in self.budgets[number].disrupted_pods:
                    continue
                left[number] -= 1
                violated = violated or left[number] < 0
            flags.append(violated)
        return flags


def _selects(selector: LabelSelector | None) -> bool:
    return selector is not None and bool(selector.match_labels or selector.expressions)
