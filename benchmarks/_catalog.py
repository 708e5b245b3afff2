"""Images and holdings for benchmarks: base, runtime and application layers, and nodes that hold popular images."""

import random

from lamina.model.image import Image
from lamina.testing import an_image

MB = 1_000_000


def a_catalog(rng: random.Random, count: int) -> list[Image]:
    """Make images of 5 to 14 layers: of 40 bases, ten runtimes on each, and layers of their own."""
    images = []
    for number in range(count):
        base, runtime = rng.randrange(40), rng.randrange(10)
        layers = {f"base-{base}": (20 + base) * MB, f"runtime-{base}-{runtime}": (100 + runtime) * MB}
        layers |= {f"app-{number}-{index}": rng.randrange(1, 60) * MB for index in range(rng.randrange(3, 13))}
        images.append(an_image(f"app-{number}:1", layers))
    return images


def some_images(rng: random.Random, images: list[Image], weights: list[float], layers: int) -> list[Image]:
    """Draw popular images until they have at least *layers* distinct layers."""
    held: dict[str, Image] = {}
    distinct: set[str] = set()
    while len(distinct) < layers:
        for image in rng.choices(images, cum_weights=weights, k=16):
            held[image.digest] = image
            distinct.update(layer.digest for layer in image.layers)
    return list(held.values())


def popularity(count: int, exponent: float = 0.75) -> list[float]:
    """Return cumulative weights: the n-th image is used in proportion to 1 / n**exponent."""
    total = 0.0
    weights = []
    for rank in range(1, count + 1):
        total += rank**-exponent
        weights.append(total)
    return weights
