"""
What an image is to a runtime: blobs to download and chains to unpack, worked out once for all nodes.

A chain is a layer on top of exactly the layers below it. It is named by a running hash over diff ids, or over compressed
digests where diff ids are not known, so that two images share unpacked layers as far as their chains agree.
"""

import hashlib
from collections.abc import Collection
from typing import Final, NewType

from lamina.model.digest import Digest
from lamina.model.image import Image, Layer
from lamina.simulator.pulls.pull_plan import PullPlan

ChainId = NewType("ChainId", bytes)

# More images than this are forgotten and worked out again; far more than a catalog has.
MOST: Final = 100_000


class RuntimeImage:
    """How to get one image onto a node. Shared by all nodes and never changed."""

    __slots__ = ("_plans", "blobs", "chains", "image", "layers", "size", "unpacked")

    def __init__(self, image: Image, ratio: float | None) -> None:
        """Work it out; *ratio* unpacked bytes stand for a compressed one where a layer does not say, None: for none."""
        self.image = image
        self.layers: tuple[Layer, ...] = image.layers
        """Bottom first; the same layer may be listed twice."""
        self.blobs: tuple[Digest, ...] = tuple({layer.digest: None for layer in image.layers})
        """Every distinct blob."""
        self.chains: tuple[ChainId, ...] = _chains(image.layers)
        """One for each layer, all different."""
        self.unpacked: tuple[int, ...] = tuple(_unpacked(layer, ratio) for layer in image.layers)
        """Bytes of each layer once it is unpacked."""
        self.size = image.size
        """What containerd's CRI calls the size of the image: compressed bytes."""
        self._plans: dict[tuple[int, int], PullPlan] = {}

    def plan(self, first: int, blobs: Collection[Digest], slots: int) -> PullPlan:
        """Plan a pull for a node that has unpacked *first* layers and holds *blobs*."""
        key = first, slots
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = PullPlan(self.layers, self.unpacked, first, (), slots)
        for layer in plan.missing:
            if layer.digest in blobs:
                return PullPlan(self.layers, self.unpacked, first, blobs, slots)
        # The usual case, and the same on every node: what is not unpacked is not there at all.
        return plan


_KNOWN: dict[tuple[Digest, float | None], RuntimeImage] = {}


def runtime_image_of(image: Image, ratio: float | None) -> RuntimeImage:
    """Return the recipe of an image, from memory where it can be."""
    key = image.digest, ratio
    known = _KNOWN.get(key)
    # A digest should mean one list of layers; whoever makes images up may use it twice.
    if known is not None and (known.layers is image.layers or known.layers == image.layers):
        return known
    if len(_KNOWN) >= MOST:
        _KNOWN.clear()
    recipe = _KNOWN[key] = RuntimeImage(image, ratio)
    return recipe


def _unpacked(layer: Layer, ratio: float | None) -> int:
    if ratio is None:
        return 0
    return round(ratio * layer.size) if layer.unpacked is None else layer.unpacked


def _chains(layers: tuple[Layer, ...]) -> tuple[ChainId, ...]:
    chains: list[ChainId] = []
    below = b""
    for layer in layers:
        below = hashlib.sha256(below + (layer.diff_id or layer.digest).encode()).digest()
        chains.append(ChainId(below))
    return tuple(chains)
