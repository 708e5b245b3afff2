"""
Fields that an API keeps twice: as one value, for old clients, and as a list whose first element is that value.

    Node spec.podCIDR   spec.podCIDRs
    Pod status.podIP    status.podIPs[].ip
"""

from lamina.simulator.facade.kube_object import KubeObject, part
from lamina.simulator.facade.resource_type import ResourceType


def with_paired_fields(type_: ResourceType, found: KubeObject) -> KubeObject:
    """Return an object whose paired fields agree; the list is taken from the single value if they do not."""
    if type_.custom or type_.kind not in {"Node", "Pod"} or type_.group:
        return found
    if type_.kind == "Node":
        return _paired(found, "spec", "podCIDR", "podCIDRs", "")
    return _paired(found, "status", "podIP", "podIPs", "ip")


def _paired(found: KubeObject, section: str, one: str, many: str, name: str) -> KubeObject:
    inner = part(found, section)
    value, values = inner.get(one), inner.get(many)
    if value:
        first = {name: value} if name else value
        if values and values[0] == first:
            return found
        return {**found, section: {**inner, many: [first]}}
    if values:
        first = values[0].get(name) if name else values[0]
        return {**found, section: {**inner, one: first}} if first else found
    return found
