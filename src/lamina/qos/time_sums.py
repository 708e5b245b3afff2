"""
Sums of four kinds of time over many pods, as linear functions of time.

While *n* pods are in a state since s₁ … sₙ, they have spent n·t - Σs in it at time t. So a sum is a count and a
constant. A fact changes both in constant time, the order of facts does not matter, and nothing has to be done while
pods only wait.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from lamina.qos.window_checkpoints import WindowCheckpoints, WindowCheckpointsSnapshot

EFFECTIVE: Final = 0
"""Running time that counts."""
DISCARDED: Final = 1
"""Running time that does not count."""
WAITING: Final = 2
BINDING: Final = 3
KINDS: Final = 4


class Line(msgspec.Struct, frozen=True):
    """A linear function of time: ``slope * t + offset``."""

    slope: float
    offset: float

    def at(self, t: float) -> float:
        """Return the value at time *t*."""
        return self.slope * t + self.offset


class TimeSumsSnapshot(msgspec.Struct, frozen=True):
    """Serializable form of `TimeSums`."""

    counts: tuple[int, ...]
    offsets: tuple[float, ...]
    window: WindowCheckpointsSnapshot | None


class TimeSums:
    """How long some pods were in each of four states, in seconds."""

    def __init__(self, window: float, now: float) -> None:
        """Start with no pod; *window* is 0 for sums over the whole lifetime."""
        self.counts = [0] * KINDS
        """Pods in each state."""
        self.offsets = [0.0] * KINDS
        self.window = WindowCheckpoints(window, KINDS, now) if window else None

    def advance(self, now: float) -> None:
        """Let the window follow the time; must be called before facts that happened until *now* are added."""
        if self.window is not None:
            self.window.advance(now, self.at)

    def start(self, kind: int, since: float) -> None:
        """Add a pod that is in a state since then."""
        self.counts[kind] += 1
        self.offsets[kind] -= since
        if self.window is not None:
            self.window.add(kind, since, float("inf"))

    def stop(self, kind: int, until: float) -> None:
        """Remove a pod that was in a state until then; the time that it spent there remains."""
        self.counts[kind] -= 1
        self.offsets[kind] += until
        if self.window is not None:
            self.window.add(kind, until, float("inf"), -1.0)

    def move(self, kind: int, other: int, start: float, end: float) -> None:
        """Count an interval of time as another kind."""
        self.offsets[kind] -= end - start
        self.offsets[other] += end - start
        if self.window is not None:
            self.window.add(kind, start, end, -1.0)
            self.window.add(other, start, end)

    def add_past(self, amounts: Sequence[float]) -> None:
        """Add time that pods spent before they were known; a window forgets it after its full length."""
        for kind, amount in enumerate(amounts):
            self.offsets[kind] += amount

    def merge(self, other: "TimeSums") -> None:
        """Add the sums of other pods, advanced to the same time."""
        for kind in range(KINDS):
            self.counts[kind] += other.counts[kind]
            self.offsets[kind] += other.offsets[kind]
        if self.window is not None and other.window is not None:
            self.window.merge(other.window)

    def at(self, t: float) -> list[float]:
        """Return the four sums at time *t*, over the whole lifetime."""
        return [count * t + offset for count, offset in zip(self.counts, self.offsets, strict=True)]

    def lines(self, now: float) -> list[Line]:
        """Return the four sums within the window, valid from *now* until the window moves or a fact arrives."""
        base = [0.0] * KINDS if self.window is None else self.window.base(now)
        return [Line(self.counts[kind], self.offsets[kind] - base[kind]) for kind in range(KINDS)]

    def snapshot(self) -> TimeSumsSnapshot:
        """Return the state as data."""
        window = None if self.window is None else self.window.snapshot()
        return TimeSumsSnapshot(tuple(self.counts), tuple(self.offsets), window)

    def restore(self, snapshot: TimeSumsSnapshot) -> None:
        """Restore a snapshot of sums with the same window."""
        self.counts, self.offsets = list(snapshot.counts), list(snapshot.offsets)
        if self.window is not None and snapshot.window is not None:
            self.window.restore(snapshot.window)
