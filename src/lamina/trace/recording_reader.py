"""
Reader of recording files.

As with traces, the content of a file is untrusted: reading streams, stops at fixed limits, and rejects a file that is
truncated or altered. A file that is not a recording is rejected after its first bytes.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from lamina.model.errors import InputError
from lamina.trace.recording import (
    FORMAT,
    LENGTH_BYTES,
    RECORD,
    RECORD_LIMIT,
    VERSION,
    DecideCall,
    RecordingEnd,
    RecordingError,
    RecordingHeader,
    RecordingRecord,
    SnapshotPart,
    TakenEvents,
)
from lamina.trace.trace_reader import FilePosition, chunks

SIZE_LIMIT: Final = 4 * 1024**3
"""Largest recording in bytes, decompressed."""
FIRST_LIMIT: Final = 4 * 1024**2
"""Largest header in bytes, so that other files are rejected early."""

NOT_ONE: Final = "is not a recording of Lamina; name a file that `lamina scheduler --record-dir` wrote"
AGAIN: Final = "copy the file again"


class RecordingPreamble(msgspec.Struct, frozen=True):
    """The header fields that all versions have in common."""

    type: str = ""
    format: str = ""
    version: int = 0


def read_recording(path: str | Path, size_limit: int = SIZE_LIMIT) -> Iterator[RecordingRecord]:
    """
    Yield the records of a recording: header, snapshot parts, events and decisions, end.

    Raises InputError when the file is not a recording, is damaged or incomplete, or was written by a newer version.
    *size_limit* is the largest decompressed size in bytes.
    """
    place = FilePosition(str(path), lines=False)
    try:
        with Path(path).open("rb") as file:
            yield from _in_order(place, _frames(place, chunks(place, file, size_limit)))
    except OSError as error:
        message = f"cannot be read ({error.strerror}); check the name and its permissions"
        raise InputError.one(place.source, message) from error
    except RecordingError as error:
        raise InputError.one(place.source, str(error)) from error


def _frames(place: FilePosition, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Split the data into records."""
    held = bytearray()
    limit, wanted = FIRST_LIMIT, 0
    for piece in pieces:
        held += piece
        start = 0
        while len(held) - start >= LENGTH_BYTES:
            wanted = int.from_bytes(held[start : start + LENGTH_BYTES], "big")
            if wanted > limit:
                raise place.error(NOT_ONE if limit == FIRST_LIMIT else f"has a record of {wanted} bytes; {AGAIN}")
            end = start + LENGTH_BYTES + wanted
            if len(held) < end:
                break
            yield bytes(held[start + LENGTH_BYTES : end])
            limit, start = RECORD_LIMIT, end
        del held[:start]
    if held:
        raise place.error(NOT_ONE if limit == FIRST_LIMIT else f"is truncated in the middle of a record; {AGAIN}")


def _in_order(place: FilePosition, frames: Iterator[bytes]) -> Iterator[RecordingRecord]:
    """Decode the records and check their order: a header, parts, events and decisions, an end with the right count."""
    seen, last = 0, 0
    end: RecordingEnd | None = None
    for data in frames:
        if end is not None:
            raise place.error(f"has data after its end record; {AGAIN}")
        if seen == 0:
            _check_header(place, data)
        record = _decode(place, data)
        if isinstance(record, RecordingEnd):
            if record.records != seen:
                raise place.error(f"its end record counts {record.records} records, found {seen}; {AGAIN}")
            end = record
            continue
        stage = STAGES[type(record)]
        if stage < last or (stage == 0 and seen):
            raise place.error(f"has a record of type {record.__struct_config__.tag!r} in the wrong place; {AGAIN}")
        last = stage
        seen += 1
        yield record
    if seen == 0:
        raise place.error(f"is empty; {AGAIN}")
    if end is None:
        raise place.error(f"is truncated, its end record is missing; {AGAIN}")
    yield end


STAGES: Final[dict[type, int]] = {RecordingHeader: 0, SnapshotPart: 1, TakenEvents: 2, DecideCall: 2}


def _check_header(place: FilePosition, data: bytes) -> None:
    try:
        preamble = msgspec.msgpack.decode(data, type=RecordingPreamble)
    except (ValueError, RecursionError):
        preamble = RecordingPreamble()
    if preamble.type != "header" or preamble.format != FORMAT or preamble.version < 1:
        raise place.error(NOT_ONE)
    if preamble.version > VERSION:
        raise place.error(f"has version {preamble.version}, this Lamina reads up to {VERSION}; use a newer Lamina")


def _decode(place: FilePosition, data: bytes) -> RecordingRecord:
    try:
        return RECORD.decode(data)
    except (ValueError, RecursionError) as error:
        raise place.error(f"has an invalid record ({error}); {AGAIN}") from error
