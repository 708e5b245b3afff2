"""
What the index knows an image by: one key for each thing that a node can have of it.

A layer can be there as a blob (its compressed digest; or, packed differently, its diff id) and as an unpacked layer on
top of exactly the layers below it (a chain). Downloads are saved by blobs, or on runtimes that throw blobs away by
chains; unpacking is saved by chains only. Who holds a chain holds every chain below it, so that the bytes of the longest
common prefix are a plain sum over chains.

Chains are named by diff ids, as runtimes do, where all of those are known, and always by compressed digests too: an image
of which only the manifest was seen still matches others of which no more was seen.
"""

import hashlib
from collections.abc import Sequence
from typing import Final

import msgspec

from lamina.model.digest import Digest, chain_ids
from lamina.model.image import Image, Layer

# Unpacked bytes for one compressed byte, where nobody said; byte-weighted over official images it is 2.26.
RATIO: Final = 2.3

BLOB: Final = "b"
DIFF: Final = "d"
CHAIN: Final = "c"
UNPACKED_CHAIN: Final = "u"
WHOLE: Final = "i"


class LayerKeys(msgspec.Struct, frozen=True, gc=False):
    """One layer of one image: its keys, and what it costs."""

    blob: str
    diff: str
    """Empty where the diff id is not known."""
    chain: str
    unpacked_chain: str
    """Empty where the diff id of any layer of the image is not known."""
    size: int
    unpacked: int
    repeats: bool
    """The image lists the same blob further down: it is downloaded once and unpacked twice."""


def keys_of(image: Image) -> tuple[LayerKeys, ...]:
    """Work out the keys of an image's layers, bottom first."""
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
    """Return the key of an image as a whole."""
    return WHOLE + digest


def _digest_chains(layers: Sequence[Layer]) -> list[str]:
    chains: list[str] = []
    below = b""
    for layer in layers:
        below = hashlib.sha256(below + layer.digest.encode()).digest()
        chains.append(CHAIN + below.hex())
    return chains
