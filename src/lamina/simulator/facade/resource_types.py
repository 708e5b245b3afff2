"""
The resources that the façade serves: a registry by path and by kind, built-in ones and custom ones.

The router finds the type of a request here, discovery and OpenAPI list it. The registry reads and stores no objects:
the caller that stores a CustomResourceDefinition also registers it.
"""

from collections.abc import Iterable
from typing import Final

from lamina.simulator.facade.custom_resource_types import custom_resource_type, name_conflict
from lamina.simulator.facade.kube_object import KubeObject
from lamina.simulator.facade.resource_catalog import built_in_types
from lamina.simulator.facade.resource_type import (
    PrinterColumn,
    ResourceType,
    ScalePaths,
    join_group_version,
    split_api_version,
    version_priority,
)

MAX_CUSTOM_TYPES: Final = 1000
"""Custom resources that can be registered at a time."""

__all__ = [
    "MAX_CUSTOM_TYPES",
    "PrinterColumn",
    "ResourceType",
    "ResourceTypes",
    "ScalePaths",
    "join_group_version",
    "split_api_version",
]


class ResourceTypes:
    """All resources that the façade serves; custom ones can be added and removed."""

    def __init__(self, *, legacy: bool = True) -> None:
        """Start with the built-in resources; with *legacy* also the views that Kubernetes no longer serves."""
        self._built_in = tuple(built_in_types(legacy=legacy))
        self._custom: dict[str, ResourceType] = {}
        self._by_path: dict[tuple[str, str, str], ResourceType] = {}
        self._by_kind: dict[tuple[str, str], ResourceType] = {}
        self._revision = 0
        self._index()

    @property
    def revision(self) -> int:
        """A number that changes with every added or removed custom resource, for callers that cache documents."""
        return self._revision

    def find(self, group: str, version: str, resource: str) -> ResourceType | None:
        """Return the type that a path names: by its own group and version, or by a view."""
        return self._by_path.get((group, version, resource))

    def by_kind(self, api_version: str, kind: str) -> ResourceType | None:
        """Return the type that an object's ``apiVersion`` and ``kind`` name."""
        return self._by_kind.get((api_version, kind))

    def all(self) -> tuple[ResourceType, ...]:
        """Return every type once, built-in ones first, in the order of discovery."""
        return (*self._built_in, *self._custom.values())

    def custom(self, name: str) -> ResourceType | None:
        """Return the custom type of the definition *name*, such as ``podgroups.scheduling.volcano.sh``."""
        return self._custom.get(name)

    def served(self) -> dict[str, dict[str, list[ResourceType]]]:
        """
        Return the types of each group and version, as discovery lists them.

        Groups come in the order of discovery, with groups that only have views at the end; versions best first.
        """
        found: dict[str, dict[str, list[ResourceType]]] = {}
        for each in self.all():
            for version in each.versions:
                found.setdefault(each.group, {}).setdefault(version, []).append(each)
        for each in self.all():
            for group, version in each.views:
                found.setdefault(group, {}).setdefault(version, []).append(each)
        return {
            group: dict(sorted(versions.items(), key=lambda item: version_priority(item[0]), reverse=True))
            for group, versions in found.items()
        }

    def add_custom(self, crd: KubeObject) -> ResourceType:
        """
        Register what a CustomResourceDefinition defines, or replace it, and return its type.

        Raise `StatusError` 422 if the definition is incomplete, if its names are taken, or if too many are registered.
        """
        found = custom_resource_type(crd)
        name = found.qualified_name
        for other in self.all():
            if other.group != found.group or (other.custom and other.qualified_name == name):
                continue
            if other.resource == found.resource:
                raise name_conflict(name, f'"{found.resource}" is already served in the group "{found.group}"')
            if other.kind == found.kind:
                raise name_conflict(name, f'the kind "{found.kind}" is already served in the group "{found.group}"')
        if name not in self._custom and len(self._custom) >= MAX_CUSTOM_TYPES:
            raise name_conflict(name, f"{MAX_CUSTOM_TYPES} custom resources are registered; delete some of them")
        self._custom[name] = found
        self._index()
        return found

    def add_customs(self, crds: Iterable[KubeObject]) -> None:
        """Register several definitions."""
        for crd in crds:
            self.add_custom(crd)

    def remove_custom(self, name: str) -> ResourceType | None:
        """Remove a custom resource by the name of its definition; return its type, or None if it is unknown."""
        found = self._custom.pop(name, None)
        if found is not None:
            self._index()
        return found

    def _index(self) -> None:
        self._revision += 1
        self._by_path = {}
        self._by_kind = {}
        for each in self.all():
            for group, version in each.served_in():
                self._by_path[(group, version, each.resource)] = each
                self._by_kind[(join_group_version(group, version), each.kind)] = each
