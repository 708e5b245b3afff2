"""Decoder of PodDisruptionBudget objects."""

from typing import Any, Final

import msgspec
from msgspec import Raw

from lamina.model.disruption_budget import PodDisruptionBudget
from lamina.wire.errors import WireError
from lamina.wire.kube.constraints import LabelSelectorObject, label_selector
from lamina.wire.kube.meta import ObjectMeta


class BudgetSpec(msgspec.Struct, frozen=True, gc=False):
    """``spec`` of a budget."""

    selector: LabelSelectorObject | None = None


class BudgetStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``status`` of a budget, written by the disruption controller."""

    disruptions_allowed: int = 0
    disrupted_pods: dict[str, Any] | None = None


class BudgetObject(msgspec.Struct, frozen=True, gc=False):
    """A budget."""

    kind: str | None = None
    metadata: ObjectMeta = ObjectMeta()
    spec: BudgetSpec | None = None
    status: BudgetStatus | None = None


_DECODER: Final = msgspec.json.Decoder(BudgetObject)


def decode_disruption_budget(data: bytes | Raw) -> PodDisruptionBudget:
    """Return a decoded policy/v1 PodDisruptionBudget. Raises WireError."""
    try:
        found = _DECODER.decode(data)
    except (ValueError, RecursionError) as error:
        raise WireError("PodDisruptionBudget", f"{error}; check that a Kubernetes API server sent it") from error
    if found.kind and found.kind != "PodDisruptionBudget":
        raise WireError("PodDisruptionBudget", f"this is a {found.kind:.80}; ask for poddisruptionbudgets")
    spec, status = found.spec or BudgetSpec(), found.status or BudgetStatus()
    return PodDisruptionBudget(
        namespace=found.metadata.namespace,
        name=found.metadata.name,
        selector=None if spec.selector is None else label_selector(spec.selector),
        disruptions_allowed=status.disruptions_allowed,
        disrupted_pods=tuple(status.disrupted_pods or ()),
    )
