"""
Keys under which the index knows an image: one for each part of it that a node can hold.

A node can hold a layer as a blob (its compressed digest; or, compressed differently, its diff id) and as an unpacked
layer on top of exactly the layers below it (a chain). A blob saves the download; on runtimes that delete blobs, a chain
does. Only a chain saves unpacking. A node that holds a chain holds every chain below it, so the bytes of the longest
common prefix are a plain sum over chains.

Chains are named by compressed digests, and also by diff ids, as in runtimes, where all of them are known. An image of
which only the manifest is known therefore still matches other such images.
"""

import hashlib
from collections.abc import Sequence
from typing import Final

import msgspec

from lamina.model.digest import Digest, chain_ids
from lamina.model.image import Image, Layer

# Unpacked bytes per compressed byte where the size is unknown. The byte-weighted mean over official images is 2.26.
RATIO: Final = 2.3

BLOB: Final = "b"
DIFF: Final = "d"
CHAIN: Final = "c"
UNPACKED_CHAIN: Final = "u"
WHOLE: Final = "i"


class LayerKeys(msgspec.Struct, frozen=True, gc=False):
    """Keys and sizes of one layer of one image. Sizes are in bytes."""

    blob: str
    diff: str
    """Empty where the diff id is unknown."""
    chain: str
    unpacked_chain: str
    """Empty where the diff id of any layer of the image is unknown."""
    size: int
    unpacked: int
    repeats: bool
    """Whether the image lists the same blob further down: the runtime downloads it once and unpacks it twice."""


def keys_of(image: Image) -> tuple[LayerKeys, ...]:
    """Return the keys of an image's layers, bottom first."""
    chains = _digest_chains(image.layers)
    diff_ids = [layer.diff_id for layer in image.layers if layer.diff_id is not None]
    known = len(diff_ids) == len(image.layers)
    unpacked_chains = [UNPACKED_CHAIN + one for one in chain_ids(diff_ids)] if known else [""] * len(chains)
    seen: set[str] = set()
    keys: list[LayerKeys] = []
    for layer, chain, unpacked_chain in zip(image.layers, chains, unpacked_chains, strict=True):
        keys.append(
            LayerKeys(
                BLOB + layer.digest,
                "" if layer.diff_id is None else DIFF + layer.diff_id,
                chain,
                unpacked_chain,
                layer.size,
                round(RATIO * layer.size) if layer.unpacked is None else layer.unpacked,
                layer.digest in seen,
            )
        )
        seen.add(layer.digest)
    return tuple(keys)


def whole(digest: Digest) -> str:
    """Return the key of the whole image."""
    return WHOLE + digest


def _digest_chains(layers: Sequence[Layer]) -> list[str]:
    chains: list[str] = []
    below = b""
    for layer in layers:
        below = hashlib.sha256(below + layer.digest.encode()).digest()
        chains.append(CHAIN + below.hex())
    return chains
