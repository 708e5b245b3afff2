"""
The layers, images and catalogs of a scenario, from all of its files together.

Several files may list the same layer or image if they agree. Digests of listed images derive from their names, so the
same scenario gives the same trace on every machine; images from catalogs keep their own digests. Nodes are
linux/amd64, and only images for that platform can be used.
"""

from collections.abc import Iterable
from random import Random
from typing import Annotated, Final

import msgspec

from lamina.layers.catalog import LINUX, folded, pinned
from lamina.model.conversion import suggest
from lamina.model.digest import Digest, digest_of
from lamina.model.errors import Mistake
from lamina.model.image import Image, Layer
from lamina.model.plain import shown
from lamina.model.reference import ReferenceFormatError, parse_reference
from lamina.simulator.workloads.field_types import EntryStruct, Size
from lamina.simulator.workloads.generated_catalog import MOST_IMAGES, generate
from lamina.simulator.workloads.scenario_files import ScenarioDocument, ScenarioEntry
from lamina.wire.image_merge import ImageMerger, written

Seed = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class GenerateEntry(EntryStruct, frozen=True, kw_only=True):
    """A generated catalog. It has its own seed, so runs with different seeds use the same images."""

    images: Annotated[int, msgspec.Meta(ge=1, le=MOST_IMAGES)]
    seed: Seed = 0


class CatalogEntry(EntryStruct, frozen=True, kw_only=True):
    """A catalog that is not read from a file."""

    generate: GenerateEntry


class ScenarioCatalog:
    """The images that nodes can pull, by name."""

    def __init__(self, parts: Iterable[ScenarioDocument]) -> None:
        """Read the layers, images and catalogs of *parts*; `mistakes` lists contradictions."""
        self.mistakes: list[Mistake] = []
        self.images: dict[str, Image] = {}
        """By full name; one image may have several names."""
        self._by_digest: dict[Digest, Image] = {}
        self._elsewhere: dict[str, Image] = {}
        """Images that exist only for other platforms, by full name."""
        self._layers: dict[str, tuple[Layer, ScenarioEntry]] = {}
        self._from: dict[str, ScenarioEntry] = {}
        parts = tuple(parts)
        # Names include entries with mistakes: using such a name is not a second mistake.
        self._layer_names = dict.fromkeys(str(name) for part in parts for name in part.places("layers"))
        self._image_names = dict.fromkeys(str(name) for part in parts for name in part.places("images"))
        self._known = {folded(name) for name in self._image_names}
        self._catalogs_read = all(_is_readable(part) for part in parts)
        self._catalogs(parts)
        for part in parts:
            for entry in part.entries("layers", Size):
                self._layer(entry, entry.name, entry.value)
        images = [entry for part in parts for entry in part.entries("images", tuple[str, ...] | dict[str, Size])]
        self.complete = self._catalogs_read and len(images) == sum(len(part.places("images")) for part in parts)
        """Whether all images could be read; only then is an unknown name a mistake."""
        for entry in images:
            for name in entry.value if isinstance(entry.value, dict) else ():
                self._layer(entry, name, entry.value[name], name)
        for entry in images:
            self._image(entry)

    @property
    def layer_names(self) -> dict[Digest, str]:
        """Name of each layer in the scenario."""
        return {layer.digest: name for name, (layer, _) in self._layers.items()}

    @property
    def all_images(self) -> tuple[Image, ...]:
        """All images, each once."""
        return tuple({id(image): image for image in self.images.values()}.values())

    def find(self, entry: ScenarioEntry, name: str, *steps: str | int) -> Image | None:
        """Return the image called *name*; if there is none, note a mistake *steps* inside *entry* and return None."""
        full = folded(name)
        image = self.images.get(full) or self._by_digest.get(pinned(name) or Digest(""))
        if image is not None or full in self._known:
            return image
        if full in self._elsewhere:
            platform = written(self._elsewhere[full].platform)
            message = f"image {shown(name)} is there for {platform} only, and nodes are {written(LINUX)}"
        else:
            names = [*self._image_names, *(image.names[0] for image in self._by_digest.values())]
            hint = suggest_image(name, names) if names else "list it under images"
            message = f"there is no image {shown(name)}; {hint}"
        if self._catalogs_read:
            self.mistakes.append(entry.mistake(message, *steps))
        return None

    def _catalogs(self, parts: tuple[ScenarioDocument, ...]) -> None:
        """Read the catalogs; several catalogs must agree with each other."""
        found = [(entry, images) for part in parts for entry, images in _catalogs_of(part)]
        joined = ImageMerger()
        for entry, images in found:
            problems = (
                [problem for image in images for problem in joined.add(image, entry.where)] if len(found) > 1 else []
            )
            # Two contradicting catalogs differ in thousands of images; one message is enough.
            self.mistakes += (entry.mistake(problem) for problem in problems[:1])
        for image in found[0][1] if len(found) == 1 else joined.images():
            for name in map(folded, image.names):
                if image.platform == LINUX:
                    self.images[name] = self._by_digest[image.digest] = image
                else:
                    self._elsewhere[name] = image

    def _layer(self, entry: ScenarioEntry, name: str, size: int, *steps: str | int) -> None:
        self._layer_names.setdefault(name)
        known, before = self._layers.setdefault(name, (Layer(digest_of(f"layer {name}".encode()), size), entry))
        if known.size != size:
            message = f"layer {shown(name)} has {size} bytes here and {known.size} in {before.where}; keep one of them"
            self.mistakes.append(entry.mistake(message, *steps))

    def _image(self, entry: ScenarioEntry) -> None:
        found = [self._find_layer(entry, name, index) for index, name in enumerate(entry.value)]
        layers = [layer for layer in found if layer is not None]
        if not entry.value:
            self.mistakes.append(entry.mistake("an image has at least one layer; list it, bottom first"))
        name = folded(entry.name)
        image = Image(_digest(name), tuple(layers), (entry.name,))
        known = self.images.setdefault(name, image)
        before = self._from.setdefault(name, entry)
        if known.layers == image.layers:
            return
        if before is entry:
            message = "is in the catalog with other layers; leave it out here, or use another name"
        else:
            message = f"is listed with other layers as {shown(before.name)} in {before.where}; keep one of them"
        self.mistakes.append(entry.mistake(message))

    def _find_layer(self, entry: ScenarioEntry, name: str, index: int) -> Layer | None:
        if name in self._layers:
            return self._layers[name][0]
        if name not in self._layer_names:
            what_to_try = suggest(name, self._layer_names) if self._layer_names else "list it under layers"
            self.mistakes.append(entry.mistake(f"there is no layer {shown(name)}; {what_to_try}", index))
        return None


