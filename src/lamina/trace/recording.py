"""
Format of recordings: the inputs of a live scheduler's loop and its decisions.

    header, part…, (taken | decided)…, end

A recording begins with the loop's state (`SnapshotPart`: a field of the loop's snapshot, long ones in pieces), so that
it can be replayed without earlier data. `TakenEvents` are events, in the order in which the loop took them.
`DecideCall` is one call that decided, with its limit, its tie-breaks and its results. The file is one zstd frame of
records, each a length (four bytes, big-endian) and as many bytes of MessagePack. It contains data only, never code,
because a recording may come from an untrusted source. This package does not know the content of a snapshot;
`lamina.scheduling.loop` does.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
import zstandard

from lamina.model.command_outcome import CommandOutcome
from lamina.model.errors import LaminaError
from lamina.model.events import Event

FORMAT: Final = "lamina-recording"
VERSION: Final = 1
SUFFIX: Final = ".lamrec"

RECORD_LIMIT: Final = 256 * 1024**2
"""Largest record in bytes."""
LENGTH_BYTES: Final = 4
LEVEL: Final = 3
BATCH: Final = 1024**2


class RecordingError(LaminaError):
    """A recording that cannot be written, or a file that cannot be read as a recording."""


class RecordingHeader(msgspec.Struct, frozen=True, kw_only=True, tag="header"):
    """The first record: what ran, and what cannot be replayed."""

    format: str = FORMAT
    version: int = VERSION
    lamina: str = ""
    """The version of Lamina that wrote the recording."""
    configuration: str = ""
    """A KubeSchedulerConfiguration as JSON, reduced to what affects decisions."""
    detail: str = "brief"
    started: float = 0.0
    """Wall-clock time of the snapshot, in seconds since 1970."""
    carried: int = 0
    """Commands of the first decision that stem from events before the snapshot; a replay does not compare them."""
    exact: bool = True
    lost: tuple[str, ...] = ()
    """If not exact: plugins that may keep state of their own, which a snapshot does not contain."""


class SnapshotPart(msgspec.Struct, frozen=True, tag="part"):
    """One field of the snapshot, or a piece of a field that is a list."""

    name: str
    data: msgspec.Raw


class TakenEvents(msgspec.Struct, frozen=True, tag="taken"):
    """Events that the loop took in one call."""

    events: tuple[Event, ...]


class DecideCall(msgspec.Struct, frozen=True, tag="decided", omit_defaults=True):
    """One call of the loop that decided."""

    limit: int
    """Largest number of pods to decide; 0: all that are ready."""
    tried: int
    """Number of pods that were decided."""
    picks: tuple[int, ...] = ()
    """Results of the tie-breaks, in order."""
    outcomes: tuple[CommandOutcome, ...] = ()
    broke: str = ""
    """The exception that the core raised instead of deciding; the recording ends here."""


class RecordingEnd(msgspec.Struct, frozen=True, tag="end"):
    """The last record; a recording without it is truncated."""

    records: int


RecordingRecord = RecordingHeader | SnapshotPart | TakenEvents | DecideCall | RecordingEnd


RECORD: Final[msgspec.msgpack.Decoder[RecordingRecord]] = msgspec.msgpack.Decoder(RecordingRecord)
ENCODER: Final = msgspec.msgpack.Encoder()


def compressed(records: Iterable[RecordingRecord]) -> Iterator[bytes]:
    """Yield the bytes of a file, piece by piece; appends the `RecordingEnd`."""
    compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).compressobj()
    held = bytearray()
    for record in _ended(records):
        data = ENCODER.encode(record)
        if len(data) > RECORD_LIMIT:
            raise RecordingError(f"a record of {len(data)} bytes is too large: the limit is {RECORD_LIMIT} bytes")
        held += len(data).to_bytes(LENGTH_BYTES, "big")
        held += data
        if len(held) >= BATCH:
            yield compressor.compress(bytes(held))
            held.clear()
    yield compressor.compress(bytes(held)) + compressor.flush()


def _ended(records: Iterable[RecordingRecord]) -> Iterator[RecordingRecord]:
    count = 0
    for record in records:
        yield record
        count += 1
    yield RecordingEnd(count)
