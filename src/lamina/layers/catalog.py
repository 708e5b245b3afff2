"""
What images consist of: reference → manifest → ordered layers.

Fed by files, by objects that agents write and by registries; asked by plugins. The same content under several names is
one image. Several spellings of one reference (``nginx``, ``docker.io/library/nginx:latest``) are folded before they are
looked up. A digest means the same for ever; a tag means what it was last seen to mean, and if its source said for how
long that holds, no longer than that. A tag that no such source has explained means what most nodes hold under it.
"""

import functools
import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from lamina.layers.tag_votes import TagVotes
from lamina.model.digest import Digest
from lamina.model.image import Image, Platform
from lamina.model.layer_report import HeldImage
from lamina.model.reference import ReferenceFormatError, parse_reference

LINUX = Platform()
FOR_EVER: Final = float("inf")
# No runtime takes images of more layers (overlay file systems end at 500); and no layer is larger than a PiB.
MOST_LAYERS: Final = 1024
LARGEST_LAYER: Final = 2**50
# Some hundred megabytes of them. Digests mean the same for ever, but nobody runs so many images at a time.
MOST_IMAGES: Final = 100_000

# Variants that runtimes take for the usual one of their architecture, and how it is written here. Kubelets tell no
# variant; most images for 64-bit Arm do.
USUAL_VARIANTS: Final = {("arm64", "v8"): "", ("amd64", "v1"): "", ("arm", ""): "v7"}

# What may be wrong with an image. Counted, and never more than that: an image that makes no sense is not known.
TOO_MANY_LAYERS: Final = "ImageHasTooManyLayers"
IMPLAUSIBLE_SIZE: Final = "LayerSizeIsImplausible"
TWO_SIZES: Final = "LayerHasTwoSizes"


@functools.lru_cache(maxsize=65_536)
def folded(name: str) -> str:
    """Return the one spelling of a reference; text that is no reference stands for itself."""
    try:
        reference = parse_reference(name)
    except ReferenceFormatError:
        return name
    # Beside a digest a tag says nothing, and runtimes leave it out.
    return f"{reference.name}@{reference.digest}" if reference.digest else str(reference)


@functools.lru_cache(maxsize=65_536)
def pinned(name: str) -> Digest | None:
    """Return the digest a reference carries, if it does."""
    try:
        return parse_reference(name).digest
    except ReferenceFormatError:
        return None


def usual(platform: Platform) -> Platform:
    """Return the one spelling of a platform."""
    variant = USUAL_VARIANTS.get((platform.architecture, platform.variant))
    return platform if variant is None else msgspec.structs.replace(platform, variant=variant)


class CatalogSnapshot(msgspec.Struct, frozen=True):
    """What a `Catalog` was taught; what nodes claim is the inventory's."""

    images: tuple[Image, ...]
    """In the order they were learned."""
    names: tuple[tuple[str, Platform, Digest, float], ...]
    """Name, platform, what it means there, and until when."""
    ends: tuple[tuple[float, int, str, Platform], ...]
    """When meanings may expire, in the order of the heap."""
    serial: int
    complaints: dict[str, int]


