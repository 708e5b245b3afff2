"""
The last events that the loop was fed, what it decided, and what it knew before: enough to replay them.

    segment: snapshot + what was taken and decided since        at most two; when the newer one is full,
    segment: snapshot + what was taken and decided since        the older one is dropped and a new one begins

The host feeds the loop through the ring. A snapshot shares the objects it consists of with the loop (`Loop.snapshot`), and
nothing is encoded before a recording is written, so that recording costs little: a list entry for each call.
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
"""Of the message of an error."""

RingEntry = tuple[Event, ...] | DecideCall


class TiePicks:
    """Breaks ties as another function does, and remembers how."""

    def __init__(self, pick: Pick) -> None:
        """Ask *pick*."""
        self._pick = pick
        self.drawn: list[int] = []
        """Since the ring last looked."""

    def __call__(self, count: int) -> int:
        """Return a number in 0..count-1."""
        drawn = self._pick(count)
        self.drawn.append(drawn)
        return drawn


class RingLimits(msgspec.Struct, frozen=True):
    """How much one segment holds."""

    entries: int = MOST_ENTRIES
    """Events and calls that decided."""
    bytes: int = MOST_BYTES
    """Estimated, of the events only."""


class Segment(msgspec.Struct, eq=False):
    """What the loop knew, and what happened since."""

    started: float
    snapshot: LoopSnapshot
    carried: int
    """Commands that the loop had not handed out yet when the snapshot was taken."""
    entries: list[RingEntry] = []
    count: int = 0
    size: int = 0


class EventRing:
    """Stands between the host and its loop."""

    def __init__(
        self, loop: Loop, picks: TiePicks, clock: Callable[[], float], limits: RingLimits | None = None
    ) -> None:
        """Record what is fed to *loop*, whose ties are broken by *picks*; *clock* tells the wall-clock second."""
        self._loop = loop
        self._picks = picks
        self._clock = clock
        self._limits = limits or RingLimits()
        self._segments = [self._begin()]
        self.full: Callable[[Segment], None] = lambda _: None
        """Called with every segment that is full."""

    def take(self, *happened: Event) -> None:
        """Feed events to the loop."""
        if happened:
            segment = self._current()
            segment.entries.append(happened)
            segment.count += len(happened)
            segment.size += sum(map(size_of, happened))
        self._loop.take(*happened)

    def decide(self, limit: int = 0) -> list[Command]:
        """Let the loop decide up to *limit* pods (0: all that are ready), and return what is to be done."""
        segment = self._current()
        self._picks.drawn.clear()
        commands: list[Command] = []
        broke = ""
        try:
            commands = self._loop.decide(limit)
        except Exception as error:
            # The call that broke the core is the one that a recording is looked at for.
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
        """The pods that wait."""
        return self._loop.queue

    @property
    def unfinished(self) -> bool:
        """Whether the last `decide` stopped at its limit."""
        return self._loop.unfinished

    @property
    def tried(self) -> list[str]:
        """The profiles of the pods the last `decide` looked at."""
        return self._loop.tried

    def recording(self) -> Segment:
        """Return everything that is remembered as one segment, which does not change any more."""
        first = self._segments[0]
        entries = [entry for segment in self._segments for entry in segment.entries]
        return Segment(first.started, first.snapshot, first.carried, entries)

    def newest(self) -> Segment:
        """Return the segment that is not full yet, as it is now: what no call of `full` has handed out."""
        last = self._segments[-1]
        return Segment(last.started, last.snapshot, last.carried, list(last.entries))

    def __iter__(self) -> Iterator[Segment]:
        """Go through the segments, oldest first."""
        return iter(self._segments)

    def _current(self) -> Segment:
        segment = self._segments[-1]
        if segment.count < self._limits.entries and segment.size < self._limits.bytes:
            return segment
        self.full(segment)
        # The older one is let go before the state is gone through once more.
        self._segments = self._segments[-1:]
        self._segments.append(self._begin())
        return self._segments[-1]

    def _begin(self) -> Segment:
        return Segment(self._clock(), self._loop.snapshot(), self._loop.pending, [])
