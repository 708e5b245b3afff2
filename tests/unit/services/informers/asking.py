"""A registry that answers as the test says, for whoever asks it, and a door before a plain list."""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable

from lamina.clients.oci.keyring import Keyring
from lamina.clients.oci.lookup_results import NO_SUCH_IMAGE, UNREACHABLE, ImageNotFound, ResolvedImages
from lamina.model.events import Event, ImagesLearned, NodeSeen, PodGone, PodSeen
from lamina.model.image import Image, Platform
from lamina.model.pod import Pod
from lamina.services.informers.image_gate import DEADLINE, ImageGate
from lamina.services.informers.pod_image_resolver import PodImageResolver
from lamina.services.informers.pull_secrets import PullSecrets
from lamina.testing import a_node, an_image

Answer = ResolvedImages | ImageNotFound | BaseException

NOTHING = ImageNotFound(NO_SUCH_IMAGE, "there is no such image")
DOWN = ImageNotFound(UNREACHABLE, "no answer")


def found(name: str, good_for: float = 300.0, platforms: Iterable[Platform] = (Platform(),)) -> ResolvedImages:
    return ResolvedImages(tuple(an_image(name, {f"layer of {name}": 5}, one) for one in platforms), good_for)


class ScriptedFinder:
    """Answers after so many seconds; an image it has no answer for takes for ever."""

    def __init__(self, answers: dict[str, tuple[float, Answer]] | None = None) -> None:
        self.answers = answers or {}
        self.remembered: dict[str, ResolvedImages | ImageNotFound] = {}
        self.asked: list[str] = []
        self.keyrings: list[Keyring | None] = []
        self.namespaces: list[str] = []
        self.platforms: list[tuple[Platform, ...]] = []
        self.hosts: tuple[str, ...] = ()
        self.counts: Counter[str] = Counter()

    def seen_on_nodes(self, hosts: Collection[str], /) -> None:
        self.hosts = tuple(hosts)

    def known(self, reference: str, platforms: Collection[Platform], /) -> ResolvedImages | ImageNotFound | None:
        return self.remembered.get(reference)

    async def find(
        self,
        reference: str,
        platforms: Collection[Platform],
        /,
        *,
        keyring: Keyring | None = None,
        namespace: str = "",
    ) -> ResolvedImages | ImageNotFound:
        self.asked.append(reference)
        self.keyrings.append(keyring)
        self.namespaces.append(namespace)
        self.platforms.append(tuple(platforms))
        seconds, answer = self.answers.get(reference, (1e6, NOTHING))
        await asyncio.sleep(seconds)
        if isinstance(answer, BaseException):
            raise answer
        return answer


class Inside:
    """What came in, when; and what is known there, which is what came in."""

    def __init__(self) -> None:
        self.events: list[tuple[float, Event]] = []
        self.images: dict[tuple[str, Platform], Image] = {}
        self.rung = 0

    def put(self, event: Event, /) -> None:
        self.events.append((asyncio.get_running_loop().time(), event))
        if isinstance(event, ImagesLearned):
            for image in event.images:
                self.images.update(dict.fromkeys(((name, image.platform) for name in image.names), image))

    def wake(self) -> None:
        self.rung += 1

    def find(self, name: str, platform: Platform) -> Image | None:
        return self.images.get((name, platform))

    def told(self, began: float) -> list[tuple[float, str]]:
        """Pods and images in short, with the seconds since then."""
        return [(round(at - began, 3), short(event)) for at, event in self.events if short(event)]


def short(event: Event) -> str:
    match event:
        case PodSeen(pod):
            return f"{pod.name} on {pod.node_name}" if pod.node_name else pod.name
        case PodGone(uid):
            return f"no {uid}"
        case ImagesLearned(images):
            return f"learned {' '.join(sorted({name for image in images for name in image.names}))}"
    return ""


class Entry:
    """A door with everything around it; nodes are there and it is open."""

    def __init__(
        self,
        answers: dict[str, tuple[float, Answer]] | None = None,
        *,
        deadline: float = DEADLINE,
        ours: Callable[[Pod], bool] = lambda pod: pod.scheduler_name == "default-scheduler",
        secrets: PullSecrets | None = None,
        nodes: int = 1,
        may_open: Callable[[], bool] = lambda: True,
    ) -> None:
        self.began = asyncio.get_running_loop().time()
        self.finder = ScriptedFinder(answers)
        self.inside = Inside()
        self.resolving = PodImageResolver(self.inside.find, self.finder, self.inside.put, secrets)
        self.seconds: list[float] = []
        self.leads = True
        self.door = ImageGate(
            self.inside, self.resolving, ours=ours, deadline=deadline, may_ask=lambda: self.leads, watch=self
        )
        for number in range(nodes):
            self.door.put(NodeSeen(a_node(f"n{number}")))
        self._task = asyncio.create_task(self.door.run(may_open))

    def held(self, seconds: float) -> None:
        self.seconds.append(round(seconds, 3))

    def know(self, name: str, platform: Platform | None = None) -> None:
        platform = platform or Platform()
        self.inside.images[name, platform] = an_image(name, {"known": 1}, platform)

    @property
    def told(self) -> list[tuple[float, str]]:
        return self.inside.told(self.began)

    async def __aenter__(self) -> "Entry":
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self.resolving.close()
