"""
Images nobody built, alike in numbers to those people did build: a catalog for runs without a registry.

    family (base) --> runtime --> application, a repository of its own
      epochs: the base is rebuilt, and with it everything above; an update keeps nothing
      builds: the runtime is built anew on the same base; an update keeps the base
      otherwise the application changes from one of its own layers upwards; an update keeps all below

Parameters are fitted to the history of the Docker official images (docker-library/repo-info, linux/amd64, 2016 to 2019:
53,889 images of 132 repositories). There 75 % of the bytes of images are in layers that several images use, 61 % in
layers that several repositories use; 72 % of the layers are used by one image, 59 % are below 1 MB; images have 9 layers
(95 %: 18) and 151 MB (95 %: 464 MB); an update of a tag keeps 31 % of its bytes on average, and nothing in 42 % of
cases. Unpacked, they are about 2.3 times as large. `lamina catalog show` prints the same figures of any catalog.
"""

import math
from random import Random
from typing import Final

import msgspec

from lamina.model.digest import Digest
from lamina.model.image import Image, Layer

MOST_IMAGES: Final = 200_000

BASES: Final = (
    # MB, how much is built on it: sizes of the layers most often shared in that history.
    (51.4, 0.34),
    (45.4, 0.20),
    (26.9, 0.22),
    (2.8, 0.16),
    (75.2, 0.08),
)
APPLICATIONS_PER_RUNTIME: Final = 12
ON_A_BASE: Final = 0.25
"""Share of applications that are built on a base and no runtime."""
ONE_VERSION: Final = 0.26
"""Share of tags that never changed in that history."""
MEAN_VERSIONS: Final = 14
NEW_BASE: Final = 0.42
"""Share of updates that keep nothing."""
NEW_RUNTIME: Final = 0.36
"""Share of updates that keep the base only; it is fitted, the rest follows from where the bytes are."""
DRIFT: Final = 0.03
"""By how much a layer differs in size from the one it replaces, at most."""

MB: Final = 1_000_000
LARGEST: Final = 450.0
"""MB of a layer, at most."""


class _LayerSizeMix(msgspec.Struct, frozen=True):
    """What layers are like: a share of large ones around a median of MB, the others small."""

    large: float
    median: float
    spread: float

    def sizes(self, count: int, rng: Random) -> tuple[int, ...]:
        """Draw the sizes of so many layers."""
        return tuple(self._large(rng) if rng.random() < self.large else _small(rng) for _ in range(count))

    def _large(self, rng: Random) -> int:
        return round(MB * min(rng.lognormvariate(math.log(self.median), self.spread), LARGEST))


# Fitted: with these the figures above come out.
RUNTIME: Final = _LayerSizeMix(0.55, 58.0, 0.75)
APPLICATION: Final = _LayerSizeMix(0.40, 8.0, 1.55)


class _LayerGroup(msgspec.Struct, frozen=True):
    """Layers that are built together, as sizes; each build has digests of its own."""

    sizes: tuple[int, ...]

    def build(self, rng: Random, below: tuple[Layer, ...] = ()) -> tuple[Layer, ...]:
        """Make new layers above those that are kept."""
        sizes = self.sizes[len(below) :]
        return below + tuple(_layer(max(1, round(size * rng.uniform(1 - DRIFT, 1 + DRIFT))), rng) for size in sizes)


class _BuildHistory:
    """What a family or a runtime was at any time: built once, used by everything above."""

    def __init__(self, part: _LayerGroup, below: "_BuildHistory | None" = None) -> None:
        self._part = part
        self._below = below
        self._built: dict[tuple[int, int], tuple[Layer, ...]] = {}

    def at(self, epoch: int, build: int, rng: Random) -> tuple[Layer, ...]:
        """Return all layers up to here, of one epoch of the base and one build since."""
        if self._below is None:
            build = 0
        if (epoch, build) not in self._built:
            self._built[epoch, build] = self._part.build(rng)
        below = self._below.at(epoch, 0, rng) if self._below is not None else ()
        return below + self._built[epoch, build]


def generate(images: int, rng: Random) -> tuple[Image, ...]:
    """Make a catalog of so many images: the repositories one after the other, versions in their order."""
    lengths = _lengths(images, rng)
    bases = [
        _BuildHistory(_LayerGroup((round(size * MB), *(_small(rng) for _ in range(rng.randrange(3))))))
        for size, _ in BASES
    ]
    runtimes = [
        _BuildHistory(_runtime(rng), rng.choices(bases, [weight for _, weight in BASES])[0])
        for _ in range(max(1, len(lengths) // APPLICATIONS_PER_RUNTIME))
    ]
    made: list[Image] = []
    width = len(str(len(lengths)))
    for number, length in enumerate(lengths, 1):
        if rng.random() < ON_A_BASE:
            line = rng.choices(bases, [weight for _, weight in BASES])[0]
        else:
            line = rng.choice(runtimes)
        made += _repository(f"registry.example/app-{number:0{width}}", length, line, rng)
    return tuple(made)


def _lengths(images: int, rng: Random) -> list[int]:
    """Draw how many versions each repository has."""
    # In a small catalog no repository is most of it.
    most = max(2, images // 8)
    lengths: list[int] = []
    left = images
    while left:
        drawn = 1 if rng.random() < ONE_VERSION else 2 + int(rng.expovariate(1 / MEAN_VERSIONS))
        lengths.append(min(drawn, most, left))
        left -= lengths[-1]
    return lengths


def _repository(name: str, length: int, line: _BuildHistory, rng: Random) -> list[Image]:
    part = _application(rng)
    own = part.build(rng)
    epoch = build = 0
    made: list[Image] = []
    for version in range(1, length + 1):
        if version > 1:
            kind = rng.random()
            if kind < NEW_BASE:
                epoch, build, own = epoch + 1, 0, part.build(rng)
            elif kind < NEW_BASE + NEW_RUNTIME:
                build, own = build + 1, part.build(rng)
            else:
                own = part.build(rng, own[: max(rng.randrange(len(own)), rng.randrange(len(own)))])
        made.append(Image(_digest(rng), line.at(epoch, build, rng) + own, (f"{name}:{version}",)))
    return made


def _runtime(rng: Random) -> _LayerGroup:
    return _LayerGroup(RUNTIME.sizes(1 + rng.randrange(6), rng))


def _application(rng: Random) -> _LayerGroup:
    return _LayerGroup(APPLICATION.sizes(1 + min(20, int(rng.expovariate(1 / 4.2))), rng))


def _small(rng: Random) -> int:
    """Draw the size of a layer that holds a file or two: 100 bytes to 1 MB, each power of ten as often as the next."""
    return round(10 ** rng.uniform(2, 6))


def _layer(size: int, rng: Random) -> Layer:
    return Layer(_digest(rng), size, unpacked=round(size * rng.triangular(1.5, 3.1, 2.3)))


def _digest(rng: Random) -> Digest:
    return Digest(f"sha256:{rng.getrandbits(256):064x}")
