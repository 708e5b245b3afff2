"""
How soon a pod could start on each row, as far as images go: computed once for a set of images, then patched.

    seconds  = 0                        every image is there
             = eta - now                the last of them is on its way
             = queue + pull + disk      otherwise: what waits in the row's pull queue, what it lacks, what must make room
    transfer = seconds of download that only this pod would cause
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina.layers.arrivals import Arrivals
from lamina.layers.index import LayerIndex
from lamina.layers.lacking import look
from lamina.layers.rates import Rates
from lamina.layers.wanted import NOTHING, Bools, Floats, Lines, WantedLayers

Variants = Sequence[tuple[int, WantedLayers | None]]
"""What a set of images means on each platform that rows have (by number); None where that is not known."""


class Readiness:
    """Rows of one set of images. Read them after `Stopwatch.look`, at once, and do not change them."""

    __slots__ = ("download", "position", "scratch", "seconds", "transfer", "variants", "whole_only")

    def __init__(self, variants: Variants, *, whole_only: bool) -> None:
        """Start with no rows; *whole_only*: as if nobody knew that images share layers."""
        self.variants = variants
        self.whole_only = whole_only
        self.position = -1
        self.scratch: tuple[Any, ...] = ()
        """For whoever scores by it: what was worked out last, and from what."""
        self.seconds: Floats = NOTHING
        """NaN where nothing was reported, or what the images mean there is not known."""
        self.transfer: Floats = NOTHING
        self.download: Floats = NOTHING
        """Bytes to download, as a share of all."""


class Stopwatch:
    """Keeps readiness up to date."""

    def __init__(self, index: LayerIndex, rates: Rates, arrivals: Arrivals) -> None:
        """Look at these."""
        self._index = index
        self._rates = rates
        self._arrivals = arrivals
        self._platforms: Lines = np.zeros(index.capacity, dtype=np.intp)
        """The number of each row's platform."""

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
        index = self._index
        if ready.position == index.position and len(ready.seconds) >= height:
            return
        self._reach(height)
        rows = index.changed_since(ready.position) if ready.position >= 0 else None
        ready.position = index.position
        for _, wanted in ready.variants:
            if wanted is not None:
                look(index, wanted, height)
        if rows is None or len(ready.seconds) < height:
            everything = slice(0, height)
            ready.seconds, ready.transfer, ready.download = self._time(ready, everything, self._platforms[everything])
        elif rows:
            some = np.unique(np.array(rows, dtype=np.intp))
            some = some[some < len(ready.seconds)]
            answers = self._time(ready, some, self._platforms[some])
            ready.seconds[some], ready.transfer[some], ready.download[some] = answers

    def _time(self, ready: Readiness, rows: slice | Lines, platforms: Lines) -> tuple[Floats, Floats, Floats]:
        count = len(platforms)
        if len(ready.variants) == 1 and ready.variants[0][1] is not None:
            answers = self._time_one(ready, ready.variants[0][1], rows)
        else:
            answers = np.full(count, np.nan), np.zeros(count), np.zeros(count)
            for platform, wanted in ready.variants:
                if wanted is not None:
                    there = platforms == platform
                    for whole, part in zip(answers, self._time_one(ready, wanted, rows), strict=True):
                        whole[there] = part[there]
        answers[0][~self._index.reported[rows]] = np.nan
        return answers

    def _time_one(self, ready: Readiness, wanted: WantedLayers, rows: slice | Lines) -> tuple[Floats, Floats, Floats]:
        download, unpack, complete = wanted.download[rows], wanted.unpack[rows], wanted.complete[rows]
        if ready.whole_only:
            download = np.where(complete, 0.0, wanted.blobs.total)
            unpack = np.where(complete, 0.0, wanted.chains.total_unpacked)
        seconds = self._rates.pull_seconds(rows, download, unpack)
        seconds += np.maximum(self._arrivals.queue_end[rows] - self._arrivals.clock, 0.0)
        disk = self._rates.disk_seconds(rows, download, unpack, self._index.by_prefix[rows])
        if disk is not None:
            seconds += disk
        seconds[complete] = 0.0
        self._wait(wanted, rows, complete, seconds)
        transfer = download / self._rates.download[rows]
        transfer[complete] = 0.0
        return seconds, transfer, download / max(wanted.blobs.total, 1.0)

    def _wait(self, wanted: WantedLayers, rows: slice | Lines, complete: Bools, seconds: Floats) -> None:
        """Where every image is there or on its way, wait for the last one."""
        for image in wanted.images:
            for row, eta in self._arrivals.etas.get(image.digest, {}).items():
                place = row if isinstance(rows, slice) else int(np.searchsorted(rows, row))
                if place < len(seconds) and complete[place] and (isinstance(rows, slice) or rows[place] == row):
                    seconds[place] = max(seconds[place], eta - self._arrivals.clock)

    def _reach(self, height: int) -> None:
        if height > len(self._platforms):
            self._platforms = np.pad(self._platforms, (0, max(height, 2 * len(self._platforms)) - len(self._platforms)))
        self._index.reach(height)
        self._rates.reach(height)
        self._arrivals.reach(height)
