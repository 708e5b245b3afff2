"""
One look-up at one place: from a tag to a digest, and from there to all documents that are needed.

    tag ──HEAD──> digest                        no body, and no pull as Docker Hub counts them
        ──GET, If-None-Match──> digest          where a registry does not tell it otherwise
    digest ──GET──> index, manifest ──GET──> configuration

What is known by its digest is not asked for again, so a tag that has not moved costs one question.
"""

from collections.abc import Collection
from typing import Final

import msgspec

from lamina.clients.oci.document_cache import DocumentCache
from lamina.clients.oci.image_selection import MOST_IMAGES, MissingDocument, select_images
from lamina.clients.oci.lookup_results import NOT_USABLE, RegistryError, without_secrets
from lamina.clients.oci.registry_documents import ACCEPT, CachedDocument, CachedIndex, describe, read
from lamina.clients.oci.registry_fetcher import RegistryResponse
from lamina.clients.oci.registry_session import RepositoryClient
from lamina.model.digest import Digest, DigestError, digest_of, parse_digest
from lamina.model.image import Image, Platform
from lamina.wire.errors import WireError

MOST_DOCUMENTS: Final = 2 * MOST_IMAGES
"""Indexes and manifests that one look-up fetches."""


class ResolvedTag(msgspec.Struct, frozen=True):
    """What a tag stood for."""

    digest: Digest
    etag: str = ""
    place: str = ""
    """Who said so."""


class ImageLookup:
    """A look-up; what it fetches goes to a shelf that others use as well."""

    def __init__(self, asking: RepositoryClient, documents: DocumentCache) -> None:
        """Ask nothing yet."""
        self._asking, self._documents = asking, documents
        self._fetched: dict[Digest, CachedDocument] = {}
        """Also kept here: the shelf may be too small for all that one look-up needs."""

    async def tag(self, name: str, last: ResolvedTag | None) -> ResolvedTag:
        """Ask which digest a tag has; *last* is what it was before. Raises RegistryError."""
        answer = await self._asking.ask("HEAD", f"manifests/{name}", {"Accept": ACCEPT})
        if 200 <= answer.status < 300 and (digest := _said(answer)) is not None:
            return ResolvedTag(digest)
        here = self._asking.place.name
        last = last if last is not None and last.etag and last.place == here else None
        asked = {"Accept": ACCEPT, **({"If-None-Match": last.etag} if last is not None else {})}
        answer = await self._asking.ask("GET", f"manifests/{name}", asked)
        if answer.status == 304 and last is not None:
            return last
        # A registry that names a digest is held to it, and one that does not gets the usual one.
        digest = _said(answer) or digest_of(answer.body)
        await self._take(digest, answer)
        return ResolvedTag(digest, answer.headers.get("ETag", ""), here)

    async def images(self, root: Digest, platforms: Collection[Platform]) -> tuple[Image, ...]:
        """Return the images that *root* stands for, and fetch what is needed for that. Raises RegistryError."""
        for _ in range(MOST_DOCUMENTS + 1):
            try:
                found = select_images(root, platforms, self._known)
            except WireError as error:
                raise self._unusable(error) from error
            if not isinstance(found, MissingDocument):
                return found
            answer = await self._asking.ask("GET", f"manifests/{found.digest}", {"Accept": ACCEPT})
            await self._take(found.digest, answer)
        raise RegistryError(NOT_USABLE, f"{self._asking.place.name}: more than {MOST_DOCUMENTS} manifests to look at")

    def _known(self, digest: Digest) -> CachedDocument | None:
        return self._fetched.get(digest) or self._documents.get(digest)

    async def _take(self, digest: Digest, answer: RegistryResponse) -> None:
        """Read a document, and the configuration that belongs to it."""
        try:
            document = read(answer.body, digest, answer.headers.get("Content-Type", ""))
            if isinstance(document, CachedIndex):
                kept: CachedDocument = document
            else:
                config = document.config
                # Whatever it is called, it is bytes with this digest; some registries call it a stream.
                body = (await self._asking.ask("GET", f"blobs/{config}", {})).body if config is not None else None
                kept = describe(document, body)
        except WireError as error:
            raise self._unusable(error) from error
        self._fetched[digest] = kept
        self._documents.put(digest, kept)

    def _unusable(self, error: WireError) -> RegistryError:
        told = without_secrets(f"{self._asking.place.name}: {error}", self._asking.secrets)
        return RegistryError(NOT_USABLE, told)


def _said(answer: RegistryResponse) -> Digest | None:
    """Return the digest that a registry names, if it names one."""
    try:
        return parse_digest(answer.headers.get("Docker-Content-Digest", ""))
    except DigestError:
        return None
