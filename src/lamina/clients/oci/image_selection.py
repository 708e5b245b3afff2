"""
From a reference's digest to the images for some platforms, as far as documents are known.

Pure, and the only walk there is: whoever has to fetch runs it, fetches the document that is missing, and runs it again.
That an index lists an index is allowed a few times over; loops end there, and cannot be made with digests anyway.
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
"""Indexes inside each other."""
MOST_IMAGES: Final = 16
"""Images one look-up may ask for; also manifests without a platform it will look into."""

# What a variant that is not written stands for, as runtimes have it.
_USUAL: Final = {"arm64": 8, "amd64": 1, "arm": 7}


class MissingDocument(msgspec.Struct, frozen=True):
    """A document that has to be fetched before one can go on."""

    digest: Digest


class _Unknown(Exception):  # noqa: N818 - it is no error
    def __init__(self, digest: Digest) -> None:
        super().__init__(digest)
        self.digest = digest


def select_images(
    root: Digest, platforms: Collection[Platform], known: Callable[[Digest], CachedDocument | None]
) -> tuple[Image, ...] | MissingDocument:
    """
    Return the images for *platforms*, without names, or what has to be fetched first.

    No platforms: all there are. An image without an index is what it is: a runtime pulls it whatever the node. Raises
    WireError when there is nothing for any of the platforms.
    """
    try:
        found = {image.digest: image for image in _images(IndexedManifest(root), platforms, known, DEEPEST)}
    except _Unknown as unknown:
        return MissingDocument(unknown.digest)
    if not found:
        wanted = ", ".join(written(one) for one in _in_order(platforms)) or "any platform"
        raise WireError("image index", f"it has nothing for {wanted}", root)
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
        raise WireError("image index", f"more than {DEEPEST} indexes inside each other", listed.digest)
    for one in _fitting(document.manifests, platforms):
        for image in _images(one, platforms, known, deeper - 1):
            # Found below an entry that did not say: it says so itself, and is held to it.
            if one.platform is not None or not platforms or any(_fit(image.platform, want) for want in platforms):
                yield image


def _fitting(manifests: Iterable[IndexedManifest], platforms: Collection[Platform]) -> list[IndexedManifest]:
    """Pick the best manifest for each platform, and those that do not say which they are for."""
    told = [one for one in manifests if one.platform is not None]
    untold = [one for one in manifests if one.platform is None]
    if not platforms:
        return [*told, *untold][:MOST_IMAGES]
    chosen: dict[Digest, IndexedManifest] = {}
    for want in _in_order(platforms):
        fitting = [one for one in told if one.platform is not None and _fit(one.platform, want)]
        if fitting:
            # The newest variant that the node can run; of equals the first, as runtimes do.
            best = max(fitting, key=lambda one: _number(one.platform or want))
            chosen.setdefault(best.digest, best)
    return [*chosen.values(), *untold][:MOST_IMAGES]


def _fit(offered: Platform, wanted: Platform) -> bool:
    """Whether a node of one platform runs images of another."""
    same = (offered.os, offered.architecture) == (wanted.os, wanted.architecture)
    return same and (offered.variant == wanted.variant or 0 <= _number(offered) <= _number(wanted))


def _number(platform: Platform) -> int:
    """The number of a variant; -1 for one without."""
    if not platform.variant:
        return _USUAL.get(platform.architecture, 0)
    digits = platform.variant.removeprefix("v")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 3 else -1


def _in_order(platforms: Iterable[Platform]) -> list[Platform]:
    return sorted(platforms, key=lambda one: (one.os, one.architecture, one.variant))
