"""
Synthetic images with the statistics of real ones: a catalog for runs without a registry.

    family (base) --> runtime --> application, a repository of its own
      epochs: the base is rebuilt, and with it everything above; an update keeps nothing
      builds: the runtime is built anew on the same base; an update keeps the base
      otherwise the application changes from one of its own layers upwards; an update keeps all below

Parameters are fitted to the history of the Docker official images (docker-library/repo-info, linux/amd64, 2016 to 2019:
53,889 images of 132 repositories). There 75 % of the bytes of images are in layers that several images use, 61 % in
layers that several repositories use; 72 % of the layers are used by one image, 59 % are below 1 MB; images have 9 layers
(95 %: 18) and 151 MB (95 %: 464 MB); an update of a tag keeps 31 % of its bytes on average, and nothing in 42 % of
cases. Unpacked, they are about 2.3 times as large. `lamina catalog show` prints these statistics for any catalog.
"""

import math
from random import Random
from typing import Final

import msgspec

from lamina.model.digest import Digest
from lamina.model.image import Image, Layer

MOST_IMAGES: Final = 200_000

BASES: Final = (
    # MB, and the share of images built on it. The sizes are those of the layers that this history shares most often.
    (51.4, 0.34),
    (45.4, 0.20),
    (26.9, 0.22),
    (2.8, 0.16),
    (75.2, 0.08),
)
APPLICATIONS_PER_RUNTIME: Final = 12
ON_A_BASE: Final = 0.25
"""Share of applications that are built directly on a base, without a runtime."""
ONE_VERSION: Final = 0.26
"""Share of tags that never changed in this history."""
MEAN_VERSIONS: Final = 14
NEW_BASE: Final = 0.42
"""Share of updates that keep nothing."""
NEW_RUNTIME: Final = 0.36
"""Share of updates that keep only the base; fitted. The remaining updates also keep layers of the application."""
DRIFT: Final = 0.03
"""Largest relative difference in size between a layer and the layer that it replaces."""

MB: Final = 1_000_000
LARGEST: Final = 450.0
"""MB of the largest layer."""


class _LayerSizeMix(msgspec.Struct, frozen=True):
    """Distribution of layer sizes: a share of large layers, lognormal around a median in MB; the others are small."""

    large: float
    median: float
    spread: float

    def sizes(self, count: int, rng: Random) -> tuple[int, ...]:
        """Return *count* drawn sizes."""
        return tuple(self._large(rng) if rng.random() < self.large else _small(rng) for _ in range(count))

    def _large(self, rng: Random) -> int:
        return round(MB * min(rng.lognormvariate(math.log(self.median), self.spread), LARGEST))


# Fitted: with these values a generated catalog has the statistics above.
RUNTIME: Final = _LayerSizeMix(0.55, 58.0, 0.75)
APPLICATION: Final = _LayerSizeMix(0.40, 8.0, 1.55)


class _LayerGroup(msgspec.Struct, frozen=True):
    """Sizes of layers that are built together; each build gives them new digests."""

    sizes: tuple[int, ...]

    def build(self, rng: Random, below: tuple[Layer, ...] = ()) -> tuple[Layer, ...]:
        """Return the layers *below*, which are kept, and new layers above them."""
        sizes = self.sizes[len(below) :]
        return below + tuple(_layer(max(1, round(size * rng.uniform(1 - DRIFT, 1 + DRIFT))), rng) for size in sizes)


class _BuildHistory:
    """All builds of a base or runtime; each is made once and shared by the images above it."""

    def __init__(self, part: _LayerGroup, below: "_BuildHistory | None" = None) -> None:
        self._part = part
        self._below = below
        self._built: dict[tuple[int, int], tuple[Layer, ...]] = {}

    def at(self, epoch: int, build: int, rng: Random) -> tuple[Layer, ...]:
        """Return the layers of the base and of this build, for one epoch of the base and one build within it."""
        if self._below is None:
            build = 0
        if (epoch, build) not in self._built:
            self._built[epoch, build] = self._part.build(rng)
        below = self._below.at(epoch, 0, rng) if self._below is not None else ()
        return below + self._built[epoch, build]


def generate(images: int, rng: Random) -> tuple[Image, ...]:
    """Return a catalog of that many images: one repository after the other, each with its versions in order."""
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
    """Return the drawn number of versions of each repository."""
    # No repository may be more than an eighth of a small catalog.
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
    """Return the drawn size of a small layer: 100 bytes to 1 MB, log-uniform."""
    return round(10 ** rng.uniform(2, 6))


def _layer(size: int, rng: Random) -> Layer:
    return Layer(_digest(rng), size, unpacked=round(size * rng.triangular(1.5, 3.1, 2.3)))


def _digest(rng: Random) -> Digest:
    return Digest(f"sha256:{rng.getrandbits(256):064x}")
