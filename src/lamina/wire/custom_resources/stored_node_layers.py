"""
A NodeLayers as its node agent reads it back: owners, sequence, conditions, and the node that reported.

The stored object gives the node agent the last sequence number and the transition times of conditions. The agent writes
everything else anew.
"""

from typing import Final

import msgspec

from lamina.wire.custom_resources.node_layers import KIND
from lamina.wire.custom_resources.node_layers_status import NodeLayersCondition, decode_conditions
from lamina.wire.errors import WireError


class StoredNodeLayers(msgspec.Struct, frozen=True):
    """The parts of a stored NodeLayers that the node agent needs."""

    owners: tuple[str, ...] = ()
    sequence: int = 0
    conditions: tuple[NodeLayersCondition, ...] = ()
    node_uid: str = ""
    """Uid of the node that reported; empty without a report."""


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
    """Return the stored object. Raises WireError."""
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
