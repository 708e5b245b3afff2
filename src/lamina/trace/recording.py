"""
What a live scheduler was fed and what came of it: the format of recordings.

    Header, Part…, (Taken | Decided)…, End

A recording begins with everything the loop knew (`SnapshotPart`: a field of the loop's snapshot, long ones in pieces), so that it
can be replayed from its own beginning. `TakenEvents` are events, in the order the loop took them; `DecideCall` is one call that
decided, with its limit, how ties were broken, and what came of it. The file is one zstd frame of records, each a length
(four bytes, big-endian) and as many bytes of MessagePack: data only, because a recording may come from a stranger.
Nothing here knows what a snapshot consists of; the room that takes snapshots does.
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
"""Bytes one record may take."""
LENGTH_BYTES: Final = 4
LEVEL: Final = 3
BATCH: Final = 1024**2


class RecordingError(LaminaError):
    """A recording cannot be written, or what should be one cannot be read."""


class RecordingHeader(msgspec.Struct, frozen=True, kw_only=True, tag="header"):
    """The first record: what ran, and what cannot be replayed."""

    format: str = FORMAT
    version: int = VERSION
    lamina: str = ""
    """The version of Lamina that wrote it."""
    configuration: str = ""
    """A KubeSchedulerConfiguration as JSON, as far as decisions depend on it."""
    detail: str = "brief"
    started: float = 0.0
    """Wall-clock second at which the snapshot was taken."""
    carried: int = 0
    """Commands of the first decision that stem from events before the snapshot; they are not compared."""
    exact: bool = True
    lost: tuple[str, ...] = ()
    """If not exact: plugins that may keep books of their own, which no snapshot has."""


class SnapshotPart(msgspec.Struct, frozen=True, tag="part"):
    """One field of the snapshot, or a piece of one that is a list."""

    name: str
    data: msgspec.Raw


class TakenEvents(msgspec.Struct, frozen=True, tag="taken"):
    """Events that the loop took in one call."""

    events: tuple[Event, ...]


class DecideCall(msgspec.Struct, frozen=True, tag="decided", omit_defaults=True):
    """One call that decided."""

    limit: int
    """How many pods it was to decide at most; 0: all that are ready."""
    tried: int
    """How many it did."""
    picks: tuple[int, ...] = ()
    """How ties were broken, in this order."""
    outcomes: tuple[CommandOutcome, ...] = ()
    broke: str = ""
    """What the core raised instead of deciding; the recording ends here."""


class RecordingEnd(msgspec.Struct, frozen=True, tag="end"):
    """The last record; a recording without it was cut short."""

    records: int


RecordingRecord = RecordingHeader | SnapshotPart | TakenEvents | DecideCall | RecordingEnd


RECORD: Final[msgspec.msgpack.Decoder[RecordingRecord]] = msgspec.msgpack.Decoder(RecordingRecord)
ENCODER: Final = msgspec.msgpack.Encoder()


def compressed(records: Iterable[RecordingRecord]) -> Iterator[bytes]:
    """Yield a file, piece by piece; the `RecordingEnd` is added."""
    compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).compressobj()
    held = bytearray()
    for record in _ended(records):
        data = ENCODER.encode(record)
        if len(data) > RECORD_LIMIT:
            raise RecordingError(
                f"a record of {len(data)} bytes is too large to be written: {RECORD_LIMIT} is the most"
            )
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
