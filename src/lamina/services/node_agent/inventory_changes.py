"""
Log of images that appear on a node and disappear, one line each.

With ``--watch``, the log of a DaemonSet shows the images of each node. The first inventory logs all images. An image
whose names changed is logged again with the new names.
"""

import logging
from typing import Final

from lamina.model.digest import Digest
from lamina.model.holdings import StoredImage
from lamina.services.node_agent.runtime_reader import InventorySink
from lamina.wire.node_agent_frames import InventoryFrame

SHOWN: Final = 4
"""Most names of an image in one line."""

log = logging.getLogger(__name__)


class InventoryChangeLog:
    """Logs changes, and passes everything on."""

    def __init__(self, sink: InventorySink) -> None:
        """Pass everything on to *sink*."""
        self._sink = sink
        self._known: dict[Digest, tuple[str, ...]] = {}

    def send(self, look: InventoryFrame, images: tuple[StoredImage, ...]) -> None:
        """Log new and deleted images, and pass the inventory on."""
        held = {image.digest: image.names for image in images}
        for image in images:
            if self._known.get(image.digest) != image.names:
                known = {"bytes": image.size, "layers": len(image.layers)}
                log.info("image present", extra={**_named(image.digest, image.names), **known})
        for digest, names in self._known.items():
            if digest not in held:
                log.info("image deleted", extra=_named(digest, names))
        self._known = held
        self._sink.send(look, images)

    def send_problem(self, problem: str) -> None:
        """Pass the problem on; the reader logs it."""
        self._sink.send_problem(problem)


def _named(digest: Digest, names: tuple[str, ...]) -> dict[str, object]:
    # A name that only repeats the digest adds nothing.
    told = [name for name in names if not name.endswith(f"@{digest}")]
    return {"image": " ".join(told[:SHOWN]), "digest": digest}
