"""
What images consist of: reference → manifest → ordered layers.

Fed by files, by reports and by registries; asked by plugins. The same content under several names is one image.
Several names for one reference (``nginx``, ``docker.io/library/nginx:latest``) are folded before they are looked up.
"""

import functools
from collections.abc import Iterator

from lamina.model.digest import Digest
from lamina.model.image import Image, Platform
from lamina.model.reference import ReferenceFormatError, parse_reference

LINUX = Platform()


@functools.lru_cache(maxsize=65_536)
def folded(name: str) -> str:
    """Return the one spelling of a reference; text that is no reference stands for itself."""
    try:
        return str(parse_reference(name))
    except ReferenceFormatError:
        return name


@functools.lru_cache(maxsize=65_536)
def pinned(name: str) -> Digest | None:
    """Return the digest a reference carries, if it does."""
    try:
        return parse_reference(name).digest
    except ReferenceFormatError:
        return None


class Catalog:
    """Images by digest, and by name and platform."""

    def __init__(self) -> None:
        """Start knowing nothing."""
        self._images: dict[Digest, Image] = {}
        self._names: dict[str, dict[Platform, Digest]] = {}

    def __len__(self) -> int:
        """Count the images."""
        return len(self._images)

    def __iter__(self) -> Iterator[Image]:
        """Go through the images in the order they were learned."""
        return iter(self._images.values())

    def learn(self, image: Image) -> bool:
        """Take an image in; say whether anything about it was new. A name moves to the image it was last seen with."""
        known = self._images.get(image.digest)
        news = known is None
        if known is None:
            self._images[image.digest] = image
        for name in image.names:
            by_platform = self._names.setdefault(folded(name), {})
            if by_platform.get(image.platform) != image.digest:
                by_platform[image.platform] = image.digest
                news = True
        return news

    def by_digest(self, digest: Digest) -> Image | None:
        """Return the image with this manifest digest."""
        return self._images.get(digest)

    def find(self, name: str, platform: Platform = LINUX) -> Image | None:
        """
        Return what *name* means on *platform*; None when that is not known.

        A name that carries a digest means that manifest, whatever else it says; or, when it is the digest of an index
        of several platforms, whatever that name was learned to mean.
        """
        digest = pinned(name)
        if digest is None or digest not in self._images:
            digest = self._names.get(folded(name), {}).get(platform)
        return None if digest is None else self._images[digest]
