"""
How a recording comes out of its file.

As with traces, nothing in a file is believed: reading streams, stops at fixed bounds, and refuses a file that was cut short
or altered. A file that is no recording costs a few bytes of reading.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from lamina.model.errors import InputError
from lamina.model.plain import plural
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
"""Bytes a recording may have once decompressed."""
FIRST_LIMIT: Final = 4 * 1024**2
"""Bytes the header may take: what is no recording is not read further."""

NOT_ONE: Final = "is not a recording of Lamina; name a file that `lamina scheduler --record-dir` wrote"
AGAIN: Final = "copy the file again"


class RecordingPreamble(msgspec.Struct, frozen=True):
    """As much of the header as every version has in common."""

    type: str = ""
    format: str = ""
    version: int = 0


def read_recording(path: str | Path, size_limit: int = SIZE_LIMIT) -> Iterator[RecordingRecord]:
    """
    Yield the records of a recording: the `RecordingHeader`, parts of the snapshot, what happened, and the `RecordingEnd`.

    Raise `InputError`, with one line, when the file is not a recording, is damaged or incomplete, was written by a newer
    version, or grows beyond *size_limit* bytes when decompressed.
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
    """Cut into records."""
    held = bytearray()
    limit, wanted = FIRST_LIMIT, 0
    for piece in pieces:
        held += piece
        start = 0
        while len(held) - start >= LENGTH_BYTES:
            wanted = int.from_bytes(held[start : start + LENGTH_BYTES], "big")
            if wanted > limit:
                raise place.refuse(NOT_ONE if limit == FIRST_LIMIT else f"has a record of {wanted} bytes; {AGAIN}")
            end = start + LENGTH_BYTES + wanted
            if len(held) < end:
                break
            yield bytes(held[start + LENGTH_BYTES : end])
            limit, start = RECORD_LIMIT, end
        del held[:start]
    if held:
        raise place.refuse(NOT_ONE if limit == FIRST_LIMIT else f"was cut short in the middle of a record; {AGAIN}")


def _in_order(place: FilePosition, frames: Iterator[bytes]) -> Iterator[RecordingRecord]:
    """Decode and check the order: a header, parts, what happened, an end that counted right, nothing more."""
    seen, last = 0, 0
    end: RecordingEnd | None = None
    for data in frames:
        if end is not None:
            raise place.refuse(f"goes on after its end; {AGAIN}")
        if seen == 0:
            _check_header(place, data)
        record = _decode(place, data)
        if isinstance(record, RecordingEnd):
            if record.records != seen:
                raise place.refuse(f"counts {plural(record.records, 'record')}, there are {seen}; {AGAIN}")
            end = record
            continue
        stage = STAGES[type(record)]
        if stage < last or (stage == 0 and seen):
            raise place.refuse(f"has a {record.__struct_config__.tag} record where none can be; {AGAIN}")
        last = stage
        seen += 1
        yield record
    if seen == 0:
        raise place.refuse(f"is empty; {AGAIN}")
    if end is None:
        raise place.refuse(f"was cut short, its end is missing; {AGAIN}")
    yield end


STAGES: Final[dict[type, int]] = {RecordingHeader: 0, SnapshotPart: 1, TakenEvents: 2, DecideCall: 2}


def _check_header(place: FilePosition, data: bytes) -> None:
    try:
        preamble = msgspec.msgpack.decode(data, type=RecordingPreamble)
    except (ValueError, RecursionError):
        preamble = RecordingPreamble()
    if preamble.type != "header" or preamble.format != FORMAT or preamble.version < 1:
        raise place.refuse(NOT_ONE)
    if preamble.version > VERSION:
        raise place.refuse(f"has version {preamble.version}, this Lamina reads up to {VERSION}; use a newer Lamina")


def _decode(place: FilePosition, data: bytes) -> RecordingRecord:
    try:
        return RECORD.decode(data)
    except (ValueError, RecursionError) as error:
        raise place.refuse(f"has a record that is none ({error}); {AGAIN}") from error
