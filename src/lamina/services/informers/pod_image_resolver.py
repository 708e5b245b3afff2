"""
Finds out what the images of pods consist of: from what is known inside, else from their registry.

What nodes and objects tell is asked first and costs no request. A registry is asked once for each image however many
pods want it, in the background, and what it answers goes in as `ImagesLearned`. Which registries may be asked is for the
client's rules to say (`lamina.clients.oci`); it also keeps what was answered, and gives up on one that does not answer.

Used by the doorkeeper. Never waits itself, and never lets an error out: an image of which nothing can be found out is one
that is not known.
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
"""Images of one pod that are looked at."""
MOST_ASKED: Final = 2000
"""Images that are asked for at a time; beyond that they count as not known."""
SHORTEST: Final = 1.0
"""Seconds for which an answer counts at least."""
LONGEST: Final = 86_400.0
"""And at most: a digest means the same for ever, but whoever may create pods can name it in ways without end."""
REFUSED_FOR: Final = 60.0
"""Seconds for which an image that pull secrets did not open is not asked for again."""
MOST_REFUSED: Final = 10_000

# Where an answer came from.
CATALOG: Final = "catalog"
CACHE: Final = "cache"
REGISTRY: Final = "registry"
FOUND: Final = "found"
NO_REFERENCE: Final = "no-reference"
NOT_ASKED: Final = "not-asked"
FAILED: Final = "failed"

log = logging.getLogger(__name__)


class ImageQuery(msgspec.Struct, frozen=True, gc=False):
    """What an image is, asked for a namespace, with its pull secrets if it lets us use them."""

    namespace: str
    name: str
    secrets: tuple[str, ...] = ()


class ImageFinder(Protocol):
    """What is needed of `lamina.clients.oci.resolver.RegistryResolver`."""

    def seen_on_nodes(self, hosts: Collection[str], /) -> None:
        """Take these for the registries nodes have pulled from."""

    def known(self, reference: str, platforms: Collection[Platform], /) -> ResolvedImages | ImageNotFound | None:
        """Answer from what is remembered; None when a registry would have to be asked."""

    async def find(
        self,
        reference: str,
        platforms: Collection[Platform],
        /,
        *,
        keyring: Keyring | None = None,
        namespace: str = "",
    ) -> ResolvedImages | ImageNotFound:
        """Ask."""


CatalogLookup = Callable[[str, Platform], Image | None]


class PodImageResolver:
    """Knows what is known of images, and whom to ask about the others."""

    def __init__(self, find: CatalogLookup, finder: ImageFinder | None, secrets: PullSecrets | None = None) -> None:
        """Look images up with *find*; ask *finder* about others, or nobody."""
        self._find = find
        self._finder = finder
        self._secrets = secrets
        self._underway: dict[ImageQuery, asyncio.Task[None]] = {}
        self._refused: dict[ImageQuery, float] = {}
        """Until when not to ask again."""
        self._nodes_told = -1
        self._answered: Callable[[ImageQuery], None] = lambda _: None
        self._learned: Callable[[Event], None] = lambda _: None
        self.nodes = NodeImageFacts()
        self.counts: Counter[tuple[str, str]] = Counter()
        """Images looked at, by who knew (or did not) and what came of it."""

    def tell(self, answered: Callable[[ImageQuery], None], learned: Callable[[Event], None]) -> None:
        """Tell *answered* of each question that was asked, after *learned* was told what came of it."""
        self._answered = answered
        self._learned = learned

    def namespace(self, name: str, annotations: Mapping[str, str], labels: Mapping[str, str]) -> None:
        """A namespace appeared or changed."""
        if self._secrets is not None:
            self._secrets.namespace(name, annotations, labels)

    # -- what is known -----------------------------------------------------------------------------------------------

    def knows(self, pod: Pod) -> bool:
        """Whether it is known inside what all images of a pod are, on every platform that nodes have."""
        return all(map(self._is_known, pod.images))

    def _is_known(self, name: str) -> bool:
        find = self._find
        return all(find(name, platform) is not None for platform in self.nodes.platforms)

    def questions(self, pod: Pod) -> list[ImageQuery]:
        """List what would have to be asked about a pod's images; what is remembered of them goes in on the way."""
        if self.knows(pod):
            self.counts[CATALOG, FOUND] += len(pod.images)
            return []
        if self._finder is None:
            return []
        try:
            return self._unknown(pod)
        except Exception as error:  # noqa: BLE001 - whatever is written in a pod, it goes its way
            self._failed(error)
            return []

    def _unknown(self, pod: Pod) -> list[ImageQuery]:
        assert self._finder is not None, "nobody would be asked"
        if self._nodes_told != self.nodes.version:
            self._nodes_told = self.nodes.version
            self._finder.seen_on_nodes(self.nodes.registries)
        secrets = () if self._secrets is None else self._secrets.of(pod)
        names = list(dict.fromkeys(pod.images))[:MOST_IMAGES]
        return [question for name in names if (question := self._question(pod, name, secrets)) is not None]

    def _question(self, pod: Pod, name: str, secrets: tuple[str, ...]) -> ImageQuery | None:
        """Return what is to be asked about an image; None when there is nothing to gain."""
        assert self._finder is not None, "nobody would be asked"
        if self._is_known(name):
            self.counts[CATALOG, FOUND] += 1
            return None
        if not registry_of(name):
            self.counts[CATALOG, NO_REFERENCE] += 1
            return None
        question = ImageQuery(pod.namespace, name, secrets)
        if question in self._underway:
            return question
        answer = self._finder.known(name, self.nodes.platforms)
        if isinstance(answer, ResolvedImages):
            self._learn(name, answer)
            self.counts[CACHE, FOUND] += 1
            return None
        if answer is not None and (not secrets or answer.reason == NOT_ALLOWED):
            # Where nobody may go, secrets are of no use, and so not even read.
            self.counts[CACHE, answer.reason] += 1
            return None
        if self._refused.get(question, -math.inf) > _now():
            return None
        if len(self._underway) >= MOST_ASKED:
            self.counts[REGISTRY, NOT_ASKED] += 1
            return None
        return question

    def _learn(self, name: str, found: ResolvedImages) -> None:
        """Let in what is not known inside; an image that exists for some platforms only never is for the others."""
        new = [image for image in found.images if self._find(name, image.platform) is None]
        if new:
            # What is no longer good at all is good for this one pod.
            self._learned(ImagesLearned(found.images, min(max(found.good_for, SHORTEST), LONGEST)))

    # -- asking ------------------------------------------------------------------------------------------------------

    def ask(self, pod: Pod, questions: Iterable[ImageQuery]) -> None:
        """Ask whatever of this is not being asked already."""
        for question in questions:
            if question not in self._underway:
                self._underway[question] = asyncio.create_task(self._ask(question), name="image")

    async def _ask(self, question: ImageQuery) -> None:
        try:
            # It may have become known since the question came up: what was seen is taken in between.
            if not self._is_known(question.name):
                await self._ask_registry(question)
        except Exception as error:  # noqa: BLE001 - whatever a registry does, the pod goes its way
            self._failed(error)
        finally:
            del self._underway[question]
            self._answered(question)

    async def _ask_registry(self, question: ImageQuery) -> None:
        assert self._finder is not None, "nobody would be asked"
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
            "not known what an image is",
            extra={"fields": {"namespace": question.namespace, "image": question.name[:200], "why": answer.reason}},
        )
        if question.secrets and answer.reason != BUSY:
            self._refused[question] = _now() + REFUSED_FOR
            if len(self._refused) > MOST_REFUSED:
                del self._refused[next(iter(self._refused))]

    def _failed(self, error: Exception) -> None:
        # None of its words: they may be anybody's.
        self.counts[REGISTRY, FAILED] += 1
        log.warning("cannot find out what an image is: %s", type(error).__name__)

    async def close(self) -> None:
        """Give up what is being asked."""
        tasks = list(self._underway.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._secrets is not None:
            await self._secrets.close()


def _now() -> float:
    return asyncio.get_running_loop().time()