def _is_readable(part: ScenarioDocument) -> bool:
    place = part.document.root.inside.get("catalog")
    return place is None or place.value is None or part.single("catalog", str | CatalogEntry) is not None


def _catalogs_of(part: ScenarioDocument) -> Iterable[tuple[ScenarioEntry, tuple[Image, ...]]]:
    if (entry := part.single("catalog", str | CatalogEntry)) is not None:
        if isinstance(entry.value, CatalogEntry):
            asked = entry.value.generate
            yield entry, generate(asked.images, Random(asked.seed))
        else:
            yield entry, part.images


def _digest(name: str) -> Digest:
    """Return the digest of a listed image: the one its reference is pinned to, or else one derived from its name."""
    try:
        pinned = parse_reference(name).digest
    except ReferenceFormatError:
        pinned = None
    return pinned or digest_of(f"image {name}".encode())


MOST_NAMES: Final = 500
"""Above this number, only names of the nearest repository are compared: comparing all of them would take seconds."""


def suggest_image(name: str, names: Iterable[str]) -> str:
    """Return a hint that names the nearest of *names*."""
    names = list(names)
    if len(names) <= MOST_NAMES:
        return suggest(name, names)
    versions: dict[str, list[str]] = {}
    for one in names:
        versions.setdefault(_home(one), []).append(one)
    return suggest(name, versions.get(_home(name)) or versions)


def _home(name: str) -> str:
    """Return the repository: the name without tag and digest."""
    return folded(name).partition("@")[0].rpartition(":")[0]
