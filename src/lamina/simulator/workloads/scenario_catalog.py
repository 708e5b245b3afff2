"""
The layers and images of a scenario, from all its files together.

A layer or image may be listed in several files as long as they agree. Digests of what is listed are made from names, so
that the same scenario gives the same trace everywhere; what comes from catalogs has its own. Nodes are linux/amd64,
and only images for that can be used.
"""

from collections.abc import Iterable
from random import Random

from lamina.layers.catalog import LINUX, folded, pinned
from lamina.model.conversion import suggest
from lamina.model.digest import Digest, digest_of
from lamina.model.errors import Mistake
from lamina.model.image import Image, Layer
from lamina.model.plain import shown
from lamina.model.reference import ReferenceFormatError, parse_reference
from lamina.simulator.workloads import units
from lamina.simulator.workloads.field_types import Size
from lamina.simulator.workloads.generated_catalog import generate
from lamina.simulator.workloads.image_suggestions import suggest_image
from lamina.simulator.workloads.scenario_files import ScenarioDocument, ScenarioEntry
from lamina.simulator.workloads.workload_schema import CatalogEntry
from lamina.wire.image_merge import ImageMerger, written


class ScenarioCatalog:
    """What can be pulled, by name."""

    def __init__(self, parts: Iterable[ScenarioDocument]) -> None:
        """Take in what all *parts* list; `mistakes` says what does not fit together."""
        self.mistakes: list[Mistake] = []
        self.images: dict[str, Image] = {}
        """By the full spelling of the name; one image may have several."""
        self._by_digest: dict[Digest, Image] = {}
        self._elsewhere: dict[str, Image] = {}
        """Images for other platforms only, by the full spelling."""
        self._layers: dict[str, tuple[Layer, ScenarioEntry]] = {}
        self._from: dict[str, ScenarioEntry] = {}
        parts = tuple(parts)
        # Also what has mistakes of its own counts as listed: one mistake is told once.
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
        """Whether all that the files say about images could be read, so that what is not there is really missing."""
        for entry in images:
            for name in entry.value if isinstance(entry.value, dict) else ():
                self._layer(entry, name, entry.value[name], name)
        for entry in images:
            self._image(entry)

    @property
    def layer_names(self) -> dict[Digest, str]:
        """What the scenario calls each layer."""
        return {layer.digest: name for name, (layer, _) in self._layers.items()}

    @property
    def all_images(self) -> tuple[Image, ...]:
        """Every image once."""
        return tuple({id(image): image for image in self.images.values()}.values())

    def find(self, entry: ScenarioEntry, name: str, *steps: str | int) -> Image | None:
        """Return the image that *entry* names *steps* inside it; None, and a mistake, when there is none."""
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
        """Take in catalogs; when there are several, they have to agree."""
        found = [(entry, images) for part in parts for entry, images in _catalogs_of(part)]
        joined = ImageMerger()
        for entry, images in found:
            told = [problem for image in images for problem in joined.add(image, entry.where)] if len(found) > 1 else []
            # Catalogs that contradict each other do so in thousands of lines; the first says enough.
            self.mistakes += (entry.mistake(problem) for problem in told[:1])
        for image in found[0][1] if len(found) == 1 else joined.images():
            for name in map(folded, image.names):
                if image.platform == LINUX:
                    self.images[name] = self._by_digest[image.digest] = image
                else:
                    self._elsewhere[name] = image

    def _layer(self, entry: ScenarioEntry, name: str, written: str | float, *steps: str | int) -> None:
        size = units.size(written)
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
    """Name the manifest: by the digest that the reference is pinned to, or else by the reference."""
    try:
        pinned = parse_reference(name).digest
    except ReferenceFormatError:
        pinned = None
    return pinned or digest_of(f"image {name}".encode())
