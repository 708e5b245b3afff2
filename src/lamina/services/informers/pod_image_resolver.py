"""
Resolver of pod images to layers: from the catalog, else from the image's registry.

The catalog has the images that nodes and ImageLayers objects report, and costs no request. A registry is queried in the
background, once for each image however many pods use it; its answer becomes an `ImagesLearned` event. The registry
client (`lamina.clients.oci`) decides which registries may be queried, caches answers, and stops querying a registry
that fails.

Used by the image gate. No method blocks or raises: an image that cannot be resolved is an unknown image.
"""

import asyncio
import logging
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, Protocol

import msgspec

from lamina.clients.oci.keyring import Keyring
from lamina.clients.oci.lookup_results import BUSY, NOT_ALLOWED, ImageNotFound, ResolvedImages
from lamina.model.events import Event, ImagesLearned
from lamina.model.image import Image, Platform
from lamina.model.pod import Pod
from lamina.services.informers.node_image_facts import NodeImageFacts, registry_of
from lamina.services.informers.pull_secrets import PullSecrets

MOST_IMAGES: Final = 64
"""Most images of one pod that are resolved."""
MOST_ASKED: Final = 2000
"""Most queries at a time; further images stay unknown."""
SHORTEST: Final = 1.0
"""Shortest time in seconds for which an answer is used."""
LONGEST: Final = 86_400.0
"""Longest time in seconds. A digest never changes, but pod authors can name it in unlimited ways, so entries expire."""
REFUSED_FOR: Final = 60.0
"""Seconds before an image is queried again after its pull secrets did not give access."""
MOST_REFUSED: Final = 10_000

# Where an answer came from, and its outcome: the labels of the metric.
CATALOG: Final = "catalog"
CACHE: Final = "cache"
REGISTRY: Final = "registry"
FOUND: Final = "found"
NO_REFERENCE: Final = "no-reference"
NOT_ASKED: Final = "not-asked"
FAILED: Final = "failed"

log = logging.getLogger(__name__)


class ImageQuery(msgspec.Struct, frozen=True, gc=False):
    """Query for one image on behalf of a namespace, with pull secrets if the namespace permits their use."""

    namespace: str
    name: str
    secrets: tuple[str, ...] = ()


class ImageFinder(Protocol):
    """The methods used of `lamina.clients.oci.resolver.RegistryResolver`."""

    def seen_on_nodes(self, hosts: Collection[str], /) -> None:
        """Set the registries that nodes have pulled from."""

    def known(self, reference: str, platforms: Collection[Platform], /) -> ResolvedImages | ImageNotFound | None:
        """Return the cached answer; None if a registry would have to be queried."""

    async def find(
        self,
        reference: str,
        platforms: Collection[Platform],
        /,
        *,
        keyring: Keyring | None = None,
        namespace: str = "",
    ) -> ResolvedImages | ImageNotFound:
        """Query the registry."""


CatalogLookup = Callable[[str, Platform], Image | None]


