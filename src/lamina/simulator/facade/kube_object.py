"""
Kubernetes objects as the façade stores them: plain JSON values, exactly as clients sent them.

An object in the store is never changed in place, because watch events and cached encodings refer to it. Code that
changes an object copies it first.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

KubeObject = dict[str, Any]
"""One object, or a part of one, as decoded from JSON."""


class NamespacedName(NamedTuple):
    """Identity of an object within its resource; the namespace is empty for cluster-scoped resources."""

    namespace: str
    name: str


def copy_object(found: KubeObject) -> KubeObject:
    """Return a deep copy."""
    return {key: _copied(value) for key, value in found.items()}


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_copied(inner) for inner in value]
    return value


def part(found: Mapping[str, Any], name: str) -> KubeObject:
    """Return the mapping under *name*; empty if it is missing, null or of another type."""
    value = found.get(name)
    return value if isinstance(value, dict) else {}


def text(found: Mapping[str, Any], name: str) -> str:
    """Return the string under *name*; empty if it is missing, null or of another type."""
    value = found.get(name)
    return value if isinstance(value, str) else ""


def key_of(found: KubeObject) -> NamespacedName:
    """Return the key of an object."""
    metadata = part(found, "metadata")
    return NamespacedName(text(metadata, "namespace"), text(metadata, "name"))


def uid_of(found: KubeObject) -> str:
    """Return the uid of an object; empty if it has none."""
    return text(part(found, "metadata"), "uid")


def controller_of(found: KubeObject) -> KubeObject:
    """Return the reference to the object that controls this one; empty if there is none."""
    owners = part(found, "metadata").get("ownerReferences") or ()
    return next((owner for owner in owners if isinstance(owner, dict) and owner.get("controller")), {})


def with_metadata(found: KubeObject, **changes: Any) -> KubeObject:
    """Return a copy with other metadata; a value of None removes the field."""
    metadata = {**part(found, "metadata"), **changes}
    return {**found, "metadata": {key: value for key, value in metadata.items() if value is not None}}
