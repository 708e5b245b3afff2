"""
Resolver of image references: the public interface of the registry client.

    known   from the cache, without waiting
    find    from the cache, or from the registry within 10 s; concurrent calls for the same image share one look-up

    endpoints, mirrors first ──> logins, until one is accepted ──> tag, index, manifest, configuration

The scheduler's image resolver and the command line use it. Results are values: failures of a registry or mistakes in
a reference do not raise. It logs nothing, and no result contains a credential.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection
from typing import Final, TypeVar

import msgspec

from lamina.clients.oci.credential_helper import CredentialHelpers
from lamina.clients.oci.image_lookup import ImageLookup
from lamina.clients.oci.keyring import Credential, Keyring, RegistryLogin, fingerprint_of_logins
from lamina.clients.oci.lookup_cache import LookupCache, LookupRequest
from lamina.clients.oci.lookup_results import (
    BUSY,
    NO_SUCH_IMAGE,
    NOT_ALLOWED,
    NOT_USABLE,
    REASONS,
    REFUSED,
    TOO_SLOW,
    UNREACHABLE,
    ImageNotFound,
    RegistryError,
    ResolvedImages,
    one_line,
)
from lamina.clients.oci.registry_config import RegistryConfig
from lamina.clients.oci.registry_connections import RegistryConnections
from lamina.clients.oci.registry_endpoints import EndpointPolicy, RegistryEndpoint
from lamina.clients.oci.registry_fetcher import PATIENCE, RegistryFetcher
from lamina.clients.oci.registry_session import RegistrySession, RepositoryClient
from lamina.clients.oci.tokens import RegistryTokens
from lamina.model.image import Image, Platform
from lamina.model.reference import DEFAULT_TAG, ReferenceFormatError, parse_reference
from lamina.model.token_bucket import TokenBuckets

__all__ = [
    "BUSY",
    "NOT_ALLOWED",
    "NOT_USABLE",
    "NO_SUCH_IMAGE",
    "REASONS",
    "REFUSED",
    "TOO_SLOW",
    "UNREACHABLE",
    "ImageNotFound",
    "RegistryResolver",
    "ResolvedImages",
]

A_SECOND: Final = 1.0
BURST: Final = 10
"""Look-ups of one namespace that query a registry: `BURST` at once, then `A_SECOND` a second."""
MOST_NAMESPACES: Final = 10_000
"""Namespaces with a token bucket; an evicted namespace starts again with a full burst."""

MIRROR_PATIENCE: Final = 3.0
"""Seconds for a mirror before the next endpoint is queried."""
MOST_UNDER_WAY: Final = 256


Answered = TypeVar("Answered", ResolvedImages | ImageNotFound, ResolvedImages | ImageNotFound | None)


class RegistryResolver:
    """Resolves image references to images."""

    def __init__(
        self, rules: RegistryConfig, keyring: Keyring | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Query the registries that *rules* allow, with *keyring* for all callers; open nothing yet."""
        self.counts: Counter[str] = Counter()
        """Requests, results from the cache (``cached``), shared look-ups, and look-ups by outcome."""
        self._clock = clock
        self._keyring = keyring or Keyring()
        self._endpoints = EndpointPolicy(rules)
        self._connections = RegistryConnections(rules.refuse)
        fetcher = RegistryFetcher(self._connections, self._endpoints, self.counts)
        self._session = RegistrySession(fetcher, RegistryTokens(fetcher, self._endpoints, clock), clock)
        self._helpers = CredentialHelpers(clock)
        self._questions = TokenBuckets(A_SECOND, BURST, MOST_NAMESPACES)
        self._cache = LookupCache()
        self._in_progress: dict[
            tuple[str, str, tuple[Platform, ...]], asyncio.Task[ResolvedImages | ImageNotFound]
        ] = {}

    def seen_on_nodes(self, hosts: Collection[str]) -> None:
        """Replace the registries that nodes have pulled from."""
        self._endpoints.seen_on_nodes(hosts)

    def known(
        self, reference: str, platforms: Collection[Platform], *, keyring: Keyring | None = None
    ) -> ResolvedImages | ImageNotFound | None:
        """Return a result from the cache; None if the registry must be queried."""
        request = self._build_request(reference, platforms, keyring)
        if isinstance(request, ImageNotFound):
            return request
        return _called(self._cache.recall(request, self._clock()), reference)

    async def find(
        self,
        reference: str,
        platforms: Collection[Platform],
        *,
        keyring: Keyring | None = None,
        namespace: str = "",
    ) -> ResolvedImages | ImageNotFound:
        """
        Resolve a reference for *platforms*, or for all platforms if there are none.

        *keyring* holds the caller's pull secrets, which are tried before the resolver's own credentials. Every look-up
        that queries a registry takes a token from the bucket of *namespace*; without a namespace there is no limit.
        """
        request = self._build_request(reference, platforms, keyring)
        if isinstance(request, ImageNotFound):
            self.counts[request.reason] += 1
            return request
        if (known := self._cache.recall(request, self._clock())) is not None:
            self.counts["cached"] += 1
            return _called(known, reference)
        if (task := self._in_progress.get(request.key)) is not None:
            self.counts["shared"] += 1
        elif len(self._in_progress) >= MOST_UNDER_WAY:
            return self._ended(request, ImageNotFound(BUSY, f"{MOST_UNDER_WAY} look-ups are in progress: retry later"))
        elif namespace and not self._questions.take(namespace, self._clock()):
            return self._ended(request, ImageNotFound(BUSY, "the namespace exceeds its rate limit: retry later"))
        else:
            task = asyncio.create_task(self._look_up(request), name="registry look-up")
            self._in_progress[request.key] = task
            task.add_done_callback(lambda _: self._in_progress.pop(request.key, None))
        # Other callers share the look-up: cancelling one of them must not cancel it.
        return _called(await asyncio.shield(task), reference)

    async def close(self) -> None:
        """Cancel all look-ups and close all connections."""
        tasks = list(self._in_progress.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._connections.close()

    def _build_request(
        self, text: str, platforms: Collection[Platform], keyring: Keyring | None
    ) -> LookupRequest | ImageNotFound:
        try:
            reference = parse_reference(text)
            endpoints = self._endpoints.endpoints_for(reference.registry)
        except ReferenceFormatError as error:
            return ImageNotFound(NOT_USABLE, _about(error))
        except RegistryError as error:
            return ImageNotFound(error.reason, error.detail)
        rings = [ring for ring in (keyring, self._keyring) if ring is not None]
        routes = tuple(
            (endpoint, tuple(one for ring in rings for one in ring.for_registry(endpoint.name, reference.repository)))
            for endpoint in endpoints
        )
        ordered = sorted(set(platforms), key=lambda one: (one.os, one.architecture, one.variant))
        fingerprint = fingerprint_of_logins([login for _, logins in routes for login in logins])
        return LookupRequest(reference, tuple(ordered), routes, fingerprint)

    async def _look_up(self, request: LookupRequest) -> ResolvedImages | ImageNotFound:
        try:
            async with asyncio.timeout(PATIENCE):
                images = await self._try_all(request)
        except TimeoutError:
            problem = f"{request.reference.registry} did not respond within {PATIENCE:g} s"
            return self._ended(request, ImageNotFound(TOO_SLOW, problem))
        except RegistryError as error:
            return self._ended(request, ImageNotFound(error.reason, error.detail))
        self.counts["found"] += 1
        return ResolvedImages(images, self._cache.good_for(request, self._clock()))

    def _ended(self, request: LookupRequest, answer: ImageNotFound) -> ImageNotFound:
        self.counts[answer.reason] += 1
        if answer.reason != BUSY:
            self._cache.note_failure(request, answer, self._clock())
        return answer

    async def _try_all(self, request: LookupRequest) -> tuple[Image, ...]:
        """Query one endpoint after the other; the last one's error is raised."""
        *mirrors, own = request.routes
        for endpoint, logins in mirrors:
            try:
                async with asyncio.timeout(MIRROR_PATIENCE):
                    return await self._try_logins(request, endpoint, logins)
            except (RegistryError, TimeoutError):
                self.counts["mirror failed"] += 1
        return await self._try_logins(request, *own)

    async def _try_logins(
        self, request: LookupRequest, endpoint: RegistryEndpoint, logins: tuple[RegistryLogin, ...]
    ) -> tuple[Image, ...]:
        """Try one login after the other; some registries return 404 where they mean a refusal."""
        refusal: RegistryError | None = None
        shown = False
        for login in logins:
            try:
                credential = login if isinstance(login, Credential) else await self._helpers.ask(login)
                shown = True
                return await self._try(request, endpoint, credential)
            except RegistryError as error:
                if error.reason not in (REFUSED, NO_SUCH_IMAGE):
                    raise
                refusal = error
        if refusal is not None and shown:
            raise refusal
        try:
            # Anonymous access: also if a helper for all registries has no credentials for this one.
            return await self._try(request, endpoint, None)
        except RegistryError as error:
            if refusal is not None and error.reason == REFUSED:
                raise refusal from error
            raise

    async def _try(
        self, request: LookupRequest, endpoint: RegistryEndpoint, credential: Credential | None
    ) -> tuple[Image, ...]:
        look = ImageLookup(
            RepositoryClient(self._session, endpoint, request.reference.repository, credential), self._cache.documents
        )
        if (root := request.reference.digest) is not None:
            return await look.images(root, request.platforms)
        if (fresh := self._cache.tag(request, self._clock())) is not None:
            return await look.images(fresh.digest, request.platforms)
        tag = await look.tag(request.reference.tag or DEFAULT_TAG, self._cache.last_tag(request))
        images = await look.images(tag.digest, request.platforms)
        # Cached only now: if a mirror's tag leads to no image, the next endpoint must not use it.
        self._cache.note_tag(request, tag, self._clock())
        return images


def _about(error: ReferenceFormatError) -> str:
    """Return what is wrong with a reference; without quoting it if it may contain a password."""
    rest = error.text.replace("@sha256:", "").replace("@sha512:", "")
    if "@" in rest or "://" in rest:
        return "this is not an image reference; remove the protocol, and never write a password into it"
    return one_line(str(error))


def _called(answer: Answered, name: str) -> Answered:
    """Name the images after the reference that was requested."""
    if not isinstance(answer, ResolvedImages):
        return answer
    named = tuple(msgspec.structs.replace(image, names=(name,)) for image in answer.images)
    return msgspec.structs.replace(answer, images=named)
