"""
Decoder of the node in a service account token, as Kubernetes 1.30 and newer write it.

The token is not verified here: the API server verifies it with every request.
"""

import base64
from typing import Final

import msgspec


class ClaimedNode(msgspec.Struct, frozen=True):
    """The node that a token names; empty if it names none."""

    name: str = ""
    uid: str = ""


class _Kubernetes(msgspec.Struct, frozen=True):
    node: ClaimedNode | None = None


class _Claims(msgspec.Struct, frozen=True):
    kubernetes: _Kubernetes | None = msgspec.field(default=None, name="kubernetes.io")


_CLAIMS: Final = msgspec.json.Decoder(_Claims)


def node_in(header: str) -> ClaimedNode:
    """Return the node in a bearer token, empty if there is none."""
    _, _, token = header.partition("Bearer ")
    parts = token.split(".")
    if len(parts) != 3:
        return ClaimedNode()
    text = parts[1]
    try:
        claims = _CLAIMS.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, RecursionError):
        return ClaimedNode()
    return (claims.kubernetes and claims.kubernetes.node) or ClaimedNode()
