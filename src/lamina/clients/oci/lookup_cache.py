"""
What look-ups have found out, and for how long that is believed.

    documents   by digest, for ever: 20,000 of them, 256 MiB
    tags        5 minutes, for whoever has the same credentials
    failures    a minute, likewise, and for the same platforms

Who asks is part of the key, so that nobody is told from memory what a registry would not tell them. Content that is
asked for by its digest is the exception: who knows the digest knows what it is.
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
"""Where to ask, and what to show there."""


class LookupRequest(msgspec.Struct, frozen=True):
    """A reference with all that is needed to look it up."""

    reference: ImageReference
    platforms: tuple[Platform, ...]
    """In one order."""
    ways: tuple[LookupRoute, ...]
    who: str
    """Tells apart who has different credentials."""

    @property
    def tag_key(self) -> tuple[str, str]:
        """What all share who ask for the same name with the same credentials."""
        return (str(self.reference), self.who)

    @property
    def key(self) -> tuple[str, str, tuple[Platform, ...]]:
        """What all share who ask for the same."""
        return (*self.tag_key, self.platforms)


class LookupCache:
    """Remembers what was found out."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.documents = DocumentCache()
        self._tags: ExpiringCache[tuple[str, str], ResolvedTag] = ExpiringCache()
        self._failures: ExpiringCache[tuple[str, str, tuple[Platform, ...]], ImageNotFound] = ExpiringCache()

    def recall(self, question: LookupRequest, now: float) -> ResolvedImages | ImageNotFound | None:
        """Answer a question, with images that have no names; None when the registry has to be asked."""
        if (failure := self._failures.get(question.key, now)) is not None:
            return failure[0]
        root = question.reference.digest
        if root is None:
            tag = self.tag(question, now)
            if tag is None:
                return None
            root = tag.digest
        try:
            images = select_images(root, question.platforms, self.documents.get)
        except WireError as error:
            return ImageNotFound(NOT_USABLE, one_line(str(error)))
        return None if isinstance(images, MissingDocument) else ResolvedImages(images, self.good_for(question, now))

    def good_for(self, question: LookupRequest, now: float) -> float:
        """Say for how many seconds an answer is good that was found."""
        if question.reference.digest is not None:
            return math.inf
        known = self._tags.get(question.tag_key, now)
        return known[1] if known is not None else 0.0

    def tag(self, question: LookupRequest, now: float) -> ResolvedTag | None:
        """Return what a tag stands for, if that was asked lately."""
        known = self._tags.get(question.tag_key, now)
        return known[0] if known is not None else None

    def last_tag(self, question: LookupRequest) -> ResolvedTag | None:
        """Return what a tag stood for when it was last asked, however long ago."""
        return self._tags.last(question.tag_key)

    def note_tag(self, question: LookupRequest, tag: ResolvedTag, now: float) -> None:
        """Remember what a tag stands for."""
        self._tags.put(question.tag_key, tag, now + TAG_SECONDS)

    def note_failure(self, question: LookupRequest, answer: ImageNotFound, now: float) -> None:
        """Remember that there is nothing to be had."""
        self._failures.put(question.key, answer, now + FAILURE_SECONDS)
