"""
Entries for images in a node's status and in its layer reports.

Building the names of an image costs more than the rest of a report, and many nodes hold the same image. So each entry
is built once for the whole cluster and cached.
"""

import hashlib

from lamina.model.digest import Digest
from lamina.model.image import Image
from lamina.model.layer_report import HeldImage
from lamina.model.node import NodeImage
from lamina.model.reference import parse_reference


class ImageReportCache:
    """Cache of the entries built so far, by image digest."""

    __slots__ = ("_held", "_lazy", "_listed")

    def __init__(self) -> None:
        """Create an empty cache."""
        self._held: dict[Digest, HeldImage] = {}
        self._lazy: dict[Digest, HeldImage] = {}
        self._listed: dict[Digest, NodeImage] = {}

    def held(self, image: Image, *, lazy: bool = False) -> HeldImage:
        """Return the entry of an image for a layer report; *lazy*: its content is fetched when it is read."""
        known = self._lazy if lazy else self._held
        entry = known.get(image.digest)
        if entry is None:
            entry = known[image.digest] = HeldImage(image.digest, image.size, image.names, lazy)
        return entry

    def listed(self, image: Image) -> NodeImage:
        """Return the entry of an image for a node's status."""
        entry = self._listed.get(image.digest)
        if entry is None:
            entry = self._listed[image.digest] = NodeImage(_listed_names(image), image.size)
        return entry


def image_name(image: Image) -> str:
    """Return the name of an image in trace records: its first name, or else its digest."""
    return image.names[0] if image.names else image.digest


def empty_image(name: str) -> Image:
    """Return an image without layers for a name that no registry has: a pull of it takes no time."""
    return Image(Digest(f"sha256:{hashlib.sha256(name.encode()).hexdigest()}"), (), (name,))


def _listed_names(image: Image) -> tuple[str, ...]:
    """
    Return the names as a runtime lists them: digests first, then tags, always fully qualified.

    ImageLocality compares names as text, so it does not match a pod's ``nginx`` with
    ``docker.io/library/nginx:latest``. Real clusters behave in the same way.
    """
    references = [parse_reference(name) for name in image.names]
    digests = dict.fromkeys(f"{one.name}@{image.digest}" for one in references)
    tags = dict.fromkeys(f"{one.name}:{one.tag}" for one in references if one.tag)
    return (*digests, *tags)
