"""
Reader of trace files.

Files may come from anywhere, so their content is untrusted. Reading streams, holds one line at a time and stops at
fixed limits. A file that is truncated or altered is rejected with the number of the line. A reader that receives the
`TraceEnd` record has the whole trace.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

import msgspec
import zstandard

from lamina.model.errors import InputError
from lamina.trace.trace_records import FORMAT, LINE_LIMIT, VERSION, TraceEnd, TraceHeader, TraceRecord

SIZE_LIMIT: Final = 8 * 1024**3
"""Largest trace in bytes, decompressed."""

ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
# Largest window that a frame may request: the default limit of the zstd program.
WINDOW_LIMIT: Final = 128 * 1024**2
# Four bytes of zstd can expand to 128 KiB, so one chunk of input becomes at most 16 MiB.
COMPRESSED_CHUNK: Final = 512
PLAIN_CHUNK: Final = 256 * 1024

RERUN: Final = "repeat the run that wrote it, or copy the file again"


class TracePreamble(msgspec.Struct, frozen=True):
    """The fields of the first line that all versions have in common."""

    type: str = ""
    format: str = ""
    version: int = 0


PREAMBLE: Final = msgspec.json.Decoder(TracePreamble)
RECORD: Final[msgspec.json.Decoder[TraceRecord]] = msgspec.json.Decoder(TraceRecord)


def read_trace(path: str | Path, size_limit: int = SIZE_LIMIT) -> Iterator[TraceRecord]:
    """
    Yield the records of a trace, `TraceHeader` first and `TraceEnd` last.

    Raises InputError when the file is not a trace, is damaged or incomplete, or was written by a newer version.
    *size_limit* is the largest decompressed size in bytes.
    """
    place = FilePosition(str(path))
    try:
        with Path(path).open("rb") as file:
            yield from _records(place, _lines(place, chunks(place, file, size_limit)))
    except OSError as error:
        message = f"cannot be read ({error.strerror}); check the name and its permissions"
        raise InputError.one(place.source, message) from error


class FilePosition:
    """Current position in a file, for error messages."""

    def __init__(self, source: str, *, lines: bool = True) -> None:
        self.source = source
        self.line = 1
        self._lines = lines

    def error(self, message: str) -> InputError:
        """Return an error at this position."""
        return InputError.one(self.source, message, line=self.line if self._lines else 0)


def _records(place: FilePosition, lines: Iterator[bytes]) -> Iterator[TraceRecord]:
    """Decode the records and check their order: one header, other records, one end with the right count."""
    seen = 0
    end: TraceEnd | None = None
    for line in lines:
        if end is not None:
            raise place.error(f"has data after its end record; {RERUN}")
        if seen == 0:
            _check_header(place, line)
        record = _decode(place, line)
        if isinstance(record, TraceHeader) and seen > 0:
            raise place.error("has a second header; keep one trace in one file")
        if isinstance(record, TraceEnd):
            if record.records != seen:
                raise place.error(f"its end record counts {record.records} records before it, found {seen}; {RERUN}")
            end = record
            continue
        seen += 1
        yield record
    if seen == 0:
        raise place.error(f"is empty; {RERUN}")
    if end is None:
        raise place.error(f"is truncated, its end record is missing; {RERUN}")
    yield end


def _check_header(place: FilePosition, line: bytes) -> None:
    """Check that this is a trace of a supported version."""
    try:
        preamble = PREAMBLE.decode(line)
    except (ValueError, RecursionError):
        preamble = TracePreamble()
    if preamble.type != "header" or preamble.format != FORMAT or preamble.version < 1:
        raise place.error("is not a trace of Lamina; name a file that a run wrote")
    if preamble.version > VERSION:
        raise place.error(f"has version {preamble.version}, this Lamina reads up to {VERSION}; use a newer Lamina")


def _decode(place: FilePosition, line: bytes) -> TraceRecord:
    try:
        return RECORD.decode(line)
    except (ValueError, RecursionError) as error:
        raise place.error(f"is not a trace record ({error}); {RERUN}") from error


def _lines(place: FilePosition, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Split the data into lines without their ends; a last line without an end is an error."""
    held = bytearray()
    for chunk in chunks:
        start = 0
        while (stop := chunk.find(b"\n", start)) >= 0:
            _check_length(place, len(held) + stop - start)
            if held:
                held += chunk[start:stop]
                yield bytes(held)
                held.clear()
            else:
                yield chunk[start:stop]
            place.line += 1
            start = stop + 1
        _check_length(place, len(held) + len(chunk) - start)
        held += chunk[start:]
    if held:
        # The record may look complete, but every line of a trace has a line end.
        if place.line == 1:
            _check_header(place, bytes(held))
        raise place.error(f"is truncated in the middle of a record; {RERUN}")


def _check_length(place: FilePosition, length: int) -> None:
    if length > LINE_LIMIT:
        raise place.error(f"has a line of more than {LINE_LIMIT} bytes; {RERUN}")


def chunks(place: FilePosition, file: BinaryIO, size_limit: int) -> Iterator[bytes]:
    """Yield the content of the file, decompressed if necessary, up to *size_limit* bytes."""
    magic = file.read(len(ZSTD_MAGIC))
    file.seek(0)
    size = 0
    for chunk in _decompressed(place, file) if magic == ZSTD_MAGIC else iter(lambda: file.read(PLAIN_CHUNK), b""):
        size += len(chunk)
        if size > size_limit:
            raise place.error(f"is larger than {size_limit} bytes when decompressed; name a file that a run wrote")
        yield chunk


def _decompressed(place: FilePosition, file: BinaryIO) -> Iterator[bytes]:
    """Decompress one zstd frame, which must be the whole file."""
    decompressor = zstandard.ZstdDecompressor(max_window_size=WINDOW_LIMIT).decompressobj()
    while data := file.read(COMPRESSED_CHUNK):
        if decompressor.eof:
            break
        try:
            chunk = decompressor.decompress(data)
        except zstandard.ZstdError as error:
            raise place.error(f"is damaged ({error}); {RERUN}") from error
        yield chunk
    if data or decompressor.unused_data:
        raise place.error(f"has data after the end of its compressed data; {RERUN}")
    if not decompressor.eof:
        raise place.error(f"is truncated in its compressed data; {RERUN}")
