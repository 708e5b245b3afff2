"""
Taints of nodes and tolerations of pods.

The plugins for taints and for cordoned nodes use them. The numeric toleration operators (``Gt``, ``Lt``) are behind a
feature gate that Kubernetes 1.36 leaves off; as there, a toleration that uses one of them tolerates nothing.
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
    """A node taint: pods that do not tolerate it are subject to its effect."""

    key: str
    value: str = ""
    effect: str = NO_SCHEDULE


class Toleration(msgspec.Struct, frozen=True, gc=False):
    """A pod's toleration; an empty *key* or *effect* matches any."""

    key: str = ""
    operator: str = EQUAL
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """
        Return whether this toleration covers *taint*.

        An empty operator means ``Equal``. The API server rejects ``Equal`` without a key; if it occurs anyway, upstream
        compares the values.
        """
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator in ("", EQUAL):
            return self.value == taint.value
        return self.operator == EXISTS


UNSCHEDULABLE_TAINT: Final = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)
"""The taint that a cordoned node is treated as having, even before the node controller has added it."""


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Return whether any of *tolerations* covers *taint*."""
    return any(toleration.tolerates(taint) for toleration in tolerations)


def untolerated(taints: Iterable[Taint], tolerations: Collection[Toleration], effects: Collection[str]) -> Taint | None:
    """Return the first taint with one of *effects* that no toleration covers; None when all are covered."""
    for taint in taints:
        if taint.effect in effects and not tolerates(tolerations, taint):
            return taint
    return None
