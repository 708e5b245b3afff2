"""
Strategic merge patch: a merge patch that merges lists of built-in types by key and obeys directives.

Directives: `$patch` with `delete` or `replace`, `$retainKeys`, `$deleteFromPrimitiveList/x`, `$setElementOrder/x`.
Nulls and directives never remain in the result.
"""

from typing import Any, Final

from lamina.simulator.facade.kube_object import KubeObject
from lamina.simulator.facade.patches.json_values import require_depth
from lamina.simulator.facade.patches.keyed_lists import KeyedList, arranged
from lamina.simulator.facade.patches.merge_rules import PLAIN_FIELD, FieldRule, field_rules, is_built_in, type_of
from lamina.simulator.facade.patches.patch_error import PatchError

_PATCH: Final = "$patch"
_RETAIN_KEYS: Final = "$retainKeys"
_SET_ORDER: Final = "$setElementOrder/"
_DELETE_SCALARS: Final = "$deleteFromPrimitiveList/"
_DIRECTIVES: Final = (_PATCH, _RETAIN_KEYS, _SET_ORDER, _DELETE_SCALARS)


def supports_strategic_merge(api_version: str, kind: str) -> bool:
    """Return whether the API server accepts strategic merge patches of this kind: it refuses custom resources."""
    return bool(kind) and is_built_in(api_version)


def apply_strategic_merge(document: KubeObject, patch: Any, api_version: str, kind: str) -> KubeObject:
    """
    Return the document with a strategic merge patch applied.

    The result shares unchanged parts with both arguments, which are not changed.
    """
    if not isinstance(patch, dict):
        raise PatchError(400, "error decoding patch: a strategic merge patch must be a JSON object")
    return _merged(document, patch, type_of(api_version, kind), 0)


def _merged(original: KubeObject, patch: KubeObject, type_name: str, depth: int) -> KubeObject:
    """Merge a mapping of the given type."""
    require_depth(depth)
    if _PATCH in patch:
        return _replaced_or_deleted(patch, depth)
    rules = field_rules(type_name)
    result = dict(original)
    if any(key.startswith("$") for key in patch):
        patch = dict(patch)
        _retain_keys(result, patch)
        _merge_ordered_lists(result, patch, rules, depth)
    for key, value in patch.items():
        if key.startswith(_DELETE_SCALARS):
            _delete_scalars(result, key.removeprefix(_DELETE_SCALARS), value)
        elif value is None:
            result.pop(key, None)
        else:
            _set(result, key, value, rules.get(key, PLAIN_FIELD), depth)
    return result


def _set(result: KubeObject, key: str, value: Any, rule: FieldRule, depth: int) -> None:
    """Merge one value of a patch into a mapping."""
    held = result.get(key)
    if isinstance(value, dict) and isinstance(held, dict) and not rule.replaced:
        result[key] = _merged(held, value, rule.child, depth + 1)
    elif isinstance(value, list) and isinstance(held, list) and rule.merge_key is not None:
        result[key] = _merged_list(held, value, rule, depth + 1)
    elif isinstance(value, dict) and _PATCH in value and not isinstance(held, dict):
        # A directive for a mapping that does not exist has nothing to replace or delete.
        result.pop(key, None)
    else:
        result[key] = _without_directives(value, depth + 1)


def _merged_list(original: list[Any], patch: list[Any], rule: FieldRule, depth: int) -> list[Any]:
    """Merge a list by key, or a list of scalars; elements of the patch keep their order."""
    require_depth(depth)
    if not rule.merge_key:
        merged = KeyedList(original, "")
        for element in patch:
            merged.put(element, element)
        return arranged(merged.elements, patch, original, "")
    original, patch = _without_special_elements(original, patch, rule.merge_key, depth)
    merged = KeyedList(original, rule.merge_key)
    for element in patch:
        held = merged.find(element)
        clean = _without_directives(element, depth) if held is None else _merged(held, element, rule.child, depth)
        merged.put(element, clean)
    return arranged(merged.elements, patch, original, rule.merge_key)


