"""
Comparison of two answers to one parity case: what kube-scheduler answered, and what Lamina decides.

A case is *not compared* if its pod requires a feature that Lamina does not implement. Scores of a plugin are not
compared if Lamina's profile has no such scorer, and preemption is not compared without a plugin that makes room.
kube-scheduler breaks ties at random, so nodes with equal totals, or with equal costs of preemption, count as equal.
"""

from typing import Final

import msgspec

from tests.parity.case_files import RecordedAnswer, RecordedCase
from tests.parity.case_objects import KubeJson
from tests.parity.known_differences import NO_CLAIM_STATE, known_case, known_difference
from tests.parity.replay import LaminaAnswer

PREEMPTION: Final = "DefaultPreemption"
AFFINITY: Final = "InterPodAffinity"
NO_CLAIMS: Final = "no new claims to deallocate, "
"""What DynamicResources adds to every refusal of kube-scheduler."""
NO_STATE: Final = " not found"
"""What DynamicResources answers if another plugin refused the pod before nodes were filtered (`NO_CLAIM_STATE`)."""
UNHELPFUL: Final = " Preemption is not helpful for scheduling."
CLAIMS_OF_DEVICES: Final = "DynamicResources"
AFTER: Final = " preemption: "
REASONS: Final = {
    "Insufficient ": "NodeResourcesFit",
    "Too many pods": "NodeResourcesFit",
    "node(s) didn't match Pod's node affinity/selector": "NodeAffinity",
    "node(s) didn't satisfy plugin(s) [NodeAffinity]": "NodeAffinity",
    "node(s) had untolerated taint": "TaintToleration",
    "node(s) were unschedulable": "NodeUnschedulable",
    "node(s) didn't have free ports": "NodePorts",
    "node(s) didn't match Pod's required features": "NodeDeclaredFeatures",
    "node(s) didn't match pod topology spread constraints": "PodTopologySpread",
    "node(s) had no available disk": "VolumeRestrictions",
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod": "VolumeRestrictions",
    "node(s) exceed max volume count": "NodeVolumeLimits",
    "node(s) had no available volume zone": "VolumeZone",
    "node(s) didn't match PersistentVolume's node affinity": "VolumeBinding",
    "node(s) didn't find available persistent volumes to bind": "VolumeBinding",
    "node(s) did not have enough free storage": "VolumeBinding",
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)": "VolumeBinding",
    "pod has unbound immediate PersistentVolumeClaims": "VolumeBinding",
    "node(s) didn't match pod affinity rules": AFFINITY,
    "node(s) didn't match pod anti-affinity rules": AFFINITY,
    "node(s) didn't satisfy existing pods anti-affinity rules": AFFINITY,
}
"""Part of a reason → plugin."""
UNMET: Final = (("inter-pod", AFFINITY), ("volume", "VolumeBinding"), ("resource claim", CLAIMS_OF_DEVICES))
"""Part of an unmet demand → plugin."""


class CaseComparison(msgspec.Struct, kw_only=True):
    """What is equal in one case, and what is not."""

    family: str
    number: int
    not_compared: str = ""
    """Plugin because of which the case is not compared at all."""
    set_apart: str = ""
    """Reason of a known difference that concerns the whole case."""
    active: set[str] = msgspec.field(default_factory=set)
    """Plugins that refuse a node or score nodes differently."""
    unequal: set[str] = msgspec.field(default_factory=set)
    """Active plugins that may have caused a difference."""
    left_out: set[str] = msgspec.field(default_factory=set)
    """Active plugins of which something is not compared."""
    missing: list[str] = []
    """Nodes that only kube-scheduler finds feasible."""
    unsound: list[str] = []
    """Nodes that only Lamina finds feasible."""
    triples: int = 0
    """Number of compared (plugin, node, score)."""
    triples_equal: int = 0
    totals_equal: bool | None = None
    """None: not compared. The same holds for the following."""
    chosen_equal: bool | None = None
    message_equal: bool | None = None
    nomination_equal: bool | None = None
    victims_equal: bool | None = None
    differences: list[str] = []
    """Differences in words."""
    known: dict[str, str] = {}
    """Plugin → reason, for known differences of scores (`known_differences`)."""

    @property
    def feasible_equal(self) -> bool:
        """Whether both find the same nodes feasible."""
        return not self.not_compared and not self.set_apart and not self.missing and not self.unsound

    @property
    def unknown(self) -> bool:
        """Whether there is a difference that is not a known one."""
        if self.set_apart:
            return False
        scores_only = self.feasible_equal and self.message_equal is not False and self.victims_equal is not False
        return bool(self.differences) and not (scores_only and self.unequal <= self.known.keys())

    @property
    def equal(self) -> bool:
        """Whether everything that was compared is equal."""
        return not self.not_compared and not self.differences


