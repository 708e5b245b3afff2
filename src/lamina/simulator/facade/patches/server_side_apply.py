"""
Server-side apply: merges a client's configuration into an object and records which fields the client owns.

A field that the client applied before and leaves out now is removed, unless another manager owns it. A field that
another manager owns with another value is a conflict. An object without managedFields was written by clients that
Lamina does not track; the first apply gives all its fields to one manager, as the API server does.
"""

import json
from typing import Any, Final

from lamina.simulator.facade.kube_object import KubeObject, part, text
from lamina.simulator.facade.patches.field_set import FieldSet, path_text
from lamina.simulator.facade.patches.json_values import require_depth
from lamina.simulator.facade.patches.managed_fields import (
    APPLY,
    UPDATE,
    FieldManager,
    ManagedFields,
    ManagedFieldsEntry,
)
from lamina.simulator.facade.patches.merge_rules import FieldRule, type_of
from lamina.simulator.facade.patches.patch_error import PatchCause, PatchError
from lamina.simulator.facade.patches.structured_values import (
    MISSING,
    changes_between,
    fields_of,
    merged_value,
    require_distinct_elements,
    without_fields,
)

_BEFORE_FIRST_APPLY: Final = "before-first-apply"
_KUBECTL: Final = "kubectl"
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_UNMANAGED_METADATA: Final = (
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
)
_UNMANAGED: Final = FieldSet(
    {"f:apiVersion", "f:kind", "f:metadata"}, {"f:metadata": FieldSet({f"f:{name}" for name in _UNMANAGED_METADATA})}
)
"""Fields that are the API server's own and never belong to a manager."""


def apply_configuration(
    live: KubeObject | None, applied: KubeObject, *, manager: str, force: bool, now: str, subresource: str = ""
) -> KubeObject:
    """
    Return the object after a client applied a configuration to it; *live* is None if it does not exist yet.

    The object's managedFields are up to date; *now* is the time for them, in the API's format. A conflict is refused
    with 409, unless the client forces it.
    """
    _require_configuration(applied)
    applied = _without_nulls(applied, 0)
    rule = _root_rule(applied)
    require_distinct_elements(applied, rule)
    old = {"apiVersion": applied["apiVersion"], "kind": applied["kind"]} if live is None else _unmanaged(live)
    managers = ManagedFields.of(live or {})
    if not managers and live is not None:
        version = text(applied, "apiVersion")
        fields = changes_between({}, old, rule).added - _UNMANAGED
        managers.put(FieldManager(_BEFORE_FIRST_APPLY, UPDATE, version), ManagedFieldsEntry(fields, version, now))

    own = FieldManager(manager, APPLY, subresource=subresource)
    previous = managers.entry(own)
    applied_fields = fields_of(applied, rule)
    merged = merged_value(old, applied, rule)
    new = merged
    if previous is not None:
        new = _pruned(merged, previous.fields, managers.all_fields(except_of=own) | applied_fields, rule)
    entry = ManagedFieldsEntry(applied_fields - _UNMANAGED, applied["apiVersion"], now)
    managers.put(own, entry)

    changes = changes_between(old, new, rule)
    conflicts = {
        other: managers.fields(other) & (changes.modified | changes.added) for other in managers if other != own
    }
    conflicts = {other: fields for other, fields in conflicts.items() if fields}
    if conflicts and not force:
        _require_allowed(
            conflicts, managers, _unchanged_since_last_applied(old, rule) if manager == _KUBECTL else FieldSet()
        )
    for other in managers:
        if other != own:
            managers.take_away(other, conflicts.get(other, FieldSet()) | changes.removed)
    if previous is not None and new == old and live is not None:
        # Nothing changed, so the time of the last change stays.
        managers.put(own, ManagedFieldsEntry(entry.fields, entry.api_version, previous.time))
    if manager == _KUBECTL:
        new = _with_last_applied(new, applied)
    return _managed(new, managers)


def record_update(
    live: KubeObject | None, new: KubeObject, *, manager: str, now: str, subresource: str = ""
) -> KubeObject:
    """
    Return a new version of an object with its managedFields, after any write except apply.

    An object that exists without managedFields stays untracked.
    """
    managers = ManagedFields.of(new) or ManagedFields.of(live or {})
    if live is not None and not managers:
        return _unmanaged(new)
    version = text(new, "apiVersion")
    changes = changes_between(_unmanaged(live or {}), _unmanaged(new), _root_rule(new))
    taken = changes.modified | changes.added
    for other in managers:
        managers.take_away(other, taken | changes.removed)
    if owned := taken - _UNMANAGED:
        own = FieldManager(manager, UPDATE, version, subresource)
        managers.put(own, ManagedFieldsEntry(managers.fields(own) | owned, version, now))
    managers.join_old_updates()
    return _managed(_unmanaged(new), managers)


