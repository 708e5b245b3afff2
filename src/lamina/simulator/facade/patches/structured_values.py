"""
Values with merge rules, as server-side apply sees them.

Mappings are merged field by field and keyed lists element by element. Everything else is a leaf: scalars, lists without
keys, empty mappings, and mappings that the rules declare as one value.
"""

import json
from typing import Any, Final, NamedTuple

from lamina.simulator.facade.kube_object import KubeObject
from lamina.simulator.facade.patches.field_set import FieldSet
from lamina.simulator.facade.patches.json_values import json_equal, require_depth
from lamina.simulator.facade.patches.merge_rules import PLAIN_FIELD, FieldRule, field_rules
from lamina.simulator.facade.patches.patch_error import PatchError

_Path = tuple[str, ...]
_KEY_DEFAULTS: Final = {"protocol": "TCP"}
"""Values of keys that an element may leave out."""

_ALWAYS_PRESENT: Final = (("f:spec",), ("f:status",))
"""Containers that every object of the API server has, even if they are empty and not written out."""


class _Missing:
    """Type of the value that a side of a comparison does not have."""


MISSING: Final = _Missing()


class FieldChanges(NamedTuple):
    """What a new version of an object changes."""

    removed: FieldSet
    modified: FieldSet
    added: FieldSet


def fields_of(value: KubeObject, rule: FieldRule) -> FieldSet:
    """Return the leaves of an object, and the elements of its keyed lists."""
    found = FieldSet()
    _collect(value, rule, (), found)
    return found


def _collect(value: Any, rule: FieldRule, path: _Path, found: FieldSet) -> None:
    require_depth(len(path))
    if _is_leaf(value, rule):
        found.insert(path)
    elif isinstance(value, dict):
        rules = field_rules(rule.child)
        for name, inner in value.items():
            _collect(inner, rules.get(name, PLAIN_FIELD), (*path, f"f:{name}"), found)
    else:
        for element, inner in _elements(value, rule).items():
            found.insert((*path, element))
            _collect(inner, _element_rule(rule), (*path, element), found)


def merged_value(live: Any, applied: Any, rule: FieldRule, depth: int = 0) -> Any:
    """Return a live value with an applied one merged into it."""
    require_depth(depth)
    if isinstance(live, dict) and isinstance(applied, dict) and not rule.atomic:
        rules = field_rules(rule.child)
        return live | {
            name: merged_value(live[name], inner, rules.get(name, PLAIN_FIELD), depth + 1) if name in live else inner
            for name, inner in applied.items()
        }
    if isinstance(live, list) and isinstance(applied, list) and rule.list_keys is not None:
        return _merged_elements(_elements(live, rule), _elements(applied, rule), rule, depth)
    return applied


def _merged_elements(live: KubeObject, applied: KubeObject, rule: FieldRule, depth: int) -> list[Any]:
    """Merge keyed lists: applied elements keep their order, and live ones stay where they were between shared ones."""
    inner = _element_rule(rule)
    merged: list[Any] = []
    order, position = list(live), 0
    upcoming = iter([element for element in applied if element in live])
    shared = next(upcoming, None)
    for element, value in applied.items():
        while position < len(order) and order[position] != shared:
            if order[position] not in applied:
                merged.append(live[order[position]])
            position += 1
        if element == shared:
            merged.append(merged_value(live[element], value, inner, depth + 1))
            shared = next(upcoming, None)
        else:
            merged.append(value)
    merged.extend(live[element] for element in order[position:] if element not in applied)
    return merged


def changes_between(old: KubeObject, new: KubeObject, rule: FieldRule) -> FieldChanges:
    """Compare two versions of an object."""
    changes = FieldChanges(FieldSet(), FieldSet(), FieldSet())
    _compare(old, new, rule, (), changes)
    return changes


def _compare(old: Any, new: Any, rule: FieldRule, path: _Path, changes: FieldChanges) -> None:
    require_depth(len(path))
    pairs = _pairs(old, new, rule)
    if pairs is None and old is not MISSING and new is not MISSING:
        if not json_equal(old, new):
            changes.modified.insert(path)
        return
    # A side that does not exist makes the container itself added or removed, and not only its parts.
    if pairs is None or path not in _ALWAYS_PRESENT:
        if old is MISSING:
            changes.added.insert(path)
        elif new is MISSING:
            changes.removed.insert(path)
    for element, (before, after, inner) in (pairs or {}).items():
        _compare(before, after, inner, (*path, element), changes)


