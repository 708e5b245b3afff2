"""
An image as a runtime sees it: blobs to download and chains to unpack, computed once for all nodes.

A chain is a layer together with all layers below it. Its ID is a running hash over diff IDs, or over compressed digests
where the diff IDs are unknown. Two images share unpacked layers from the bottom up to their last common chain.
"""

import hashlib
from collections.abc import Collection
from typing import Final, NewType

from lamina.model.digest import Digest
from lamina.model.image import Image, Layer
from lamina.simulator.pulls.pull_plan import PullPlan

ChainId = NewType("ChainId", bytes)

# The cache is cleared when it has this many images, which is far more than a catalog has.
MOST: Final = 100_000


class RuntimeImage:
    """Blobs, chains and sizes of one image. Immutable and shared by all nodes."""

    __slots__ = ("_plans", "blobs", "chains", "image", "layers", "size", "unpacked")

    def __init__(self, image: Image, ratio: float | None) -> None:
        """
        Compute chains and sizes.

        *ratio* is unpacked bytes per compressed byte, for layers of unknown unpacked size; None: all unpacked sizes are
        0.
        """
        self.image = image
        self.layers: tuple[Layer, ...] = image.layers
        """All layers, bottom first; a layer may occur twice."""
        self.blobs: tuple[Digest, ...] = tuple({layer.digest: None for layer in image.layers})
        """Every distinct blob."""
        self.chains: tuple[ChainId, ...] = _chains(image.layers)
        """One chain per layer, all different."""
        self.unpacked: tuple[int, ...] = tuple(_unpacked(layer, ratio) for layer in image.layers)
        """Unpacked size of each layer in bytes."""
        self.size = image.size
        """Compressed bytes: the image size that containerd's CRI reports."""
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
        # The usual case, equal on all nodes: the node holds no blob of the layers that are not unpacked.
        return plan


_KNOWN: dict[tuple[Digest, float | None], RuntimeImage] = {}


def runtime_image_of(image: Image, ratio: float | None) -> RuntimeImage:
    """Return the RuntimeImage of an image, cached by digest and ratio."""
    key = image.digest, ratio
    known = _KNOWN.get(key)
    # Generated images may use one digest for different layers.
    if known is not None and (known.layers is image.layers or known.layers == image.layers):
        return known
    if len(_KNOWN) >= MOST:
        _KNOWN.clear()
    runtime_image = _KNOWN[key] = RuntimeImage(image, ratio)
    return runtime_image


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
