"""
The NodeLayers of this node, as far as its agent has to do with it: there, owned by the right node, and up to date.

    find        what is stored, or None
    create      the object, without a status
    adopt       make it belong to the node as it is now: garbage collection deletes what belongs to an earlier one
    patch       its status

Nothing is tried again here. What is stored tells where the sequence goes on and since when conditions hold.
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
"""Bytes of an answer: an object of 256 KiB, and what the server adds."""
TIMEOUT: Final = 20.0


class NodeLayersApi(Protocol):
    """What an agent needs of `lamina.clients.kube.transport.KubeClient`."""

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
        """Send a request and give the body of a 2xx answer."""
        ...


class NodeLayersClient:
    """The NodeLayers of one node."""

    def __init__(self, api: NodeLayersApi) -> None:
        """Ask *api*."""
        self._api = api

    async def find(self, who: NodeIdentity) -> StoredNodeLayers | None:
        """Read it; None when it is not there."""
        try:
            return _stored(await self._ask("GET", _path(who)))
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def create(self, who: NodeIdentity) -> StoredNodeLayers:
        """Create it; somebody else may have been first."""
        try:
            return _stored(await self._ask("POST", PATH, encode_node_layers(who.name, who.uid)))
        except ApiError as error:
            if error.status != 409:
                raise
        return await self.find(who) or StoredNodeLayers()

    async def adopt(self, who: NodeIdentity) -> StoredNodeLayers:
        """Let it belong to this node and no other."""
        return _stored(await self._ask("PATCH", _path(who), encode_owners(who.name, who.uid), MERGE))

    async def patch(self, who: NodeIdentity, body: bytes) -> StoredNodeLayers:
        """Change its status; 404 when it is gone."""
        return _stored(await self._ask("PATCH", f"{_path(who)}/status", body, MERGE))

    async def _ask(self, method: str, path: str, body: bytes | None = None, kind: str = "application/json") -> bytes:
        return await self._api.request(method, path, body=body, content_type=kind, timeout=TIMEOUT, limit=ANSWER_LIMIT)


def next_sequence(stored: int, wall: float) -> int:
    """Number a report: above the last one, also of an agent that ran before this one and of one whose clock was ahead."""
    return min(max(stored + 1, int(wall * 1000)), LARGEST)


def _path(who: NodeIdentity) -> str:
    return f"{PATH}/{quote(who.name, safe='')}"


def _stored(data: bytes) -> StoredNodeLayers:
    """Read what the server has; what cannot be read is as good as nothing, for it is written anew."""
    try:
        return decode_stored_node_layers(data)
    except WireError:
        return StoredNodeLayers()
