"""
Writer of trace files.

A trace is written under a temporary name beside its final one and renamed when it is complete. A file with the final
name is therefore complete: an interrupted run leaves the previous file, or none.

    open --write…--> open --close--> kept under the final name
                      |
                      +--discard (also: an exception inside ``with``)--> nothing left

The same records give the same bytes, at any time and on any machine (with one release of zstd).
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self

import msgspec
import zstandard

from lamina.model.errors import InputError, WiringError
from lamina.trace.trace_records import LINE_LIMIT, TraceEnd, TraceHeader, TraceRecord, not_finite, type_of

SUFFIX: Final = ".jsonl.zst"
PLAIN_SUFFIX: Final = ".jsonl"

# Level 3 is zstd's default; it is fixed because the bytes depend on it.
LEVEL: Final = 3
BATCH: Final = 256 * 1024

ENCODER: Final = msgspec.json.Encoder(order="deterministic")


class TraceSink(Protocol):
    """Receives the records of a run, in the order of events, the `TraceHeader` first."""

    def write(self, record: TraceRecord) -> None:
        """Append one record. The caller does not write the `TraceEnd`; the sink does."""
        ...


class AtomicFile:
    """A file that gets its final name when it is complete."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._temporary = path.with_name(f".{secrets.token_hex(8)}.part")
        with _writing(path):
            self._file = self._temporary.open("xb")

    def write(self, data: bytes) -> None:
        """Append *data*."""
        with _writing(self.path):
            self._file.write(data)

    def keep(self) -> None:
        """Give the file its final name and replace an existing file."""
        with _writing(self.path):
            self._file.close()
            self._temporary.replace(self.path)

    def discard(self) -> None:
        """Remove the file; an existing file with the final name is not changed."""
        # Closing may fail on a full disk, because it writes buffered data. The file must be removed all the same.
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            self._temporary.unlink()


class RecordCounter:
    """Checks the order of records, and counts them."""

    def __init__(self) -> None:
        self.records = 0
        self.last_at = 0.0

    def check(self, record: TraceRecord) -> None:
        """Reject a record that a reader would reject. Raises WiringError."""
        if (self.records == 0) is not isinstance(record, TraceHeader):
            raise WiringError("a trace must begin with a header and must not have a second one")
        if isinstance(record, TraceEnd):
            raise WiringError("close() writes the end record of a trace")
        if field := not_finite(record):
            raise WiringError(f"{type_of(record)}.{field} is not a finite number")

    def count(self, record: TraceRecord) -> None:
        """Count a written record."""
        self.records += 1
        self.last_at = record.at

    def end(self) -> TraceEnd:
        """Return the end record with the count."""
        if self.records == 0:
            raise WiringError("a trace was closed before its header was written")
        return TraceEnd(self.last_at, self.records)


class TraceWriter:
    """Writes a trace file: compressed when its name ends in ``.jsonl.zst``, plain when it ends in ``.jsonl``."""

    def __init__(self, path: str | Path) -> None:
        path = Path(path)
        if not path.name.endswith((SUFFIX, PLAIN_SUFFIX)):
            raise InputError.one(str(path), f"a trace is named *{SUFFIX}, or *{PLAIN_SUFFIX} to leave it uncompressed")
        compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True, write_content_size=False)
        self._compressor = compressor.compressobj() if path.name.endswith(SUFFIX) else None
        self._counter = RecordCounter()
        self._batch = bytearray()
        self._file = AtomicFile(path)
        self._open = True

    def write(self, record: TraceRecord) -> None:
        """Append one record."""
        if not self._open:
            raise WiringError("a record was written to a closed trace")
        self._counter.check(record)
        self._append(record)
        self._counter.count(record)

    def close(self) -> None:
        """Complete the trace and give it its final name; if that fails, the file is removed."""
        if not self._open:
            return
        try:
            self._append(self._counter.end())
            self._flush()
            if self._compressor is not None:
                self._file.write(self._compressor.flush())
            self._file.keep()
        except BaseException:
            self.discard()
            raise
        self._open = False

    def discard(self) -> None:
        """Remove the unfinished trace."""
        if self._open:
            self._open = False
            self._file.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def _append(self, record: TraceRecord) -> None:
        line = ENCODER.encode(record)
        if len(line) > LINE_LIMIT:
            message = (
                f"a record of type {type_of(record)} takes {len(line)} bytes, the limit is "
                f"{LINE_LIMIT}; record decisions in brief detail"
            )
            raise InputError.one(str(self._file.path), message, line=self._counter.records + 1)
        self._batch += line
        self._batch += b"\n"
        if len(self._batch) >= BATCH:
            self._flush()

    def _flush(self) -> None:
        data = bytes(self._batch)
        self._batch.clear()
        self._file.write(data if self._compressor is None else self._compressor.compress(data))


class MemoryTrace:
    """Keeps the records of a run in memory, for runs without a trace file."""

    def __init__(self) -> None:
        self.records: list[TraceRecord] = []
        self._counter = RecordCounter()

    def write(self, record: TraceRecord) -> None:
        """Append one record."""
        self._counter.check(record)
        self._counter.count(record)
        self.records.append(record)


def atomic_write(path: str | Path, data: bytes) -> None:
    """Write a whole file, or leave the previous one unchanged."""
    file = AtomicFile(Path(path))
    try:
        file.write(data)
        file.keep()
    except BaseException:
        file.discard()
        raise


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn an OSError into an InputError about *path*."""
    try:
        yield
    except OSError as error:
        message = f"cannot be written ({error.strerror}); check the folder, its permissions and the space left"
        raise InputError.one(str(path), message) from error
