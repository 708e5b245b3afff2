"""
What came and what went, one line each in the reader's log.

With ``--watch`` the log of a DaemonSet tells what is on a node. The first look tells everything that is there. An image whose names changed has come under its new ones.
"""

import logging
from typing import Final

from lamina.model.digest import Digest
from lamina.model.holdings import StoredImage
from lamina.services.node_agent.runtime_reader import InventorySink
from lamina.wire.node_agent_frames import InventoryFrame

SHOWN: Final = 4
"""Names of an image that a line has."""

log = logging.getLogger(__name__)


class InventoryChangeLog:
    """Says what changed, and hands everything on."""

    def __init__(self, hearer: InventorySink) -> None:
        """Hand on to *hearer*."""
        self._hearer = hearer
        self._known: dict[Digest, tuple[str, ...]] = {}

    def tell(self, look: InventoryFrame, images: tuple[StoredImage, ...]) -> None:
        """Say what is here now and was not, and what is not any more."""
        held = {image.digest: image.names for image in images}
        for image in images:
            if self._known.get(image.digest) != image.names:
                known = {"bytes": image.size, "layers": len(image.layers)}
                log.info("image is here", extra={**_named(image.digest, image.names), **known})
        for digest, names in self._known.items():
            if digest not in held:
                log.info("image is gone", extra=_named(digest, names))
        self._known = held
        self._hearer.tell(look, images)

    def tell_trouble(self, problem: str) -> None:
        """The reader says it by itself."""
        self._hearer.tell_trouble(problem)


def _named(digest: Digest, names: tuple[str, ...]) -> dict[str, object]:
    # A name that only repeats the digest says nothing more.
    told = [name for name in names if not name.endswith(f"@{digest}")]
    return {"image": " ".join(told[:SHOWN]), "digest": digest}
