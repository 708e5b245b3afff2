"""
Images in the words of a node's status and of its layer reports.

Spelling an image's names out costs more than all the rest of a report, and the same image is on many nodes: each is put
into words once for the whole cluster.
"""

from lamina.model.digest import Digest
from lamina.model.image import Image
from lamina.model.layer_report import HeldImage
from lamina.model.node import NodeImage
from lamina.model.reference import parse_reference


class ImageReportCache:
    """What was said of images so far."""

    __slots__ = ("_held", "_lazy", "_listed")

    def __init__(self) -> None:
        """Begin with none."""
        self._held: dict[Digest, HeldImage] = {}
        self._lazy: dict[Digest, HeldImage] = {}
        self._listed: dict[Digest, NodeImage] = {}

    def held(self, image: Image, *, lazy: bool = False) -> HeldImage:
        """Describe an image for a layer report; *lazy*: its content comes when it is read."""
        known = self._lazy if lazy else self._held
        words = known.get(image.digest)
        if words is None:
            words = known[image.digest] = HeldImage(image.digest, image.size, image.names, lazy)
        return words

    def listed(self, image: Image) -> NodeImage:
        """Describe an image for a node's status."""
        words = self._listed.get(image.digest)
        if words is None:
            words = self._listed[image.digest] = NodeImage(_listed_names(image), image.size)
        return words


def image_name(image: Image) -> str:
    """Return what records call an image."""
    return image.names[0] if image.names else image.digest


def _listed_names(image: Image) -> tuple[str, ...]:
    """
    Spell names as a runtime does: digests first, then tags, always in full.

    A pod that asks for ``nginx`` therefore does not find ``docker.io/library/nginx:latest`` by ImageLocality, which
    compares text. That is so in real clusters too.
    """
    references = [parse_reference(name) for name in image.names]
    digests = dict.fromkeys(f"{one.name}@{image.digest}" for one in references)
    tags = dict.fromkeys(f"{one.name}:{one.tag}" for one in references if one.tag)
    return (*digests, *tags)
