"""
Replay of a recording: feeds it to a new loop and compares every decision.

Ties are broken as recorded; time comes from the events; nothing is bound. The first decision that differs is reported
with both outcomes and ends the replay, because later decisions depend on it.
"""

from collections.abc import Iterable, Iterator
from math import isfinite
from typing import Final, Literal, get_args

import msgspec

from lamina.model.command_outcome import CommandOutcome
from lamina.model.errors import InputError
from lamina.model.events import Event, TimePassed
from lamina.scheduling.config.loader import load
from lamina.scheduling.contract.plugin_registry import PluginRegistry
from lamina.scheduling.loop.command_outcomes import outcome
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.loop.loop_snapshot import SnapshotError, assemble
from lamina.scheduling.loop.loop_state import LoopSettings
from lamina.scheduling.runtime.explanation import Detail
from lamina.trace.recording import (
    DecideCall,
    RecordingError,
    RecordingHeader,
    RecordingRecord,
    SnapshotPart,
    TakenEvents,
)

LATEST: Final = 253_402_300_800
"""The first second of the year 10000: no recording began then, and it cannot be printed."""

DifferenceReason = Literal["commands", "ties", "attempts", "error"]


class ReplayDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A decision that differs from the recording."""

    decision: int
    """Number of the decision, from 1."""
    at: float
    """Time of the loop."""
    why: DifferenceReason
    recorded: tuple[CommandOutcome, ...] = ()
    replayed: tuple[CommandOutcome, ...] = ()
    message: str = ""


class ReplayResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a replay."""

    events: int
    decisions: int
    """Attempts to place a pod."""
    equal: bool
    exact: bool
    """Whether the recording has everything that decisions depend on."""
    lost: tuple[str, ...] = ()
    lamina: str = ""
    """The Lamina version that wrote the recording."""
    started: float = 0.0
    difference: ReplayDifference | None = None


class _RecordedTies:
    """Breaks ties as recorded."""

    def __init__(self) -> None:
        self.left: list[int] = []
        self.short = False

    def __call__(self, count: int) -> int:
        if not self.left or not 0 <= self.left[0] < count:
            self.short = True
            return 0
        return self.left.pop(0)


def replay_recording(source: str, records: Iterable[RecordingRecord], plugins: PluginRegistry) -> ReplayResult:
    """Replay a recording. Raises `InputError` if it is damaged, or its plugins are not installed here."""
    try:
        return _Player(source, iter(records), plugins).play()
    except (RecordingError, SnapshotError) as error:
        raise InputError.one(source, str(error)) from error


class _Player:
    def __init__(self, source: str, records: Iterator[RecordingRecord], plugins: PluginRegistry) -> None:
        self._picks = _RecordedTies()
        self._events = self._decisions = 0
        header = next(records)
        if not isinstance(header, RecordingHeader):
            raise RecordingError("does not begin with a header")
        if not 0 <= header.started < LATEST:
            raise RecordingError(f"has an invalid start time {header.started}")
        if header.carried < 0:
            raise RecordingError(f"has an invalid number of carried commands {header.carried}")
        self._header = header
        self._carried = header.carried
        configuration = load(header.configuration, f"{source} (its configuration)", plugins)
        if header.detail not in get_args(Detail):
            raise RecordingError(f"has an unknown detail {header.detail!r:.40}")
        settings = LoopSettings(
            configuration.backoff, msgspec.convert(header.detail, Detail), extenders=configuration.extenders
        )
        self._loop = Loop(configuration.profiles, self._picks, settings)
        self._records = self._restored(records)

    def _restored(self, records: Iterator[RecordingRecord]) -> Iterator[RecordingRecord]:
        parts: list[tuple[str, msgspec.Raw]] = []
        first: list[RecordingRecord] = []
        for record in records:
            if not isinstance(record, SnapshotPart):
                first.append(record)
                break
            parts.append((record.name, record.data))
        self._loop.restore(assemble((name, bytes(data)) for name, data in parts))
        _check_time(self._loop.now)
        yield from first
        yield from records

    def play(self) -> ReplayResult:
        difference: ReplayDifference | None = None
        for record in self._records:
            if isinstance(record, TakenEvents):
                difference = self._take(record.events)
            elif isinstance(record, DecideCall):
                difference = self._decide(record)
            if difference is not None:
                break
        header = self._header
        return ReplayResult(
            events=self._events,
            decisions=self._decisions,
            equal=difference is None,
            exact=header.exact,
            lost=header.lost,
            lamina=header.lamina,
            started=header.started,
            difference=difference,
        )

    def _take(self, happened: tuple[Event, ...]) -> ReplayDifference | None:
        for event in happened:
            if isinstance(event, TimePassed):
                _check_time(event.now)
        try:
            self._loop.take(*happened)
        except Exception as error:  # noqa: BLE001 - a replay must report what breaks the loop
            kinds = ", ".join(sorted({type(event).__name__ for event in happened}))
            return self._broke(f"taking in {kinds}", error)
        self._events += len(happened)
        return None

    def _decide(self, record: DecideCall) -> ReplayDifference | None:
        self._picks.left, self._picks.short = list(record.picks), False
        try:
            commands = self._loop.decide(record.limit)
        except Exception as error:  # noqa: BLE001 - a replay must report what breaks the loop
            return self._broke("deciding", error, record.broke)
        replayed = tuple(map(outcome, commands))
        if record.broke:
            message = f"the core raised {record.broke} when this was recorded, and decided in the replay"
            return self._error(message, replayed)
        recorded, self._carried = record.outcomes[self._carried :], 0
        tried = len(self._loop.tried)
        why: DifferenceReason | None = None
        if recorded != replayed:
            why = "commands"
        elif self._picks.left or self._picks.short:
            why = "ties"
        elif tried != record.tried:
            why = "attempts"
        if why is None:
            self._decisions += tried
            return None
        return ReplayDifference(
            decision=self._decisions + 1, at=self._loop.now, why=why, recorded=recorded, replayed=replayed
        )

    def _broke(self, doing: str, error: Exception, recorded: str = "") -> ReplayDifference:
        message = f"the core raised {type(error).__name__} while {doing}: {error}"
        if recorded:
            message += f" (when this was recorded, it raised {recorded})"
        return self._error(message)

    def _error(self, message: str, replayed: tuple[CommandOutcome, ...] = ()) -> ReplayDifference:
        return ReplayDifference(
            decision=self._decisions + 1, at=self._loop.now, why="error", replayed=replayed, message=message
        )


def _check_time(now: float) -> None:
    if not isfinite(now):
        raise RecordingError(f"has an invalid time {now}")
