"""
What pods want: sets of images resolved for every platform there is, and how soon they would be ready on each row.

A platform is one as long as a node says that it has it. Nodes may say anything, so only the platforms that most nodes have
are told apart (`RowPlatforms`); of a row with another one it is not known what images mean there.
"""

from collections import OrderedDict
from typing import Final

from lamina.layers.catalog import Catalog
from lamina.layers.layer_index import LayerIndex
from lamina.layers.layer_set import LayerSet
from lamina.layers.readiness_estimator import Readiness, ReadinessEstimator, Variants
from lamina.layers.row_platforms import OTHER, RowPlatforms, RowPlatformsSnapshot
from lamina.model.digest import Digest
from lamina.model.image import Platform

# Sets of images whose rows are kept: 33 bytes for each row, 170 MB at 5,000 nodes if all of them are in use.
KEPT: Final = 1024

Names = tuple[str, ...]


class ReadinessCache:
    """Sets of images that were asked for lately, longest unused first."""

    def __init__(self, catalog: Catalog, index: LayerIndex, stopwatch: ReadinessEstimator) -> None:
        """Resolve names with *catalog* and keep rows in *index*."""
        self._catalog = catalog
        self._index = index
        self._stopwatch = stopwatch
        self._platforms = RowPlatforms(stopwatch.place)
        self._kept: OrderedDict[tuple[Names, bool], Readiness | None] = OrderedDict()

    @property
    def platforms(self) -> int:
        """How many platforms are told apart."""
        return len(self._platforms)

    @property
    def edition(self) -> int:
        """Grows whenever other platforms are told apart than before: names may mean more now, or less."""
        return self._platforms.edition

    def meaning(self, name: str) -> frozenset[tuple[Platform, Digest]]:
        """Return which image a name means on each of them, where that is known."""
        images = ((platform, self._catalog.find(name, platform)) for platform in self._platforms)
        return frozenset((platform, image.digest) for platform, image in images if image is not None)

    def place(self, row: int, platform: Platform) -> None:
        """A row's node has this platform."""
        before = self.edition
        self._platforms.put(row, platform)
        if self.edition != before:
            self._forget_unknown()

    def leave(self, row: int) -> None:
        """A row has no node any more."""
        before = self.edition
        self._platforms.put(row, None)
        if self.edition != before:
            self._forget_unknown()

    def snapshot(self) -> RowPlatformsSnapshot:
        """Return which platforms rows have, as data; queries work out the rest."""
        return self._platforms.snapshot()

    def restore(self, platforms: RowPlatformsSnapshot) -> None:
        """Know the platforms of rows again."""
        self._platforms.restore(platforms)

    def readiness(self, names: Names, *, whole_only: bool = False) -> Readiness | None:
        """
        Return how soon these images would be ready where; None when one of them is known for no platform.

        Absence of data is never data: with one image unknown nobody can say which node is better, so nobody does.
        """
        key = (names, whole_only)
        if key in self._kept:
            self._kept.move_to_end(key)
            kept = self._kept[key]
            if kept is None or kept.edition == self.edition:
                return kept
        else:
            kept = None
        variants = self._variants(names)
        known = any(wanted is not None for _, wanted in variants)
        if kept is not None:
            # After the new ones were made: of what both want nothing is lost.
            self._drop(kept)
        if kept is not None and known:
            kept.resolve(variants, self.edition)
            return kept
        ready = self._kept[key] = Readiness(variants, whole_only=whole_only, edition=self.edition) if known else None
        if len(self._kept) > KEPT:
            self._drop(self._kept.popitem(last=False)[1])
        return ready

    def somewhere(self, names: Names) -> LayerSet | None:
        """Return what these images consist of on the first platform for which all of them are known; None: on none."""
        ready = self.readiness(names)
        if ready is None:
            return None
        return next(wanted for _, wanted in ready.variants if wanted is not None)

    def platform(self, row: int) -> int:
        """Return the number of a row's platform; `OTHER`: it is none of those that are told apart."""
        return self._stopwatch.platform(row)

    def look(self, ready: Readiness, height: int) -> None:
        """Bring the rows up to date, at least the first *height* of them."""
        self._stopwatch.look(ready, height)

    def clear(self) -> None:
        """Forget what names mean."""
        for ready in self._kept.values():
            self._drop(ready)
        self._kept.clear()

    def _forget_unknown(self) -> None:
        for key in [key for key, ready in self._kept.items() if ready is None]:
            del self._kept[key]

    def _variants(self, names: Names) -> Variants:
        """Say what images are on each platform. Platforms on which they are the same share what is wanted there."""
        found: dict[tuple[Digest, ...], LayerSet] = {}
        variants: list[tuple[int, LayerSet | None]] = []
        for platform, number in self._platforms.items():
            images = [self._catalog.find(name, platform) for name in dict.fromkeys(names)]
            known = [image for image in images if image is not None]
            if len(known) < len(images):
                variants.append((number, None))
                continue
            digests = tuple(image.digest for image in known)
            if digests not in found:
                found[digests] = self._index.want(known)
            variants.append((number, found[digests]))
        if self._platforms.others:
            variants.append((OTHER, None))
        return variants

    def _drop(self, ready: Readiness | None) -> None:
        for wanted in ready.distinct if ready is not None else ():
            self._index.unwant(wanted)
