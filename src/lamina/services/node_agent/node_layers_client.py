"""
Client of this node's NodeLayers object.

    find        return what is stored, or None
    create      create the object, without a status
    adopt       set the current node as its owner: garbage collection deletes objects of an earlier one
    patch       write its status

Nothing is retried here. The stored object gives the next sequence number and the times of its conditions.
"""

from collections.abc import Mapping
from typing import Final, Protocol
from urllib.parse import quote

from lamina.clients.kube.errors import ApiError
from lamina.services.node_agent.node_identity import NodeIdentity
from lamina.wire.custom_resources.api_group import API_VERSION
from lamina.wire.custom_resources.node_layers import LARGEST, PLURAL
from lamina.wire.custom_resources.node_layers_status import encode_node_layers, encode_owners
from lamina.wire.custom_resources.stored_node_layers import StoredNodeLayers, decode_stored_node_layers
from lamina.wire.errors import WireError

PATH: Final = f"/apis/{API_VERSION}/{PLURAL}"
MERGE: Final = "application/merge-patch+json"
ANSWER_LIMIT: Final = 1024 * 1024
"""Bytes of a reply: an object of 256 KiB, and what the API server adds."""
TIMEOUT: Final = 20.0


class NodeLayersApi(Protocol):
    """The method used of `lamina.clients.kube.transport.KubeClient`."""

    async def request(  # noqa: PLR0913 - the parts of an HTTP request
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout: float = 30.0,
        limit: int = 0,
    ) -> bytes:
        """Send a request; return the body of a 2xx reply."""
        ...


class NodeLayersClient:
    """The NodeLayers object of one node."""

    def __init__(self, api: NodeLayersApi) -> None:
        """Send requests to *api*."""
        self._api = api

    async def find(self, who: NodeIdentity) -> StoredNodeLayers | None:
        """Return the stored object; None if it does not exist."""
        try:
            return _stored(await self._ask("GET", _path(who)))
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def create(self, who: NodeIdentity) -> StoredNodeLayers:
        """Create the object; return the existing one if it was created meanwhile."""
        try:
            return _stored(await self._ask("POST", PATH, encode_node_layers(who.name, who.uid)))
        except ApiError as error:
            if error.status != 409:
                raise
        return await self.find(who) or StoredNodeLayers()

    async def adopt(self, who: NodeIdentity) -> StoredNodeLayers:
        """Set this node as the only owner."""
        return _stored(await self._ask("PATCH", _path(who), encode_owners(who.name, who.uid), MERGE))

    async def patch(self, who: NodeIdentity, body: bytes) -> StoredNodeLayers:
        """Write the status. Raises ApiError with status 404 if the object was deleted."""
        return _stored(await self._ask("PATCH", f"{_path(who)}/status", body, MERGE))

    async def _ask(self, method: str, path: str, body: bytes | None = None, kind: str = "application/json") -> bytes:
        return await self._api.request(method, path, body=body, content_type=kind, timeout=TIMEOUT, limit=ANSWER_LIMIT)


def next_sequence(stored: int, wall: float) -> int:
    """Return a sequence number above the stored one, also after a restart or a clock that was ahead."""
    return min(max(stored + 1, int(wall * 1000)), LARGEST)


def _path(who: NodeIdentity) -> str:
    return f"{PATH}/{quote(who.name, safe='')}"


def _stored(data: bytes) -> StoredNodeLayers:
    """Decode a stored object; return an empty one if it is invalid, because it is written again anyway."""
    try:
        return decode_stored_node_layers(data)
    except WireError:
        return StoredNodeLayers()
