"""
How soon a pod could start on each row, as far as images go: computed once for a set of images, then patched.

    seconds  = 0                        every image is there
             = eta - now                the last of them is on its way
             = queue + pull + disk      otherwise: what waits in the row's pull queue, what it lacks, what must make room
    transfer = seconds of download that only this pod would cause

What a row lacks changes when something comes or goes there, and is patched row by row. Queues and arrivals change with every
moment, on every row where something is pulled: they are added for all rows, in a handful of steps, whenever somebody looks.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina.layers.arriving_images import ArrivingImages
from lamina.layers.layer_index import LayerIndex
from lamina.layers.layer_set import NOBODY, NOTHING, Bools, Floats, LayerSet, Lines
from lamina.layers.not_held import distinct, update_rows
from lamina.layers.pull_rates import PullRates
from lamina.rows.growable import grown

Variants = Sequence[tuple[int, LayerSet | None]]
"""What a set of images means on each platform that rows have (by number); None where that is not known."""
Costs = tuple[Floats, Floats | None, Floats, Floats, Floats]
"""Pull, disk (None: nobody told of one), waits, transfer and download, as in `Readiness`."""


class Readiness:
    """Rows of one set of images. Read them after `ReadinessEstimator.look`, at once, and do not change them."""

    __slots__ = (
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
        "silent",
        "timed",
        "transfer",
        "unheard",
        "variants",
        "waits",
        "whole_only",
    )

    def __init__(self, variants: Variants, *, whole_only: bool, edition: int = 0) -> None:
        """Start with no rows; *whole_only*: as if nobody knew that images share layers."""
        self.resolve(variants, edition)
        self.whole_only = whole_only
        self.moves = -1
        self.timed = 0
        """Grows whenever `seconds` changed."""
        self.scratch: tuple[Any, ...] = ()
        """For whoever scores by it: what was worked out last, and from what."""
        self.seconds: Floats = NOTHING
        """NaN where it cannot be told, see `silent`."""
        self.transfer: Floats = NOTHING
        self.download: Floats = NOTHING
        """Bytes to download, as a share of all."""
        self.pull: Floats = NOTHING
        self.disk: Floats | None = None
        self.waits: Floats = NOTHING
        """1 where something has to be pulled, 0 where every image is there or on its way."""
        self.silent: Bools = NOBODY
        """Where nothing was reported, or what the images mean is not known."""
        self.unheard = False
        """Whether that is anywhere."""

    def resolve(self, variants: Variants, edition: int) -> None:
        """Take over what the images mean on the platforms of an *edition*; all rows are counted anew."""
        self.variants = variants
        self.edition = edition
        self.position = -1
        self.distinct = list({id(one): one for _, one in variants if one is not None}.values())
        """What is wanted on any platform, each once."""
        self.everywhere = self.distinct[0] if all(one is self.distinct[0] for _, one in variants) else None
        """What is wanted on every platform there is, if that is the same; None: it is not."""

    def on(self, platform: int) -> LayerSet | None:
        """Return what is wanted on a platform; None when that is not known."""
        return next((wanted for number, wanted in self.variants if number == platform), None)


class ReadinessEstimator:
    """Keeps readiness up to date."""

    def __init__(self, index: LayerIndex, rates: PullRates, arrivals: ArrivingImages) -> None:
        """Look at these."""
        self._index = index
        self._rates = rates
        self._arrivals = arrivals
        self._platforms: Lines = np.zeros(index.capacity, dtype=np.intp)
        """The number of each row's platform."""
        self._reached = 0
        """So many rows everybody has room for."""

    def place(self, row: int, platform: int) -> None:
        """A row has this platform."""
        self._reach(row + 1)
        if self._platforms[row] != platform:
            self._platforms[row] = platform
            self._index.touch(row)

    def platform(self, row: int) -> int:
        """Return the number of a row's platform."""
        return int(self._platforms[row])

    def look(self, ready: Readiness, height: int) -> None:
        """Bring the rows up to date, at least the first *height* of them."""
        if ready.position != self._index.position or len(ready.seconds) < height:
            self._count(ready, height)
        elif ready.moves == self._arrivals.moves:
            return
        ready.moves = self._arrivals.moves
        ready.timed += 1
        self._time(ready)

    # -- what rows lack ----------------------------------------------------------------------------------------------

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
            ready.silent = self._silent(ready.pull, everything)
            ready.unheard = bool(ready.silent.any())
            ready.seconds = np.zeros(height)
            return
        if some is None or ready.everywhere is None or not together or max(rows, default=0) >= len(ready.seconds):
            some = distinct(rows, len(ready.seconds))
        self._patch(ready, some)

    def _patch(self, ready: Readiness, some: Lines) -> None:
        pull, disk, ready.waits[some], ready.transfer[some], ready.download[some] = self._costs(ready, some)
        ready.pull[some] = pull
        silent = self._silent(pull, some)
        if ready.unheard or np.count_nonzero(silent):
            ready.silent[some] = silent
            ready.unheard = bool(ready.silent.any())
        if disk is not None or ready.disk is not None:
            ready.disk = np.zeros(len(ready.seconds)) if ready.disk is None else ready.disk
            ready.disk[some] = 0.0 if disk is None else disk

    def _silent(self, pull: Floats, rows: slice | Lines) -> Bools:
        silent: Bools = ~self._index.reported[rows]
        silent |= np.isnan(pull)
        return silent

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

    # -- how long that takes from now on -----------------------------------------------------------------------------

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
        if ready.unheard:
            seconds[ready.silent] = np.nan

    def _wait(self, ready: Readiness, wanted: LayerSet) -> None:
        """Where every image is there or on its way, wait for the last one."""
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
