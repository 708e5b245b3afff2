"""Choice of one candidate: upstream's ``pickOneNodeForPreemption``."""

import math
from collections.abc import Sequence

from lamina.model.pod import Pod
from lamina.scheduling.runtime.dry_run import Candidate
from lamina.scheduling.runtime.freed_amounts import BASE
from lamina.scheduling.runtime.placed_pods import started


def cost(candidate: Candidate) -> tuple[float, ...]:
    """
    Return what is compared, the first difference decides: the cheapest candidate is chosen.

    Violated budgets; highest priority of a victim; sum of priorities, each increased by 2^31; number of victims; the
    earliest start among the victims of the highest priority, which should be late.
    """
    victims = candidate.victims
    highest = max((one.priority for one in victims), default=-BASE)
    total = sum(one.priority + BASE for one in victims)
    return candidate.violations, highest, total, len(victims), -_earliest(victims, highest)


def cheapest(candidates: Sequence[Candidate]) -> Candidate:
    """Return the candidate to choose; the first of several equal ones."""
    return min(candidates, key=cost)


def _earliest(victims: Sequence[Pod], priority: int) -> float:
    return min((started(one) for one in victims if one.priority == priority), default=math.inf)
