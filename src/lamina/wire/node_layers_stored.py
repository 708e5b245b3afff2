"""
A NodeLayers as its own agent reads it back: its owners, its sequence, its conditions, and which node reported.

What is stored tells where the sequence goes on and since when conditions hold. The agent writes everything else anew.
"""

from typing import Final

import msgspec

from lamina.wire.errors import WireError
from lamina.wire.node_layers import KIND
from lamina.wire.node_layers_status import Condition, decode_conditions


class Stored(msgspec.Struct, frozen=True):
    """What the API server has."""

    owners: tuple[str, ...] = ()
    sequence: int = 0
    conditions: tuple[Condition, ...] = ()
    node_uid: str = ""
    """Of the node that reported; empty: none did."""


class _Owner(msgspec.Struct, frozen=True):
    uid: str = ""


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    owner_references: tuple[_Owner, ...] | None = None


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    sequence: int = 0
    observed_at: str = ""
    node_uid: str = msgspec.field(default="", name="nodeUID")


class _Object(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()
    status: _Status | None = None


_OBJECT: Final = msgspec.json.Decoder(_Object)


def decode_stored(data: bytes) -> Stored:
    """Read what the server has. Raises `WireError`."""
    try:
        found = _OBJECT.decode(data)
    except (ValueError, RecursionError) as error:
        raise WireError(KIND, str(error)) from None
    status = found.status or _Status()
    return Stored(
        tuple(owner.uid for owner in found.metadata.owner_references or ()),
        max(status.sequence, 0),
        decode_conditions(data),
        status.node_uid if status.observed_at else "",
    )
