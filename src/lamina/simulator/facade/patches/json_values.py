"""JSON values: equality by JSON's rules, and deep copies with a limit on depth."""

from typing import Any, Final

from lamina.simulator.facade.patches.patch_error import PatchError

MAX_DEPTH: Final = 64
"""Deepest nesting of a document and of a patch. The limit is Lamina's own; the API server allows 10,000 levels."""


def json_equal(left: Any, right: Any) -> bool:
    """Return whether two JSON values are equal; unlike in Python, `true` differs from 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and left.keys() == right.keys()
            and all(json_equal(value, right[key]) for key, value in left.items())
        )
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(json_equal, left, right))
    return bool(left == right)


def copy_json(value: Any, depth: int = 0) -> Any:
    """Return a deep copy of a value that is *depth* levels below the root; refuse one that is nested too deeply."""
    if isinstance(value, dict):
        require_depth(depth)
        return {key: copy_json(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list):
        require_depth(depth)
        return [copy_json(inner, depth + 1) for inner in value]
    return value


def require_depth(depth: int) -> None:
    """Refuse a mapping or a list that is *depth* levels below the root, if that is too deep."""
    if depth >= MAX_DEPTH:
        raise PatchError(400, f"the patch or the patched object is nested more than {MAX_DEPTH} levels deep")
