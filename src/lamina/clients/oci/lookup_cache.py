"""
Cache of look-up results, with their lifetimes.

    documents   by digest, no expiry: at most 20,000 documents and 256 MiB
    tags        5 minutes, for each set of credentials
    failures    a minute, for each set of credentials and platforms

Credentials are part of the key, so that the cache returns nothing the registry would refuse to that caller. Content by
digest is the exception: a caller that knows the digest already identifies the content.
"""

import math
from typing import Final, TypeAlias

import msgspec

from lamina.clients.oci.document_cache import DocumentCache, ExpiringCache
from lamina.clients.oci.image_lookup import ResolvedTag
from lamina.clients.oci.image_selection import MissingDocument, select_images
from lamina.clients.oci.keyring import RegistryLogin
from lamina.clients.oci.lookup_results import NOT_USABLE, ImageNotFound, ResolvedImages, one_line
from lamina.clients.oci.registry_endpoints import RegistryEndpoint
from lamina.model.image import Platform
from lamina.model.reference import ImageReference
from lamina.wire.errors import WireError

TAG_SECONDS: Final = 300.0
FAILURE_SECONDS: Final = 60.0

LookupRoute: TypeAlias = tuple[RegistryEndpoint, tuple[RegistryLogin, ...]]
"""An endpoint and the logins to try there."""


class LookupRequest(msgspec.Struct, frozen=True):
    """A reference with the platforms, endpoints and logins to look it up."""

    reference: ImageReference
    platforms: tuple[Platform, ...]
    """In a fixed order."""
    routes: tuple[LookupRoute, ...]
    fingerprint: str
    """Hash of all logins."""

    @property
    def tag_key(self) -> tuple[str, str]:
        """Cache key of the tag: reference and credentials."""
        return (str(self.reference), self.fingerprint)

    @property
    def key(self) -> tuple[str, str, tuple[Platform, ...]]:
        """Cache key of the result: reference, credentials and platforms."""
        return (*self.tag_key, self.platforms)


class LookupCache:
    """Documents, tags and failures of earlier look-ups."""

    def __init__(self) -> None:
        """Start empty."""
        self.documents = DocumentCache()
        self._tags: ExpiringCache[tuple[str, str], ResolvedTag] = ExpiringCache()
        self._failures: ExpiringCache[tuple[str, str, tuple[Platform, ...]], ImageNotFound] = ExpiringCache()

    def recall(self, request: LookupRequest, now: float) -> ResolvedImages | ImageNotFound | None:
        """Return a cached result, whose images have no names; None when the registry must be queried."""
        if (failure := self._failures.get(request.key, now)) is not None:
            return failure[0]
        root = request.reference.digest
        if root is None:
            tag = self.tag(request, now)
            if tag is None:
                return None
            root = tag.digest
        try:
            images = select_images(root, request.platforms, self.documents.get)
        except WireError as error:
            return ImageNotFound(NOT_USABLE, one_line(str(error)))
        return None if isinstance(images, MissingDocument) else ResolvedImages(images, self.good_for(request, now))

    def good_for(self, request: LookupRequest, now: float) -> float:
        """Return for how many seconds a successful result is valid."""
        if request.reference.digest is not None:
            return math.inf
        known = self._tags.get(request.tag_key, now)
        return known[1] if known is not None else 0.0

    def tag(self, request: LookupRequest, now: float) -> ResolvedTag | None:
        """Return the digest of a tag, if it is cached and not expired."""
        known = self._tags.get(request.tag_key, now)
        return known[0] if known is not None else None

    def last_tag(self, request: LookupRequest) -> ResolvedTag | None:
        """Return the last known digest of a tag, even if expired."""
        return self._tags.last(request.tag_key)

    def note_tag(self, request: LookupRequest, tag: ResolvedTag, now: float) -> None:
        """Cache the digest of a tag."""
        self._tags.put(request.tag_key, tag, now + TAG_SECONDS)

    def note_failure(self, request: LookupRequest, answer: ImageNotFound, now: float) -> None:
        """Cache a failure."""
        self._failures.put(request.key, answer, now + FAILURE_SECONDS)