def _pairs(old: Any, new: Any, rule: FieldRule) -> dict[str, tuple[Any, Any, FieldRule]] | None:
    """Return the parts of two values by their path elements; None if the values are compared as a whole."""
    known = [value for value in (old, new) if value is not MISSING]
    if not any(known):
        return None
    if all(isinstance(value, dict) for value in known) and not rule.atomic:
        rules = field_rules(rule.child)
        left, right = ({} if value is MISSING else value for value in (old, new))
        return {
            f"f:{name}": (left.get(name, MISSING), right.get(name, MISSING), rules.get(name, PLAIN_FIELD))
            for name in left | right
        }
    if all(isinstance(value, list) for value in known) and rule.list_keys is not None:
        left, right = ({} if value is MISSING else _elements(value, rule) for value in (old, new))
        inner = _element_rule(rule)
        return {element: (left.get(element, MISSING), right.get(element, MISSING), inner) for element in left | right}
    return None


def without_fields(value: Any, removed: FieldSet, rule: FieldRule) -> Any:
    """Return a value without some of its fields and elements; `MISSING` if nothing is left of it."""
    if not isinstance(value, dict | list):
        return value
    if isinstance(value, dict):
        if rule.atomic:
            return MISSING
        rules = field_rules(rule.child)
        kept = {}
        for name, inner in value.items():
            left = _left(inner, f"f:{name}", removed, rules.get(name, PLAIN_FIELD))
            if left is not MISSING:
                kept[name] = left
        return kept or MISSING
    if rule.list_keys is None:
        return MISSING
    inner_rule = _element_rule(rule)
    left_elements = [_left(inner, element, removed, inner_rule) for element, inner in _elements(value, rule).items()]
    return [left for left in left_elements if left is not MISSING] or MISSING


def _left(value: Any, element: str, removed: FieldSet, rule: FieldRule) -> Any:
    if element in removed.members:
        return MISSING
    below = removed.below(element)
    return without_fields(value, below, rule) if below else value


def _is_leaf(value: Any, rule: FieldRule) -> bool:
    if isinstance(value, dict):
        return rule.atomic or not value
    return not isinstance(value, list) or rule.list_keys is None


def _element_rule(rule: FieldRule) -> FieldRule:
    return FieldRule(child=rule.child, atomic=rule.atomic)


def _elements(values: list[Any], rule: FieldRule) -> dict[str, Any]:
    """Return the elements of a keyed list by their path elements; a repeated key is addressed by its position."""
    found: dict[str, Any] = {}
    for position, value in enumerate(values):
        element = _path_element(value, rule.list_keys or ())
        found[element if element not in found else f"i:{position}"] = value
    return found


def _path_element(value: Any, keys: tuple[str, ...]) -> str:
    if not keys:
        if isinstance(value, dict | list | None):
            raise PatchError(400, f"a list of scalars has the element {value!r}, which is no scalar")
        return f"v:{_json(value)}"
    if not isinstance(value, dict):
        raise PatchError(400, f"associative list with keys may not have non-map elements: {value!r}")
    found = {key: value.get(key, _KEY_DEFAULTS.get(key)) for key in sorted(keys)}
    found = {key: held for key, held in found.items() if held is not None}
    if not any(key in value for key in keys):
        raise PatchError(400, f"associative list with keys has an element that omits all key fields {list(keys)}")
    return f"k:{_json(found)}"


def require_distinct_elements(value: Any, rule: FieldRule, path: str = "") -> None:
    """Refuse a configuration with two elements of one key in a list."""
    if isinstance(value, dict) and not rule.atomic:
        rules = field_rules(rule.child)
        for name, inner in value.items():
            require_distinct_elements(inner, rules.get(name, PLAIN_FIELD), f"{path}.{name}")
    elif isinstance(value, list) and rule.list_keys is not None:
        seen = set()
        for inner in value:
            element = _path_element(inner, rule.list_keys)
            if element in seen:
                raise PatchError(400, f"{path}: duplicate entries for key {element.partition(':')[2]}")
            seen.add(element)
            require_distinct_elements(inner, _element_rule(rule), path)


def _json(value: Any) -> str:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    # As Kubernetes writes them.
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
