"""
Whether a node says that it is ready for pods.

Schedulers go by taints and do not look at this; the annotator does, which writes nothing about nodes that are away.
"""

from typing import Final

import msgspec

from lamina.wire.errors import WireError


class _Condition(msgspec.Struct, frozen=True, gc=False):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct, frozen=True, gc=False):
    conditions: list[_Condition] | None = None


class _Object(msgspec.Struct, frozen=True, gc=False):
    status: _Status | None = None


_OBJECT: Final = msgspec.json.Decoder(_Object)


def decode_ready(data: bytes | msgspec.Raw, name: str = "") -> bool:
    """Return whether the node *name* says that it is ready; one that has not said anything yet is not."""
    try:
        status = _OBJECT.decode(data).status
    except (ValueError, RecursionError) as error:
        raise WireError("Node", str(error), name) from error
    conditions = (status.conditions if status is not None else None) or []
    return any(one.type == "Ready" and one.status == "True" for one in conditions)
