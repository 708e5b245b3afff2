"""
Selection of an index's images for given platforms, from the documents known so far.

A pure function. The caller runs it, fetches the document it reports as missing, and runs it again. Indexes may contain
indexes up to a fixed depth, which also ends loops.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final

import msgspec

from lamina.clients.oci.registry_documents import CachedDocument, CachedImage, IndexedManifest
from lamina.model.digest import Digest
from lamina.model.image import Image, Platform
from lamina.wire.errors import WireError
from lamina.wire.image_merge import written

DEEPEST: Final = 3
"""Nested indexes."""
MOST_IMAGES: Final = 16
"""Images that one look-up may request, and manifests without a platform that it inspects."""

# Default variants of container runtimes.
_USUAL: Final = {"arm64": 8, "amd64": 1, "arm": 7}


class MissingDocument(msgspec.Struct, frozen=True):
    """A document that must be fetched before the selection can continue."""

    digest: Digest


class _Unknown(Exception):  # noqa: N818 - control flow, not an error
    def __init__(self, digest: Digest) -> None:
        super().__init__(digest)
        self.digest = digest


def select_images(
    root: Digest, platforms: Collection[Platform], known: Callable[[Digest], CachedDocument | None]
) -> tuple[Image, ...] | MissingDocument:
    """
    Return the images for *platforms*, without names, or the document that must be fetched first.

    Without platforms, return all images. An image without an index is returned for any platform, because a runtime
    pulls it on any node. Raises WireError when no image fits any of the platforms.
    """
    try:
        found = {image.digest: image for image in _images(IndexedManifest(root), platforms, known, DEEPEST)}
    except _Unknown as unknown:
        return MissingDocument(unknown.digest)
    if not found:
        wanted = ", ".join(written(one) for one in _in_order(platforms)) or "any platform"
        raise WireError("image index", f"it has no image for {wanted}", root)
    return tuple(found.values())


def _images(
    listed: IndexedManifest,
    platforms: Collection[Platform],
    known: Callable[[Digest], CachedDocument | None],
    deeper: int,
) -> Iterator[Image]:
    document = known(listed.digest)
    if document is None:
        raise _Unknown(listed.digest)
    if isinstance(document, CachedImage):
        image = document.image
        yield image if listed.platform is None else msgspec.structs.replace(image, platform=listed.platform)
        return
    if deeper == 0:
        raise WireError("image index", f"more than {DEEPEST} nested indexes", listed.digest)
    for one in _fitting(document.manifests, platforms):
        for image in _images(one, platforms, known, deeper - 1):
            # The entry had no platform; the image's own configuration has one and must fit.
            if one.platform is not None or not platforms or any(_fit(image.platform, want) for want in platforms):
                yield image


def _fitting(manifests: Iterable[IndexedManifest], platforms: Collection[Platform]) -> list[IndexedManifest]:
    """Return the best manifest for each platform, and all manifests without a platform."""
    with_platform = [one for one in manifests if one.platform is not None]
    without_platform = [one for one in manifests if one.platform is None]
    if not platforms:
        return [*with_platform, *without_platform][:MOST_IMAGES]
    chosen: dict[Digest, IndexedManifest] = {}
    for want in _in_order(platforms):
        fitting = [one for one in with_platform if one.platform is not None and _fit(one.platform, want)]
        if fitting:
            # The highest variant that the node can run; the first among equals, as runtimes choose.
            best = max(fitting, key=lambda one: _number(one.platform or want))
            chosen.setdefault(best.digest, best)
    return [*chosen.values(), *without_platform][:MOST_IMAGES]


def _fit(offered: Platform, wanted: Platform) -> bool:
    """Return whether a node of platform *wanted* runs images of platform *offered*."""
    same = (offered.os, offered.architecture) == (wanted.os, wanted.architecture)
    return same and (offered.variant == wanted.variant or 0 <= _number(offered) <= _number(wanted))


def _number(platform: Platform) -> int:
    """Return the number of a variant; -1 if it has none."""
    if not platform.variant:
        return _USUAL.get(platform.architecture, 0)
    digits = platform.variant.removeprefix("v")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 3 else -1


def _in_order(platforms: Iterable[Platform]) -> list[Platform]:
    return sorted(platforms, key=lambda one: (one.os, one.architecture, one.variant))
