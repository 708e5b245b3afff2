"""
Comparison of two answers of kube-scheduler to one case: the recorded one, and one with a real API server.

kube-scheduler breaks ties at random, so nodes with equal totals, or with equal costs of preemption, count as equal.
"""

from collections import Counter
from typing import Any

import msgspec

from tests.parity.case_files import RecordedAnswer, RecordedCase
from tests.parity.comparison import preemption_costs


class LiveComparison(msgspec.Struct, kw_only=True):
    """What is equal in one case."""

    family: str
    number: int
    active: set[str]
    """Plugins that refuse a node or score nodes differently."""
    feasible_equal: bool
    triples: int = 0
    """Number of compared (plugin, node, score)."""
    triples_equal: int = 0
    chosen_equal: bool | None = None
    """None: nothing to compare. The same holds for the following."""
    message_equal: bool | None = None
    victims_equal: bool | None = None
    """Whether the candidates, the cost of the nominated node and the victims there are equal."""
    differences: list[str] = []
    """Differences in words."""


def compare_live(recorded: RecordedCase, live: RecordedAnswer, active: set[str]) -> LiveComparison:
    """Compare the recorded answer to a case with the one that was given to a real API server."""
    case, answer = recorded.case, recorded.answer
    found = LiveComparison(
        family=case.family,
        number=case.number,
        active=active,
        feasible_equal=answer.feasible == live.feasible,
    )
    if not found.feasible_equal:
        found.differences.append(f"feasible: recorded {answer.feasible}, now {live.feasible}")
        return found
    if answer.feasible:
        _compare_scores(found, answer, live)
        return found
    found.message_equal = answer.message == live.message
    if not found.message_equal:
        found.differences.append(f"message: recorded {answer.message!r}, now {live.message!r}")
    if answer.nominated >= 0 or live.nominated >= 0 or answer.candidates or live.candidates:
        _compare_preemption(found, recorded, live)
    return found


def _compare_scores(found: LiveComparison, answer: RecordedAnswer, live: RecordedAnswer) -> None:
    zeros = [0] * len(answer.feasible)
    for plugin in sorted(answer.scores.keys() | live.scores.keys()):
        before, now = answer.scores.get(plugin, zeros), live.scores.get(plugin, zeros)
        equal = sum(one == other for one, other in zip(before, now, strict=True))
        found.triples += len(zeros)
        found.triples_equal += equal
        if equal < len(zeros):
            found.differences.append(f"{plugin}: recorded {before}, now {now}")
    totals = dict(zip(answer.feasible, answer.totals(), strict=True))
    found.chosen_equal = totals.get(live.chosen) == max(totals.values())
    if not found.chosen_equal:
        found.differences.append(f"chosen: recorded {answer.chosen}, now {live.chosen}")


def _compare_preemption(found: LiveComparison, recorded: RecordedCase, live: RecordedAnswer) -> None:
    answer, names = recorded.answer, recorded.case.names()
    costs = preemption_costs(recorded)
    before, now = (names[one] if one >= 0 else "" for one in (answer.nominated, live.nominated))
    leaving = {one["metadata"]["name"] for one in recorded.case.placed if "deletionTimestamp" in one["metadata"]}
    evicted = sorted(set(answer.candidates[now].victims) - leaving) if now in answer.candidates else []
    equal = answer.candidates == live.candidates, costs.get(before) == costs.get(now), evicted == live.victims
    found.victims_equal = all(equal)
    if not found.victims_equal:
        found.differences.append(
            f"preemption: recorded {before} {answer.victims}, now {now} {live.victims}; "
            f"candidates recorded {answer.candidates}, now {live.candidates}"
        )


class LiveReport(msgspec.Struct, kw_only=True):
    """Figures of all cases."""

    found: list[LiveComparison] = msgspec.field(default_factory=list)

    def figures(self) -> dict[str, Any]:
        """Return the figures as plain data."""
        messages = [one.message_equal for one in self.found if one.message_equal is not None]
        chosen = [one.chosen_equal for one in self.found if one.chosen_equal is not None]
        victims = [one.victims_equal for one in self.found if one.victims_equal is not None]
        by_plugin = Counter(plugin for one in self.found for plugin in one.active)
        return {
            "cases": len(self.found),
            "feasible_equal": sum(one.feasible_equal for one in self.found),
            "score_triples": sum(one.triples for one in self.found),
            "score_triples_equal": sum(one.triples_equal for one in self.found),
            "chosen": len(chosen),
            "chosen_in_best": sum(chosen),
            "messages": len(messages),
            "messages_equal": sum(messages),
            "preemptions": len(victims),
            "victims_equal": sum(victims),
            "by_plugin": dict(sorted(by_plugin.items())),
        }
