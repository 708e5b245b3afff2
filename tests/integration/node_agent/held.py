"""What a source ought to tell of images that were made here."""

from lamina.model.holdings import StoredImage
from lamina.model.image import Layer, Platform
from testbed.made import MadeImage


def layers_of(image: MadeImage) -> tuple[Layer, ...]:
    """All digests and sizes, bottom first; the unpacked size is that of the archive."""
    return tuple(Layer(each.digest, each.size, each.diff_id, each.unpacked) for each in image.layers)


def told(image: MadeImage, *names: str) -> StoredImage:
    """Everything, when it goes by these names."""
    return StoredImage(
        digest=image.digest,
        names=names,
        size=sum({each.digest: each.size for each in image.layers}.values()),
        layers=layers_of(image),
        manifest=image.manifest,
        media_type=image.media_type,
        platform=Platform(image.os, image.architecture, image.variant),
    )


def in_order(*images: StoredImage) -> tuple[StoredImage, ...]:
    """As a look lists them."""
    return tuple(sorted(images, key=lambda image: image.digest))
