"""PodDisruptionBudget: how many pods of a selection may be evicted now."""

import msgspec

from lamina.model.selectors import LabelSelector


class PodDisruptionBudget(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """A disruption budget as its controller last computed it."""

    namespace: str
    name: str
    selector: LabelSelector | None = None
    """The pods it protects; None selects no pod, an empty selector all pods of the namespace."""
    disruptions_allowed: int = 0
    disrupted_pods: tuple[str, ...] = ()
    """Names of pods whose eviction the budget has counted already."""


class BudgetLimits(msgspec.Struct, frozen=True):
    """What a disruption budget demands: a number of pods, or a percentage such as ``25%``; at most one is set."""

    min_available: int | str | None = None
    max_unavailable: int | str | None = None

    def desired_healthy(self, expected: int) -> int:
        """Return how many of *expected* pods must stay healthy. Percentages are rounded up, as upstream."""
        if self.max_unavailable is not None:
            return max(0, expected - _scaled(self.max_unavailable, expected))
        return 0 if self.min_available is None else _scaled(self.min_available, expected)


def _scaled(limit: int | str, whole: int) -> int:
    return limit if isinstance(limit, int) else -(-int(limit.removesuffix("%")) * whole // 100)
