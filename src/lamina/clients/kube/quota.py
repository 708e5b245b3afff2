"""How many events one object may have: a burst, and then one in a while (client-go's spam filter, tools/record)."""

from collections import OrderedDict

import msgspec


class Allowance(msgspec.Struct, frozen=True):
    """What an object may have."""

    burst: int = 25
    interval: float = 300.0
    """Seconds after which it may have one more."""
    objects: int = 4_096
    """How many are remembered; one that is forgotten has its whole burst again."""


class Quota:
    """So many at once, and then one in a while."""

    def __init__(self, allowance: Allowance) -> None:
        self._allowance = allowance
        self._full_at: OrderedDict[str, float] = OrderedDict()
        """When an object will have its whole burst again; the longest untouched first."""

    def allows(self, about: str, now: float) -> bool:
        """Whether an object may have one more; if so, it is taken."""
        allowance = self._allowance
        full_at = max(self._full_at.pop(about, now), now)
        allowed = full_at - now <= (allowance.burst - 1) * allowance.interval
        self._full_at[about] = full_at + allowance.interval if allowed else full_at
        if len(self._full_at) > allowance.objects:
            self._full_at.popitem(last=False)
        return allowed
