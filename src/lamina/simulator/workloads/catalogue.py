"""
The layers and images of a scenario, from all its files together.

A layer or image may be listed in several files as long as they agree. Digests are made from names, so that the same
scenario gives the same trace everywhere.
"""

from collections.abc import Iterable

from lamina.layers.catalog import folded
from lamina.model.digest import Digest, digest_of
from lamina.model.errors import Mistake
from lamina.model.image import Image, Layer
from lamina.model.plain import shown
from lamina.model.reference import ReferenceFormatError, parse_reference
from lamina.model.schema import suggest
from lamina.simulator.workloads import units
from lamina.simulator.workloads.files import Entry, Part
from lamina.simulator.workloads.schema import Size


class Catalogue:
    """What can be pulled, by name."""

    def __init__(self, parts: Iterable[Part]) -> None:
        """Take in what all *parts* list; `mistakes` says what does not fit together."""
        self.mistakes: list[Mistake] = []
        self.images: dict[str, Image] = {}
        """By the full spelling of the name."""
        self._layers: dict[str, tuple[Layer, Entry]] = {}
        self._from: dict[str, Entry] = {}
        parts = tuple(parts)
        # Also what has mistakes of its own counts as listed: one mistake is told once.
        self._layer_names = dict.fromkeys(str(name) for part in parts for name in part.places("layers"))
        self._image_names = dict.fromkeys(str(name) for part in parts for name in part.places("images"))
        self._known = {folded(name) for name in self._image_names}
        for part in parts:
            for entry in part.entries("layers", Size):
                self._layer(entry, entry.name, entry.value)
        images = [entry for part in parts for entry in part.entries("images", tuple[str, ...] | dict[str, Size])]
        for entry in images:
            for name in entry.value if isinstance(entry.value, dict) else ():
                self._layer(entry, name, entry.value[name], name)
        for entry in images:
            self._image(entry)

    @property
    def layer_names(self) -> dict[Digest, str]:
        """What the scenario calls each layer."""
        return {layer.digest: name for name, (layer, _) in self._layers.items()}

    def find(self, entry: Entry, name: str, *steps: str | int) -> Image | None:
        """Return the image that *entry* names *steps* inside it; None, and a mistake, when there is none."""
        image = self.images.get(folded(name))
        if image is None and folded(name) not in self._known:
            what_to_try = suggest(name, self._image_names) if self._image_names else "list it under images"
            self.mistakes.append(entry.mistake(f"there is no image {shown(name)}: {what_to_try}", *steps))
        return image

    def _layer(self, entry: Entry, name: str, written: str | float, *steps: str | int) -> None:
        size = units.size(written)
        self._layer_names.setdefault(name)
        known, before = self._layers.setdefault(name, (Layer(digest_of(f"layer {name}".encode()), size), entry))
        if known.size != size:
            message = f"layer {shown(name)} has {size} bytes here and {known.size} in {before.where}: keep one of them"
            self.mistakes.append(entry.mistake(message, *steps))

    def _image(self, entry: Entry) -> None:
        found = [self._find_layer(entry, name, index) for index, name in enumerate(entry.value)]
        layers = [layer for layer in found if layer is not None]
        if not entry.value:
            self.mistakes.append(entry.mistake("an image has at least one layer: list it, bottom first"))
        name = folded(entry.name)
        image = Image(_digest(name), tuple(layers), (entry.name,))
        known = self.images.setdefault(name, image)
        before = self._from.setdefault(name, entry)
        if known.layers != image.layers:
            message = f"is listed with other layers as {shown(before.name)} in {before.where}: keep one of them"
            self.mistakes.append(entry.mistake(message))

    def _find_layer(self, entry: Entry, name: str, index: int) -> Layer | None:
        if name in self._layers:
            return self._layers[name][0]
        if name not in self._layer_names:
            what_to_try = suggest(name, self._layer_names) if self._layer_names else "list it under layers"
            self.mistakes.append(entry.mistake(f"there is no layer {shown(name)}: {what_to_try}", index))
        return None


def _digest(name: str) -> Digest:
    """Name the manifest: by the digest that the reference is pinned to, or else by the reference."""
    try:
        pinned = parse_reference(name).digest
    except ReferenceFormatError:
        pinned = None
    return pinned or digest_of(f"image {name}".encode())
