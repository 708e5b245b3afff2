"""Choice of one candidate: upstream's ``pickOneNodeForPreemption``."""

from lamina.scheduling.runtime.dry_run import Candidate
from lamina.scheduling.runtime.freed_room import BASE
from lamina.scheduling.state.placed_pods import UNKNOWN_START, microseconds, started


def cost(candidate: Candidate) -> tuple[int, ...]:
    """
    Return what is compared, the first difference decides: the cheapest candidate is chosen.

    Violated budgets; highest priority of a victim; sum of priorities, each increased by 2^31; number of victims; the
    earliest start among the victims of the highest priority, which should be late. The same as `NodeCosts.of`.
    """
    victims = candidate.victims
    highest = max((one.priority for one in victims), default=-BASE)
    total = sum(one.priority + BASE for one in victims)
    earliest = min((microseconds(started(one)) for one in victims if one.priority == highest), default=UNKNOWN_START)
    return candidate.violations, highest, total, len(victims), -earliest
