"""
What a node's container runtime holds.

A layer is there once its last byte has arrived, an image once all its layers are. Nothing is ever removed here: what
a node has downloaded it keeps.
"""

from collections.abc import Iterable

from lamina.model.digest import Digest
from lamina.model.image import Image, Layer


class Store:
    """Layers and whole images, in the order they came."""

    def __init__(self, images: Iterable[Image] = ()) -> None:
        """Begin with these images."""
        self.layers: dict[Digest, int] = {}
        """Compressed size of every layer that is there."""
        self.images: dict[Digest, Image] = {}
        for image in images:
            for layer in image.layers:
                self.put_layer(layer)
            self.put_image(image)

    @property
    def size(self) -> int:
        """Compressed bytes of all layers."""
        return sum(self.layers.values())

    def missing(self, image: Image) -> tuple[Layer, ...]:
        """List the layers that are not there, bottom first; one that an image repeats is listed once."""
        wanted = {layer.digest: layer for layer in image.layers}
        return tuple(layer for digest, layer in wanted.items() if digest not in self.layers)

    def put_layer(self, layer: Layer) -> None:
        """Take a layer that has arrived."""
        self.layers[layer.digest] = layer.size

    def put_image(self, image: Image) -> None:
        """Take an image all of whose layers have arrived."""
        assert not self.missing(image), "an image is there when all its layers are"
        self.images[image.digest] = image