def _without_special_elements(
    original: list[Any], patch: list[Any], key: str, depth: int
) -> tuple[list[Any], list[Any]]:
    """Obey the elements of a patch that are directives; return what is left to be merged."""
    ordinary, deleted, replace = [], [], False
    for element in patch:
        if not isinstance(element, dict):
            raise _refused(f"an element of a list with merge key {key} is no mapping: {element!r}")
        if _PATCH not in element:
            ordinary.append(element)
        elif element[_PATCH] == "delete":
            deleted.append(element)
        elif element[_PATCH] == "replace":
            replace = True
        elif element[_PATCH] == "merge":
            raise _refused("merging lists cannot yet be specified in the patch")
        else:
            raise _refused(f"unknown patch type: {element[_PATCH]} in map: {element!r}")
    if replace:
        return _without_directives(ordinary, depth), []
    if deleted:
        gone = KeyedList(deleted, key)
        original = [element for element in original if gone.find(element) is None]
    return original, ordinary


def _replaced_or_deleted(patch: KubeObject, depth: int) -> KubeObject:
    directive = patch[_PATCH]
    if directive == "delete":
        return {}
    if directive == "replace":
        rest = {key: value for key, value in patch.items() if key != _PATCH}
        replaced: KubeObject = _without_directives(rest, depth)
        return replaced
    raise _refused(f"unknown patch type: {directive} in map: {patch!r}")


def _retain_keys(result: KubeObject, patch: KubeObject) -> None:
    """Remove the fields that `$retainKeys` does not list, and the directive itself."""
    if _RETAIN_KEYS not in patch:
        return
    kept = patch.pop(_RETAIN_KEYS)
    if not isinstance(kept, list):
        raise _malformed("retainKeys")
    for key, value in patch.items():
        if value is not None and not key.startswith((_SET_ORDER, _DELETE_SCALARS)) and key not in kept:
            raise _malformed("retainKeys")
    for key in [key for key in result if key not in kept]:
        del result[key]


def _merge_ordered_lists(result: KubeObject, patch: KubeObject, rules: dict[str, FieldRule], depth: int) -> None:
    """Merge the lists that have a `$setElementOrder` directive, and remove both from the patch."""
    for directive in [key for key in patch if key.startswith(_SET_ORDER)]:
        key, order = directive.removeprefix(_SET_ORDER), patch.pop(directive)
        rule = rules.get(key, PLAIN_FIELD)
        merge_key = rule.merge_key or ""
        original, added = result.get(key), patch.pop(key, None)
        if not all(isinstance(each, list | None) for each in (order, original, added)) or order is None:
            raise _malformed("setElementOrder list")
        if original is None and added is None:
            continue
        _require_order(added or [], order, merge_key)
        merged: KubeObject = {} if original is None else {key: original}
        if added is not None:
            _set(merged, key, added, rule, depth)
        result[key] = arranged(merged[key], order, original or [], merge_key)


def _require_order(patch: list[Any], order: list[Any], merge_key: str) -> None:
    """Refuse a list whose elements are missing in `$setElementOrder`, or are in another order there."""
    if not order:
        return
    expected = iter(KeyedList(order, merge_key).identities())
    ordinary = [each for each in patch if not (isinstance(each, dict) and _PATCH in each)]
    for identity in KeyedList(ordinary, merge_key).identities():
        if identity not in expected:
            raise _refused(f"The order in patch list: {patch!r} doesn't match $setElementOrder list: {order!r}")


def _delete_scalars(result: KubeObject, key: str, deleted: Any) -> None:
    if not isinstance(deleted, list) or any(isinstance(each, dict | list) for each in deleted):
        raise _malformed("primitive list")
    held = result.get(key)
    if isinstance(held, list):
        gone = KeyedList(deleted, "")
        result[key] = [element for element in held if isinstance(element, dict | list) or gone.find(element) is None]


def _without_directives(value: Any, depth: int) -> Any:
    """Return a value of a patch as it is stored if there is nothing to merge it with."""
    if isinstance(value, dict):
        require_depth(depth)
        return {
            key: _without_directives(inner, depth + 1)
            for key, inner in value.items()
            if inner is not None and not key.startswith(_DIRECTIVES) and not _is_directive(inner)
        }
    if isinstance(value, list):
        require_depth(depth)
        return [_without_directives(inner, depth + 1) for inner in value if not _is_directive(inner)]
    return value


def _is_directive(value: Any) -> bool:
    return isinstance(value, dict) and _PATCH in value


def _malformed(part: str) -> PatchError:
    return PatchError(400, f"invalid patch format of {part}")


def _refused(words: str) -> PatchError:
    return PatchError(422, words)
