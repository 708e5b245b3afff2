"""Accessors for fields of objects that clients sent: a field that is missing, null or of another type reads as empty."""

from collections.abc import Mapping
from typing import Any

from lamina.simulator.facade.kube_object import KubeObject, part, text


def mappings(found: Mapping[str, Any], name: str) -> list[KubeObject]:
    """Return the mappings of the list under *name*; empty if there is none."""
    value = found.get(name)
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def texts(found: Mapping[str, Any], name: str) -> list[str]:
    """Return the strings of the list under *name*; empty if there is none."""
    value = found.get(name)
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def number(found: Mapping[str, Any], name: str) -> int:
    """Return the whole number under *name*; 0 if there is none."""
    value = found.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def object_name(found: KubeObject) -> str:
    """Return the name of an object."""
    return text(part(found, "metadata"), "name")


def labels_of(found: KubeObject) -> KubeObject:
    """Return the labels in the metadata of an object or a template."""
    return part(part(found, "metadata"), "labels")


def with_labels(found: KubeObject, labels: KubeObject) -> KubeObject:
    """Return a copy with these labels."""
    return {**found, "metadata": {**part(found, "metadata"), "labels": labels}}
