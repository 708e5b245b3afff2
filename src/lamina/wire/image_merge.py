"""
Merge of images from several sources into one list, with contradictions reported for both sources.

The same manifest from two sources is one image with the names of both. What only one of them has about a layer, for
example its unpacked size, is kept. Used for the lines of a catalog file and for the sources that are added to one.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from lamina.model.digest import Digest
from lamina.model.image import Image, Layer, Platform
from lamina.model.reference import ReferenceFormatError, parse_reference

SHORT: Final = 19
"""Characters of a digest in a message: the algorithm and twelve digits, as other tools truncate them."""


class _MergedImage(msgspec.Struct):
    """One image with the names found so far."""

    layers: tuple[Digest, ...]
    platform: Platform
    where: str
    names: dict[str, str] = {}
    """Normalised name → name as written."""


class ImageMerger:
    """Merged images by digest, in the order in which they were added."""

    def __init__(self, *, names_move: bool = False) -> None:
        """
        Start empty.

        A name that another image has is a contradiction; with *names_move*, the later image takes it.
        """
        self.moved = 0
        """Number of names that moved from one image to another."""
        self._names_move = names_move
        self._images: dict[Digest, _MergedImage] = {}
        self._layers: dict[Digest, tuple[Layer, str]] = {}
        self._named: dict[tuple[str, Platform], Digest] = {}

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self._images)

    def images(self) -> tuple[Image, ...]:
        """Return the merged images."""
        return tuple(
            Image(
                digest,
                tuple(self._layers[layer][0] for layer in held.layers),
                tuple(held.names.values()),
                held.platform,
            )
            for digest, held in self._images.items()
        )

    def add(self, image: Image, where: str) -> list[str]:
        """Add an image found at *where*; return its contradictions, in which case nothing is added."""
        layers = {layer.digest: layer for layer in image.layers}
        problems = [*self._other_image(image), *self._other_layers(image, where)]
        names: dict[str, str] = {}
        for name in image.names:
            try:
                names.setdefault(str(parse_reference(name)), name)
            except ReferenceFormatError as error:
                problems.append(str(error))
        problems += self._other_names(image, names)
        if problems:
            return problems
        for digest, layer in layers.items():
            known, first = self._layers.get(digest, (layer, where))
            self._layers[digest] = (_joined(known, layer), first)
        order = tuple(layer.digest for layer in image.layers)
        held = self._images.setdefault(image.digest, _MergedImage(order, image.platform, where, {}))
        for folded, name in names.items():
            self._name(folded, name, image, held)
        return []

    def _name(self, folded: str, name: str, image: Image, held: _MergedImage) -> None:
        before = self._named.get((folded, image.platform))
        if before is not None and before != image.digest:
            self.moved += 1
            other = self._images[before]
            del other.names[folded]
            # As in a registry, an image that lost its last name can still be referenced by digest.
            pinned = f"{parse_reference(name).name}@{before}"
            other.names.setdefault(pinned, pinned)
            self._named[pinned, image.platform] = before
        self._named[folded, image.platform] = image.digest
        held.names.setdefault(folded, name)

    def _other_image(self, image: Image) -> Iterator[str]:
        held = self._images.get(image.digest)
        if held is None:
            return
        if held.layers != tuple(layer.digest for layer in image.layers):
            yield f"image {image.digest[:SHORT]} has other layers in {held.where}; keep one of them"
        if held.platform != image.platform:
            yield (
                f"image {image.digest[:SHORT]} is for {written(image.platform)} here and for {written(held.platform)} "
                f"in {held.where}; keep one of them"
            )

    def _other_layers(self, image: Image, where: str) -> Iterator[str]:
        here: dict[Digest, Layer] = {}
        for layer in image.layers:
            again = here.setdefault(layer.digest, layer)
            known, first = self._layers.get(layer.digest, (again, where))
            if known is layer:
                continue
            for what, one, other in (
                ("a size of {}", layer.size, known.size),
                ("an unpacked size of {}", layer.unpacked, known.unpacked),
                ("the diff id {}", layer.diff_id, known.diff_id),
            ):
                if one != other and one is not None and other is not None:
                    yield (
                        f"layer {layer.digest[:SHORT]} has {what.format(one)} here and "
                        f"{what.format(other)} in {first}; keep one of them"
                    )

    def _other_names(self, image: Image, names: dict[str, str]) -> Iterator[str]:
        if self._names_move:
            return
        for folded, name in names.items():
            before = self._named.get((folded, image.platform))
            if before is not None and before != image.digest:
                yield f"{name} is another image in {self._images[before].where}; write one of them with its digest"


def written(platform: Platform) -> str:
    """Return a platform as users write it: ``linux/arm64/v8``."""
    return "/".join(filter(None, (platform.os, platform.architecture, platform.variant)))


def read_platform(text: str) -> Platform:
    """Parse ``os/architecture`` with an optional variant. Raises ValueError."""
    parts = text.split("/")
    if not 2 <= len(parts) <= 3 or not all(part and len(part) <= 64 and part.isprintable() for part in parts):
        raise ValueError(f"{text[:60]!r} is not a platform; write for example linux/amd64")
    return Platform(*parts)


def _joined(known: Layer, layer: Layer) -> Layer:
    """Return a layer with the known values of both."""
    if known is layer or (known.diff_id is not None and known.unpacked is not None):
        return known
    unpacked = layer.unpacked if known.unpacked is None else known.unpacked
    return Layer(known.digest, known.size, known.diff_id or layer.diff_id, unpacked)
