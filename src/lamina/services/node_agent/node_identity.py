"""
Which node this is: what the pod's token says, because that is what the API server goes by.

A token that the kubelet asked for carries the name and the uid of its node. They are read here and verified by the
server, which refuses a report about any other node. The token is replaced now and then, and a node that was deleted and
came back under its name has another uid in the next one; so it is asked for before every write.
"""

from typing import Final, Protocol

import msgspec

from lamina.model.errors import InputError
from lamina.wire.service_token import ClaimedNode, node_in

NAME_LENGTH: Final = 253
UID_LENGTH: Final = 128
HINT: Final = (
    "use the token of a pod (Kubernetes 1.30 and newer name the node in it), or say --node NAME and --node-uid UID"
)


class NodeIdentity(msgspec.Struct, frozen=True):
    """One node."""

    name: str
    uid: str


class AuthHeaders(Protocol):
    """What is needed of `lamina.clients.kube.access.ApiAccess`."""

    async def headers(self) -> dict[str, str]:
        """Headers that say who we are."""


class NodeIdentityReader:
    """Asks the access what its token says."""

    def __init__(self, access: AuthHeaders, name: str = "", uid: str = "") -> None:
        """What is given as *name* and *uid* counts for more than what the token says."""
        self._access, self._name, self._uid = access, name, uid

    async def now(self) -> NodeIdentity:
        """Name the node. Raises InputError when nobody says which it is, and what asking for a credential raises."""
        claimed = ClaimedNode()
        if not (self._name and self._uid):
            claimed = node_in((await self._access.headers()).get("Authorization", ""))
        # A uid that belongs to another name is of no use.
        uid = self._uid or (claimed.uid if self._name in ("", claimed.name) else "")
        found = NodeIdentity(self._name or claimed.name, uid)
        if not found.name or not found.uid:
            raise InputError.one("--node" if not found.name else "--node-uid", f"this node is not known; {HINT}")
        if len(found.name) > NAME_LENGTH or "/" in found.name or len(found.uid) > UID_LENGTH:
            raise InputError.one("--node", f"{found.name!r:.80} cannot be the name of a node")
        return found
