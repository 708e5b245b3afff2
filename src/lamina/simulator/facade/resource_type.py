"""
One resource of the façade's API: its names, its scope, the versions that serve it and what a client may do with it.

A resource is stored once. Its other versions, and the groups that served it in old releases of Kubernetes, are views
of the same objects: an answer carries the ``apiVersion`` that the request asked for, and nothing else changes.
"""

import re
from typing import Final

import msgspec

STANDARD_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
"""Verbs of an ordinary resource, in the order of the real server's discovery."""
CREATE_ONLY: Final = ("create",)
"""Verbs of a resource that is a question to the server and is not stored."""

_VERSION: Final = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_STABILITY: Final = {"alpha": 0, "beta": 1, None: 2}


class PrinterColumn(msgspec.Struct, frozen=True):
    """One column of a custom resource's table."""

    name: str
    type: str
    json_path: str
    format: str = ""
    description: str = ""
    priority: int = 0


class ScalePaths(msgspec.Struct, frozen=True):
    """Where a resource with the subresource ``scale`` keeps its numbers, as paths such as ``.spec.replicas``."""

    spec_replicas: str = ".spec.replicas"
    status_replicas: str = ".status.replicas"
    label_selector: str = ""
    """Path of a selector in text form; empty for built-in resources, whose selector is an object in the spec."""


class ResourceType(msgspec.Struct, frozen=True, kw_only=True):
    """One resource that the façade serves."""

    group: str
    """API group; empty for the core group."""
    version: str
    """Storage version: the ``apiVersion`` of stored objects is made of it."""
    resource: str
    """Plural name, as in paths."""
    kind: str
    namespaced: bool
    singular: str
    list_kind: str
    versions: tuple[str, ...]
    """All served versions of `group`, the preferred one first; contains `version`."""
    views: tuple[tuple[str, str], ...] = ()
    """Group and version of each view in another group, such as extensions/v1beta1."""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = STANDARD_VERBS
    custom: bool = False
    columns: tuple[tuple[str, tuple[PrinterColumn, ...]], ...] = ()
    """Version and printer columns of a custom resource; empty if it declares none."""
    scale: ScalePaths | None = None

    @property
    def api_version(self) -> str:
        """The ``apiVersion`` of stored objects."""
        return join_group_version(self.group, self.version)

    @property
    def qualified_name(self) -> str:
        """Plural name and group: ``pods``, ``deployments.apps``; the name of its CustomResourceDefinition if any."""
        return f"{self.resource}.{self.group}" if self.group else self.resource

    @property
    def stored(self) -> bool:
        """Whether objects are kept; False for create-only resources such as bindings and access reviews."""
        return "get" in self.verbs

    def served_in(self) -> tuple[tuple[str, str], ...]:
        """Return group and version of every path that serves this resource, the preferred one first."""
        return (*((self.group, version) for version in self.versions), *self.views)

    def columns_of(self, version: str) -> tuple[PrinterColumn, ...]:
        """Return the printer columns that a custom resource declares for *version*."""
        return next((columns for served, columns in self.columns if served == version), ())


def join_group_version(group: str, version: str) -> str:
    """Return the ``apiVersion`` of a group and a version."""
    return f"{group}/{version}" if group else version


def split_api_version(api_version: str) -> tuple[str, str]:
    """Return group and version of an ``apiVersion``."""
    group, _, version = api_version.rpartition("/")
    return group, version


def version_priority(version: str) -> tuple[int, int, int, str]:
    """Return a key that sorts versions as Kubernetes does, best last: v1alpha1, v1beta1, v1beta2, v1, v2."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return (-1, 0, 0, version)
    major, stability, minor = found.groups()
    return (_STABILITY[stability], int(major), int(minor or 0), "")
