"""
Ring of the newest events and decisions, with the state before them: enough to replay them.

    segment: snapshot + events and decisions since        at most two; when the newer one is full,
    segment: snapshot + events and decisions since        the older one is dropped and a new one begins

The host feeds the loop through the ring. A snapshot shares its objects with the loop (`Loop.snapshot`), and nothing is
encoded before a recording is written. So the cost is one list entry for each call.
"""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from lamina.model.events import Event
from lamina.scheduling.contract.commands import Command
from lamina.scheduling.loop.command_outcomes import outcome
from lamina.scheduling.loop.loop import Loop, Pick
from lamina.scheduling.loop.loop_snapshot import LoopSnapshot
from lamina.scheduling.loop.scheduling_queue import SchedulingQueue
from lamina.services.scheduler.event_size import size_of
from lamina.trace.recording import DecideCall

MOST_ENTRIES: Final = 20_000
MOST_BYTES: Final = 32 * 1024**2
MOST_LETTERS: Final = 1000
"""Most characters of an error message."""

RingEntry = tuple[Event, ...] | DecideCall


class TiePicks:
    """Breaks ties with another function, and keeps the picks."""

    def __init__(self, pick: Pick) -> None:
        """Call *pick* for each tie."""
        self._pick = pick
        self.drawn: list[int] = []
        """Picks since the ring last cleared them."""

    def __call__(self, count: int) -> int:
        """Return a number in 0..count-1."""
        drawn = self._pick(count)
        self.drawn.append(drawn)
        return drawn


class RingLimits(msgspec.Struct, frozen=True):
    """Limits of one segment."""

    entries: int = MOST_ENTRIES
    """Events and decide calls."""
    bytes: int = MOST_BYTES
    """Estimated size of the events only."""


class Segment(msgspec.Struct, eq=False):
    """A snapshot of the loop, and what happened since."""

    started: float
    snapshot: LoopSnapshot
    carried: int
    """Commands that the loop had not returned yet when the snapshot was made."""
    entries: list[RingEntry] = []
    count: int = 0
    size: int = 0


class EventRing:
    """Records what the host passes to the loop."""

    def __init__(
        self,
        loop: Loop,
        picks: TiePicks,
        clock: Callable[[], float],
        limits: RingLimits | None = None,
        full: Callable[[Segment], None] = lambda _: None,
    ) -> None:
        """
        Record what is passed to *loop*, whose ties *picks* breaks.

        *clock* returns seconds since 1970. *full* is called with every segment that is full.
        """
        self._loop = loop
        self._picks = picks
        self._clock = clock
        self._limits = limits or RingLimits()
        self._full = full
        self._segments = [self._begin()]

    def take(self, *happened: Event) -> None:
        """Pass events to the loop."""
        if happened:
            segment = self._current()
            segment.entries.append(happened)
            segment.count += len(happened)
            segment.size += sum(map(size_of, happened))
        self._loop.take(*happened)

    def decide(self, limit: int = 0) -> list[Command]:
        """Let the loop decide up to *limit* pods (0: all that are ready); return its commands."""
        segment = self._current()
        self._picks.drawn.clear()
        commands: list[Command] = []
        broke = ""
        try:
            commands = self._loop.decide(limit)
        except Exception as error:
            # Keep the call that raised: it is the reason to look at a recording.
            broke = f"{type(error).__name__}: {error}"[:MOST_LETTERS]
            raise
        finally:
            picks = tuple(self._picks.drawn)
            segment.entries.append(
                DecideCall(limit, len(self._loop.tried), picks, tuple(map(outcome, commands)), broke)
            )
            segment.count += 1
        return commands

    @property
    def queue(self) -> SchedulingQueue:
        """The waiting pods."""
        return self._loop.queue

    @property
    def unfinished(self) -> bool:
        """Whether the last `decide` stopped at its limit."""
        return self._loop.unfinished

    @property
    def tried(self) -> list[str]:
        """The profiles of the pods that the last `decide` attempted."""
        return self._loop.tried

    def recording(self) -> Segment:
        """Return all events in the ring as one segment, which does not change any more."""
        first = self._segments[0]
        entries = [entry for segment in self._segments for entry in segment.entries]
        return Segment(first.started, first.snapshot, first.carried, entries)

    def newest(self) -> Segment:
        """Return a copy of the current segment, which is not full yet."""
        last = self._segments[-1]
        return Segment(last.started, last.snapshot, last.carried, list(last.entries))

    def __iter__(self) -> Iterator[Segment]:
        """Iterate over the segments, oldest first."""
        return iter(self._segments)

    def _current(self) -> Segment:
        segment = self._segments[-1]
        if segment.count < self._limits.entries and segment.size < self._limits.bytes:
            return segment
        self._full(segment)
        # Drop the older segment before the new snapshot is made, to limit memory.
        self._segments = self._segments[-1:]
        self._segments.append(self._begin())
        return self._segments[-1]

    def _begin(self) -> Segment:
        return Segment(self._clock(), self._loop.snapshot(), self._loop.pending, [])