def compare(recorded: RecordedCase, lamina: LaminaAnswer) -> CaseComparison:
    """Compare the two answers to a case."""
    case, answer = recorded.case, recorded.answer
    found = CaseComparison(family=case.family, number=case.number)
    found.active = _active(answer)
    if lamina.unmet:
        words = lamina.unmet[0]
        found.not_compared = next((plugin for part, plugin in UNMET if part in words), "UnmetDemands")
        found.active.add(found.not_compared)
        found.left_out = set(found.active)
        return found
    found.active |= lamina.refused_by
    names = case.names()
    feasible = {names[place] for place in answer.feasible}
    found.missing, found.unsound = sorted(feasible - lamina.feasible), sorted(lamina.feasible - feasible)
    refusing = lamina.refused_by | _refusing(answer.message)
    if not found.feasible_equal:
        found.unequal |= refusing
        found.differences.append(f"feasible: only kube-scheduler {found.missing}, only Lamina {found.unsound}")
    elif len(feasible) > 1:
        _compare_scores(found, answer, lamina, names)
        known = {plugin: known_difference(case, plugin) for plugin in found.unequal}
        found.known = {plugin: reason for plugin, reason in known.items() if reason}
    if not feasible:
        _compare_message(found, answer.message, lamina, refusing)
        _compare_preemption(found, recorded, lamina)
    if found.differences and (reason := known_case(case)):
        found.set_apart, found.missing, found.unsound = reason, [], []
    return found


def _active(answer: RecordedAnswer) -> set[str]:
    found = {plugin for plugin, given in answer.scores.items() if len(set(given)) > 1}
    if answer.candidates:
        found.add(PREEMPTION)
    return found | _refusing(answer.message)


def _refusing(message: str) -> set[str]:
    head = message.partition(AFTER)[0]
    return {plugin for part, plugin in REASONS.items() if part in head}


# -- scores ------------------------------------------------------------------------------------------------------------


def _compare_scores(found: CaseComparison, answer: RecordedAnswer, lamina: LaminaAnswer, names: list[str]) -> None:
    feasible = [names[place] for place in answer.feasible]
    absent = {plugin for plugin in answer.scores if plugin == AFFINITY and plugin not in lamina.scores}
    found.left_out |= absent
    for plugin in sorted((answer.scores.keys() | lamina.scores.keys()) - absent):
        theirs = answer.scores.get(plugin) or [0] * len(feasible)
        ours = [lamina.scores.get(plugin, {}).get(node, 0) for node in feasible]
        if plugin not in answer.scores and not any(ours):
            continue
        equal = sum(one == other for one, other in zip(theirs, ours, strict=True))
        found.triples += len(feasible)
        found.triples_equal += equal
        if equal < len(feasible):
            found.active.add(plugin)
            found.unequal.add(plugin)
            found.differences.append(f"{plugin}: kube-scheduler {theirs}, Lamina {ours}")
    if not absent:
        found.totals_equal = answer.totals() == [lamina.totals[node] for node in feasible]
        best = max(lamina.totals.values())
        found.chosen_equal = lamina.totals[names[answer.chosen]] == best


# -- refusals ------------------------------------------------------------------------------------------------------------


def _compare_message(found: CaseComparison, message: str, lamina: LaminaAnswer, refusing: set[str]) -> None:
    theirs, ours = message.replace(NO_CLAIMS, ""), lamina.message
    if not lamina.preempts:
        theirs = theirs.partition(AFTER)[0]
    if lamina.preempts and theirs == ours.partition(AFTER)[0] + NO_STATE and ours.endswith(UNHELPFUL):
        found.known[CLAIMS_OF_DEVICES] = NO_CLAIM_STATE
        theirs = ours
    found.message_equal = theirs == ours
    if theirs != ours:
        found.unequal |= {PREEMPTION} if theirs.partition(AFTER)[0] == ours.partition(AFTER)[0] else refusing
        found.differences.append(f"message: kube-scheduler {theirs!r}, Lamina {ours!r}")


def _compare_preemption(found: CaseComparison, recorded: RecordedCase, lamina: LaminaAnswer) -> None:
    answer = recorded.answer
    if not lamina.preempts:
        if answer.candidates:
            found.left_out.add(PREEMPTION)
        return
    nominated = recorded.case.names()[answer.nominated] if answer.nominated >= 0 else ""
    if not nominated and not lamina.nominated:
        return
    found.active.add(PREEMPTION)
    candidate = answer.candidates.get(lamina.nominated)
    costs = preemption_costs(recorded)
    found.nomination_equal = bool(nominated and lamina.nominated) and costs.get(lamina.nominated) == costs.get(
        nominated
    )
    # A candidate also lists victims that are being deleted already, and these are not evicted again.
    leaving = {one["metadata"]["name"] for one in recorded.case.placed if "deletionTimestamp" in one["metadata"]}
    found.victims_equal = candidate is not None and sorted(set(candidate.victims) - leaving) == lamina.victims
    if not (found.nomination_equal and found.victims_equal):
        found.unequal.add(PREEMPTION)
        found.differences.append(
            f"preemption: kube-scheduler {nominated} {answer.victims}, Lamina {lamina.nominated} {lamina.victims}"
        )


def preemption_costs(recorded: RecordedCase) -> dict[str, tuple[object, ...]]:
    """
    Return what upstream compares to choose among candidates, by node.

    Fewer violated budgets, then a lower highest priority, a lower sum of priorities, fewer victims, and a later start of
    the earliest victim with the highest priority.
    """
    pods = {one["metadata"]["name"]: one for one in recorded.case.placed}
    found: dict[str, tuple[object, ...]] = {}
    for node, candidate in recorded.answer.candidates.items():
        victims = [pods[name] for name in candidate.victims if name in pods]
        priorities = [_priority(one) for one in victims]
        highest = max(priorities, default=0)
        starts = [one["status"].get("startTime", "") for one in victims if _priority(one) == highest]
        total = sum(priorities) + len(priorities) * 2**31
        found[node] = (candidate.violations, highest, total, len(victims), min(starts, default=""))
    return found


def _priority(pod: KubeJson) -> int:
    return int(pod["spec"].get("priority", 0))