class PodImageResolver:
    """Resolves images from the catalog, else queries their registries."""

    def __init__(
        self,
        find: CatalogLookup,
        finder: ImageFinder | None,
        learned: Callable[[Event], None],
        secrets: PullSecrets | None = None,
    ) -> None:
        """Look images up with *find*; query *finder* for other images, if there is one, and report them to *learned*."""
        self._find = find
        self._finder = finder
        self._learned = learned
        self._secrets = secrets
        self._in_flight: dict[ImageQuery, asyncio.Task[None]] = {}
        self._listeners: dict[ImageQuery, list[Callable[[ImageQuery], None]]] = {}
        """For each query in flight, what is called at its end."""
        self._refused: dict[ImageQuery, float] = {}
        """When each query may be sent again, in event loop time."""
        self._nodes_version = -1
        self.nodes = NodeImageFacts()
        self.counts: Counter[tuple[str, str]] = Counter()
        """Images looked up, by source and outcome."""

    def namespace(self, name: str, annotations: Mapping[str, str], labels: Mapping[str, str]) -> None:
        """Record a namespace that appeared or changed."""
        if self._secrets is not None:
            self._secrets.namespace(name, annotations, labels)

    # -- lookups -----------------------------------------------------------------------------------------------------

    def knows(self, pod: Pod) -> bool:
        """Return whether the catalog has all images of a pod, on every platform that nodes have."""
        return all(map(self._is_known, pod.images))

    def _is_known(self, name: str) -> bool:
        find = self._find
        return all(find(name, platform) is not None for platform in self.nodes.platforms)

    def questions(self, pod: Pod) -> list[ImageQuery]:
        """Return the queries that a pod's images need; report images from the registry client's cache on the way."""
        if self.knows(pod):
            self.counts[CATALOG, FOUND] += len(pod.images)
            return []
        if self._finder is None:
            return []
        try:
            return self._unknown(pod)
        except Exception as error:  # noqa: BLE001 - no text in a pod may stop its scheduling
            self._failed(error)
            return []

    def _unknown(self, pod: Pod) -> list[ImageQuery]:
        assert self._finder is not None, "no registry client"
        if self._nodes_version != self.nodes.version:
            self._nodes_version = self.nodes.version
            self._finder.seen_on_nodes(self.nodes.registries)
        secrets = () if self._secrets is None else self._secrets.of(pod)
        names = list(dict.fromkeys(pod.images))[:MOST_IMAGES]
        return [question for name in names if (question := self._question(pod, name, secrets)) is not None]

    def _question(self, pod: Pod, name: str, secrets: tuple[str, ...]) -> ImageQuery | None:
        """Return the query for an image; None if a query would not help."""
        assert self._finder is not None, "no registry client"
        if self._is_known(name):
            self.counts[CATALOG, FOUND] += 1
            return None
        if not registry_of(name):
            self.counts[CATALOG, NO_REFERENCE] += 1
            return None
        question = ImageQuery(pod.namespace, name, secrets)
        if question in self._in_flight:
            return question
        answer = self._finder.known(name, self.nodes.platforms)
        if isinstance(answer, ResolvedImages):
            self._learn(name, answer)
            self.counts[CACHE, FOUND] += 1
            return None
        if answer is not None and (not secrets or answer.reason == NOT_ALLOWED):
            # The registry may not be queried at all, so the secrets need not be read.
            self.counts[CACHE, answer.reason] += 1
            return None
        if self._refused.get(question, -math.inf) > _now():
            return None
        if len(self._in_flight) >= MOST_ASKED:
            self.counts[REGISTRY, NOT_ASKED] += 1
            return None
        return question

    def _learn(self, name: str, found: ResolvedImages) -> None:
        """Report images that the catalog does not have. An image may exist for some platforms only."""
        new = [image for image in found.images if self._find(name, image.platform) is None]
        if new:
            # An answer that has expired already is still used for this pod.
            self._learned(ImagesLearned(found.images, min(max(found.good_for, SHORTEST), LONGEST)))

    # -- queries -----------------------------------------------------------------------------------------------------

    def ask(self, questions: Iterable[ImageQuery], answered: Callable[[ImageQuery], None]) -> None:
        """Send the queries that are not in flight yet; *answered* receives each once, after its images were learned."""
        for question in questions:
            listeners = self._listeners.setdefault(question, [])
            if answered not in listeners:
                listeners.append(answered)
            if question not in self._in_flight:
                self._in_flight[question] = asyncio.create_task(self._ask(question), name="image")

    async def _ask(self, question: ImageQuery) -> None:
        try:
            # The image may have become known meanwhile: events were processed in between.
            if not self._is_known(question.name):
                await self._ask_registry(question)
        except Exception as error:  # noqa: BLE001 - no reply of a registry may stop the scheduling of a pod
            self._failed(error)
        finally:
            del self._in_flight[question]
            for answered in self._listeners.pop(question):
                answered(question)

    async def _ask_registry(self, question: ImageQuery) -> None:
        assert self._finder is not None, "no registry client"
        keyring = None
        if self._secrets is not None and question.secrets:
            keyring = await self._secrets.keyring(question.namespace, question.secrets)
        answer = await self._finder.find(
            question.name, self.nodes.platforms, keyring=keyring, namespace=question.namespace
        )
        if isinstance(answer, ResolvedImages):
            self.counts[REGISTRY, FOUND] += 1
            self._learn(question.name, answer)
            return
        self.counts[REGISTRY, answer.reason] += 1
        log.debug(
            "image not resolved",
            extra={"fields": {"namespace": question.namespace, "image": question.name[:200], "why": answer.reason}},
        )
        if question.secrets and answer.reason != BUSY:
            self._refused[question] = _now() + REFUSED_FOR
            if len(self._refused) > MOST_REFUSED:
                del self._refused[next(iter(self._refused))]

    def _failed(self, error: Exception) -> None:
        # Log the type only: the message may contain text from a registry or a pod.
        self.counts[REGISTRY, FAILED] += 1
        log.warning("image resolution failed: %s", type(error).__name__)

    async def close(self) -> None:
        """Cancel all queries in flight."""
        tasks = list(self._in_flight.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._secrets is not None:
            await self._secrets.close()


def _now() -> float:
    return asyncio.get_running_loop().time()
