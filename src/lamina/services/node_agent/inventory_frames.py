"""Conversion of a runtime's images to frames of the pipe: an `InventoryFrame` of all, and an `ImageFrame` for each."""

from lamina.model.digest import Digest
from lamina.model.holdings import Holdings, StoredImage
from lamina.model.image import Layer, Platform
from lamina.model.layer_report import ActivePull, HeldImage
from lamina.wire.custom_resources.image_layers import MANIFEST_LIMIT
from lamina.wire.custom_resources.node_layers import LARGEST, NAME_LENGTH, PULL_LIMIT, TEXT_LENGTH
from lamina.wire.node_agent_frames import FramePlatform, FramePull, ImageFrame, InventoryFrame, cut_images
from lamina.wire.oci.manifest import LAYER_LIMIT


class InventoryFrameBuilder:
    """Builds inventory frames; caches the part that is costly and seldom changes."""

    def __init__(self) -> None:
        self._images: tuple[StoredImage, ...] | None = None
        self._told = InventoryFrame(observed_at=0.0)

    def of(self, holdings: Holdings, observed_at: float) -> InventoryFrame:
        """Return the frame of an inventory, with every field cut to the limits of a frame."""
        if holdings.images != self._images:
            self._told = _inventory(holdings.images)
            self._images = holdings.images
        told = self._told
        return InventoryFrame(
            observed_at=max(observed_at, 0.0),
            runtime=holdings.runtime.name[:TEXT_LENGTH],
            version=holdings.runtime.version[:TEXT_LENGTH],
            reuse=holdings.reuse,
            platform=_machine(holdings.platform),
            images=told.images,
            pulling=tuple(_pulled(pull) for pull in holdings.pulling[:PULL_LIMIT]),
            download_rate=min(max(holdings.download_rate, 0.0), 1e15),
            unpack_rate=min(max(holdings.unpack_rate, 0.0), 1e15),
            disk=_count(holdings.disk),
            disk_free=_count(holdings.disk_free),
            layers=told.layers,
            size=told.size,
            left_out=told.left_out,
        )


def describe_image(image: StoredImage) -> ImageFrame | None:
    """Return the frame of an image; None without a manifest, or if it exceeds the limits of an object."""
    if not 2 <= len(image.manifest) <= MANIFEST_LIMIT or len(image.media_type) > TEXT_LENGTH:
        return None
    layers = image.layers[: LAYER_LIMIT + 1]
    if len(layers) > LAYER_LIMIT:
        return None
    diff_ids = [layer.diff_id for layer in layers if layer.diff_id is not None and layer.diff_id.startswith("sha256:")]
    return ImageFrame(
        manifest=image.manifest,
        media_type=image.media_type,
        platform=_machine(image.platform),
        diff_ids=tuple(diff_ids) if len(diff_ids) == len(layers) else (),
        unpacked=_unpacked(layers) or (),
    )


def is_measured(image: StoredImage) -> bool:
    """Return whether the unpacked size of every layer is known, or the runtime reports no layers."""
    return not image.layers or _unpacked(image.layers) is not None


def _unpacked(layers: tuple[Layer, ...]) -> tuple[int, ...] | None:
    sizes = tuple(_count(layer.unpacked) for layer in layers if layer.unpacked is not None)
    return sizes if len(sizes) == len(layers) else None


def _inventory(images: tuple[StoredImage, ...]) -> InventoryFrame:
    held, left_out = cut_images(HeldImage(image.digest, image.size, image.names, image.lazy) for image in images)
    layers: dict[Digest, int] = {}
    for image in images:
        for layer in image.layers:
            layers[layer.digest] = layer.size if layer.unpacked is None else layer.unpacked
    # If a runtime reports no layers, the size of the image is all there is.
    size = sum(layers.values()) + sum(image.size for image in images if not image.layers)
    return InventoryFrame(observed_at=0.0, images=held, layers=len(layers), size=_count(size), left_out=left_out)


def _pulled(pull: ActivePull) -> FramePull:
    digest = pull.digest if pull.digest is not None and pull.digest.startswith("sha256:") else None
    return FramePull(pull.name[:NAME_LENGTH], digest, _count(pull.done), _count(pull.total))


def _machine(platform: Platform | None) -> FramePlatform | None:
    if platform is None:
        return None
    return FramePlatform(*(part[:TEXT_LENGTH] for part in (platform.os, platform.architecture, platform.variant)))


def _count(number: int) -> int:
    return min(max(number, 0), LARGEST)
