"""
Decision log: everything that clients did in a run, from which the run can be repeated without its scheduler.

One JSON line per feed of the decider that had inputs, after a header:

    {"format":"lamina-decisions","version":1,"scenario":"…","scheduler":"…","seed":7}
    {"feed":3,"at":170.0,"inputs":[{"op":"bind","subject":"job-1","target":"n0"}]}

A run is the same function of scenario, seed and decisions. So a scheduler that breaks ties at random is run once, and
its log repeats that run exactly, on any machine.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Final, Protocol

import msgspec

from lamina.model.errors import InputError
from lamina.model.events import Event, TimePassed
from lamina.scheduling.contract.commands import Command
from lamina.simulator.facade.cluster_writer import ClusterInput, ClusterWriter

FORMAT: Final = "lamina-decisions"
VERSION: Final = 1
LONGEST_LINE: Final = 64 * 1024 * 1024


class DecisionLogHeader(msgspec.Struct, frozen=True):
    """First line of a log."""

    format: str = FORMAT
    version: int = VERSION
    scenario: str = ""
    scheduler: str = ""
    seed: int = 0
    names: tuple[str, ...] = ("default-scheduler",)
    """Scheduler names of the pods that were placed; the first is for pods that name none."""
    latency: str = "free"
    """Decision latency of the run; if measured, every decision of the log has its time."""


class FeedInputs(msgspec.Struct, frozen=True):
    """Inputs of one feed."""

    feed: int
    at: float
    inputs: tuple[ClusterInput, ...]


class ByteSink(Protocol):
    """Receives the bytes of a log."""

    def write(self, data: bytes, /) -> object:
        """Write *data*."""
        ...


class DecisionLogWriter:
    """Writes a log line by line."""

    def __init__(self, sink: ByteSink, header: DecisionLogHeader) -> None:
        """Write to *sink*, which the caller closes."""
        self._sink = sink
        sink.write(msgspec.json.encode(header) + b"\n")

    def write(self, found: FeedInputs) -> None:
        """Write the inputs of one feed."""
        self._sink.write(msgspec.json.encode(found) + b"\n")


def read_decision_log(data: bytes, source: str) -> tuple[DecisionLogHeader, list[FeedInputs]]:
    """Return header and feeds of a log. Raises InputError."""
    lines = data.splitlines()
    try:
        header = msgspec.json.decode(lines[0] if lines else b"", type=DecisionLogHeader)
    except ValueError as error:
        raise InputError.one(
            source, f"is not a decision log: {error}; name a file that --decisions wrote", line=1
        ) from None
    if header.format != FORMAT or header.version != VERSION:
        what = f"{header.format} {header.version}"
        raise InputError.one(source, f"has the format {what}; this version reads {FORMAT} {VERSION}", line=1)
    return header, list(_feeds(lines[1:], source))


def _feeds(lines: Sequence[bytes], source: str) -> Iterator[FeedInputs]:
    decoder = msgspec.json.Decoder(FeedInputs)
    for number, line in enumerate(lines, 2):
        try:
            yield decoder.decode(line)
        except ValueError as error:
            raise InputError.one(source, f"cannot be read: {error}; the file may be cut short", line=number) from None


class ReplayDecider:
    """Decider that repeats a decision log."""

    def __init__(
        self, writer: ClusterWriter, header: DecisionLogHeader, feeds: Sequence[FeedInputs], source: str
    ) -> None:
        """Repeat *feeds* on the cluster of *writer*; *source* names the log in errors."""
        self.names: Collection[str] = header.names
        self.attempts = 0
        self.trying = False
        self.asked_until: float | None = None
        self._writer = writer
        self._feeds = {one.feed: one for one in feeds}
        self._source = source
        self._count = 0
        self._now = 0.0

    def feed(self, *events: Event) -> Sequence[Command]:
        """Return the commands that were recorded for this feed. Raises InputError if the run differs from the log."""
        for event in events:
            if isinstance(event, TimePassed):
                self._now = event.now
        self._count += 1
        found = self._feeds.pop(self._count, None)
        self.attempts = 0
        if found is None:
            self._writer.take()
            return ()
        if found.at != self._now:
            what = f"feed {self._count} is at {self._now:g} s in this run and at {found.at:g} s in the log"
            raise InputError.one(self._source, f"{what}; use the scenario and seed of the log, and the same version")
        for one in found.inputs:
            self._writer.repeat(one)
        commands, _ = self._writer.take()
        self.attempts = len(commands)
        return commands

    def elapsed(self) -> Sequence[float]:
        """Return the recorded seconds from the last feed to each of its decisions."""
        return self._writer.elapsed

    @property
    def unused(self) -> int:
        """Number of recorded feeds that the run has not reached."""
        return len(self._feeds)
