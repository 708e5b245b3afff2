"""
Whether a node says that it is ready for pods.

Schedulers go by taints and do not look at this; the annotator does, which writes nothing about nodes that are away.
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
    """Return whether the node *name* says that it is ready; one that has not said anything yet is not."""
    try:
        status = _OBJECT.decode(data).status
    except (ValueError, RecursionError) as error:
        raise WireError("Node", str(error), name) from error
    conditions = (status.conditions if status is not None else None) or []
    return any(one.type == "Ready" and one.status == "True" for one in conditions)
