"""What pods want: sets of images resolved for every platform there is, and how soon they would be ready on each row."""

from collections import OrderedDict
from typing import Final

from lamina.layers.catalog import Catalog
from lamina.layers.index import LayerIndex
from lamina.layers.readiness import Readiness, Stopwatch
from lamina.layers.wanted import WantedLayers
from lamina.model.digest import Digest
from lamina.model.image import Platform

# Sets of images whose rows are kept: 33 bytes for each row, 170 MB at 5,000 nodes if all of them are in use.
KEPT: Final = 1024

Names = tuple[str, ...]


class Wants:
    """Sets of images that were asked for lately, longest unused first."""

    def __init__(self, catalog: Catalog, index: LayerIndex, stopwatch: Stopwatch) -> None:
        """Resolve names with *catalog* and keep rows in *index*."""
        self._catalog = catalog
        self._index = index
        self._stopwatch = stopwatch
        self._platforms: dict[Platform, int] = {}
        self._kept: OrderedDict[tuple[Names, bool], Readiness | None] = OrderedDict()

    @property
    def platforms(self) -> int:
        """How many platforms nodes had so far."""
        return len(self._platforms)

    def meaning(self, name: str) -> tuple[Digest | None, ...]:
        """Return which image a name means on each of them."""
        images = (self._catalog.find(name, platform) for platform in self._platforms)
        return tuple(None if image is None else image.digest for image in images)

    def place(self, row: int, platform: Platform) -> None:
        """A row's node has this platform."""
        if platform not in self._platforms:
            self._platforms[platform] = len(self._platforms)
            self.clear()
        self._stopwatch.place(row, self._platforms[platform])

    def readiness(self, names: Names, *, whole_only: bool = False) -> Readiness | None:
        """
        Return how soon these images would be ready where; None when one of them is known for no platform.

        Absence of data is never data: with one image unknown nobody can say which node is better, so nobody does.
        """
        key = (names, whole_only)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        variants = [(number, self._resolve(names, platform)) for platform, number in self._platforms.items()]
        known = any(wanted is not None for _, wanted in variants)
        ready = self._kept[key] = Readiness(variants, whole_only=whole_only) if known else None
        if len(self._kept) > KEPT:
            self._drop(self._kept.popitem(last=False)[1])
        return ready

    def somewhere(self, names: Names) -> WantedLayers | None:
        """Return what these images consist of on the first platform for which all of them are known; None: on none."""
        ready = self.readiness(names)
        if ready is None:
            return None
        return next(wanted for _, wanted in ready.variants if wanted is not None)

    def platform(self, row: int) -> int:
        """Return the number of a row's platform."""
        return self._stopwatch.platform(row)

    def look(self, ready: Readiness, height: int) -> None:
        """Bring the rows up to date, at least the first *height* of them."""
        self._stopwatch.look(ready, height)

    def clear(self) -> None:
        """Forget what names mean."""
        for ready in self._kept.values():
            self._drop(ready)
        self._kept.clear()

    def _resolve(self, names: Names, platform: Platform) -> WantedLayers | None:
        images = [self._catalog.find(name, platform) for name in dict.fromkeys(names)]
        known = [image for image in images if image is not None]
        return self._index.want(known) if len(known) == len(images) else None

    def _drop(self, ready: Readiness | None) -> None:
        for _, wanted in ready.variants if ready is not None else ():
            if wanted is not None:
                self._index.unwant(wanted)
