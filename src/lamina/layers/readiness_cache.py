"""
Cache of readiness estimates: image sets resolved for every platform, and how soon each row would have them.

A platform exists as long as a node reports it. Nodes may report any text, so only the platforms that most nodes have
are distinguished (`RowPlatforms`). On a row with another platform, image names cannot be resolved.
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

# Cached image sets. Each takes 33 bytes per row: 170 MB at 5,000 nodes if all are in use.
KEPT: Final = 1024

Names = tuple[str, ...]


class ReadinessCache:
    """Recently queried image sets, in least-recently-used order."""

    def __init__(self, catalog: Catalog, index: LayerIndex, estimator: ReadinessEstimator) -> None:
        """Resolve names with *catalog*, and take layer sets from *index*."""
        self._catalog = catalog
        self._index = index
        self._estimator = estimator
        self._platforms = RowPlatforms(estimator.place)
        self._kept: OrderedDict[tuple[Names, bool], Readiness | None] = OrderedDict()

    @property
    def platforms(self) -> int:
        """Number of distinguished platforms."""
        return len(self._platforms)

    @property
    def edition(self) -> int:
        """Grows whenever the set of distinguished platforms changes, because names may then resolve differently."""
        return self._platforms.edition

    def meaning(self, name: str) -> frozenset[tuple[Platform, Digest]]:
        """Return the image that a name refers to on each distinguished platform where it is known."""
        images = ((platform, self._catalog.find(name, platform)) for platform in self._platforms)
        return frozenset((platform, image.digest) for platform, image in images if image is not None)

    def place(self, row: int, platform: Platform) -> None:
        """Set the platform of a row's node."""
        before = self.edition
        self._platforms.put(row, platform)
        if self.edition != before:
            self._forget_unknown()

    def leave(self, row: int) -> None:
        """Remove the platform of a row that has no node any more."""
        before = self.edition
        self._platforms.put(row, None)
        if self.edition != before:
            self._forget_unknown()

    def snapshot(self) -> RowPlatformsSnapshot:
        """Return the platforms of rows as data; queries derive the rest."""
        return self._platforms.snapshot()

    def restore(self, platforms: RowPlatformsSnapshot) -> None:
        """Restore the platforms of rows."""
        self._platforms.restore(platforms)

    def readiness(self, names: Names, *, whole_only: bool = False) -> Readiness | None:
        """
        Return the readiness estimates of these images, or None when an image is unknown on every platform.

        Missing data is never an estimate: with one image unknown, no node can be preferred.
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
            # Released after the new sets were made, so that layers in both keep their lines.
            self._drop(kept)
        if kept is not None and known:
            kept.resolve(variants, self.edition)
            return kept
        ready = self._kept[key] = Readiness(variants, whole_only=whole_only, edition=self.edition) if known else None
        if len(self._kept) > KEPT:
            self._drop(self._kept.popitem(last=False)[1])
        return ready

    def first_known(self, names: Names) -> LayerSet | None:
        """Return the layers of these images on the first platform on which all are known, or None."""
        ready = self.readiness(names)
        if ready is None:
            return None
        return next(wanted for _, wanted in ready.variants if wanted is not None)

    def platform(self, row: int) -> int:
        """Return the number of a row's platform, or `OTHER` if it is not a distinguished one."""
        return self._estimator.platform(row)

    def look(self, ready: Readiness, height: int) -> None:
        """Update the first *height* rows of *ready*, at least."""
        self._estimator.look(ready, height)

    def clear(self) -> None:
        """Drop all cached sets, because names may refer to other images."""
        for ready in self._kept.values():
            self._drop(ready)
        self._kept.clear()

    def _forget_unknown(self) -> None:
        for key in [key for key, ready in self._kept.items() if ready is None]:
            del self._kept[key]

    def _variants(self, names: Names) -> Variants:
        """Resolve the names on each platform. Platforms with the same images share one layer set."""
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
