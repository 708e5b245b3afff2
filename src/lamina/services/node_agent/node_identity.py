"""
Identity of this node, from the pod's token, because the API server verifies that token.

A token that the kubelet requested has the name and uid of its node. They are read here and verified by the API server,
which rejects reports of other nodes. The token is replaced at times, and a recreated node of the same name has another
uid; so the identity is read before every write.
"""

from typing import Final, Protocol

import msgspec

from lamina.model.errors import InputError
from lamina.wire.service_token import ClaimedNode, node_in

NAME_LENGTH: Final = 253
UID_LENGTH: Final = 128
HINT: Final = (
    "use the token of a pod (Kubernetes 1.30 and newer name the node in it), or set --node NAME and --node-uid UID"
)


class NodeIdentity(msgspec.Struct, frozen=True):
    """Name and uid of a node."""

    name: str
    uid: str


class AuthHeaders(Protocol):
    """The method used of `lamina.clients.kube.access.ApiAccess`."""

    async def headers(self) -> dict[str, str]:
        """Return headers with the credentials."""


class NodeIdentityReader:
    """Reads the node's identity from the token."""

    def __init__(self, access: AuthHeaders, name: str = "", uid: str = "") -> None:
        """Read the token of *access*; *name* and *uid* override it."""
        self._access, self._name, self._uid = access, name, uid

    async def now(self) -> NodeIdentity:
        """Return the node's identity. Raises InputError if it is unknown, and errors of reading the credentials."""
        claimed = ClaimedNode()
        if not (self._name and self._uid):
            claimed = node_in((await self._access.headers()).get("Authorization", ""))
        # The token's uid belongs to the token's name only.
        uid = self._uid or (claimed.uid if self._name in ("", claimed.name) else "")
        found = NodeIdentity(self._name or claimed.name, uid)
        if not found.name or not found.uid:
            raise InputError.one("--node" if not found.name else "--node-uid", f"node identity unknown; {HINT}")
        if len(found.name) > NAME_LENGTH or "/" in found.name or len(found.uid) > UID_LENGTH:
            raise InputError.one("--node", f"{found.name!r:.80} is not a valid node name")
        return found
