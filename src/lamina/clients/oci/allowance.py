"""How often a namespace may make us ask registries: a burst, and then one in a while."""

from collections import OrderedDict
from typing import Final

BURST: Final = 10
INTERVAL: Final = 1.0
"""Seconds after which a namespace may have one more."""
MOST_NAMESPACES: Final = 10_000
"""How many are remembered; one that is forgotten has its whole burst again."""


class Allowance:
    """A bucket for each namespace."""

    def __init__(self) -> None:
        """Begin with full ones."""
        self._full_at: OrderedDict[str, float] = OrderedDict()
        """When a bucket will be full again; the longest untouched first."""

    def takes(self, namespace: str, now: float) -> bool:
        """Take one from a bucket; False when it is empty."""
        full_at = max(self._full_at.pop(namespace, now), now)
        allowed = full_at - now <= (BURST - 1) * INTERVAL
        self._full_at[namespace] = full_at + INTERVAL if allowed else full_at
        if len(self._full_at) > MOST_NAMESPACES:
            self._full_at.popitem(last=False)
        return allowed
