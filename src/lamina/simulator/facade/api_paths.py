"""
Paths of the API, parsed.

    /api/v1/pods                                           core resource, all namespaces
    /api/v1/namespaces/NS/pods/NAME/binding                subresource
    /apis/GROUP/VERSION/namespaces/NS/RESOURCE/NAME
    /api/v1/watch/…                                        the older form of ?watch=true

A trailing slash is ignored, because some clients send one.
"""

from typing import Final
from urllib.parse import unquote

import msgspec

from lamina.simulator.facade.api_errors import no_such_path

NAMESPACES: Final = "namespaces"
OF_NAMESPACE: Final = frozenset({"status", "finalize"})
"""Subresources of a namespace; any other word after a namespace's name is a resource in it."""
LONGEST: Final = 2_048
MOST_PARTS: Final = 12


class ResourcePath(msgspec.Struct, frozen=True):
    """The resource, object or subresource that a path names; unused parts are empty."""

    group: str
    version: str
    resource: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    watch: bool = False
    """Whether the path has the older form that asks for a watch."""


def path_parts(path: str) -> list[str]:
    """Return the decoded parts of a path. Raises StatusError 404 if it is too long."""
    if len(path) > LONGEST:
        raise no_such_path()
    parts = [unquote(part) for part in path.split("/") if part]
    if len(parts) > MOST_PARTS:
        raise no_such_path()
    return parts


def resource_path(parts: list[str]) -> ResourcePath:
    """Return what the parts of a path name. Raises StatusError 404 if they name no resource."""
    if parts[:1] == ["api"] and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[:1] == ["apis"] and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise no_such_path()
    watch = rest[0] == "watch" and len(rest) > 1
    if watch:
        rest = rest[1:]
    namespace = ""
    if rest[0] == NAMESPACES and len(rest) > 2 and rest[2] not in OF_NAMESPACE:
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3:
        raise no_such_path()
    resource, name, subresource = (*rest, "", "")[:3]
    return ResourcePath(group, version, resource, namespace, name, subresource, watch)
