"""
A node on which images come and go at random, and what its agent has to say at every quiet moment.

What is expected is worked out from what was pushed and pulled alone: which names there are, what each stands for, and what
that consists of. Everything is done in a kubelet's words. A name that is pulled again may stand for something new; the old
image stays under the name that its digest gave it.
"""

import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeAlias

import zstandard

from lamina.model.holdings import StoredImage
from lamina.wire.node_agent_frames import InventoryFrame
from testbed import cri, made
from testbed.errors import TestbedError
from testbed.runtimes import Containerd
from testbed.slow_proxy import SlowProxy

KINDS: Final = ("gzip", "zstd", "none")
SLOW: Final = 200_000
"""Bytes per second of a road on which pulls last long enough to be cut off."""
BIG: Final = 700_000

Document: TypeAlias = made.MadeImage | made.MadeIndex
Told: TypeAlias = dict[str, tuple[tuple[str, ...], int, tuple[tuple[str, int, str | None, bool], ...]]]
"""By digest: names, size, and of each layer digest, size, diff id and whether its unpacked size is known."""


class Hearer:
    """Keeps what the agent's reader said last."""

    def __init__(self) -> None:
        self.said: Told = {}
        self.reuse = ""

    def send(self, look: InventoryFrame, images: tuple[StoredImage, ...]) -> None:
        self.reuse = look.reuse
        self.said = {
            image.digest: (
                tuple(sorted(image.names)),
                image.size,
                tuple((one.digest, one.size, one.diff_id, one.unpacked is not None) for one in image.layers),
            )
            for image in images
        }

    def send_problem(self, problem: str) -> None:
        """Restarts are troubles; what was said before stays."""