class Catalog:
    """Images by digest, and by name and platform."""

    def __init__(self, most: int = MOST_IMAGES) -> None:
        """Start knowing nothing; beyond *most* images, the one learned first is let go."""
        self._most = most
        self._images: dict[Digest, Image] = {}
        self._names: dict[str, dict[Platform, tuple[Digest, float]]] = {}
        """Name → platform → what it means, and until when."""
        self._ends: list[tuple[float, int, str, Platform]] = []
        self._serial = 0
        self._claims = TagVotes(folded)
        self._sizes: dict[Digest, int] = {}
        self._bytes: dict[Digest, int] = {}
        self.complaints: Counter[str] = Counter()
        """How often something about an image made no sense, by what it was."""

    def __len__(self) -> int:
        """Count the images."""
        return len(self._images)

    def __iter__(self) -> Iterator[Image]:
        """Go through the images in the order they were learned."""
        return iter(self._images.values())

    def learn(self, image: Image, until: float = FOR_EVER) -> bool:
        """
        Take an image in; say whether anything about it was new.

        A name moves to the image it was last seen with, and means it *until* then.
        """
        news = False
        if image.digest not in self._images:
            if not self._makes_sense(image):
                return False
            self._images[image.digest] = image
            self._bytes[image.digest] = sum(layer.size for layer in image.layers)
            news = True
            if len(self._images) > self._most:
                self._forget(next(iter(self._images.values())))
        platform = usual(image.platform)
        for name in image.names:
            by_platform = self._names.setdefault(folded(name), {})
            known = by_platform.get(platform)
            by_platform[platform] = (image.digest, until)
            news = news or known is None or known[0] != image.digest
            if until != FOR_EVER:
                # The serial number decides between equal times: platforms have no order.
                self._serial += 1
                heapq.heappush(self._ends, (until, self._serial, folded(name), platform))
        return news

    def expire(self, now: float) -> bool:
        """Forget what names mean that nobody has confirmed in time; say whether there were any."""
        news = False
        while self._ends and self._ends[0][0] <= now:
            _, _, name, platform = heapq.heappop(self._ends)
            means = self._names.get(name, {})
            if platform in means and means[platform][1] <= now:
                del means[platform]
                news = True
                if not means:
                    del self._names[name]
        return news

    def claim(self, platform: Platform, before: Sequence[HeldImage], after: Sequence[HeldImage]) -> set[str]:
        """A node of *platform* holds other images than before; return the names by which others are found now."""
        platform = usual(platform)
        moved = self._claims.change(platform, before, after)
        return {
            name
            for name, meant in moved.items()
            if platform not in self._names.get(name, {})
            and self._claimed(name, meant) != self._claimed(name, self._claims.means(name, platform))
        }

    def most_bytes(self, image: Image) -> int:
        """Return the compressed bytes of an image, a layer that it lists twice counted twice."""
        known = self._bytes.get(image.digest)
        return sum(layer.size for layer in image.layers) if known is None else known

    def by_digest(self, digest: Digest) -> Image | None:
        """Return the image with this manifest digest."""
        return self._images.get(digest)

    def find(self, name: str, platform: Platform = LINUX) -> Image | None:
        """
        Return what *name* means on *platform*; None when that is not known.

        A name that carries a digest means that manifest, whatever else it says; or, when it is the digest of an index
        of several platforms, whatever that name was learned to mean. What was learned counts for more than what nodes
        claim.
        """
        digest = pinned(name)
        if digest is None or digest not in self._images:
            name, platform = folded(name), usual(platform)
            learned = self._names.get(name, {}).get(platform)
            digest = self._claimed(name, self._claims.means(name, platform)) if learned is None else learned[0]
        return None if digest is None else self._images.get(digest)

    def _claimed(self, name: str, digest: Digest | None) -> Digest | None:
        """
        Return the image to which a claim of nodes leads; None: to no image that is known.

        Who described an image by this very name said for which platform it is. Nodes of another may hold it; there it
        helps nobody.
        """
        if digest not in self._images or any(means == digest for means, _ in self._names.get(name, {}).values()):
            return None
        return digest

    def _forget(self, image: Image) -> None:
        del self._images[image.digest], self._bytes[image.digest]
        for layer in image.layers:
            self._sizes.pop(layer.digest, None)
        for name in map(folded, image.names):
            means = self._names.get(name, {})
            for platform in [one for one, (digest, _) in means.items() if digest == image.digest]:
                del means[platform]
            if not means:
                self._names.pop(name, None)

    def _makes_sense(self, image: Image) -> bool:
        if len(image.layers) > MOST_LAYERS:
            self.complaints[TOO_MANY_LAYERS] += 1
            return False
        if any(not 0 <= size <= LARGEST_LAYER for one in image.layers for size in (one.size, one.unpacked or 0)):
            self.complaints[IMPLAUSIBLE_SIZE] += 1
            return False
        # One of the two manifests lies. Each image keeps its own, so that a lie can only move pods that run it.
        contradicted = [one for one in image.layers if self._sizes.setdefault(one.digest, one.size) != one.size]
        if contradicted:
            self.complaints[TWO_SIZES] += 1
        return True

    def snapshot(self) -> CatalogSnapshot:
        """Return what was learned, as data."""
        return CatalogSnapshot(
            images=tuple(self._images.values()),
            names=tuple(
                (name, where, *means) for name, all_of in self._names.items() for where, means in all_of.items()
            ),
            ends=tuple(self._ends),
            serial=self._serial,
            complaints=dict(self.complaints),
        )

    def restore(self, snapshot: CatalogSnapshot) -> None:
        """Know what the snapshot was taken of; nothing may have been learned before."""
        for image in snapshot.images:
            self._images[image.digest] = image
            self._bytes[image.digest] = sum(layer.size for layer in image.layers)
            for layer in image.layers:
                self._sizes.setdefault(layer.digest, layer.size)
        for name, platform, digest, until in snapshot.names:
            self._names.setdefault(name, {})[platform] = (digest, until)
        self._ends = list(snapshot.ends)
        heapq.heapify(self._ends)
        self._serial = snapshot.serial
        self.complaints = Counter(snapshot.complaints)