def _require_configuration(applied: KubeObject) -> None:
    for name in ("apiVersion", "kind"):
        if not text(applied, name):
            raise PatchError(400, f"invalid object type: the applied configuration has no {name}")
    if part(applied, "metadata").get("managedFields") is not None:
        raise PatchError(400, "metadata.managedFields must be nil")


def _root_rule(found: KubeObject) -> FieldRule:
    return FieldRule(child=type_of(text(found, "apiVersion"), text(found, "kind")))


def _pruned(merged: KubeObject, last: FieldSet, owned: FieldSet, rule: FieldRule) -> KubeObject:
    """Remove what the client applied last time, and no manager owns now."""
    last = last.with_holders()
    everything = fields_of(merged, rule).with_holders()
    without_last = _fields_after_removal(merged, last, rule)
    unowned = everything - (without_last | owned.with_holders())
    left = _fields_after_removal(merged, unowned, rule)
    pruned = without_fields(merged, (everything - left) & last, rule)
    return {} if pruned is MISSING else pruned


def _fields_after_removal(value: KubeObject, removed: FieldSet, rule: FieldRule) -> FieldSet:
    left = without_fields(value, removed, rule)
    return FieldSet() if left is MISSING else fields_of(left, rule).with_holders()


def _require_allowed(conflicts: dict[FieldManager, FieldSet], managers: ManagedFields, allowed: FieldSet) -> None:
    """Raise the conflict error, unless all conflicts are allowed."""
    found = {other: list((fields - allowed).paths()) for other, fields in sorted(conflicts.items())}
    causes, lines = [], []
    for other, paths in found.items():
        if not paths:
            continue
        words = _manager_words(other, managers)
        lines.append(f"conflicts with {words}:")
        for path in paths:
            causes.append(PatchCause("FieldManagerConflict", f"conflict with {words}", path_text(path)))
            lines.append(f"- {path_text(path)}")
    if len(causes) == 1:
        cause = causes[0]
        message = f"Apply failed with 1 conflict: {cause.message}: {cause.field}"
        raise PatchError(409, message, tuple(causes))
    if causes:
        raise PatchError(409, f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines), tuple(causes))


def _manager_words(manager: FieldManager, managers: ManagedFields) -> str:
    words = json.dumps(manager.name)
    if manager.subresource:
        words += f" with subresource {json.dumps(manager.subresource)}"
    entry = managers.entry(manager)
    if manager.operation == UPDATE and entry is not None:
        words += f" using {entry.api_version}" + (f" at {entry.time}" if entry.time else "")
    return words


def _unchanged_since_last_applied(live: KubeObject, rule: FieldRule) -> FieldSet:
    """Return the fields that kubectl set with a client-side apply, and no client changed since."""
    annotation = part(part(live, "metadata"), "annotations").get(_LAST_APPLIED)
    try:
        last = json.loads(annotation) if isinstance(annotation, str) else None
    except ValueError:
        return FieldSet()
    if not isinstance(last, dict) or last.get("apiVersion") != live.get("apiVersion"):
        return FieldSet()
    changes = changes_between(last, live, rule)
    return fields_of(last, rule) - changes.modified - changes.added - changes.removed


def _with_last_applied(new: KubeObject, applied: KubeObject) -> KubeObject:
    """Keep kubectl's annotation up to date, if the object has it."""
    metadata = part(new, "metadata")
    annotations = part(metadata, "annotations")
    if not annotations.get(_LAST_APPLIED):
        return new
    given = part(applied, "metadata")
    kept = {name: value for name, value in part(given, "annotations").items() if name != _LAST_APPLIED}
    configuration = {**applied, "metadata": {**given, **({"annotations": kept} if "annotations" in given else {})}}
    encoded = json.dumps(configuration, separators=(",", ":"), sort_keys=True) + "\n"
    return {**new, "metadata": {**metadata, "annotations": {**annotations, _LAST_APPLIED: encoded}}}


def _unmanaged(found: KubeObject) -> KubeObject:
    metadata = found.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return found
    return {**found, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}


def _managed(found: KubeObject, managers: ManagedFields) -> KubeObject:
    if not managers:
        return found
    return {**found, "metadata": {**part(found, "metadata"), "managedFields": managers.to_json()}}


def _without_nulls(value: Any, depth: int) -> Any:
    if isinstance(value, dict):
        require_depth(depth)
        return {name: _without_nulls(inner, depth + 1) for name, inner in value.items() if inner is not None}
    if isinstance(value, list):
        require_depth(depth)
        return [_without_nulls(inner, depth + 1) for inner in value]
    return value
