"""The quality-of-service class of a pod: Guaranteed, Burstable or BestEffort, by the rules of Kubernetes."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, Final

from lamina.simulator.facade.canonical_quantities import exact_quantity
from lamina.simulator.facade.kube_object import KubeObject, part
from lamina.simulator.facade.object_fields import mappings

GUARANTEED: Final = "Guaranteed"
BURSTABLE: Final = "Burstable"
BEST_EFFORT: Final = "BestEffort"

_COMPUTE: Final = ("cpu", "memory")


def qos_class(spec: KubeObject) -> str:
    """Return the class of a pod with this spec, whose quantities are valid; resources of the pod itself take priority."""
    lists = [part(spec, "resources")] if part(spec, "resources") else None
    if lists is None:
        containers = [*mappings(spec, "initContainers"), *mappings(spec, "containers")]
        lists = [part(container, "resources") for container in containers]
    requests = _summed(part(each, "requests") for each in lists)
    limits = _summed(part(each, "limits") for each in lists)
    if not requests and not limits:
        return BEST_EFFORT
    limited = all(len(_positive(part(each, "limits"))) == len(_COMPUTE) for each in lists)
    return GUARANTEED if limited and requests == limits else BURSTABLE


def _positive(amounts: Mapping[str, Any]) -> dict[str, Fraction]:
    found = {name: exact_quantity(amounts[name]) for name in _COMPUTE if name in amounts}
    return {name: amount for name, amount in found.items() if amount > 0}


def _summed(lists: Iterable[Mapping[str, Any]]) -> dict[str, Fraction]:
    total: dict[str, Fraction] = {}
    for amounts in lists:
        for name, amount in _positive(amounts).items():
            total[name] = total.get(name, Fraction(0)) + amount
    return total
