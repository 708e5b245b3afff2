"""JSON merge patch (RFC 7386)."""

from typing import Any

from lamina.simulator.facade.kube_object import KubeObject
from lamina.simulator.facade.patches.json_values import require_depth
from lamina.simulator.facade.patches.patch_error import PatchError


def apply_merge_patch(document: KubeObject, patch: Any) -> KubeObject:
    """
    Return the document with a merge patch applied.

    The result shares unchanged parts with both arguments, which are not changed.
    """
    if not isinstance(patch, dict):
        raise PatchError(400, "error decoding patch: a merge patch of an object must be a JSON object")
    return _merged(document, patch, 0)


def _merged(target: Any, patch: KubeObject, depth: int) -> KubeObject:
    require_depth(depth)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = _merged(result.get(key), value, depth + 1)
        else:
            result[key] = value
    return result
