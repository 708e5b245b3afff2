"""
Rules for merging the fields of an object, looked up by its kind.

Objects of other kinds, such as custom resources, have rules for their metadata only.
"""

import re
from functools import cache, lru_cache
from typing import Final

import msgspec

from lamina.simulator.facade.patches.type_entries import TYPE_ENTRIES

_ENTRY: Final = re.compile(
    r"(?P<name>\w+)(?:(?P<relation>[=~^])(?P<keys>[\w+]+|\*))?(?P<replaced>%)?(?P<atomic>!)?(?:>(?P<child>\w+))?"
)

_BUILT_IN_GROUPS: Final = frozenset(
    [
        "",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "apps",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "autoscaling",
        "batch",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "extensions",
        "flowcontrol.apiserver.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "resource.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
    ]
)
"""The groups whose types are compiled into the API server. Custom resources may use other groups under k8s.io."""


class FieldRule(msgspec.Struct, frozen=True):
    """How one field is merged."""

    child: str = ""
    """Type of the value, or of the elements of a list that is merged by key; empty if it has no rules."""
    merge_key: str | None = None
    """For strategic merge patches: key of a list's elements, empty for scalars; None if patches replace the list."""
    replaced: bool = False
    """Whether strategic merge patches replace the mapping."""
    list_keys: tuple[str, ...] | None = None
    """For server-side apply: keys of a list's elements, empty for scalars; None if the list is one value."""
    atomic: bool = False
    """Whether server-side apply treats the mapping, or each element of the list, as one value."""


PLAIN_FIELD: Final = FieldRule()
"""Rule of a field without an entry."""


def is_built_in(api_version: str) -> bool:
    """Return whether a group belongs to the API server itself, so that its kinds are no custom resources."""
    return _group(api_version) in _BUILT_IN_GROUPS


@lru_cache(maxsize=1024)
def type_of(api_version: str, kind: str) -> str:
    """Return the name of a kind's type, to be passed to `field_rules`."""
    if not is_built_in(api_version):
        return "OtherKind"
    if kind == "Event":
        return "EventsEvent" if _group(api_version) == "events.k8s.io" else "CoreEvent"
    return kind if "metadata>ObjectMeta" in TYPE_ENTRIES.get(kind, "") else "OtherKind"


@cache
def field_rules(type_name: str) -> dict[str, FieldRule]:
    """Return the rules for the fields of a type; the caller must not change them."""
    if type_name == "OtherKind":
        return {"metadata": FieldRule(child="ObjectMeta")}
    rules = {}
    for entry in TYPE_ENTRIES.get(type_name, "").split():
        found = _ENTRY.fullmatch(entry)
        assert found is not None, f"{type_name}: {entry} is not an entry"
        keys = () if found["keys"] in (None, "*") else tuple(found["keys"].split("+"))
        rules[found["name"]] = FieldRule(
            child=found["child"] or "",
            merge_key="".join(keys[:1]) if found["relation"] in ("=", "~") else None,
            replaced=found["replaced"] is not None,
            list_keys=keys if found["relation"] in ("=", "^") else None,
            atomic=found["atomic"] is not None,
        )
    return rules


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0]
