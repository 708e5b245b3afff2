"""
Taints of nodes, and the tolerations by which pods put up with them.

Used by the filters and rankings that look at taints, and by the one that looks at cordoned nodes. The numeric
toleration operators (``Gt``, ``Lt``) are behind a feature gate that Kubernetes 1.36 leaves off; as there, a toleration
that uses one of them tolerates nothing.
"""

from collections.abc import Collection, Iterable
from typing import Final

import msgspec

NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"

EQUAL: Final = "Equal"
EXISTS: Final = "Exists"


class Taint(msgspec.Struct, frozen=True, gc=False):
    """What a node has against pods, and what happens to those that do not tolerate it."""

    key: str
    value: str = ""
    effect: str = NO_SCHEDULE


class Toleration(msgspec.Struct, frozen=True, gc=False):
    """What a pod puts up with; an empty *key* or *effect* stands for any."""

    key: str = ""
    operator: str = EQUAL
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """
        Say whether this toleration covers *taint*.

        An operator left empty means ``Equal``. The API server refuses ``Equal`` without a key; where it comes anyway,
        upstream lets the values decide.
        """
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator in ("", EQUAL):
            return self.value == taint.value
        return self.operator == EXISTS


UNSCHEDULABLE_TAINT: Final = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)
"""What a cordoned node counts as having, whether or not the taint has been put on it yet."""


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Say whether any of *tolerations* covers *taint*."""
    return any(toleration.tolerates(taint) for toleration in tolerations)


def untolerated(taints: Iterable[Taint], tolerations: Collection[Toleration], effects: Collection[str]) -> Taint | None:
    """Return the first taint with one of *effects* that no toleration covers; None when all are covered."""
    for taint in taints:
        if taint.effect in effects and not tolerates(tolerations, taint):
            return taint
    return None
