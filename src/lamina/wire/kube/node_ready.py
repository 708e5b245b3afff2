"""
Decoder of a node's Ready condition.

Schedulers use taints instead. The annotator uses the condition, because it writes nothing about nodes that are not
ready.
"""

from typing import Final

import msgspec

from lamina.wire.errors import WireError


class _ReadyCondition(msgspec.Struct, frozen=True, gc=False):
    type: str = ""
    status: str = ""


class _ReadyStatus(msgspec.Struct, frozen=True, gc=False):
    conditions: list[_ReadyCondition] | None = None


class _ReadyNode(msgspec.Struct, frozen=True, gc=False):
    status: _ReadyStatus | None = None


_OBJECT: Final = msgspec.json.Decoder(_ReadyNode)


def decode_ready(data: bytes | msgspec.Raw, name: str = "") -> bool:
    """Return whether the node *name* is ready; a node without the condition is not. Raises WireError."""
    try:
        status = _OBJECT.decode(data).status
    except (ValueError, RecursionError) as error:
        raise WireError("Node", str(error), name) from error
    conditions = (status.conditions if status is not None else None) or []
    return any(one.type == "Ready" and one.status == "True" for one in conditions)
