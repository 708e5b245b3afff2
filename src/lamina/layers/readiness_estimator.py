"""
Readiness estimates: seconds until a set of images is ready on each row, computed once and then patched.

    seconds  = 0                        every image is held
             = eta - now                the last image is arriving
             = queue + pull + disk      otherwise: the row's pull queue, the not-held layers, garbage collection
    transfer = seconds of download that only this pod would cause

Not-held layers change when images come or go on a row, and are patched row by row. Queues and arrivals change at every
tick on every row with a pull. They are added for all rows, in a few vector operations, at each query.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina.layers.arriving_images import ArrivingImages
from lamina.layers.layer_index import LayerIndex
from lamina.layers.layer_set import NO_ROWS, NOTHING, Bools, Floats, LayerSet, Lines
from lamina.layers.not_held import distinct, update_rows
from lamina.layers.pull_rates import PullRates
from lamina.rows.growable import grown

Variants = Sequence[tuple[int, LayerSet | None]]
"""Platform number → layers of an image set there; None where an image is unknown."""
Costs = tuple[Floats, Floats | None, Floats, Floats, Floats]
"""Pull, disk (None: no disk is known), waits, transfer and download, as in `Readiness`."""


class Readiness:
    """
    Readiness estimates of one image set, by row.

    Read the arrays right after `ReadinessEstimator.look`, and do not modify them.
    """

    __slots__ = (
        "any_unknown",
        "disk",
        "distinct",
        "download",
        "edition",
        "everywhere",
        "moves",
        "position",
        "pull",
        "scratch",
        "seconds",
        "timed",
        "transfer",
        "unknown",
        "variants",
        "waits",
        "whole_only",
    )

    def __init__(self, variants: Variants, *, whole_only: bool, edition: int = 0) -> None:
        """Start with no rows; *whole_only* ignores that images share layers."""
        self.resolve(variants, edition)
        self.whole_only = whole_only
        self.moves = -1
        self.timed = 0
        """Grows whenever `seconds` changed."""
        self.scratch: tuple[Any, ...] = ()
        """Cache slot for a score plugin: its last result, and the inputs of that result."""
        self.seconds: Floats = NOTHING
        """NaN on `unknown` rows."""
        self.transfer: Floats = NOTHING
        self.download: Floats = NOTHING
        """Bytes to download, as a fraction of all bytes of the images."""
        self.pull: Floats = NOTHING
        self.disk: Floats | None = None
        self.waits: Floats = NOTHING
        """1 where an image has to be pulled, 0 where every image is held or arriving."""
        self.unknown: Bools = NO_ROWS
        """Rows without a report, or on whose platform an image is unknown."""
        self.any_unknown = False
        """Whether any row is unknown."""

    def resolve(self, variants: Variants, edition: int) -> None:
        """Replace the layer sets by those of another platform *edition*; all rows are computed again."""
        self.variants = variants
        self.edition = edition
        self.position = -1
        self.distinct = list({id(one): one for _, one in variants if one is not None}.values())
        """The distinct layer sets of all platforms."""
        self.everywhere = self.distinct[0] if all(one is self.distinct[0] for _, one in variants) else None
        """The layer set if all platforms share one, else None."""

    def on(self, platform: int) -> LayerSet | None:
        """Return the layer set of a platform, or None if an image is unknown there."""
        return next((wanted for number, wanted in self.variants if number == platform), None)


class ReadinessEstimator:
    """Updates the readiness estimates of image sets."""

    def __init__(self, index: LayerIndex, rates: PullRates, arrivals: ArrivingImages) -> None:
        """Read held layers, rates and arrivals from these."""
        self._index = index
        self._rates = rates
        self._arrivals = arrivals
        self._platforms: Lines = np.zeros(index.capacity, dtype=np.intp)
        """Row → platform number."""
        self._reached = 0
        """Rows for which all arrays have room."""

    def place(self, row: int, platform: int) -> None:
        """Set the platform number of a row."""
        self._reach(row + 1)
        if self._platforms[row] != platform:
            self._platforms[row] = platform
            self._index.touch(row)

    def platform(self, row: int) -> int:
        """Return the platform number of a row."""
        return int(self._platforms[row])

    def look(self, ready: Readiness, height: int) -> None:
        """Update the first *height* rows of *ready*, at least."""
        if ready.position != self._index.position or len(ready.seconds) < height:
            self._count(ready, height)
        elif ready.moves == self._arrivals.moves:
            return
        ready.moves = self._arrivals.moves
        ready.timed += 1
        self._time(ready)

    # -- not-held layers ---------------------------------------------------------------------------------------------

    def _count(self, ready: Readiness, height: int) -> None:
        index = self._index
        if height > self._reached:
            self._reach(height)
        rows = index.changed_since(ready.position) if ready.position >= 0 and len(ready.seconds) >= height else None
        since, ready.position = ready.position, index.position
        some: Lines | None = None
        together = False
        for wanted in ready.distinct:
            together = wanted.position == since
            some = update_rows(index, wanted, height)
        if rows is None:
            everything = slice(0, height)
            ready.pull, ready.disk, ready.waits, ready.transfer, ready.download = self._costs(ready, everything)
            ready.unknown = self._unknown(ready.pull, everything)
            ready.any_unknown = bool(ready.unknown.any())
            ready.seconds = np.zeros(height)
            return
        if some is None or ready.everywhere is None or not together or max(rows, default=0) >= len(ready.seconds):
            some = distinct(rows, len(ready.seconds))
        self._patch(ready, some)

    def _patch(self, ready: Readiness, some: Lines) -> None:
        pull, disk, ready.waits[some], ready.transfer[some], ready.download[some] = self._costs(ready, some)
        ready.pull[some] = pull
        unknown = self._unknown(pull, some)
        if ready.any_unknown or np.count_nonzero(unknown):
            ready.unknown[some] = unknown
            ready.any_unknown = bool(ready.unknown.any())
        if disk is not None or ready.disk is not None:
            ready.disk = np.zeros(len(ready.seconds)) if ready.disk is None else ready.disk
            ready.disk[some] = 0.0 if disk is None else disk

    def _unknown(self, pull: Floats, rows: slice | Lines) -> Bools:
        unknown: Bools = ~self._index.reported[rows]
        unknown |= np.isnan(pull)
        return unknown

    def _costs(self, ready: Readiness, rows: slice | Lines) -> Costs:
        if ready.everywhere is not None:
            return self._costs_of(ready, ready.everywhere, rows)
        platforms = self._platforms[rows]
        count = len(platforms)
        pull, waits, transfer, download = np.full(count, np.nan), np.ones(count), np.zeros(count), np.zeros(count)
        disk: Floats | None = None
        for wanted in ready.distinct:
            there = np.isin(platforms, [platform for platform, one in ready.variants if one is wanted])
            costs = self._costs_of(ready, wanted, rows)
            for whole, part in ((pull, costs[0]), (waits, costs[2]), (transfer, costs[3]), (download, costs[4])):
                whole[there] = part[there]
            if costs[1] is not None:
                disk = np.zeros(count) if disk is None else disk
                disk[there] = costs[1][there]
        return pull, disk, waits, transfer, download

    def _costs_of(self, ready: Readiness, wanted: LayerSet, rows: slice | Lines) -> Costs:
        download, unpack, complete = wanted.download[rows], wanted.unpack[rows], wanted.complete[rows]
        if ready.whole_only:
            download = np.where(complete, 0.0, wanted.blobs.total)
            unpack = np.where(complete, 0.0, wanted.chains.total_unpacked)
        waits = (~complete).astype(np.float64)
        pull, transfer = self._rates.pull_seconds(rows, download, unpack)
        transfer *= waits
        disk = self._rates.disk_seconds(rows, download, unpack, self._index.by_prefix[rows])
        return pull, disk, waits, transfer, download / max(wanted.blobs.total, 1.0)

    # -- seconds from now on ------------------------------------------------------------------------------------------

    def _time(self, ready: Readiness) -> None:
        seconds, clock = ready.seconds, self._arrivals.clock
        np.subtract(self._arrivals.queue_end[: len(seconds)], clock, out=seconds)
        np.maximum(seconds, 0.0, out=seconds)
        seconds += ready.pull
        if ready.disk is not None:
            seconds += ready.disk
        seconds *= ready.waits
        for wanted in ready.distinct:
            self._wait(ready, wanted)
        if ready.any_unknown:
            seconds[ready.unknown] = np.nan

    def _wait(self, ready: Readiness, wanted: LayerSet) -> None:
        """On rows where every image is held or arriving, set the seconds until the last arrival."""
        seconds, waits, clock = ready.seconds, ready.waits, self._arrivals.clock
        where = None if ready.everywhere is not None else {number for number, one in ready.variants if one is wanted}
        for image in wanted.images:
            for row, eta in self._arrivals.etas.get(image.digest, {}).items():
                if row < len(seconds) and not waits.item(row) and (where is None or self.platform(row) in where):
                    seconds[row] = max(seconds.item(row), eta - clock)

    def _reach(self, height: int) -> None:
        self._platforms = grown(self._platforms, height)
        self._index.reach(height)
        self._rates.reach(height)
        self._arrivals.reach(height)
        self._reached = height
