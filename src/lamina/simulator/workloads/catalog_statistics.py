"""
Statistics of a catalog: image sizes, shared bytes, and the bytes that an update keeps.

The definitions follow studies of registries. A layer is *shared* when two images use it. The share of shared bytes
is weighted by pulls, so a layer counts once for every image that has it. Percentiles use the nearest rank. The result
is plain data for `lamina catalog show` and for tests of generated catalogs.
"""

import math
from collections.abc import Iterable
from typing import Any, Final

from lamina.layers.catalog import folded
from lamina.model.digest import Digest
from lamina.model.image import Image
from lamina.model.reference import ReferenceFormatError, parse_reference

SMALL: Final = 1_000_000
LARGE: Final = 100_000_000
PERCENTILES: Final = (5, 25, 50, 75, 95, 99)
MOST_LISTED: Final = 10


def describe_catalog(images: Iterable[Image]) -> dict[str, Any]:
    """Return the statistics of a catalog; every key is always present, with None where there is nothing to measure."""
    images = tuple(images)
    homes = [repository_of(image) for image in images]
    contents = [{layer.digest: layer.size for layer in image.layers} for image in images]
    sizes: dict[Digest, int] = {}
    users: dict[Digest, int] = {}
    owners: dict[Digest, set[str]] = {}
    for home, content in zip(homes, contents, strict=True):
        sizes.update(content)
        for digest in content:
            users[digest] = users.get(digest, 0) + 1
            owners.setdefault(digest, set()).add(home)
    total, unique = sum(sum(content.values()) for content in contents), sum(sizes.values())
    shared = sum(users[digest] * size for digest, size in sizes.items() if users[digest] > 1)
    between = sum(users[digest] * size for digest, size in sizes.items() if len(owners[digest]) > 1)
    largest = sorted(images, key=lambda image: -image.size)[:MOST_LISTED]
    return {
        "images": len(images),
        "repositories": len(set(homes)),
        "layers": len(sizes),
        "bytes_total": total,
        "bytes_unique": unique,
        "deduplication": _share(total, unique),
        "bytes_shared_by_images": _share(shared, total),
        "bytes_shared_by_repositories": _share(between, total),
        "layers_of_one_image": _share(sum(count == 1 for count in users.values()), len(users)),
        "layers_below_1_mb": _share(sum(size < SMALL for size in sizes.values()), len(sizes)),
        "unique_bytes_in_layers_above_100_mb": _share(sum(size for size in sizes.values() if size > LARGE), unique),
        "layers_per_image": _spread(len(image.layers) for image in images),
        "image_bytes": _spread(image.size for image in images),
        "updates": _updates(images, homes, contents),
        "largest": [
            {"image": image.names[0] if image.names else image.digest, "bytes": image.size, "layers": len(image.layers)}
            for image in largest
        ],
    }


def repository_of(image: Image) -> str:
    """Return the repository of an image's first name; empty for an image without names."""
    if not image.names:
        return ""
    try:
        return parse_reference(folded(image.names[0])).name
    except ReferenceFormatError:
        return image.names[0]


def _updates(images: tuple[Image, ...], homes: list[str], contents: list[dict[Digest, int]]) -> dict[str, Any]:
    """Compare each image with its predecessor: the previous image of that repository and platform in the catalog."""
    before: dict[tuple[str, object], dict[Digest, int]] = {}
    kept: list[float] = []
    for image, home, content in zip(images, homes, contents, strict=True):
        key = (home, image.platform)
        if key in before and content:
            same = sum(size for digest, size in content.items() if digest in before[key])
            kept.append(same / max(1, sum(content.values())))
        before[key] = content
    return {
        "count": len(kept),
        "bytes_kept_mean": _share(math.fsum(kept), len(kept)),
        "keep_nothing": _share(sum(share == 0 for share in kept), len(kept)),
    }


def _share(part: float, whole: int) -> float | None:
    return part / whole if whole else None


def _spread(numbers: Iterable[int]) -> dict[str, int | None]:
    ranked = sorted(numbers)
    if not ranked:
        return dict.fromkeys((*(f"p{share}" for share in PERCENTILES), "max"))
    spread = {f"p{share}": ranked[math.ceil(share * len(ranked) / 100) - 1] for share in PERCENTILES}
    return {**spread, "max": ranked[-1]}
