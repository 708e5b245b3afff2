"""
Amounts of compute resources as exact integers: cpu in thousandths, everything else in whole units.

A set of amounts is a sorted tuple of pairs, so that it can be compared, hashed and used as part of a pod's shape. The
requests of containers are combined by the Kubernetes API rule for sidecars.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from lamina.model import quantity
from lamina.model.quantity import LARGEST

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"
HUGE_PAGES: Final = "hugepages-"

# Requests assumed for a container without requests when nodes are scored (never when they are filtered). The numbers
# are upstream's (pkg/scheduler/util/pod_resources.go).
DEFAULT_REQUESTS: Final = ((CPU, 100), (MEMORY, 200 * 1024 * 1024))

Amounts = tuple[tuple[str, int], ...]


def amount(resource: str, value: str | float) -> int:
    """Parse one amount in the unit of this resource."""
    return quantity.milli(value) if resource == CPU else quantity.whole(value)


def amounts(values: Mapping[str, str | float]) -> Amounts:
    """Parse a Kubernetes resource list."""
    return tuple(sorted((name, amount(name, value)) for name, value in values.items()))


def add(*sets: Amounts) -> Amounts:
    """Return the sum, resource by resource."""
    total: dict[str, int] = {}
    for one in sets:
        for name, value in one:
            total[name] = total.get(name, 0) + value
    return tuple(sorted(total.items()))


def at_least(first: Amounts, second: Amounts) -> Amounts:
    """Return the larger amount, resource by resource."""
    largest = dict(first)
    for name, value in second:
        largest[name] = max(largest.get(name, value), value)
    return tuple(sorted(largest.items()))


def filled(asked: Amounts, defaults: Amounts) -> Amounts:
    """Return *asked* with missing resources taken from *defaults*."""
    return tuple(sorted({**dict(defaults), **dict(asked)}.items()))


def pod_total(
    containers: Iterable[Amounts],
    init: Iterable[tuple[Amounts, bool]] = (),
    pod_level: Amounts = (),
    overhead: Amounts = (),
) -> Amounts:
    """
    Return the total of a pod.

    *init* lists init containers in order with whether each is a sidecar (keeps running). An ordinary init container
    runs beside the sidecars started before it. The pod therefore needs the larger of that peak and the sum of all
    containers that keep running. Amounts for the whole pod replace the sum of its containers (the API allows that for
    cpu, memory and huge pages only). Overhead is added.
    """
    replacing = tuple(one for one in pod_level if one[0] in (CPU, MEMORY) or one[0].startswith(HUGE_PAGES))
    running = add(*containers)
    sidecars: Amounts = ()
    peak: Amounts = ()
    for asked, keeps_running in init:
        if keeps_running:
            running = add(running, asked)
            sidecars = add(sidecars, asked)
            peak = at_least(peak, sidecars)
        else:
            peak = at_least(peak, add(asked, sidecars))
    total = add(filled(replacing, at_least(running, peak)), overhead)
    # Clamped like a single amount, so that no encoding needs more than 64 bits.
    return tuple([(name, min(value, LARGEST)) for name, value in total])