class Churn:
    """Throws dice, and keeps the books."""

    def __init__(self, runtime: Containerd, registry: str, road: SlowProxy, seed: int) -> None:
        self.runtime, self.registry, self.road = runtime, registry, road
        self.dice = random.Random(seed)
        self.layers = [made.layer({f"shared/{one}": made.noise(one, 4000 + one)}, KINDS[one % 3]) for one in range(8)]
        self.names: dict[str, Document] = {}
        """What the runtime has, by what pods call it."""
        self.pushed: dict[str, Document] = {}
        self.borrowed: set[str] = set()
        """Images whose layers another one has in another compression: their blobs are not fetched."""
        self.things: list[tuple[int, Callable[[], None]]] = [
            (5, self.pull_something),
            (3, self.move_a_tag),
            (2, self.pull_by_digest),
            (4, self.remove_something),
            (2, self.pull_again),
            (1, self.pull_for_another_machine),
            (2, self.cut_a_pull),
            (1, self.restart),
            (1, self.crash_in_a_pull),
        ]

    def truth(self) -> Told:
        """What there is to say."""
        told: dict[str, tuple[set[str], made.MadeImage]] = {}
        for name, document in self.names.items():
            image = own(document)
            told.setdefault(image.digest, (set(), image))[0].add(name)
        return {
            digest: (
                tuple(sorted(names)),
                sum({layer.digest: layer.size for layer in image.layers}.values()),
                tuple((layer.digest, layer.size, layer.diff_id, True) for layer in image.layers),
            )
            for digest, (names, image) in told.items()
        }

    @property
    def has_blobs(self) -> bool:
        """Whether there is an image that was fetched with all its layers."""
        return any(own(document).digest not in self.borrowed for document in self.names.values())

    def happen(self) -> str:
        """Let some things happen, one after the other; their names."""
        weights = [weight for weight, _ in self.things]
        chosen = self.dice.choices([thing for _, thing in self.things], weights, k=self.dice.choice([1, 1, 2, 4]))
        for thing in chosen:
            thing()
        return ", ".join(thing.__name__ for thing in chosen)

    # ------------------------------------------------------------------------------------------------- what may happen

    def pull_something(self) -> None:
        self.pull(self.push(f"churn/r{self.dice.randrange(6)}:t{self.dice.randrange(3)}"))

    def move_a_tag(self) -> None:
        """The same name is pushed anew, and pulled again."""
        if tags := [name for name in sorted(self.names) if "@" not in name]:
            name = self.dice.choice(tags)
            self.push(name.partition("/")[2])
            self.pull(name)

    def pull_by_digest(self) -> None:
        reference = self.push(f"churn/r{self.dice.randrange(6)}:d")
        self.pull(f"{reference.rpartition(':')[0]}@{self.pushed[reference].digest}")

    def pull_again(self) -> None:
        if self.names:
            self.pull(self.dice.choice(sorted(self.names)))

    def remove_something(self) -> None:
        """All names of all that has the same configuration go: to a kubelet that is one image."""
        if self.names:
            name = self.dice.choice(sorted(self.names))
            config = own(self.names[name]).config
            self.runtime.remove(name)
            self.names = {name: found for name, found in self.names.items() if own(found).config != config}

    def pull_for_another_machine(self) -> None:
        """An image that no index leads to is taken as it is, whatever it was built for."""
        foreign = made.image([self.layer()], architecture="s390x")
        reference = made.push(self.registry, "churn/foreign:1", foreign)
        self.pushed[reference] = foreign
        self.pull(reference)

    def cut_a_pull(self) -> None:
        self.slow_pull(self.road.cut)

    def crash_in_a_pull(self) -> None:
        def crash() -> None:
            self.runtime.program.kill()
            time.sleep(self.dice.choice([0.0, 2.0]))
            self.runtime.program.start()

        self.slow_pull(crash)

    def restart(self) -> None:
        self.runtime.program.restart()

    # ---------------------------------------------------------------------------------------------------------------- how

    def slow_pull(self, meanwhile: Callable[[], None]) -> None:
        """A pull during which something happens; it may come to nothing."""
        big = made.layer({"big": made.noise(self.dice.randrange(1 << 30), BIG)})
        name = f"churn/slow:{self.dice.randrange(3)}"
        self.note(name, made.image([self.layer(), big]))
        timer = threading.Timer(self.dice.uniform(0.2, 2.5), meanwhile)
        timer.start()
        with suppress(TestbedError):
            self.pull(f"{self.road.host}/{name}")
        timer.join()

    def pull(self, reference: str) -> None:
        repository, _, digest = reference.partition("@")
        document = self.pushed[reference] if not digest else self.by_digest(digest)
        cri.pull(self.runtime.socket, reference, within=30)
        if not digest:
            self.names[reference] = document
            repository = reference.rpartition(":")[0]
        self.names[f"{repository}@{document.digest}"] = document

    def by_digest(self, digest: str) -> Document:
        known = [*self.pushed.values(), *self.names.values()]
        return next(document for document in known if document.digest == digest)

    def push(self, name: str) -> str:
        return self.note(name, self.something())

    def note(self, name: str, document: Document) -> str:
        """Push under *name*, which may be pulled on either road."""
        reference = made.push(self.registry, name, document)
        self.pushed[reference] = self.pushed[f"{self.road.host}/{name}"] = document
        return reference

    def something(self) -> Document:
        """Something new: on old layers or new ones, alone or in an index, or what is there in another compression."""
        some = self.dice.sample(self.layers, self.dice.randrange(1, 4))
        if self.dice.random() < 0.7:
            some.append(self.layer())
        match self.dice.randrange(4):
            case 0:
                foreign = made.image([self.layers[0]], architecture="s390x")
                return made.index([foreign, made.image(some)], attestations=True)
            case 1 if self.names:
                old = own(self.names[self.dice.choice(sorted(self.names))])
                layers = [as_gzip(one) for one in old.layers]
                image = made.image(layers, architecture=old.architecture, docker=True)
                self.borrowed.add(image.digest)
                return image
        return made.image(some)

    def layer(self) -> made.MadeLayer:
        seed = self.dice.randrange(1 << 30)
        return made.layer({f"own/{seed}": made.noise(seed, self.dice.randrange(100, 9000))}, self.dice.choice(KINDS))


def as_gzip(layer: made.MadeLayer) -> made.MadeLayer:
    """The same layer, compressed in another way."""
    if layer.media_type.endswith("gzip"):
        return layer
    plain = zstandard.ZstdDecompressor().decompress(layer.blob) if layer.media_type.endswith("zstd") else layer.blob
    blob = made.compress(plain, "gzip")
    return made.MadeLayer(blob, made.digest(blob), len(blob), layer.diff_id, layer.unpacked, f"{made.LAYER}+gzip")


def own(document: Document) -> made.MadeImage:
    """What this machine takes of it."""
    if isinstance(document, made.MadeImage):
        return document
    return next(image for image in document.images if image.architecture == made.machine())
