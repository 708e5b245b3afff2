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
