"""
A NodeLayers as its own agent reads it back: its owners, its sequence, its conditions, and which node reported.

What is stored tells where the sequence goes on and since when conditions hold. The agent writes everything else anew.
"""

from typing import Final

import msgspec

from lamina.wire.custom_resources.node_layers import KIND
from lamina.wire.custom_resources.node_layers_status import NodeLayersCondition, decode_conditions
from lamina.wire.errors import WireError


class StoredNodeLayers(msgspec.Struct, frozen=True):
    """What the API server has."""

    owners: tuple[str, ...] = ()
    sequence: int = 0
    conditions: tuple[NodeLayersCondition, ...] = ()
    node_uid: str = ""
    """Of the node that reported; empty: none did."""


class _Owner(msgspec.Struct, frozen=True):
    uid: str = ""


class _StoredMeta(msgspec.Struct, frozen=True, rename="camel"):
    owner_references: tuple[_Owner, ...] | None = None


class _StoredStatus(msgspec.Struct, frozen=True, rename="camel"):
    sequence: int = 0
    observed_at: str = ""
    node_uid: str = msgspec.field(default="", name="nodeUID")


class _StoredObject(msgspec.Struct, frozen=True):
    metadata: _StoredMeta = _StoredMeta()
    status: _StoredStatus | None = None


_OBJECT: Final = msgspec.json.Decoder(_StoredObject)


def decode_stored_node_layers(data: bytes) -> StoredNodeLayers:
    """Read what the server has. Raises `WireError`."""
    try:
        found = _OBJECT.decode(data)
    except (ValueError, RecursionError) as error:
        raise WireError(KIND, str(error)) from None
    status = found.status or _StoredStatus()
    return StoredNodeLayers(
        tuple(owner.uid for owner in found.metadata.owner_references or ()),
        max(status.sequence, 0),
        decode_conditions(data),
        status.node_uid if status.observed_at else "",
    )
