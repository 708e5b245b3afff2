"""
Image catalog: reference → manifest → ordered layers.

Files, ImageLayers objects that node agents write, and registries fill the catalog; plugins query it. The same content
under several names is one image. Spellings of one reference (``nginx``, ``docker.io/library/nginx:latest``) are
normalised before the lookup. A digest always names the same image. A tag names the image it was last seen with, until
the lifetime that its source gave has passed. If no source has explained a tag, it names the image that most nodes hold
under it.
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
# No runtime accepts images with more layers (overlayfs ends at 500). No real layer exceeds 1 PiB.
MOST_LAYERS: Final = 1024
LARGEST_LAYER: Final = 2**50
# A few hundred megabytes of memory. Digests never change their meaning, but no cluster runs this many images at a time.
MOST_IMAGES: Final = 100_000

# Variants that runtimes treat as the default of their architecture → how the catalog writes it. Kubelets report no
# variant, while most 64-bit Arm images name one.
USUAL_VARIANTS: Final = {("arm64", "v8"): "", ("amd64", "v1"): "", ("arm", ""): "v7"}

# Faults of an image, as metric labels. Faults are only counted: the catalog ignores an implausible image.
TOO_MANY_LAYERS: Final = "ImageHasTooManyLayers"
IMPLAUSIBLE_SIZE: Final = "LayerSizeIsImplausible"
TWO_SIZES: Final = "LayerHasTwoSizes"


@functools.lru_cache(maxsize=65_536)
def folded(name: str) -> str:
    """Return the normalised spelling of a reference; return text that is not a reference unchanged."""
    try:
        reference = parse_reference(name)
    except ReferenceFormatError:
        return name
    # A tag has no effect beside a digest, and runtimes omit it.
    return f"{reference.name}@{reference.digest}" if reference.digest else str(reference)


@functools.lru_cache(maxsize=65_536)
def pinned(name: str) -> Digest | None:
    """Return the digest in a reference, or None."""
    try:
        return parse_reference(name).digest
    except ReferenceFormatError:
        return None


def usual(platform: Platform) -> Platform:
    """Return the normalised spelling of a platform."""
    variant = USUAL_VARIANTS.get((platform.architecture, platform.variant))
    return platform if variant is None else msgspec.structs.replace(platform, variant=variant)


class CatalogSnapshot(msgspec.Struct, frozen=True):
    """Serializable form of what `Catalog.learn` stored; the inventory's snapshot has the tag votes of nodes."""

    images: tuple[Image, ...]
    """In the order in which they were learned."""
    names: tuple[tuple[str, Platform, Digest, float], ...]
    """Name, platform, digest, and when the entry expires."""
    ends: tuple[tuple[float, int, str, Platform], ...]
    """When entries may expire, in heap order."""
    serial: int
    complaints: dict[str, int]


class Catalog:
    """Images by digest, and by name and platform."""

    def __init__(self, most: int = MOST_IMAGES) -> None:
        """Start empty. Beyond *most* images, the catalog drops the image it learned first."""
        self._most = most
        self._images: dict[Digest, Image] = {}
        self._names: dict[str, dict[Platform, tuple[Digest, float]]] = {}
        """Name → platform → digest and expiry time."""
        self._ends: list[tuple[float, int, str, Platform]] = []
        self._serial = 0
        self._tag_votes = TagVotes(folded)
        self._sizes: dict[Digest, int] = {}
        self._bytes: dict[Digest, int] = {}
        self.complaints: Counter[str] = Counter()
        """Number of implausible images, by fault."""

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self._images)

    def __iter__(self) -> Iterator[Image]:
        """Iterate over the images in the order in which they were learned."""
        return iter(self._images.values())

    def learn(self, image: Image, until: float = FOR_EVER) -> bool:
        """
        Add an image; return whether it or one of its names is new.

        Each name now names this image, and expires at *until*.
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
                # The serial number breaks ties, because platforms cannot be compared.
                self._serial += 1
                heapq.heappush(self._ends, (until, self._serial, folded(name), platform))
        return news

    def expire(self, now: float) -> bool:
        """Drop names whose lifetime has passed at *now*; return whether there were any."""
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

    def replace_votes(self, platform: Platform, before: Sequence[HeldImage], after: Sequence[HeldImage]) -> set[str]:
        """Replace one node's tag votes; return the names that now resolve to another image."""
        platform = usual(platform)
        moved = self._tag_votes.change(platform, before, after)
        return {
            name
            for name, meant in moved.items()
            if platform not in self._names.get(name, {})
            and self._known_winner(name, meant) != self._known_winner(name, self._tag_votes.means(name, platform))
        }

    def most_bytes(self, image: Image) -> int:
        """Return the compressed bytes of an image; a layer that it lists twice is added twice."""
        known = self._bytes.get(image.digest)
        return sum(layer.size for layer in image.layers) if known is None else known

    def by_digest(self, digest: Digest) -> Image | None:
        """Return the image with this manifest digest, or None."""
        return self._images.get(digest)

    def find(self, name: str, platform: Platform = LINUX) -> Image | None:
        """
        Return the image that *name* refers to on *platform*, or None.

        A name with a digest refers to that manifest, whatever its tag is. If the digest is that of a multi-platform
        index, the learned names decide. Learned names take precedence over tag votes of nodes.
        """
        digest = pinned(name)
        if digest is None or digest not in self._images:
            name, platform = folded(name), usual(platform)
            learned = self._names.get(name, {}).get(platform)
            digest = self._known_winner(name, self._tag_votes.means(name, platform)) if learned is None else learned[0]
        return None if digest is None else self._images.get(digest)

    def _known_winner(self, name: str, digest: Digest | None) -> Digest | None:
        """
        Return the winner of the tag votes if it is a known image, else None.

        If a source described the image under this very name, it also gave its platform. Nodes of another platform may
        hold the image, but pods there cannot use it.
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
        # One of the two manifests is wrong. Each image keeps its own size, so that a false size affects only pods that
        # run that image.
        contradicted = [one for one in image.layers if self._sizes.setdefault(one.digest, one.size) != one.size]
        if contradicted:
            self.complaints[TWO_SIZES] += 1
        return True

    def snapshot(self) -> CatalogSnapshot:
        """Return the learned images and names as data."""
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
        """Restore a snapshot into an empty catalog."""
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
