"""
Which image an application of a trace runs. No trace says so; popularity stands in for it.

    applications   ranked by how many pods they have, ties by name
    images         the newest of each repository, ranked by given weights, or in an order drawn from the seed

The first application runs the first image, the second the second, and so on: what is popular in the trace is popular in
the registry. Applications that are left over when the images are used up draw one each, by the weights; without given
ones by Zipf's law, rank r counting r to the power of -s. The same seed, catalog and trace give the same images.
"""

import itertools
from collections.abc import Mapping
from pathlib import Path
from random import Random

from lamina.layers.catalog import folded, pinned
from lamina.model.digest import Digest
from lamina.model.errors import InputError
from lamina.model.image import Image
from lamina.model.plain import shown
from lamina.model.reference import ReferenceFormatError, parse_reference
from lamina.simulator.workloads.catalog_statistics import repository_of
from lamina.simulator.workloads.image_suggestions import suggest_image
from lamina.simulator.workloads.imports import import_files
from lamina.simulator.workloads.imports.import_context import ImportContext
from lamina.simulator.workloads.imports.import_schema import ImportEntry, ImportPopularityEntry


class ImageChooser:
    """The images of a scenario, by name and by popularity."""

    def __init__(self, entry: ImportEntry, folder: Path, context: ImportContext) -> None:
        """Look at what the scenario has."""
        self._entry, self._folder, self._context = entry, folder, context
        self._named: dict[str, Image] = {folded(name): one for one in context.images for name in one.names}
        self._digests: dict[Digest, Image] = {image.digest: image for image in context.images}
        self._newest: dict[str, Image] = {repository_of(image): image for image in context.images if image.names}

    def find(self, name: str) -> Image | None:
        """Return the image a pod with this name would run."""
        return self._named.get(folded(name)) or self._digests.get(pinned(name) or Digest(""))

    def what_to_try(self, name: str) -> str:
        """Say what else to write instead of a name nothing has."""
        names = [image.names[0] for image in self._digests.values() if image.names]
        return suggest_image(name, names) if names else "name a catalog, or list it under images"

    def choose(self, applications: Mapping[str, int]) -> dict[str, str]:
        """Choose an image for every application; *applications* says how many pods each has."""
        image = self._entry.image
        if image is not None:
            if self.find(image) is None:
                message = f"there is no image {shown(image)}; {self.what_to_try(image)}"
                raise InputError([self._context.entry.mistake(message, "image")])
            return dict.fromkeys(applications, image)
        ranked = self._ranked(self._entry.popularity or ImportPopularityEntry())
        names = [name for name, _ in ranked]
        weights = list(itertools.accumulate(weight for _, weight in ranked))
        dice = Random(f"imported images {self._context.seed}")
        order = sorted(applications, key=lambda one: (-applications[one], one))
        return {
            application: names[rank] if rank < len(names) else dice.choices(names, cum_weights=weights)[0]
            for rank, application in enumerate(order)
        }

    def _ranked(self, popularity: ImportPopularityEntry) -> list[tuple[str, float]]:
        """List images with their weights, the most popular first."""
        if not self._newest:
            message = "there is no image to run; name a catalog, list images, or say image"
            raise InputError([self._context.entry.mistake(message)])
        if popularity.file is None and popularity.column is not None:
            raise InputError([self._context.entry.mistake("say file as well", "popularity", "column")])
        if popularity.file is None and not popularity.weights:
            names = [image.names[0] for image in self._newest.values()]
            Random(f"imported ranks {self._context.seed}").shuffle(names)
            return [(name, rank**-popularity.zipf) for rank, name in enumerate(names, 1)]
        found: dict[str, float] = {}
        for name, weight in {**self._table(popularity), **popularity.weights}.items():
            image = self._meant(name)
            if image is not None:
                found[image.names[0]] = found.get(image.names[0], 0.0) + weight
            elif name in popularity.weights:
                message = f"there is no image or repository {shown(name)}; {self.what_to_try(name)}"
                raise InputError([self._context.entry.mistake(message, "popularity", "weights", name)])
        if not found:
            message = "none of its images is in the catalog; name another table, or leave it out"
            raise InputError([self._context.entry.mistake(message, "popularity", "file")])
        return sorted(found.items(), key=lambda one: (-one[1], one[0]))

    def _meant(self, name: str) -> Image | None:
        """Find an image by its own name, or else the newest of its repository."""
        try:
            return self.find(name) or self._newest.get(parse_reference(name).name)
        except ReferenceFormatError:
            return None

    def _table(self, popularity: ImportPopularityEntry) -> dict[str, float]:
        weights: dict[str, float] = {}
        if popularity.file is None:
            return weights

        def take(row: import_files.TableRow) -> None:
            names = list(row.columns)
            column = popularity.column or names[min(1, len(names) - 1)]
            if column not in names:
                raise row.wrong(column, f"there is no such column; choose from {', '.join(names[:12])}")
            if (weight := row.number(column)) > 0:
                name = row.text(names[0])
                weights[name] = weights.get(name, 0.0) + weight

        path = import_files.located(self._context, self._folder, popularity.file, "popularity", "file")
        import_files.each(import_files.rows(path, (), open_ended=True), take)
        return weights
