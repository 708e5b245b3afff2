"""
What a runtime tells of an image beyond CRI's own fields, in the ways that are known.

    info: a JSON text with ``imageSpec``, the configuration     containerd (with ``chainID``), CRI-O, cri-dockerd
    annotations ``imageLayer.<digest>`` = bytes                  a CRI-O that was taught to tell its layers

The configuration has the layers as they are unpacked, without sizes; the annotations have them as they were pulled, but
as a set: CRI carries annotations in no order.
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
    """A text of the info, as far as it is of interest."""

    image_spec: ImageConfig | None = None


class CriImageDetails(msgspec.Struct, frozen=True):
    """What an image is made of."""

    layers: tuple[Layer, ...] = ()
    as_pulled: bool = False
    """Whether the layers are told with their compressed digests and sizes, in no order."""
    platform: Platform | None = None


_TOLD: Final = msgspec.json.Decoder(VerboseInfo)
_CONFIG: Final = msgspec.json.Decoder(ImageConfig)


def read_details(info: Mapping[str, str], annotations: Mapping[str, str]) -> CriImageDetails:
    """Put together what is told of one image; what cannot be understood is left out."""
    config = next(_configurations(info), ImageConfig())
    platform = Platform(config.os or "linux", config.architecture, config.variant) if config.architecture else None
    pulled = tuple(sorted(_pulled(annotations), key=lambda layer: layer.digest))
    if pulled and len(pulled) <= LAYER_LIMIT:
        return CriImageDetails(pulled, as_pulled=True, platform=platform)
    diff_ids = [known(text) for text in config.rootfs.diff_ids]
    if len(diff_ids) > LAYER_LIMIT or None in diff_ids:
        return CriImageDetails(platform=platform)
    # Nobody says what was pulled, so a layer is called by what it was unpacked to, and its size is not known.
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
            # Runtimes put other things there too; they need not be JSON.
            continue


def _pulled(annotations: Mapping[str, str]) -> Iterator[Layer]:
    for key, text in annotations.items():
        digest = known(key.removeprefix(LAYER)) if key.startswith(LAYER) else None
        if digest is not None and text.isascii() and text.isdecimal() and len(text) <= len(str(2**64)):
            yield Layer(digest, min(int(text), SIZE_LIMIT))


def known(text: str) -> Digest | None:
    """*text* as a digest, if it is one."""
    try:
        return parse_digest(text)
    except DigestError:
        return None
