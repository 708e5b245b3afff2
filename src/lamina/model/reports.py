"""What a node's agent reports about the images on it."""

from typing import Literal

import msgspec

from lamina.model.digest import Digest

Reuse = Literal["prefix", "set"]


class HeldImage(msgspec.Struct, frozen=True, gc=False):
    """An image that is wholly on a node."""

    digest: Digest
    size: int = 0
    names: tuple[str, ...] = ()


class LayerReport(msgspec.Struct, frozen=True, kw_only=True):
    """
    Everything one node holds, at one moment.

    A report replaces the one before it. *node_uid* tells a node from a later one of the same name; *sequence* grows
    with each report, so a late one is recognised and dropped.
    """

    node: str
    node_uid: str = ""
    sequence: int = 0
    observed_at: float = 0.0
    images: tuple[HeldImage, ...] = ()
    reuse: Reuse = "prefix"
