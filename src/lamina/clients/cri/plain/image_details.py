"""
Decoder for layer details that runtimes add to CRI's image status.

    info: JSON with ``imageSpec``, the configuration            containerd (with ``chainID``), CRI-O, cri-dockerd
    annotations ``imageLayer.<digest>`` = bytes                 a patched CRI-O that reports its layers

The configuration has diff ids without sizes. The annotations have compressed digests and sizes, but in no order,
because CRI annotations are a map.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from lamina.model.digest import Digest, DigestError, parse_digest
from lamina.model.image import Layer, Platform
from lamina.wire.oci.documents import ImageConfig
from lamina.wire.oci.manifest import LAYER_LIMIT, MANIFEST_LIMIT, SIZE_LIMIT

LAYER: Final = "imageLayer."


class VerboseInfo(msgspec.Struct, frozen=True, rename="camel"):
    """The part of an info JSON that Lamina reads."""

    image_spec: ImageConfig | None = None


class CriImageDetails(msgspec.Struct, frozen=True):
    """Layers and platform of an image."""

    layers: tuple[Layer, ...] = ()
    as_pulled: bool = False
    """Whether the layers have compressed digests and sizes; they are then in no order."""
    platform: Platform | None = None


_TOLD: Final = msgspec.json.Decoder(VerboseInfo)
_CONFIG: Final = msgspec.json.Decoder(ImageConfig)


def read_details(info: Mapping[str, str], annotations: Mapping[str, str]) -> CriImageDetails:
    """Decode the details of one image; undecodable parts are skipped."""
    config = next(_configurations(info), ImageConfig())
    platform = Platform(config.os or "linux", config.architecture, config.variant) if config.architecture else None
    pulled = tuple(sorted(_pulled(annotations), key=lambda layer: layer.digest))
    if pulled and len(pulled) <= LAYER_LIMIT:
        return CriImageDetails(pulled, as_pulled=True, platform=platform)
    diff_ids = [known(text) for text in config.rootfs.diff_ids]
    if len(diff_ids) > LAYER_LIMIT or None in diff_ids:
        return CriImageDetails(platform=platform)
    # Without compressed digests, a layer gets its diff id as digest, and size 0 for unknown.
    layers = tuple(Layer(diff_id, 0, diff_id) for diff_id in diff_ids if diff_id is not None)
    return CriImageDetails(layers, platform=platform)


def _configurations(info: Mapping[str, str]) -> Iterator[ImageConfig]:
    for key in sorted(info):
        if len(info[key]) > MANIFEST_LIMIT:
            continue
        try:
            if key == "imageSpec":
                yield _CONFIG.decode(info[key])
            elif (spec := _TOLD.decode(info[key]).image_spec) is not None:
                yield spec
        except (ValueError, RecursionError):
            # Runtimes add other values too, which need not be JSON.
            continue


def _pulled(annotations: Mapping[str, str]) -> Iterator[Layer]:
    for key, text in annotations.items():
        digest = known(key.removeprefix(LAYER)) if key.startswith(LAYER) else None
        if digest is not None and text.isascii() and text.isdecimal() and len(text) <= len(str(2**64)):
            yield Layer(digest, min(int(text), SIZE_LIMIT))


def known(text: str) -> Digest | None:
    """Return *text* as a digest; None if it is not one."""
    try:
        return parse_digest(text)
    except DigestError:
        return None
