"""Decoder of PodDisruptionBudget objects."""

import re
from typing import Any, Final

import msgspec
from msgspec import Raw

from lamina.model.disruption_budget import BudgetLimits, PodDisruptionBudget
from lamina.wire.errors import WireError
from lamina.wire.kube.constraints import LabelSelectorObject, label_selector
from lamina.wire.kube.meta import ObjectMeta


class BudgetSpec(msgspec.Struct, frozen=True, gc=False):
    """``spec`` of a budget."""

    selector: LabelSelectorObject | None = None


class BudgetLimitsSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``spec`` of a budget, as far as the disruption controller reads it."""

    min_available: int | str | None = None
    max_unavailable: int | str | None = None


class BudgetLimitsObject(msgspec.Struct, frozen=True, gc=False):
    """A budget, as far as the disruption controller reads it."""

    spec: BudgetLimitsSpec | None = None


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


PERCENTAGE: Final = re.compile(r"[0-9]{1,9}%")
_LIMITS: Final = msgspec.json.Decoder(BudgetLimitsObject)
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


def decode_budget_limits(data: bytes | Raw) -> BudgetLimits:
    """Return the limits of a policy/v1 PodDisruptionBudget. Raises WireError."""
    try:
        spec = _LIMITS.decode(data).spec or BudgetLimitsSpec()
        return BudgetLimits(_limit(spec.min_available), _limit(spec.max_unavailable))
    except (ValueError, RecursionError) as error:
        raise WireError(
            "PodDisruptionBudget", f"{error}; write a number of pods, or a percentage such as 25%"
        ) from error


def _limit(written: int | str | None) -> int | str | None:
    if isinstance(written, str) and not PERCENTAGE.fullmatch(written):
        raise ValueError(f"{written!r:.40} is no percentage")
    if isinstance(written, int) and written < 0:
        raise ValueError(f"{written} is negative")
    return written
