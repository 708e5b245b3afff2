"""
One look-up at one registry endpoint: from a tag to a digest, and from there to all documents of the image.

    tag ──HEAD──> digest                        no body, and not counted as a pull by Docker Hub
        ──GET, If-None-Match──> digest          if the registry does not return the digest for HEAD
    digest ──GET──> index, manifest ──GET──> configuration

Documents with a cached digest are not requested again, so an unchanged tag costs one request.
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
"""Indexes and manifests that one look-up may fetch."""


class ResolvedTag(msgspec.Struct, frozen=True):
    """The digest of a tag."""

    digest: Digest
    etag: str = ""
    endpoint: str = ""
    """Name of the endpoint that returned it."""


class ImageLookup:
    """A look-up in one repository; it adds what it fetches to a shared document cache."""

    def __init__(self, repository: RepositoryClient, documents: DocumentCache) -> None:
        """Store the parameters; send nothing yet."""
        self._repository, self._documents = repository, documents
        self._fetched: dict[Digest, CachedDocument] = {}
        """A copy of what this look-up fetched: the shared cache may evict it before the look-up ends."""

    async def tag(self, name: str, last: ResolvedTag | None) -> ResolvedTag:
        """Return the digest of a tag; *last* is the previous result. Raises RegistryError."""
        answer = await self._repository.ask("HEAD", f"manifests/{name}", {"Accept": ACCEPT})
        if 200 <= answer.status < 300 and (digest := _digest_header(answer)) is not None:
            return ResolvedTag(digest)
        here = self._repository.endpoint.name
        last = last if last is not None and last.etag and last.endpoint == here else None
        asked = {"Accept": ACCEPT, **({"If-None-Match": last.etag} if last is not None else {})}
        answer = await self._repository.ask("GET", f"manifests/{name}", asked)
        if answer.status == 304 and last is not None:
            return last
        # `_take` verifies the digest of the header; without a header, the body's sha256 is used.
        digest = _digest_header(answer) or digest_of(answer.body)
        await self._take(digest, answer)
        return ResolvedTag(digest, answer.headers.get("ETag", ""), here)

    async def images(self, root: Digest, platforms: Collection[Platform]) -> tuple[Image, ...]:
        """Return the images of *root* for *platforms*, fetching missing documents. Raises RegistryError."""
        for _ in range(MOST_DOCUMENTS + 1):
            try:
                found = select_images(root, platforms, self._known)
            except WireError as error:
                raise self._unusable(error) from error
            if not isinstance(found, MissingDocument):
                return found
            answer = await self._repository.ask("GET", f"manifests/{found.digest}", {"Accept": ACCEPT})
            await self._take(found.digest, answer)
        raise RegistryError(
            NOT_USABLE, f"{self._repository.endpoint.name}: the image needs more than {MOST_DOCUMENTS} manifests"
        )

    def _known(self, digest: Digest) -> CachedDocument | None:
        return self._fetched.get(digest) or self._documents.get(digest)

    async def _take(self, digest: Digest, answer: RegistryResponse) -> None:
        """Decode and cache a document, with the configuration of a manifest."""
        try:
            document = read(answer.body, digest, answer.headers.get("Content-Type", ""))
            if isinstance(document, CachedIndex):
                cached: CachedDocument = document
            else:
                config = document.config
                # Its Content-Type is not checked: registries differ, and the digest identifies the content.
                body = (await self._repository.ask("GET", f"blobs/{config}", {})).body if config is not None else None
                cached = describe(document, body)
        except WireError as error:
            raise self._unusable(error) from error
        self._fetched[digest] = cached
        self._documents.put(digest, cached)

    def _unusable(self, error: WireError) -> RegistryError:
        problem = without_secrets(f"{self._repository.endpoint.name}: {error}", self._repository.secrets)
        return RegistryError(NOT_USABLE, problem)


def _digest_header(answer: RegistryResponse) -> Digest | None:
    """Return the Docker-Content-Digest header, if it is valid."""
    try:
        return parse_digest(answer.headers.get("Docker-Content-Digest", ""))
    except DigestError:
        return None
