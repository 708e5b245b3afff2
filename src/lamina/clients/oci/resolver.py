"""
What image references stand for, asked of registries: the door to this room.

    known   from memory, at once
    find    from memory, or from the registry within 10 s; several who ask for the same share one look-up

    ways ── mirrors first ──> logins, as long as they are refused ──> tag, index, manifest, configuration

Called by the scheduler's intake and by the command line. An answer is a value; nothing is raised for what a registry or
the writer of a reference does. Nothing is logged here, and no answer holds a credential.
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
"""Questions that a namespace may make us ask registries: so many at once, and then so many a second."""
MOST_NAMESPACES: Final = 10_000
"""How many are remembered; one that is forgotten has its whole burst again."""

MIRROR_PATIENCE: Final = 3.0
"""Seconds a mirror gets before the next place is asked."""
MOST_UNDER_WAY: Final = 256


Answered = TypeVar("Answered", ResolvedImages | ImageNotFound, ResolvedImages | ImageNotFound | None)


class RegistryResolver:
    """Looks references up."""

    def __init__(
        self, rules: RegistryConfig, keyring: Keyring | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Ask as *rules* allow, with *keyring* for everybody; open nothing yet."""
        self.counts: Counter[str] = Counter()
        """Requests, answers from memory (``cached``), shared look-ups, and look-ups by how they ended."""
        self._clock = clock
        self._keyring = keyring or Keyring()
        self._places = EndpointPolicy(rules)
        self._lines = RegistryConnections(rules.refuse)
        fetcher = RegistryFetcher(self._lines, self._places, self.counts)
        self._desk = RegistrySession(fetcher, RegistryTokens(fetcher, self._places, clock), clock)
        self._helpers = CredentialHelpers(clock)
        self._questions = TokenBuckets(A_SECOND, BURST, MOST_NAMESPACES)
        self._memory = LookupCache()
        self._under_way: dict[tuple[str, str, tuple[Platform, ...]], asyncio.Task[ResolvedImages | ImageNotFound]] = {}

    def seen_on_nodes(self, hosts: Collection[str]) -> None:
        """Replace the registries that nodes have pulled from."""
        self._places.seen_on_nodes(hosts)

    def known(
        self, reference: str, platforms: Collection[Platform], *, keyring: Keyring | None = None
    ) -> ResolvedImages | ImageNotFound | None:
        """Answer from memory alone; None when the registry would have to be asked."""
        question = self._question(reference, platforms, keyring)
        if isinstance(question, ImageNotFound):
            return question
        return _called(self._memory.recall(question, self._clock()), reference)

    async def find(
        self,
        reference: str,
        platforms: Collection[Platform],
        *,
        keyring: Keyring | None = None,
        namespace: str = "",
    ) -> ResolvedImages | ImageNotFound:
        """
        Look a reference up, for *platforms* or if there are none for all.

        *keyring* has the pull secrets of whoever asks, which are tried before our own credentials. Every look-up that
        needs the registry is counted against *namespace*; without one nothing is counted.
        """
        question = self._question(reference, platforms, keyring)
        if isinstance(question, ImageNotFound):
            self.counts[question.reason] += 1
            return question
        if (known := self._memory.recall(question, self._clock())) is not None:
            self.counts["cached"] += 1
            return _called(known, reference)
        if (task := self._under_way.get(question.key)) is not None:
            self.counts["shared"] += 1
        elif len(self._under_way) >= MOST_UNDER_WAY:
            return self._ended(
                question, ImageNotFound(BUSY, f"{MOST_UNDER_WAY} look-ups are under way; ask again later")
            )
        elif namespace and not self._questions.take(namespace, self._clock()):
            return self._ended(question, ImageNotFound(BUSY, "this namespace has asked for too much; ask again later"))
        else:
            task = asyncio.create_task(self._look_up(question), name="registry look-up")
            self._under_way[question.key] = task
            task.add_done_callback(lambda _: self._under_way.pop(question.key, None))
        # Others wait for the same look-up: one of them being cancelled must not end it.
        return _called(await asyncio.shield(task), reference)

    async def close(self) -> None:
        """End everything that is under way."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._lines.close()

    def _question(
        self, text: str, platforms: Collection[Platform], keyring: Keyring | None
    ) -> LookupRequest | ImageNotFound:
        try:
            reference = parse_reference(text)
            places = self._places.ways(reference.registry)
        except ReferenceFormatError as error:
            return ImageNotFound(NOT_USABLE, _about(error))
        except RegistryError as error:
            return ImageNotFound(error.reason, error.detail)
        rings = [ring for ring in (keyring, self._keyring) if ring is not None]
        ways = tuple(
            (place, tuple(one for ring in rings for one in ring.for_registry(place.name, reference.repository)))
            for place in places
        )
        ordered = sorted(set(platforms), key=lambda one: (one.os, one.architecture, one.variant))
        who = fingerprint_of_logins([login for _, logins in ways for login in logins])
        return LookupRequest(reference, tuple(ordered), ways, who)

    async def _look_up(self, question: LookupRequest) -> ResolvedImages | ImageNotFound:
        try:
            async with asyncio.timeout(PATIENCE):
                images = await self._try_all(question)
        except TimeoutError:
            told = f"{question.reference.registry} did not answer within {PATIENCE:g} s"
            return self._ended(question, ImageNotFound(TOO_SLOW, told))
        except RegistryError as error:
            return self._ended(question, ImageNotFound(error.reason, error.detail))
        self.counts["found"] += 1
        return ResolvedImages(images, self._memory.good_for(question, self._clock()))

    def _ended(self, question: LookupRequest, answer: ImageNotFound) -> ImageNotFound:
        self.counts[answer.reason] += 1
        if answer.reason != BUSY:
            self._memory.note_failure(question, answer, self._clock())
        return answer

    async def _try_all(self, question: LookupRequest) -> tuple[Image, ...]:
        """Ask place after place; what the last one says counts."""
        *mirrors, own = question.ways
        for place, logins in mirrors:
            try:
                async with asyncio.timeout(MIRROR_PATIENCE):
                    return await self._try_logins(question, place, logins)
            except (RegistryError, TimeoutError):
                self.counts["mirror failed"] += 1
        return await self._try_logins(question, *own)

    async def _try_logins(
        self, question: LookupRequest, place: RegistryEndpoint, logins: tuple[RegistryLogin, ...]
    ) -> tuple[Image, ...]:
        """Try one login after the other; some registries say that there is nothing where they mean to refuse."""
        refusal: RegistryError | None = None
        shown = False
        for login in logins:
            try:
                credential = login if isinstance(login, Credential) else await self._helpers.ask(login)
                shown = True
                return await self._try(question, place, credential)
            except RegistryError as error:
                if error.reason not in (REFUSED, NO_SUCH_IMAGE):
                    raise
                refusal = error
        if refusal is not None and shown:
            raise refusal
        try:
            # Also where a helper that is asked about everything knows nothing about this one.
            return await self._try(question, place, None)
        except RegistryError as error:
            if refusal is not None and error.reason == REFUSED:
                raise refusal from error
            raise

    async def _try(
        self, question: LookupRequest, place: RegistryEndpoint, credential: Credential | None
    ) -> tuple[Image, ...]:
        look = ImageLookup(
            RepositoryClient(self._desk, place, question.reference.repository, credential), self._memory.documents
        )
        if (root := question.reference.digest) is not None:
            return await look.images(root, question.platforms)
        if (fresh := self._memory.tag(question, self._clock())) is not None:
            return await look.images(fresh.digest, question.platforms)
        tag = await look.tag(question.reference.tag or DEFAULT_TAG, self._memory.last_tag(question))
        images = await look.images(tag.digest, question.platforms)
        # Only now: a mirror whose tag leads nowhere must not be believed by the next place.
        self._memory.note_tag(question, tag, self._clock())
        return images


def _about(error: ReferenceFormatError) -> str:
    """Say what is wrong with a reference; not as it was written if there may be a password in it."""
    rest = error.text.replace("@sha256:", "").replace("@sha512:", "")
    if "@" in rest or "://" in rest:
        return "this is no image reference; leave out the protocol, and never write a password into it"
    return one_line(str(error))


def _called(answer: Answered, name: str) -> Answered:
    """Give images the name they were asked by."""
    if not isinstance(answer, ResolvedImages):
        return answer
    named = tuple(msgspec.structs.replace(image, names=(name,)) for image in answer.images)
    return msgspec.structs.replace(answer, images=named)
